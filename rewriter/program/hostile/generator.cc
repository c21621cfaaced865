#include <fxgraph/rewriter/program/hostile/generator.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <map>

#include <fxgraph/matchers/pattern_data.h>
#include <fxgraph/rewriter/program/hostile/arguments.h>
#include <fxgraph/rewriter/program/hostile/modules.h>
#include <fxgraph/rewriter/program/hostile/spelling.h>
#include <fxgraph/rewriter/program/hostile/values.h>
#include <fxgraph/rewriter/program/hostile/vocabulary.h>
#include <fxgraph/rewriter/program/pattern_examples.h>
#include <fxgraph/run/call.h>
#include <fxgraph/run/value.h>

namespace fx::hostile {

namespace {

/// Thrown where a call cannot be made of what there is.
struct NoSuchCall {};

class Generator : Values {
 public:
  using Values::Values;

  Program draw() {
    const at::NoGradGuard no_grad;
    at::manual_seed(random_.next() >> 1);
    choose_theme();
    for (std::size_t i = 1 + random_.below(3); i > 0; --i) input(draw_form());
    const std::size_t steps = 2 + random_.below(options_.most_steps - 1);
    for (std::size_t i = 0; i < steps; ++i) try_step();
    finish();
    return std::move(program_);
  }

 private:
  // ── Calls ──────────────────────────────────────────────────────────────────────────────────────────────────────────
  c10::IValue run(const Node& node) {
    const auto look_up = [&](Node& input) { return value_of(input); };
    CallValues call;
    for (const Argument& argument : node.args()) call.args.push_back(to_ivalue(argument, nullptr, look_up));
    for (const auto& [name, argument] : node.kwargs())
      call.kwargs.emplace_back(name, to_ivalue(argument, nullptr, look_up));
    if (node.is(Op::call_method)) return call_method_target(node.target(), call);
    if (node.is(Op::call_module)) return call_module(*modules_.at(node.target().str()), call.args.at(0).toTensor());
    return call_function_target(node.target(), call);
  }

  /// Makes the node and runs it; a list or tuple is taken apart.
  Node& place(Op op, Symbol target, const std::vector<Argument>& args, const std::vector<NamedArgument>& kwargs = {}) {
    constexpr std::array kNames = {"", "", "", "", "", "", "x", "result"};
    Node& node = program_.graph.create_node(op, target, args, kwargs, random_.pick(kNames));
    made_.push_back(&node);
    const c10::IValue value = run(node);
    keep(node, value);
    if (!value.isTensorList() && !value.isTuple() && !value.isList()) return node;
    const std::size_t count = value.isTuple() ? value.toTupleRef().elements().size() : value.toListRef().size();
    for (std::size_t i = 0; i < count && i < 3; ++i) {
      if (!random_.chance(85)) continue;
      const std::int64_t index =
          static_cast<std::int64_t>(i) - (random_.chance(15) ? static_cast<std::int64_t>(count) : 0);
      Node& part = program_.graph.call_function("operator.getitem", {node, index});
      made_.push_back(&part);
      keep(part, run(part));
    }
    return node;
  }

  Node& place(const OperatorSchema& schema, std::vector<Argument> args, std::vector<NamedArgument> kwargs) {
    Spelling call{Op::call_function, schema.target.str(), std::move(args), std::move(kwargs)};
    if (options_.spellings && random_.chance(40)) call = respell(random_, schema, std::move(call));
    return place(call.op, call.target, call.args, call.kwargs);
  }

  void operation(std::string_view target, unsigned optional_percent = 15) {
    const OperatorSchema* schema = find_schema(target);
    if (!schema) throw NoSuchCall();
    const ValueSource source{
        .tensor = [&](const SchemaArgument& parameter, const at::Tensor& first) { return value_for(parameter, first); },
        .value_of = [&](const Node& node) { return tensor_of(node); },
        .number = [&]() -> Node* { return numbers_.empty() ? nullptr : random_.pick(numbers_); },
        .integer = [&](std::int64_t value) { return number_that_is(value); }};
    auto call =
        draw_call(random_, *schema, source, {.optional_percent = optional_percent, .numbers = program_.numbers});
    if (!call) throw NoSuchCall();
    place(*schema, std::move(call->args), std::move(call->kwargs));
  }

  /// Numbers of the program, computed with as Python does.
  void arithmetic() {
    constexpr std::array<std::string_view, 5> kOperators = {"operator.add", "operator.mul", "operator.sub",
                                                            "operator.floordiv", "aten::size.int"};
    const std::string_view target = random_.pick(kOperators);
    if (target == "aten::size.int" || numbers_.empty()) return operation("aten::size.int");
    const Argument other = random_.chance(50) ? Argument(random_.pick(numbers_)) : Argument(random_.between(1, 3));
    place(Op::call_function, target, {Argument(random_.pick(numbers_)), other});
  }

  void write() {
    switch (random_.below(12)) {
      case 0: {  // x[i] = y
        Node *x = pick(), *y = pick();
        const std::size_t kind = random_.below(3);
        const Argument index = kind == 0   ? Argument(random_.between(-1, 1))
                               : kind == 1 ? Argument::slice(0, random_.between(1, 2))
                                           : Argument::tuple({Argument::ellipsis(), Argument(0)});
        place(Op::call_function, "operator.setitem",
              {x, index, random_.chance(50) ? Argument(y) : draw_literal(random_, program_.numbers)});
        return;
      }
      case 1: {  // a view is written
        constexpr std::array kViews = {"aten::select.int", "aten::slice.Tensor", "aten::view",      "aten::t",
                                       "aten::detach",     "aten::squeeze",      "aten::unsqueeze", "aten::expand"};
        operation(random_.pick(kViews));
        Node& view = *made_.back();
        place(Op::call_function, random_.chance(50) ? "aten::mul_.Scalar" : "aten::add_.Scalar", {view, 2});
        return;
      }
      case 2: {  // a weight is written
        if (program_.weights.empty()) return;
        Node* again_node = again(program_.weights[random_.below(program_.weights.size())]);
        place(Op::call_function, random_.chance(50) ? "aten::neg_" : "aten::exp_", {again_node});
        return;
      }
      default: {
        const auto operators = writing_operators();
        operation(random_.pick(operators));
      }
    }
  }

  // ── Motifs ─────────────────────────────────────────────────────────────────────────────────────────────────────────
  Node& value_called(std::string_view name, bool attribute) {
    if (const auto form = form_called(name)) return of_form(*form, name.starts_with("image_") ? 5 : 75);
    if (attribute) return random_.chance(70) || pool_.empty() ? weight(draw_form()) : *pick();
    return *pick();
  }

  void motif(const Pattern& pattern) {
    std::optional<Graph> example = internal::example_of(pattern.data(), examples_);
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
      const OperatorSchema* schema = node.is(Op::call_function) ? find_schema(node.target()) : nullptr;
      if (schema && random_.chance(12)) vary(*schema, args, kwargs);
      const std::size_t before = made_.size();
      if (schema) {
        place(*schema, std::move(args), std::move(kwargs));
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
      path = "m" + std::to_string(program_.submodules.size());
      const std::shared_ptr<torch::nn::Module> made = draw_module(random_, n_);
      modules_.emplace(path, made->clone());
      program_.submodules.push_back({path, made});
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
      } else {
        const auto operators = computing_operators();
        operation(random_.pick(operators));
      }
    });
  }

  void finish() {
    std::vector<Argument> results;
    for (std::size_t i = 1 + random_.below(3); i > 0; --i)
      results.emplace_back(random_.chance(60) || pool_.empty() ? last(i) : random_.pick(pool_));
    if (random_.chance(10)) results.push_back(random_.pick(results));
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

  std::vector<Node*> made_;  // by the step that is being tried
  std::map<std::string, std::shared_ptr<torch::nn::Module>> modules_;
};

}  // namespace

Program draw_program(std::uint64_t seed, const DrawOptions& options) { return Generator(seed, options).draw(); }

const std::vector<Pattern>& common_motifs() {
  static const std::vector<Pattern> kPatterns = [] {
    std::vector<Pattern> patterns;
    for (const std::string_view text : motif_texts()) patterns.emplace_back(text);
    return patterns;
  }();
  return kPatterns;
}

}  // namespace fx::hostile
