#include <fxgraph/contract/contract.h>

#include <algorithm>
#include <iterator>
#include <ostream>
#include <string_view>
#include <utility>

#include <fxgraph/contract/arithmetic.h>
#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/python_symbols.h>

namespace fx {
namespace {

struct Question {
  std::string_view name;  // of the operator, or of the attribute
  InputProperty property;
  std::string_view spelt;  // behind the input
};
constexpr Question kQuestions[] = {
    {"aten::dim", InputProperty::rank, ".dim()"},
    {"aten::numel", InputProperty::numel, ".numel()"},
    {"aten::len", InputProperty::length, ".len()"},
    {"builtins.len", InputProperty::length, ".len()"},
    {"prim::dtype", InputProperty::dtype, ".dtype"},
    {"dtype", InputProperty::dtype, ".dtype"},
    {"prim::device", InputProperty::device, ".device"},
    {"device", InputProperty::device, ".device"},
    {"aten::is_contiguous", InputProperty::contiguous, ".is_contiguous()"},
};

/// The input, or the part of one, that a node is; nothing else.
std::optional<Measure> input_of(const Node& node, const InputNames& names) {
  Measure measure;
  const Node* at = &node;
  for (; !at->is(Op::placeholder); at = &at->arg(0).node()) {
    const bool is_part = at->is_call(python::kGetItem) && at->args().size() == 2 && at->arg(0).is_node() &&
                         at->arg(1).is_int() && measure.part.size() < kMostTerms;
    if (!is_part) return std::nullopt;
    measure.part.insert(measure.part.begin(), at->arg(1).as_int());
  }
  measure.input = measure.name = names(*at);
  if (measure.input.empty()) return std::nullopt;
  for (const std::int64_t each : measure.part) measure.name += "[" + std::to_string(each) + "]";
  measure.property = InputProperty::value;
  return measure;
}

/// True when, before it is asked, something changes the form of the input or a part of it: elements that are put into a
/// list or dict or taken away, other sizes that a tensor is given in place.
bool is_changed_before(const Node& input, const Node& asked, bool is_container) {
  std::vector<const Node*> open = {&input};
  for (std::size_t i = 0; i < open.size(); ++i) {
    for (const Node& user : open[i]->users()) {
      if (&user == &asked || !user.is_before(asked)) continue;
      if (user.is_call(python::kGetItem)) open.push_back(&user);
      const Call call = call_of(user);
      for (std::size_t at = 0; call && at < call.schema().arguments.size(); ++at) {
        const SchemaArgument& parameter = call.schema().arguments[at];
        const Argument* given = parameter.alias.writes ? call.argument(at) : nullptr;
        if (!given || given->node_or_null() != open[i]) continue;
        if (!parameter.type.is_tensor() || call.schema().is_inplace_view()) return true;
        open.push_back(&user);  // the same tensor
      }
      if (call) continue;
      const NodeEffects effects = effects_of(user);
      if (is_container ? effects.writes : effects.mutates_shapes()) return true;
    }
  }
  return false;
}

/// What is asked of an input, in any spelling.
std::optional<Measure> measure_of(const Node& node, const InputNames& names) {
  const auto is_as_given = [&](const Node& part, bool is_container) {
    const Node* input = &part;
    while (!input->is(Op::placeholder)) input = &input->arg(0).node();
    return !is_changed_before(*input, node, is_container);
  };
  if (node.is(Op::placeholder)) return input_of(node, names);
  if (node.is_call(python::kGetItem)) {
    std::optional<Measure> part = input_of(node, names);
    return part && is_as_given(node, true) ? part : std::nullopt;
  }
  const Call call = call_of(node);
  const bool is_attribute = node.is_call(python::kGetAttr) && node.args().size() == 2 && node.arg(1).is_string();
  const Argument* of = call && !call.schema().arguments.empty()        ? call.argument(0)
                       : is_attribute || node.is_call(python::kLength) ? &node.args()[0]
                                                                       : nullptr;
  if (!of || !of->is_node()) return std::nullopt;
  const std::string_view name = call           ? packet_of(call.schema().target.view())
                                : is_attribute ? std::string_view(node.arg(1).as_string())
                                               : node.target().view();
  const bool is_size = name == "aten::size" && call.schema().arguments.size() == 2;
  const auto question = std::ranges::find(kQuestions, name, &Question::name);
  if (!is_size && question == std::end(kQuestions)) return std::nullopt;
  std::optional<Measure> measure = input_of(of->node(), names);
  if (!measure) return std::nullopt;
  const bool is_container = !measure->part.empty() || (!is_size && question->property == InputProperty::length);
  if (!is_as_given(of->node(), is_container)) return std::nullopt;
  if (!is_size) {
    measure->property = question->property;
    measure->name += question->spelt;
    return measure;
  }
  const Argument* dimension = call.argument(1);
  if (!dimension || !dimension->is_int()) return std::nullopt;
  measure->property = InputProperty::size;
  measure->dimension = dimension->as_int();
  const std::string at = std::to_string(measure->dimension);
  measure->name += measure->part.empty() ? "[" + at + "]" : ".size(" + at + ")";
  return measure;
}

/// A whole number, whatever the input is.
bool is_whole(const Measure& measure) {
  return measure.property == InputProperty::size || measure.property == InputProperty::rank ||
         measure.property == InputProperty::numel || measure.property == InputProperty::length;
}

/// `value == literal`, or that it is another.
struct Comparison {
  const Node* value;
  const Argument* literal;
  bool is_equal;
};
std::optional<Comparison> comparison_with_literal(const Node& node) {
  const bool is_aten = node.target().view().starts_with("aten::");
  const std::string target = number_operator(is_aten ? Symbol(packet_of(node.target().view())) : node.target());
  const bool equal = target == "operator.eq" || target == "operator.is_";
  if ((!equal && target != "operator.ne" && target != "operator.is_not") || node.args().size() != 2) return {};
  const bool first = node.args()[0].is_node();
  const Argument &known = node.args()[first ? 0 : 1], &literal = node.args()[first ? 1 : 0];
  if (!known.is_node() || literal.is_node()) return {};
  return Comparison{&known.node(), &literal, equal};
}

/// Follows one assertion back.
class Reader {
 public:
  explicit Reader(const std::function<std::string(const Node&)>& name_of) : name_of_(name_of) {}

  std::optional<SizeExpr> expression(const Node& node) {
    if (++terms_ > kMostTerms) return std::nullopt;
    if (const std::string name = name_of_(node); !name.empty()) return SizeExpr::symbol(name);
    if (!node.is(Op::call_function)) return std::nullopt;
    if (std::optional<SizeExpr> compared = comparison(node)) return compared;
    return said_by(node, [&](const Node& input) { return expression(input); });
  }

 private:
  /// Of what is no number: dtypes, devices, None.
  std::optional<SizeExpr> comparison(const Node& node) {
    const std::optional<Comparison> found = comparison_with_literal(node);
    if (!found || found->literal->is_int() || found->literal->is_float() || found->literal->is_bool()) return {};
    std::optional<SizeExpr> of = expression(*found->value);
    if (!of) return std::nullopt;
    return SizeExpr::call(found->is_equal ? "Equality" : "Unequality",
                          {*std::move(of), SizeExpr::call(to_string(*found->literal, NodeStyle::plain), {})});
  }

  const std::function<std::string(const Node&)>& name_of_;
  int terms_ = 0;
};

}  // namespace

std::optional<AssertedAnswer> asserted_answer(const Node& assertion) {
  const Node* holds =
      assertion.is_call(python::kAssert) && !assertion.args().empty() ? assertion.arg(0).node_or_null() : nullptr;
  if (!holds) return std::nullopt;
  if (const std::optional<Comparison> found = comparison_with_literal(*holds))
    return found->is_equal ? std::optional(AssertedAnswer{found->value, *found->literal}) : std::nullopt;
  const std::optional<SizeExpr> itself = said_by(*holds, [](const Node&) { return SizeExpr::symbol("it"); });
  const bool is_negated = itself && itself->is_call("Not");
  if (is_negated) holds = holds->arg(0).node_or_null();
  return holds ? std::optional(AssertedAnswer{holds, Argument(!is_negated)}) : std::nullopt;
}

std::optional<SizeExpr> asserted(const Node& assertion, const std::function<std::string(const Node&)>& name_of) {
  if (!assertion.is_call(python::kAssert) || assertion.args().empty() || !assertion.arg(0).is_node())
    return std::nullopt;
  return Reader(name_of).expression(assertion.arg(0).node());
}

std::optional<Condition> read_condition(const Node& assertion, const InputNames& names) {
  Condition condition;
  condition.assertion = &assertion;
  std::optional<SizeExpr> expression = asserted(assertion, [&](const Node& node) -> std::string {
    std::optional<Measure> measure = measure_of(node, names);
    if (!measure) return {};
    const auto known = std::ranges::find(condition.measures, measure->name, &Measure::name);
    if (known == condition.measures.end()) condition.measures.push_back(*measure);
    return measure->name;
  });
  if (!expression || condition.measures.empty()) return std::nullopt;
  if (assertion.args().size() > 1 && assertion.arg(1).is_string()) condition.reason = assertion.arg(1).as_string();
  if (expression->is_call("Not") && std::ranges::all_of(condition.measures, is_whole))
    expression = negated(expression->operands()[0]);
  static_cast<SizeCondition&>(condition) = condition_of(*expression);
  return condition;
}

std::size_t drop_implied_assertions(Graph& graph) {
  const auto reshapes = [](const Node& node) {
    const Call call = call_of(node);
    return call ? call.schema().is_inplace_view() : node.is_call(python::kSetAttr);
  };
  if (std::ranges::any_of(graph.nodes(), reshapes)) return 0;
  SizeFacts facts;
  std::size_t dropped = 0;
  for (Node* assertion : graph.find_nodes(Op::call_function, python::kAssert)) {
    const std::optional<Condition> condition = read_condition(*assertion);
    if (!condition || !std::ranges::all_of(condition->measures, is_whole)) continue;
    for (const Measure& measure : condition->measures) {
      if (!facts.knows(measure.name)) facts.declare(measure.name, {0, std::nullopt});
    }
    if (facts.holds(*condition) != Answer::yes) {
      facts.assume(*condition);
      continue;
    }
    graph.erase_node(*assertion);
    ++dropped;
  }
  return dropped;
}

std::string Condition::str() const {
  const bool is_rank = measures.size() == 1 && left.is_symbol() && measures[0].property == InputProperty::rank;
  if (is_rank && relation == SizeRelation::equal)
    return measures[0].name.substr(0, measures[0].name.rfind('.')) + " must be of " + right.str() + " dimensions";
  return SizeCondition::str();
}

std::string Condition::message() const {
  const std::string must = str();
  return reason.starts_with(must) ? reason : must + ": " + reason;
}

std::ostream& operator<<(std::ostream& out, const Condition& condition) { return out << condition.str(); }

InputNames names_in(const Node& call, const Graph& body) {
  return [&call, inputs = body.placeholders()](const Node& placeholder) -> std::string {
    const std::size_t at = static_cast<std::size_t>(std::ranges::find(inputs, &placeholder) - inputs.begin());
    const Node* given = at < call.args().size() ? call.args()[at].node_or_null() : nullptr;
    return given && given->is(Op::placeholder) ? given->name() : std::string();
  };
}

Contract::Contract(const Graph& graph, const InputNames& names) {
  for (const Node* node : graph.find_nodes(Op::call_function, python::kAssert)) {
    if (std::optional<Condition> condition = read_condition(*node, names)) conditions_.push_back(*std::move(condition));
  }
}

void Contract::add(Contract called) {
  conditions_.insert(conditions_.end(), std::make_move_iterator(called.conditions_.begin()),
                     std::make_move_iterator(called.conditions_.end()));
}

std::string Contract::str() const {
  std::string text;
  for (const Condition& condition : conditions_) text += condition.str() + "\n";
  return text;
}

}  // namespace fx
