// Numbers that Python has no operator for, written as the expression of sizes that they are.
#include <fxgraph/export/graph_writer.h>

#include <utility>

namespace fx::pt2 {
namespace {

const char* python_operator(const std::string& function) {
  static constexpr std::pair<const char*, const char*> kOperators[] = {
      {"Add", "_operator.add"}, {"Mul", "_operator.mul"},       {"FloorDiv", "_operator.floordiv"},
      {"Mod", "_operator.mod"}, {"PythonMod", "_operator.mod"}, {"Min", "torch.sym_min"},
      {"Max", "torch.sym_max"}};
  for (const auto& [name, target] : kOperators) {
    if (function == name) return target;
  }
  return nullptr;
}

}  // namespace

Json GraphWriter::add_number(const SizeExpr& expr, const char* target,
                             std::initializer_list<std::pair<const char*, Json>> args) {
  Symbols examples;
  for (const auto& [symbol, source] : symbols_) examples[symbol] = source.example;
  ValueShape shape;
  shape.kind = ValueShape::Kind::integer;
  shape.integer = {expr, expr.evaluate(examples).value_or(0)};
  shape.varies = true;
  const std::string name = add_value("size", shape);
  Json inputs = Json::array();
  for (const auto& [argument, value] : args) inputs.push_back({{"name", argument}, {"arg", value}, {"kind", 1}});
  nodes_.push_back({{"target", target},
                    {"inputs", std::move(inputs)},
                    {"outputs", Json::array({reference(name, shape)})},
                    {"metadata", Json::object()},
                    {"is_hop_single_tensor_return", nullptr},
                    {"name", name}});
  return reference(name, shape);
}

std::optional<Json> GraphWriter::number_of(const SizeExpr& expr) {
  if (expr.is_integer()) return Json{{"as_int", expr.value()}};
  if (expr.is_symbol()) {
    const auto found = symbols_.find(expr.name());
    if (found == symbols_.end()) return std::nullopt;
    SymbolSource& source = found->second;
    if (source.value.is_null()) {
      const SizeExpr size = source.step == 1 ? expr : SizeExpr::call("Mul", {SizeExpr::integer(source.step), expr});
      source.value =
          add_number(size, "torch.ops.aten.sym_size.int",
                     {{"self", Json{{"as_tensor", {{"name", source.name}}}}}, {"dim", Json{{"as_int", source.dim}}}});
      if (source.step != 1)
        source.value =
            add_number(expr, "_operator.floordiv", {{"a", source.value}, {"b", Json{{"as_int", source.step}}}});
    }
    return source.value;
  }
  const char* target = python_operator(expr.name());
  if (!target || expr.operands().empty()) return std::nullopt;
  std::optional<Json> value = number_of(expr.operands()[0]);
  SizeExpr until = expr.operands()[0];
  for (std::size_t i = 1; i < expr.operands().size() && value; ++i) {
    const std::optional<Json> next = number_of(expr.operands()[i]);
    if (!next) return std::nullopt;
    until = SizeExpr::call(expr.name(), {until, expr.operands()[i]});
    value = add_number(until, target, {{"a", *value}, {"b", *next}});
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
