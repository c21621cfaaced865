#include <fxgraph/contract/symbolic_shapes.h>

#include <algorithm>
#include <utility>

#include <fxgraph/contract/arithmetic.h>
#include <fxgraph/contract/contract.h>
#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/element.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/support/error.h>

namespace fx {

using List = AbstractValue::List;

TensorType tensor_type(const TensorInfo& info) {
  TensorType type{info.dtype, {info.sizes.begin(), info.sizes.end()}, {}};
  type.strides = info.strides.empty() ? contiguous_strides(type.sizes)
                                      : std::vector<SizeExpr>(info.strides.begin(), info.strides.end());
  return type;
}

std::optional<TensorInfo> tensor_info(const TensorType& type) {
  if (!std::ranges::all_of(type.sizes, &SizeExpr::is_integer)) return std::nullopt;
  TensorInfo info{.dtype = type.dtype};
  for (const SizeExpr& size : type.sizes) info.sizes.push_back(size.value());
  if (!type.strides || !std::ranges::all_of(*type.strides, &SizeExpr::is_integer)) return info;
  for (const SizeExpr& stride : *type.strides) info.strides.push_back(stride.value());
  return info;
}

/// Of one graph; called modules have passes of their own.
class SymbolicShapes::Pass {
 public:
  Pass(SymbolicShapes& shapes, FreshSymbols& fresh, const Graph& graph, NodeMap<AbstractValue>& values,
       const ShapeSources& sources, std::string prefix, const Node* caller)
      : shapes_(shapes),
        fresh_(fresh),
        graph_(graph),
        values_(values),
        sources_(sources),
        prefix_(std::move(prefix)),
        caller_(caller) {}

  AbstractValue run(std::span<const AbstractValue> inputs) {
    std::size_t next = 0;
    for (const Node& node : graph_.nodes()) {
      AbstractValue value;
      if (node.is(Op::placeholder)) {
        value = next < inputs.size() ? inputs[next] : node.args().empty() ? AbstractValue() : value_of(node.arg(0));
        ++next;
      } else if (node.is(Op::output)) {
        value = value_of(node.arg(0));
        values_[node] = value;
        return value;
      } else {
        value = visit(node);
      }
      if (sources_.refine) value = sources_.refine(node, std::move(value));
      values_[node] = std::move(value);
      // What a called module refuses may be taken back.
      if (sources_.may_stop && !caller_ && !shapes_.refused_.empty()) return {};
    }
    return {};
  }

 private:
  /// An expression that nests deeper, or is longer, gets a name: loops on sizes double them.
  static constexpr int kDeepest = 40;
  static constexpr std::uint32_t kLongest = 1000;
  static bool is_deep(const SizeExpr& size) { return size.depth() > kDeepest || size.parts() > kLongest; }

  AbstractValue value_of(const Argument& argument) const {
    return AbstractValue::of(argument, [this](const Node& node) { return values_[node]; });
  }

  AbstractValue visit(const Node& node) {
    if (node.is(Op::get_attr)) {
      const std::optional<TensorType> type = sources_.attribute ? sources_.attribute(path_of(node)) : std::nullopt;
      return type ? AbstractValue(*type) : AbstractValue();
    }
    if (node.is(Op::call_module)) return called(node);
    if (node.is_call(python::kAssert)) {
      assume(node);
      return AbstractValue::literal(Argument());
    }
    if (const std::optional<Element> element = taken_element(node)) return element_of(*element);
    if (std::optional<SizeExpr> number = said_by(node, [this](const Node& input) { return number_of(input); })) {
      const SizeExpr value = shapes_.facts_.simplified(*number);
      return is_deep(value) ? fresh_.next(shapes_.facts_, shapes_.facts_.range(value)) : value;
    }
    const Call call = call_of(node);
    if (call) return infer_call(node, call);
    if (effects_of(node, sources_.modules).restructures) forget_tensors();
    List arguments;
    for (const Argument& argument : node.args()) arguments.push_back(value_of(argument));
    AbstractValue answer = arguments.empty() ? AbstractValue() : asked(node, arguments[0], node.target().view());
    return answer.is_known() ? answer : decided_elsewhere(node, call, arguments, {});
  }

  std::string path_of(const Node& node) const { return prefix_ + node.target().str(); }

  std::optional<SizeExpr> number_of(const Node& node) const {
    const AbstractValue& value = values_[node];
    if (value.number()) return *value.number();
    const Argument* literal = value.literal();
    if (literal && literal->is_bool()) return SizeExpr::call(literal->as_bool() ? "true" : "false", {});
    return literal && literal->is_float() ? std::optional(SizeExpr::real(literal->as_float())) : std::nullopt;
  }

  AbstractValue element_of(const Element& element) const {
    const List* list = values_[*element.of].list();
    if (!list) return {};
    const auto count = static_cast<std::int64_t>(list->size());
    const std::int64_t at = element.index < 0 ? element.index + count : element.index;
    return at >= 0 && at < count ? (*list)[static_cast<std::size_t>(at)] : AbstractValue();
  }

  /// What is asked of a tensor or list: its sizes, how many they are.
  AbstractValue asked(const Node& node, const AbstractValue& of, std::string_view name) const {
    const bool is_attribute = node.is_call(python::kGetAttr) && node.args().size() == 2 && node.arg(1).is_string();
    if (is_attribute) name = node.arg(1).as_string();
    const TensorType* tensor = of.tensor();
    if (tensor && (name == "aten::size" || name == "shape")) return List(tensor->sizes.begin(), tensor->sizes.end());
    if (tensor && (name == "aten::dim" || name == "ndim"))
      return SizeExpr(static_cast<std::int64_t>(tensor->sizes.size()));
    if (tensor && name == "aten::numel") return tensor->numel();
    if (tensor && name == "aten::stride" && tensor->strides)
      return List(tensor->strides->begin(), tensor->strides->end());
    if (tensor && (name == "prim::dtype" || name == "dtype")) return AbstractValue::literal(Argument(tensor->dtype));
    if (name == "builtins.len" || name == "aten::len") {
      if (tensor && !tensor->sizes.empty()) return tensor->sizes[0];
      if (of.list()) return SizeExpr(static_cast<std::int64_t>(of.list()->size()));
    }
    return {};
  }

  AbstractValue infer_call(const Node& node, const Call& call) {
    const std::string_view packet = packet_of(call.schema().target.view());
    List arguments;
    for (std::size_t i = 0; i < call.schema().arguments.size(); ++i) {
      const Argument* argument = call.argument(i);
      arguments.push_back(argument ? value_of(*argument) : AbstractValue::literal(Argument()));
    }
    if (arguments.empty()) return {};
    if (AbstractValue made = made_of_lists(packet, arguments); made.is_known()) return made;
    // One element of what is asked for a tensor.
    const bool of_dim = (packet == "aten::size" || packet == "aten::stride" || packet == "aten::sym_size") &&
                        arguments.size() == 2 && arguments[0].tensor() && arguments[1].number();
    if (of_dim && arguments[1].number()->is_integer()) {
      const AbstractValue all = asked(node, arguments[0], packet == "aten::stride" ? packet : "aten::size");
      std::int64_t at = arguments[1].number()->value();
      if (all.list() && at < 0) at += static_cast<std::int64_t>(all.list()->size());
      if (!all.list() || at < 0 || at >= static_cast<std::int64_t>(all.list()->size())) return {};
      return (*all.list())[static_cast<std::size_t>(at)];
    }
    if (AbstractValue answer = asked(node, arguments[0], packet); answer.is_known()) return answer;
    if (call.schema().returns.empty()) return AbstractValue::literal(Argument());
    InferredCall made = infer(call.schema(), arguments, shapes_.facts_, fresh_);
    if (made.outcome == InferredCall::Outcome::unknown && (packet == "aten::chunk" || packet == "aten::unsafe_chunk"))
      made = unpacked(node, arguments, std::move(made));
    if (call.schema().is_inplace_view() && !keeps_what_it_writes(call.schema(), arguments, made)) forget_tensors();
    if (std::ranges::any_of(call.schema().arguments, [](const SchemaArgument& argument) {
          return argument.alias.writes && !argument.type.is_tensor();  // a list, whose parts are others then
        }))
      forget_tensors();
    if (made.outcome == InferredCall::Outcome::refused && shapes_.refused_.empty())
      shapes_.refused_ = "%" + (caller_ ? caller_ : &node)->name() + ": " + made.why;
    for (SizeCondition& each : made.conditions)
      shapes_.conditions_.push_back({caller_ ? caller_ : &node, std::move(each)});
    if (made.outcome == InferredCall::Outcome::unknown) {
      if (AbstractValue known = decided_elsewhere(node, call, arguments, made); known.is_known()) return known;
      const SchemaType& type = call.schema().returns[0].type;
      const bool is_number = type.base == SchemaType::Base::integer && !type.list && !type.optional;
      if (is_number && call.schema().returns.size() == 1 && packet != "prim::dtype")
        return fresh_.next(shapes_.facts_, {std::nullopt, std::nullopt});
      if (call.schema().returns_tensors()) shapes_.unknown_.push_back({caller_ ? caller_ : &node, made.why});
    }
    if (made.outcome != InferredCall::Outcome::known) return {};
    if (!made.unsaid.empty()) shapes_.unsaid_.push_back({caller_ ? caller_ : &node, std::move(made.unsaid)});
    for (AbstractValue& result : made.results) result = named_where_deep(std::move(result));
    return made.results.size() == 1 ? std::move(made.results[0]) : AbstractValue(List(std::move(made.results)));
  }

  /// `a, b = x.chunk(2)` has the parts that are taken, or raises, though a size may have fewer.
  InferredCall unpacked(const Node& node, const List& arguments, InferredCall otherwise) {
    const TensorType* self = arguments[0].tensor();
    const SizeExpr *chunks = arguments[1].number(), *dim = arguments[2].number();
    if (!self || self->sizes.empty() || !chunks || !chunks->is_integer() || !dim || !dim->is_integer())
      return otherwise;
    bool takes_last = false;
    for (const Node& user : node.users()) {
      const std::optional<Element> element = taken_element(user);
      takes_last |= element && element->of == &node && element->index == chunks->value() - 1;
    }
    const auto rank = static_cast<std::int64_t>(self->sizes.size());
    const std::int64_t at = dim->value() < 0 ? dim->value() + rank : dim->value();
    if (at < 0 || at >= rank || !takes_last) return otherwise;
    const SizeExpr& whole = self->sizes[static_cast<std::size_t>(at)];
    const SizeExpr size = ceil_div(whole, *chunks);
    List parts(static_cast<std::size_t>(chunks->value()), size);
    parts.back() = whole - size * (*chunks - 1);
    const OperatorSchema& split = *find_overload(Symbol("aten::split_with_sizes"));
    return infer(split, List{arguments[0], std::move(parts), *dim}, shapes_.facts_, fresh_);
  }

  /// True when what is written in place has the form that it had.
  static bool keeps_what_it_writes(const OperatorSchema& schema, const List& arguments, const InferredCall& made) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (!schema.arguments[i].alias.writes) continue;
      const TensorType* before = arguments[i].tensor();
      const auto is_same = [&](const AbstractValue& result) { return result.tensor() && *result.tensor() == *before; };
      if (!before || made.results.empty() || !std::ranges::all_of(made.results, is_same)) return false;
    }
    return true;
  }

  AbstractValue decided_elsewhere(const Node& node, const Call& call, const List& arguments, const InferredCall& made) {
    if (!sources_.other) return {};
    const auto fresh = [this] { return fresh_.next(shapes_.facts_, {0, std::nullopt}); };
    AbstractValue said = sources_.other({node, call, arguments, made, values_, fresh});
    if (said.is_known()) shapes_.said_by_others_.push_back(caller_ ? caller_ : &node);
    return said;
  }

  /// Expressions do not grow with the graph.
  AbstractValue named_where_deep(AbstractValue value) {
    const TensorType* tensor = value.tensor();
    if (!tensor || std::ranges::none_of(tensor->sizes, is_deep)) return value;
    TensorType named = *tensor;
    for (SizeExpr& size : named.sizes) {
      if (is_deep(size)) size = fresh_.next(shapes_.facts_, shapes_.facts_.range(size));
    }
    if (named.strides)
      named.strides = tensor->is_contiguous() ? std::optional(contiguous_strides(named.sizes)) : std::nullopt;
    return named;
  }

  /// A call gives a tensor other sizes in place: whoever shares it sees them, too.
  void forget_tensors() {
    forgot_ = true;
    for (const Node& node : graph_.nodes()) {
      if (!values_[node].number()) values_[node] = AbstractValue();
    }
  }

  AbstractValue called(const Node& node) {
    const std::string path = path_of(node);
    const auto own = sources_.modules.body && node.kwargs().empty() ? sources_.modules.body(path) : nullptr;
    const auto body = own ? own : operators_of(node);
    if (!body) {
      if (effects_of(node, sources_.modules).restructures) forget_tensors();
      shapes_.unknown_.push_back({caller_ ? caller_ : &node, "what the module " + path + " computes is not known"});
      return {};
    }
    List inputs;
    if (own) {
      for (const Argument& argument : node.args()) inputs.push_back(value_of(argument));
    } else {
      for (const Node* input : node.all_input_nodes()) inputs.push_back(values_[*input]);
    }
    NodeMap<AbstractValue> values(*body);
    Pass pass(shapes_, fresh_, *body, values, sources_, path + ".", caller_ ? caller_ : &node);
    const std::optional<SizeFacts> facts = own ? std::nullopt : std::optional(shapes_.facts_);
    const std::size_t asked = shapes_.conditions_.size();
    const bool is_refused = !shapes_.refused_.empty();
    AbstractValue made = pass.run(inputs);
    if (pass.forgot_) forget_tensors();
    if (own || !pass.is_of_others_) return made;
    shapes_.facts_ = *facts;
    shapes_.conditions_.erase(shapes_.conditions_.begin() + static_cast<std::ptrdiff_t>(asked),
                              shapes_.conditions_.end());
    if (!is_refused) shapes_.refused_.clear();
    shapes_.unknown_.push_back(
        {caller_ ? caller_ : &node, "what the module " + path + " computes of these is not known"});
    return {};
  }

  /// What a module without a graph computes: its nodes' inputs are placeholders.
  std::shared_ptr<const Graph> operators_of(const Node& call) const {
    const ModuleInfo& modules = sources_.modules;
    if (prefix_.empty()) return modules.operators ? modules.operators(call) : nullptr;
    const ModuleInfo below = modules.below ? modules.below(prefix_.substr(0, prefix_.size() - 1)) : ModuleInfo();
    return below.operators ? below.operators(call) : nullptr;
  }

  void assume(const Node& assertion) {
    if (assertion.args().empty() || !assertion.arg(0).is_node()) return;
    const SizeExpr* holds = values_[assertion.arg(0).node()].number();
    if (!holds) return;
    if (!holds->is_call("And")) return assume(assertion, condition_of(*holds));
    for (const SizeExpr& each : holds->operands()) assume(assertion, condition_of(each));
  }

  void assume(const Node& assertion, const SizeCondition& condition) {
    const Answer known = shapes_.facts_.holds(condition);
    const bool follows = known == Answer::yes;
    is_of_others_ = is_of_others_ || known == Answer::no;
    (follows ? shapes_.implied_ : shapes_.conditions_).push_back({caller_ ? caller_ : &assertion, condition});
    if (follows) return;
    shapes_.facts_.assume(condition);
  }

  SymbolicShapes& shapes_;
  FreshSymbols& fresh_;
  const Graph& graph_;
  NodeMap<AbstractValue>& values_;
  const ShapeSources& sources_;
  const std::string prefix_;
  const Node* const caller_;
  bool forgot_ = false;
  bool is_of_others_ = false;  ///< an assertion does not hold: it was noted for inputs of another form
};

namespace {

AbstractValue with_facts(const AbstractValue& value, const SizeFacts& facts) {
  if (value.number()) return facts.simplified(*value.number());
  if (value.list()) {
    List list;
    for (const AbstractValue& each : *value.list()) list.push_back(with_facts(each, facts));
    return list;
  }
  const TensorType* tensor = value.tensor();
  const auto varies = [](const SizeExpr& size) { return !size.is_integer(); };
  if (!tensor || std::ranges::none_of(tensor->sizes, varies)) return value;
  TensorType made = *tensor;
  for (SizeExpr& size : made.sizes) size = facts.simplified(size);
  if (made.strides) {
    for (SizeExpr& stride : *made.strides) stride = facts.simplified(stride);
  }
  return made;
}

void declare(SizeFacts& facts, const AbstractValue& value, const SizeRanges& ranges) {
  const auto add = [&](const SizeExpr& size) {
    size.for_each_symbol([&](const std::string& name) {
      const auto known = ranges.find(name);
      facts.declare(name, known == ranges.end() ? SizeRange{0, std::nullopt} : known->second);
    });
  };
  if (value.tensor()) std::ranges::for_each(value.tensor()->sizes, add);
  if (value.number()) add(*value.number());
  if (value.list()) {
    for (const AbstractValue& each : *value.list()) declare(facts, each, ranges);
  }
}

}  // namespace

SymbolicShapes::SymbolicShapes(const Graph& graph, std::vector<AbstractValue> inputs, const ShapeSources& sources)
    : values_(graph) {
  for (const AbstractValue& input : inputs) declare(facts_, input, sources.ranges);
  for (const auto& [symbol, range] : sources.ranges) facts_.declare(symbol, range);
  FreshSymbols fresh;
  Pass(*this, fresh, graph, values_, sources, "", nullptr).run(inputs);
  // What a later call asks holds for earlier values.
  if (conditions_.empty()) return;
  for (const Node& node : graph.nodes()) values_[node] = with_facts(values_[node], facts_);
}

const std::vector<SizeExpr>& SymbolicShapes::of(const Node& node) const {
  if (const TensorType* tensor = values_[node].tensor()) return tensor->sizes;
  const auto why = std::ranges::find(unknown_, &node, &Unknown::node);
  throw Error(ErrorKind::invalid_argument,
              "%" + node.name() + " has no sizes that are known" + (why == unknown_.end() ? "" : ": " + why->why),
              node.name());
}

}  // namespace fx
