#include <fxgraph/analysis/no_ops.h>

#include <optional>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/records/operator_records.h>

namespace fx {

namespace {

using internal::NoOpForm;
using When = NoOpForm::When;

bool keeps_type_and_sizes(const Shapes& shapes, const Node& node, const Node& input) {
  const TensorInfo *out = shapes[node].tensor(), *in = shapes[input].tensor();
  return out && in && out->dtype == in->dtype && out->device == in->device && out->sizes == in->sizes &&
         out->is_contiguous() == in->is_contiguous();
}

const NoOpForm* form_for(const Call& call) {
  const internal::OperatorRecord* row = call ? internal::operator_record(operator_name(call.schema())) : nullptr;
  return row && row->no_op && row->no_op->holds(call) ? row->no_op : nullptr;
}

bool is_rectified(const Node& node) {
  const Call call = call_of(node);
  return call && has_flag(operator_name(call.schema()), OperatorFlag::rectifies);
}

/// What a call that only reads it takes first, if that is a node.
Node* read_first(const Call& call) {
  const Argument* first = call && !call.schema().arguments.empty() ? call.argument(0) : nullptr;
  return first && !call.schema().traits.writes ? first->node_or_null() : nullptr;
}

}  // namespace

Node* no_op_argument(const Node& node) {
  const Call call = call_of(node);
  const NoOpForm* form = form_for(call);
  const bool holds =
      form && (form->when == When::any || (form->when == When::draws_nothing && !effects_of(call).random));
  return holds ? read_first(call) : nullptr;
}

std::vector<NoOp> find_no_ops(const Graph& graph, const Shapes* shapes, const Effects* effects) {
  std::vector<NoOp> found;
  std::optional<Effects> own;
  for (const Node& node : graph.nodes()) {
    const Call call = call_of(node);
    const NoOpForm* form = form_for(call);
    Node* input = form ? read_first(call) : nullptr;
    if (!input) continue;
    if (form->when == When::same_form && !(shapes && keeps_type_and_sizes(*shapes, node, *input))) continue;
    if (form->when == When::draws_nothing && effects_of(call).random) continue;
    if (form->when == When::rectified) {
      if (!is_rectified(*input)) continue;
      if (!effects) effects = &own.emplace(graph);
      if (effects->write_between(*input, *input, node)) continue;
    }
    found.push_back({const_cast<Node*>(&node), input, form->reason});
  }
  return found;
}

}  // namespace fx
