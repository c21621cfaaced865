// Assertions on tensors and numbers.
#include <algorithm>
#include <set>

#include <fxgraph/contract/arithmetic.h>
#include <fxgraph/contract/assertions.h>
#include <fxgraph/contract/contract.h>
#include <fxgraph/export/literals.h>
#include <fxgraph/export/numbers.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/records/operator_flags.h>

namespace fx::pt2 {
namespace {

Json json_of(const Argument& value) {
  if (!value.is_list()) return write_literal(value);
  Json all = Json::array();
  for (const Argument& each : value.elements()) all.push_back(each.as_int());
  return {{"as_ints", std::move(all)}};
}

enum class Behind : std::uint8_t { go_on, end, refuse };

// Whether nothing that the value is computed from is refused, itself included. Nobody looks behind an end.
template <typename See>
bool holds_behind(const Node& value, See&& see) {
  std::vector<const Node*> open = {&value};
  std::set<const Node*> seen = {&value};  // asked only, not gone through
  while (!open.empty()) {
    const Node& node = *open.back();
    open.pop_back();
    const Behind found = see(node);
    if (found == Behind::refuse) return false;
    if (found == Behind::end) continue;
    for (const Node* input : node.all_input_nodes()) {
      if (seen.insert(input).second) open.push_back(input);
    }
  }
  return true;
}

bool is_answer(const Argument& value) {
  if (!value.is_sequence()) return value.is_int() || value.is_bool();
  return std::ranges::all_of(value.elements(), [](const Argument& each) { return each.is_int(); });
}

}  // namespace

std::optional<TensorQuestion> question_of(const Node& check) {
  const std::optional<AssertedAnswer> said = asserted_answer(check);
  const Call question = said ? call_of(*said->value) : Call();
  if (!question || !has_flag(question.schema().target, OperatorFlag::asks_form) || question.args().size() != 1 ||
      !question.kwargs().empty() || !is_answer(said->answer))
    return std::nullopt;
  TensorQuestion found;
  found.answer = said->answer;
  found.question = question.schema().target;
  found.tensor = question.args()[0].node_or_null();
  if (!found.tensor) return std::nullopt;
  if (const Call view = call_of(*found.tensor); view && view.schema().target == "aten::permute") {
    const Argument *order = view.argument("dims"), *viewed = view.argument("self");
    if (order && order->is_sequence() && is_answer(*order) && viewed && viewed->is_node()) {
      found.order = order->elements().to_vector();
      found.tensor = &viewed->node();
    }
  }
  found.message = check.args().size() > 1 && check.arg(1).is_string() ? std::string(check.arg(1).as_string())
                                                                      : std::string("assertion failed");
  return found;
}

bool is_of_literals(const Node& call) {
  return holds_behind(call, [](const Node& node) {
    if (node.is(Op::call_function) && number_operator(node.target()).starts_with("operator.")) return Behind::go_on;
    const Call call = call_of(node);
    const bool is_same = call && !call.schema().traits.random && !call.schema().traits.side_effect;
    return is_same ? Behind::go_on : Behind::refuse;
  });
}

bool is_about_sizes(const Node& check, const ValueShapes& shapes) {
  const auto is_size = [&](const Node& node) {
    const Call call = call_of(node);
    if (has_flag(call ? call.schema().target : node.target(), OperatorFlag::asks_sizes)) return Behind::end;
    if (is_of_literals(node)) return Behind::end;
    const bool is_tensor = shapes[node].kind == ValueShape::Kind::tensor || node.is(Op::get_attr);
    return is_tensor ? Behind::refuse : Behind::go_on;
  };
  const Node* condition = check.args().empty() ? nullptr : check.arg(0).node_or_null();
  return !condition || holds_behind(*condition, is_size);
}

std::string write_question(const TensorQuestion& question) {
  Json order = Json::array();
  for (const Argument& each : question.order) order.push_back(each.as_int());
  return Json{{"question", question.question.str()},
              {"answer", json_of(question.answer)},
              {"order", std::move(order)},
              {"message", question.message}}
      .dump();
}

void read_question(Graph& graph, Node& tensor, const std::string& note) {
  const Json json = Json::parse(note, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) malformed("what is asserted of '" + tensor.name() + "' is no JSON");
  const Symbol question(string_of(member(json, "question")));
  const auto [kind, value] = variant_of(member(json, "answer"));
  const std::optional<Argument> answer = read_literal(kind, value);
  if (!has_flag(question, OperatorFlag::asks_form) || !answer || !is_answer(*answer))
    malformed("what is asserted of '" + tensor.name() + "' is not known");
  std::vector<Argument> order;
  for (const Json& each : array_of(member(json, "order"))) order.push_back(Argument(integer_of(each)));
  Argument of(tensor);
  if (!order.empty()) of = Argument(graph.call_function("aten::permute", {of, Argument::list(order)}));
  AssertionWriter(graph).add(SizeRelation::equal, graph.call_function(question, {of}), *answer,
                             string_of(member(json, "message")));
}

void compare_as_tensors(Graph& graph) {
  for (Node* check : graph.find_nodes(Op::call_function, Symbol("torch._assert"))) {
    const std::optional<AssertedAnswer> said = asserted_answer(*check);
    const Call read = said ? call_of(*said->value) : Call();
    if (!read || read.args().size() != 1 || !read.args()[0].is_node()) continue;
    const Symbol reads = read.schema().target;
    const bool is_truth = reads == "aten::is_nonzero";
    if (!is_truth && reads != "aten::item" && reads != "aten::_local_scalar_dense") continue;
    const auto is_state = [](const Node& node) { return node.is(Op::placeholder) ? Behind::refuse : Behind::go_on; };
    if (!holds_behind(*said->value, is_state)) continue;
    const bool is_other = is_truth && said->answer == Argument(true);
    const Argument number = is_truth ? Argument(0) : said->answer;
    const auto at = graph.inserting_before(*check);
    Node& holds = graph.call_function(is_other ? "aten::ne.Scalar" : "aten::eq.Scalar", {read.args()[0], number});
    check->update_arg(0, Argument(holds));
  }
}

}  // namespace fx::pt2
