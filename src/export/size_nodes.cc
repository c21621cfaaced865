// Numbers that Python has no operator for, written as the expression of sizes that they are; numbers that data decide;
// and what is asserted of numbers.
#include <fxgraph/export/graph_writer.h>

#include <utility>

#include <fxgraph/contract/arithmetic.h>
#include <fxgraph/export/literals.h>
#include <fxgraph/export/numbers.h>
#include <fxgraph/export/operators.h>

namespace fx::pt2 {

// Of a tensor, or of numbers.
void GraphWriter::write_assertion(const Node& node) {
  const Node* condition = node.args().empty() ? nullptr : node.arg(0).node_or_null();
  if (!condition) return refuse(node, "of a condition that is not computed");
  if (is_number(shapes_[*condition].kind) && !shapes_[*condition].varies) return write_question(node);
  const bool is_tensor = shapes_[*condition].kind == ValueShape::Kind::tensor;
  const Json message = node.args().size() == 2 ? argument(node.arg(1)) : Json{{"as_string", "assertion failed"}};
  const Json inputs = Json::array({input_named("self", argument(node.arg(0))), input_named("assert_msg", message)});
  add_node(node, is_tensor ? "torch.ops.aten._assert_async.msg" : "torch.ops.aten._assert_scalar.default", inputs,
           Json::array(), nullptr);
}

// Of what a tensor is beside its sizes: Python checks element types and strides. What it has no words for but a
// narrower answer (is_floating_point, is_contiguous) it refuses more of; it is read here as it was.
void GraphWriter::write_question(const Node& node) {
  const std::optional<TensorQuestion> asked = question_of(node);
  if (!asked || shapes_[*asked->tensor].kind != ValueShape::Kind::tensor) {
    const std::string message = node.args().size() > 1 ? " '" + to_string(node.arg(1)) + "'" : "";
    return refuse(node, "what it asserts is neither of sizes nor of an element type or layout" + message);
  }
  const TensorMeta& meta = shapes_[*asked->tensor].tensor;
  Json inputs = Json::array({input_named("a", reference(names_[*asked->tensor], shapes_[*asked->tensor]))});
  if (asked->question == "aten::stride") {
    inputs.push_back(input_named("stride", argument(asked->answer), true));
  } else if (asked->question == "aten::is_contiguous") {
    if (asked->answer != Argument(true)) return refuse(node, "it asserts that a tensor is not contiguous");
    std::vector<Json> strides;
    for (const SymbolicSize& stride : meta.strides) {
      std::optional<Json> number = number_of(stride.expr);
      if (!number) return refuse(node, "it asserts a layout of strides that are no expression of sizes");
      strides.push_back(std::move(*number));
    }
    inputs.push_back(input_named("stride", list_of(strides), true));
  } else {
    const Json type = write_literal(Argument(meta.dtype));
    if (type.is_null()) return refuse(node, "Python has no number for the element type");
    inputs.push_back(input_named("dtype", type, true));
  }
  add_node(node, kAssertTensor, std::move(inputs), Json::array(), nullptr);
  nodes_.back()["metadata"][kAssertionNote] = pt2::write_question(*asked);
}

// Is it, or does it check, a number that is the same in every run?
bool GraphWriter::is_fixed(const Node& node) const {
  const ValueShape& shape = shapes_[node];
  if (is_number(shape.kind)) return !shape.varies;
  if (node.target() != "torch._assert") return false;
  const Node* condition = node.arg(0).node_or_null();
  return !condition || (shapes_[*condition].kind == ValueShape::Kind::boolean && !shapes_[*condition].varies &&
                        is_about_sizes(node, shapes_));
}

// Numbers that do not vary are written where they are read; then nobody may need what they are computed from.
void GraphWriter::find_left_out() {
  for (const Node& node : graph_.nodes().reversed()) {
    if (node.is(Op::placeholder) || node.is(Op::get_attr) || node.is(Op::output)) continue;
    const bool is_asked =  // for its layout
        (node.target() == "aten::permute" || node.target() == "aten::stride") && node.has_users();
    const bool may_go = node.is(Op::call_function) && (is_number(shapes_[node].kind) || is_asked) && !source(node);
    bool is_read = false;
    for (const Node& user : node.users()) is_read |= !left_out_.contains(&user);
    if (is_fixed(node) || (may_go && !is_read)) left_out_.insert(&node);
  }
}

Json GraphWriter::add_number(const SizeExpr& expr, const std::string& target, Json inputs) {
  Symbols examples;
  for (const auto& [symbol, source] : symbols_) examples[symbol] = source.example;
  ValueShape shape;
  shape.kind = ValueShape::Kind::integer;
  shape.integer = {expr, expr.evaluate(examples).value_or(0)};
  shape.varies = true;
  const std::string name = add_value("size", shape);
  push_node(name, target, std::move(inputs), Json::array({reference(name, shape)}), nullptr, Json::object());
  return reference(name, shape);
}

std::optional<Json> GraphWriter::number_of(const SizeExpr& expr) {
  if (expr.is_integer()) return Json{{"as_int", expr.value()}};
  if (expr.is_symbol()) {
    const auto found = symbols_.find(expr.name());
    if (found == symbols_.end()) return std::nullopt;
    SymbolSource& source = found->second;
    if (!source.value.is_null()) return source.value;
    const SizeExpr size = source.step == 1 ? expr : SizeExpr::call("Mul", {SizeExpr::integer(source.step), expr});
    source.value = add_number(size, "torch.ops.aten.sym_size.int",
                              Json::array({input_named("self", Json{{"as_tensor", {{"name", source.tensor}}}}),
                                           input_named("dim", Json{{"as_int", source.dim}})}));
    if (source.step != 1) {
      const Json step{{"as_int", source.step}};
      source.value =
          add_number(expr, "_operator.floordiv", Json::array({input_named("a", source.value), input_named("b", step)}));
    }
    return source.value;
  }
  const std::string target(python_function(expr.name()));
  const bool is_whole = expr.operands().size() > 1 && !expr.is_real() && !is_condition(expr);
  if (target.empty() || !is_whole) return std::nullopt;
  SizeExpr until = expr.operands()[0];
  std::optional<Json> value = number_of(until);
  for (std::size_t i = 1; i < expr.operands().size() && value; ++i) {
    const std::optional<Json> next = number_of(expr.operands()[i]);
    if (!next) return std::nullopt;
    until = SizeExpr::call(expr.name(), {until, expr.operands()[i]});
    value = add_number(until, target, Json::array({input_named("a", *value), input_named("b", *next)}));
  }
  return value;
}

bool GraphWriter::write_as_expression(const Node& node) {
  const ValueShape& shape = shapes_[node];
  if (shape.kind != ValueShape::Kind::integer) return false;
  const std::optional<Json> value = number_of(shape.integer.expr);
  if (!value || !value->contains("as_sym_int")) return false;
  names_[node] = value->at("as_sym_int").at("as_name").get<std::string>();
  return true;
}

}  // namespace fx::pt2
