#include <fxgraph/testing/hostile/generator.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>

#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/run/nested_graph.h>
#include <fxgraph/run/value.h>
#include <fxgraph/testing/hostile/arguments.h>
#include <fxgraph/testing/hostile/calls.h>
#include <fxgraph/testing/hostile/modules.h>
#include <fxgraph/testing/hostile/vocabulary.h>
#include <fxgraph/testing/pattern_examples.h>

namespace fx::hostile {

namespace {

class Generator : Calls {
 public:
  using Calls::Calls;

  HostileProgram draw() {
    const at::NoGradGuard no_grad;
    at::manual_seed(random_.next() >> 1);
    choose_theme();
    for (std::size_t i = 1 + random_.below(3); i > 0; --i) input(draw_form());
    if (random_.chance(6)) input_with_default();
    if (is_odd()) try_call([&] { read_otherwise(); });
    if (is_odd()) try_call([&] { read_otherwise(); });
    if (is_odd()) leave_unread();
    const std::size_t steps = 2 + random_.below(options_.most_steps - 1);
    for (std::size_t i = 0; i < steps; ++i) try_step();
    finish();
    return std::move(program_);
  }

 private:
  // ── Motifs ─────────────────────────────────────────────────────────────────────────────────────────────────────────
  Node& value_called(std::string_view name, bool attribute) {
    if (const auto form = form_called(name)) return of_form(*form, name.starts_with("image_") ? 5 : 75);
    if (attribute) return random_.chance(70) || pool_.empty() ? weight(draw_form()) : *pick();
    return *pick();
  }

  void motif(const Pattern& pattern) {
    std::optional<Graph> example = internal::example_of(internal::PatternAccess::of(pattern), examples_);
    if (!example) throw NoSuchCall();
    NodeMap<Node*> copies(*example, nullptr);
    for (Node& node : example->nodes()) {
      if (node.is(Op::output)) break;
      if (node.is(Op::placeholder) || node.is(Op::get_attr)) {
        copies[node] = &value_called(node.target().view(), node.is(Op::get_attr));
        continue;
      }
      if (random_.chance(options_.write_percent / 2)) try_call([&] { write(); });
      const std::function<Argument(const Argument&)> mapped = [&](const Argument& argument) -> Argument {
        if (Node* input = argument.node_or_null()) return copies[*input];
        if (!argument.is_sequence()) return argument;
        std::vector<Argument> elements;
        for (const Argument& element : argument.elements()) elements.push_back(mapped(element));
        return argument.is_list() ? Argument::list(elements) : Argument::tuple(elements);
      };
      std::vector<Argument> args;
      for (const Argument& argument : node.args()) args.push_back(mapped(argument));
      std::vector<NamedArgument> kwargs;
      for (const auto& [name, argument] : node.kwargs()) kwargs.push_back({name, mapped(argument)});
      const Call call = call_of(node);
      const bool is_operator = call && !call.is_translated();
      if (is_operator && random_.chance(12)) vary(call.schema(), args, kwargs);
      const std::size_t before = made_.size();
      if (is_operator) {
        place(call.schema(), std::move(args), std::move(kwargs));
      } else {
        place(node.op(), node.target(), args, kwargs);
      }
      copies[node] = made_[before];
    }
  }

  /// Gives an argument that is not given, or changes one that is: what the pattern may not have thought of.
  void vary(const OperatorSchema& schema, std::vector<Argument>& args, std::vector<NamedArgument>& kwargs) {
    const std::size_t i = random_.below(schema.arguments.size());
    const SchemaArgument& parameter = schema.arguments[i];
    if (parameter.type.is_tensor() || parameter.type.list) return;
    OperatorSchema only = schema;
    only.arguments = {parameter};
    const ValueSource nothing{.tensor = [](const auto&, const auto&) { return nullptr; },
                              .value_of = [](const Node&) { return at::Tensor(); }};
    only.arguments[0].default_value.reset();
    const auto drawn = draw_call(random_, only, nothing, {.numbers = program_.numbers});
    if (!drawn) return;
    const Argument value =
        drawn->args.empty() ? drawn->kwargs.empty() ? Argument() : drawn->kwargs[0].value : drawn->args[0];
    if (i < args.size()) {
      args[i] = value;
    } else if (i == args.size() && i < schema.num_positional()) {
      args.push_back(value);
    } else if (std::ranges::none_of(kwargs, [&](const auto& named) { return named.name == parameter.name; })) {
      kwargs.push_back({parameter.name, value});
    }
  }

  // ── Modules ────────────────────────────────────────────────────────────────────────────────────────────────────────
  void add_module(const std::string& path, std::shared_ptr<torch::nn::Module> made) {
    Submodule submodule{path, std::move(made)};
    const std::shared_ptr<torch::nn::Module> own = submodule.prototype->clone();
    for (const auto& named : own->named_parameters(false)) {
      for (std::size_t i = 0; i < program_.weights.size(); ++i) {
        const at::Tensor& weight = weights_[i];
        if (weight.sizes() != named.value().sizes() || weight.scalar_type() != named.value().scalar_type() ||
            !random_.chance(20))
          continue;
        tie(*own, named.key(), weight);
        submodule.tied.emplace_back(named.key(), program_.weights[i].path);
        break;
      }
    }
    modules_.emplace(path, own);
    program_.submodules.push_back(std::move(submodule));
  }

  Node& graph_value() {
    const std::string path = "m" + std::to_string(program_.submodules.size());
    add_module(path, draw_nested(random_));
    Node& graph = program_.graph.get_attr(path);
    made_.push_back(&graph);
    return keep(graph, nested_graph_value(modules_.at(path)));
  }

  /// A call of a graph: of one of two, as a value of the program decides, for each row, or once.
  void call_graph() {
    Node* x = pick();
    const Argument graph(graph_value()), all = Argument::tuple(std::vector<Argument>{Argument(x)});
    switch (random_.below(10)) {
      case 0: place(Op::call_function, "higher_order::map_impl", {graph, all, Argument::tuple({})}); return;
      case 1: place(Op::call_function, "higher_order::wrap", {graph, x}); return;
      case 2: place(Op::call_function, "higher_order::strict_mode", {graph, all}); return;
      case 3: place(Op::call_function, "higher_order::wrap_with_set_grad_enabled", {false, graph, x}); return;
      default: break;
    }
    Argument which = Argument(random_.chance(50));
    for (Node* node : pool_) {
      if (tensor_of(*node).numel() == 1 && (tensor_of(*node).scalar_type() == at::kBool || random_.chance(20)))
        which = Argument(node);
    }
    place(Op::call_function, "higher_order::cond", {which, graph, graph_value(), all});
  }

  void module() {
    std::string path;
    if (!program_.submodules.empty() && random_.chance(50)) {
      const Submodule& other = random_.pick(program_.submodules);
      path = other.path;
      if (random_.chance(30)) {  // under a second path
        path = "m" + std::to_string(program_.submodules.size());
        modules_.emplace(path, modules_.at(other.path));
        program_.submodules.push_back({path, other.prototype, other.same_as.empty() ? other.path : other.same_as});
      }
    } else {
      path = (random_.chance(15) ? "deep.m" : "m") + std::to_string(program_.submodules.size());
      add_module(path, draw_module(random_, n_));
    }
    // What it holds may be read elsewhere, too.
    if (random_.chance(25)) {
      const auto state = state_of(*modules_.at(path));
      if (!state.empty()) {
        const auto& [name, tensor] = state[random_.below(state.size())];
        keep(program_.graph.get_attr(path + "." + name), tensor);
      }
    }
    const auto form = input_form(*modules_.at(path), n_);
    Node& x = form ? of_form(*form, 10) : *pick();
    place(Op::call_module, path, {x});
  }

  // ── Steps ──────────────────────────────────────────────────────────────────────────────────────────────────────────
  /// What was begun and threw is taken back; writes that had happened stay in the values here, which only have to be
  /// alike.
  template <typename Call>
  bool try_call(Call&& call) {
    std::vector<Node*> outer;
    outer.swap(made_);
    bool done = true;
    try {
      call();
    } catch (const NoSuchCall&) {
      done = false;
    } catch (const std::exception&) {
      done = false;
    }
    if (!done) {
      for (std::size_t i = made_.size(); i-- > 0;) {
        std::erase(pool_, made_[i]);
        std::erase(numbers_, made_[i]);
        program_.graph.erase_node(*made_[i]);
      }
      made_.clear();
    }
    outer.insert(outer.end(), made_.begin(), made_.end());
    made_.swap(outer);
    return done;
  }

  void try_step() {
    made_.clear();
    try_call([&] {
      const std::size_t what = random_.below(100);
      if (what < options_.motif_percent) {
        const auto& motifs =
            options_.motifs.empty() || random_.chance(options_.common_percent) ? common_motifs() : options_.motifs;
        motif(random_.pick(motifs));
      } else if (what < options_.motif_percent + options_.write_percent) {
        write();
      } else if (what < options_.motif_percent + options_.write_percent + 4) {
        const auto operators = random_operators();
        operation(random_.pick(operators));
      } else if (options_.modules && what < options_.motif_percent + options_.write_percent + 10) {
        module();
      } else if (what < options_.motif_percent + options_.write_percent + 14) {
        arithmetic();
      } else if (what < options_.motif_percent + options_.write_percent + 18) {
        index();
      } else if (options_.modules && what < options_.motif_percent + options_.write_percent + 19) {
        call_graph();
      } else {
        const auto operators = options_.rare && random_.chance(15) ? rare_operators() : computing_operators();
        operation(random_.pick(operators));
      }
    });
  }

  void finish() {
    std::vector<Argument> results;
    for (std::size_t i = 1 + random_.below(3); i > 0; --i)
      results.emplace_back(random_.chance(60) || pool_.empty() ? last(i) : random_.pick(pool_));
    if (random_.chance(10)) results.push_back(random_.pick(results));
    if (random_.chance(6)) results.push_back(numbers_.empty() ? Argument() : Argument(random_.pick(numbers_)));
    if (random_.chance(4)) results.push_back(draw_literal(random_, program_.numbers));
    if (results.size() == 1 && random_.chance(80)) {
      program_.graph.output(results[0]);
    } else {
      program_.graph.output(random_.chance(10)   ? nested(results)
                            : random_.chance(85) ? Argument::tuple(results)
                                                 : Argument::list(results));
    }
    program_.inputs.resize(options_.input_sets);
    if (random_.chance(options_.other_sizes_percent)) add_other_sizes();
  }

  Argument nested(const std::vector<Argument>& results) {
    const Argument rest = Argument::tuple(std::vector<Argument>(results.begin() + 1, results.end()));
    if (random_.chance(50)) return Argument::tuple({results[0], rest});
    return Argument::dict(std::vector<Argument>{Argument("a"), results[0], Argument("b"), rest});
  }

  Node* last(std::size_t back) {
    return pool_.empty() ? &program_.graph.nodes().front() : pool_[pool_.size() - std::min(back, pool_.size())];
  }
};

}  // namespace

HostileProgram draw_program(std::uint64_t seed, const DrawOptions& options) { return Generator(seed, options).draw(); }

const std::vector<Pattern>& common_motifs() {
  static const std::vector<Pattern> kPatterns = [] {
    std::vector<Pattern> patterns;
    for (const std::string_view text : motif_texts()) patterns.emplace_back(text);
    return patterns;
  }();
  return kPatterns;
}

}  // namespace fx::hostile
