#include <fxgraph/run/call_target.h>

#include <string>
#include <utility>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/ops/python_rows.h>
#include <fxgraph/ops/schema.h>

namespace fx {

namespace {

/// `torch.einsum('ij,jk', x, y)`: what is given by position is the operator's list.
bool gathers_tensors(Symbol target) {
  for (const internal::PythonRow& row : internal::python_rows(target.view())) {
    for (const internal::PythonParameter& parameter : row.parameters) {
      if (parameter.rest) return true;
    }
  }
  return false;
}

}  // namespace

CallTarget resolve_call(Op op, Symbol target) {
  if (op == Op::call_method) {
    if (const PythonFunction* method = find_python_method(target)) return {nullptr, method, {}};
    return {nullptr, nullptr, packets_of_method(target)};
  }
  target = canonical_target(target);
  if (const PythonFunction* function = find_python_function(target)) return {nullptr, function, {}};
  if (const TorchOperator* found = find_torch_operator(target)) {
    // `aten::where` is an overload and all of them.
    if (found->schema->overload_name().empty() && torch_overloads(target).size() > 1) return {found, nullptr, {target}};
    return {found, nullptr, {}};
  }
  if (gathers_tensors(target)) return {nullptr, nullptr, {}};
  return {nullptr, nullptr, packets_of_function(target)};
}

std::vector<Symbol> packets_by_last_name(Symbol target) {
  const std::string text = target.str();
  const std::size_t dot = text.rfind('.');
  if (dot == std::string::npos || !text.starts_with("torch.")) return {};
  const Symbol packet("aten::" + text.substr(dot + 1));
  if (torch_overloads(packet).empty()) return {};
  return {packet};
}

std::optional<Graph> normalized_call(const Node& node) {
  Graph call;
  NodeMap<Node*> stand_ins(node.graph());
  for (Node* input : node.all_input_nodes()) stand_ins[*input] = &call.placeholder(input->name());
  call.output(call.node_copy(node, [&](Node& input) { return Argument(stand_ins[input]); }));
  if (normalize_operators(call) == 0) return std::nullopt;
  return call;
}

}  // namespace fx
