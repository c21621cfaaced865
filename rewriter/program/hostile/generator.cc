#include <fxgraph/rewriter/program/hostile/generator.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>

#include <fxgraph/matchers/pattern_data.h>
#include <fxgraph/rewriter/program/hostile/arguments.h>
#include <fxgraph/rewriter/program/hostile/spelling.h>
#include <fxgraph/rewriter/program/hostile/vocabulary.h>
#include <fxgraph/rewriter/program/pattern_examples.h>
#include <fxgraph/run/call.h>
#include <fxgraph/run/value.h>

namespace fx::hostile {

namespace {

constexpr std::int64_t kMostElements = 300;

/// Thrown where a call cannot be made of what there is.
struct NoSuchCall {};

class Generator {
 public:
  Generator(std::uint64_t seed, const DrawOptions& options) : random_(seed), examples_(seed), options_(options) {}

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
  // ── Values ─────────────────────────────────────────────────────────────────────────────────────────────────────────
  /// What most tensors of one program look like, so that they go together.
  void choose_theme() {
    constexpr std::array kTypes = {at::kFloat, at::kFloat,    at::kFloat, at::kFloat, at::kDouble,
                                   at::kLong,  at::kBFloat16, at::kInt,   at::kBool,  at::kHalf};
    constexpr std::array<std::int64_t, 8> kSizes = {2, 2, 3, 3, 3, 2, 1, 0};
    type_ = random_.pick(kTypes);
    n_ = random_.pick(kSizes);
    rank_ = static_cast<std::size_t>(random_.chance(65) ? 2 : random_.below(5));
    program_.numbers = random_.chance(options_.special_percent) ? Numbers::special : Numbers::tame;
    note_type(type_);
  }

  void note_type(at::ScalarType type) {
    const auto bits = [](at::ScalarType t) {
      return t == at::kBFloat16 ? 0 : t == at::kHalf ? 1 : t == at::kFloat ? 2 : 3;
    };
    if (bits(type) < bits(program_.narrowest)) program_.narrowest = type;
  }

  TensorForm draw_form() {
    TensorForm form{std::vector<std::int64_t>(rank_, n_), type_};
    if (random_.chance(12)) form.sizes.assign(random_.below(5), n_);
    if (random_.chance(12)) {
      for (std::int64_t& size : form.sizes) size = random_.chance(40) ? 1 : size;
    }
    if (random_.chance(5)) {
      for (std::int64_t& size : form.sizes) size = static_cast<std::int64_t>(1 + random_.below(3));
    }
    constexpr std::array kTypes = {at::kFloat, at::kDouble, at::kLong, at::kBool, at::kInt, at::kBFloat16};
    if (random_.chance(10)) form.type = random_.pick(kTypes);
    return form;
  }

  /// What a placeholder of a motif asks for by its name.
  std::optional<TensorForm> form_called(std::string_view name) const {
    const at::ScalarType type = at::isFloatingType(type_) ? type_ : at::kFloat;
    if (name.starts_with("image_")) return TensorForm{{2, n_, n_, n_}, type};
    if (name.starts_with("kernel_")) return TensorForm{{n_, n_, n_ > 1 ? 2 : 1, 1}, type};
    if (name.starts_with("matrix_")) return TensorForm{{n_, n_}, type};
    if (name.starts_with("vector_")) return TensorForm{{n_}, type};
    if (name.starts_with("number_")) return TensorForm{{}, type};
    if (rank_ < 1) return {};
    if (name == "b" || name == "bias" || name == "weight" || name == "mean" || name == "variance" || name == "gamma" ||
        name == "beta")
      return TensorForm{{n_}, type};
    return {};
  }

  Node& keep(Node& node, const c10::IValue& value) {
    if (values_.size() <= node.id()) values_.resize(node.id() + 1);
    values_[node.id()] = value;
    if (value.isTensor() && value.toTensor().defined() && value.toTensor().numel() <= kMostElements) {
      if (value.toTensor().is_floating_point()) note_type(value.toTensor().scalar_type());
      pool_.push_back(&node);
    }
    if (value.isInt() || value.isDouble()) numbers_.push_back(&node);
    return node;
  }

  const c10::IValue& value_of(const Node& node) const { return values_[node.id()]; }
  at::Tensor tensor_of(const Node& node) const { return value_of(node).toTensor(); }

  Node& input(const TensorForm& form) {
    constexpr std::array kNames = {"x", "y", "z", "input", "add"};
    Node* before = nullptr;
    for (Node& node : program_.graph.nodes()) {
      if (!node.is(Op::placeholder)) {
        before = &node;
        break;
      }
    }
    note_type(form.type);
    const auto place = [&]() -> Node& {
      if (!before) return program_.graph.placeholder(random_.pick(kNames));
      const auto scope = program_.graph.inserting_before(*before);
      return program_.graph.placeholder(random_.pick(kNames));
    };
    Node& node = place();
    program_.inputs.resize(options_.input_sets);
    for (Tensors& set : program_.inputs) set.push_back(draw_tensor(random_, form, program_.numbers));
    return keep(node, copy_of(program_.inputs[0].back()));
  }

  /// A weight of its own, one under a second name, or a row of another.
  Node& weight(const TensorForm& form) {
    Weight made{"w" + std::to_string(program_.weights.size()), {}, random_.chance(50)};
    at::Tensor tensor;
    for (const Weight& other : program_.weights) {
      if (tensor.defined() || !random_.chance(12)) continue;
      const at::Tensor whole = weights_.at(&other - program_.weights.data());
      const bool same = whole.sizes() == at::IntArrayRef(form.sizes);
      const bool row = whole.dim() > 0 && whole.size(0) > 0 && whole.sizes().slice(1) == at::IntArrayRef(form.sizes);
      if (!same && !row) continue;
      made.same_as = other.path;
      made.row_of = !same;
      made.parameter = other.parameter;
      tensor = same ? whole : whole.select(0, 0);
    }
    if (!tensor.defined()) {
      made.value = draw_tensor(random_, form, program_.numbers);
      if (!made.value.is_floating_point()) made.parameter = false;
      tensor = copy_of(made.value);
    }
    program_.weights.push_back(made);
    weights_.push_back(tensor);
    return keep(program_.graph.get_attr(made.path), tensor);
  }

  /// A value that is there: mostly a late one.
  Node* pick() {
    if (pool_.empty()) return nullptr;
    if (random_.chance(4)) return &input(draw_form());
    if (random_.chance(7)) return &weight(draw_form());
    if (random_.chance(3) && !program_.weights.empty())
      return again(program_.weights[random_.below(program_.weights.size())]);
    const std::size_t last = random_.chance(60) ? std::min<std::size_t>(pool_.size(), 4) : pool_.size();
    return pool_[pool_.size() - 1 - random_.below(last)];
  }

  /// Another get_attr of a weight.
  Node* again(const Weight& weight) {
    return &keep(program_.graph.get_attr(weight.path), weights_[&weight - program_.weights.data()]);
  }

  /// A value of this form, or a new one.
  Node& of_form(const TensorForm& form, unsigned weight_percent) {
    if (random_.chance(55)) {
      for (int tries = 0; tries < 4; ++tries) {
        Node* node = pool_.empty() ? nullptr : random_.pick(pool_);
        if (node && tensor_of(*node).sizes() == at::IntArrayRef(form.sizes) &&
            tensor_of(*node).scalar_type() == form.type)
          return *node;
      }
    }
    return random_.chance(weight_percent) ? weight(form) : input(form);
  }

  Node* value_for(const SchemaArgument& parameter, const at::Tensor& first) {
    const std::string_view name = parameter.name.view();
    const bool vector = name == "bias" || name == "running_mean" || name == "running_var" ||
                        (name == "weight" && first.defined() && first.dim() != 4);
    if (name == "weight" && first.defined() && first.dim() == 4 && random_.chance(80))
      return &of_form({{n_, n_, 1, 1}, first.scalar_type()}, 60);
    if (vector && first.defined() && random_.chance(60)) return &of_form({{n_}, first.scalar_type()}, 60);
    const auto of_type = [&](at::ScalarType type) -> Node* {
      for (Node* node : pool_) {
        if (tensor_of(*node).scalar_type() == type && random_.chance(60)) return node;
      }
      return &of_form({first.defined() ? first.sizes().vec() : std::vector<std::int64_t>{n_}, type}, 30);
    };
    if (name == "out") {  // one that need not be resized
      for (std::size_t i = pool_.size(); i-- > 0;) {
        if (tensor_of(*pool_[i]).sizes() == first.sizes()) return pool_[i];
      }
      return nullptr;
    }
    if (name == "condition" || name == "mask") return of_type(at::kBool);
    if ((name == "index" || name == "indices") && random_.chance(85)) return of_type(at::kLong);
    if (first.defined() && random_.chance(35)) {  // of the same sizes
      for (std::size_t i = pool_.size(); i-- > 0;) {
        if (tensor_of(*pool_[i]).sizes() == first.sizes() && random_.chance(50)) return pool_[i];
      }
    }
    return pick();
  }

  // ── Calls ──────────────────────────────────────────────────────────────────────────────────────────────────────────
  c10::IValue run(const Node& node) {
    const auto look_up = [&](Node& input) { return value_of(input); };
    CallValues call;
    for (const Argument& argument : node.args()) call.args.push_back(to_ivalue(argument, nullptr, look_up));
    for (const auto& [name, argument] : node.kwargs())
      call.kwargs.emplace_back(name, to_ivalue(argument, nullptr, look_up));
    if (node.is(Op::call_method)) return call_method_target(node.target(), call);
    if (node.is(Op::call_module)) return call_module(node.target().str(), call.args);
    return call_function_target(node.target(), call);
  }

  c10::IValue call_module(const std::string& path, const std::vector<c10::IValue>& args) {
    torch::nn::Module& module = *modules_.at(path);
    const at::Tensor x = args.at(0).toTensor();
    if (auto* m = module.as<torch::nn::Linear>()) return m->forward(x);
    if (auto* m = module.as<torch::nn::Conv2d>()) return m->forward(x);
    if (auto* m = module.as<torch::nn::BatchNorm1d>()) return m->forward(x);
    if (auto* m = module.as<torch::nn::BatchNorm2d>()) return m->forward(x);
    if (auto* m = module.as<torch::nn::LayerNorm>()) return m->forward(x);
    if (auto* m = module.as<torch::nn::Dropout>()) return m->forward(x);
    if (auto* m = module.as<torch::nn::ReLU>()) return m->forward(x);
    if (auto* m = module.as<torch::nn::Identity>()) return m->forward(x);
    throw NoSuchCall();
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
    // LibTorch takes any number for a type, and falls over those that are none.
    constexpr std::array kTypes = {DType::float32, DType::float64, DType::int64, DType::bfloat16};
    for (std::size_t i = 0; i < args.size() && i < schema.arguments.size(); ++i) {
      if (schema.arguments[i].type.base == SchemaType::Base::dtype && !args[i].is_none() &&
          args[i].kind() != ArgumentKind::dtype)
        args[i] = random_.pick(kTypes);
    }
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
        .number = [&]() -> Node* { return numbers_.empty() ? nullptr : random_.pick(numbers_); }};
    auto call =
        draw_call(random_, *schema, source, {.optional_percent = optional_percent, .numbers = program_.numbers});
    if (!call) throw NoSuchCall();
    place(*schema, std::move(call->args), std::move(call->kwargs));
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
      const std::shared_ptr<torch::nn::Module> made = new_module();
      made->train(random_.chance(30));
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
    const bool image = modules_.at(path)->as<torch::nn::Conv2d>() || modules_.at(path)->as<torch::nn::BatchNorm2d>();
    const bool any = modules_.at(path)->as<torch::nn::Dropout>() || modules_.at(path)->as<torch::nn::ReLU>() ||
                     modules_.at(path)->as<torch::nn::Identity>();
    Node& x = any && random_.chance(80) ? *pick()
              : image                   ? of_form({{2, n_, n_, n_}, at::kFloat}, 0)
                                        : of_form({{n_, n_}, at::kFloat}, 10);
    place(Op::call_module, path, {x});
  }

  std::shared_ptr<torch::nn::Module> new_module() {
    namespace nn = torch::nn;
    const std::int64_t n = std::max<std::int64_t>(n_, 1);
    switch (random_.below(9)) {
      case 0:
      case 1: return nn::Linear(nn::LinearOptions(n, n).bias(random_.chance(60))).ptr();
      case 2:
        return nn::BatchNorm1d(
                   nn::BatchNorm1dOptions(n).affine(random_.chance(60)).track_running_stats(random_.chance(85)))
            .ptr();
      case 3: return nn::Dropout(0.5).ptr();
      case 4: return nn::ReLU(nn::ReLUOptions(random_.chance(50))).ptr();
      case 5: return nn::Identity().ptr();
      case 6: return nn::LayerNorm(nn::LayerNormOptions({n})).ptr();
      case 7: return nn::Conv2d(nn::Conv2dOptions(n, n, 1).bias(random_.chance(60))).ptr();
      default: return nn::BatchNorm2d(n).ptr();
    }
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
        const auto& motifs = options_.motifs.empty() || random_.chance(40) ? common_motifs() : options_.motifs;
        motif(random_.pick(motifs));
      } else if (what < options_.motif_percent + options_.write_percent) {
        write();
      } else if (what < options_.motif_percent + options_.write_percent + 4) {
        const auto operators = random_operators();
        operation(random_.pick(operators));
      } else if (options_.modules && what < options_.motif_percent + options_.write_percent + 10) {
        module();
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
      program_.graph.output(random_.chance(85) ? Argument::tuple(results) : Argument::list(results));
    }
    program_.inputs.resize(options_.input_sets);
  }

  Node* last(std::size_t back) {
    return pool_.empty() ? &program_.graph.nodes().front() : pool_[pool_.size() - std::min(back, pool_.size())];
  }

  Random random_;
  std::mt19937_64 examples_;
  const DrawOptions& options_;
  Program program_;
  at::ScalarType type_ = at::kFloat;
  std::int64_t n_ = 2;
  std::size_t rank_ = 2;
  std::vector<c10::IValue> values_;
  std::vector<Node*> pool_, numbers_, made_;
  std::vector<at::Tensor> weights_;  // as program_.weights
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
