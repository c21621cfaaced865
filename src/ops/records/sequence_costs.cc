// The operators whose cost is more than one product: einsum, recurrent layers, attention.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fxgraph/ops/records/cost_formulas.h>
#include <fxgraph/ops/records/einsum_equation.h>
#include <fxgraph/ops/schema.h>

namespace fx::internal::cost {

namespace {

/// Of what has a last dimension: all without it.
SizeExpr rows_of(const TensorType& tensor) {
  SizeExpr rows = 1;
  for (std::size_t i = 0; i + 1 < tensor.sizes.size(); ++i) rows = rows * tensor.sizes[i];
  return rows;
}

}  // namespace

std::optional<Operations> einsum(const CallShapes& c) {
  const Argument* text = c.node.args().size() > 0 ? &c.node.args()[0] : nullptr;
  std::vector<std::size_t> ranks;
  for (const TensorType& each : c.inputs) ranks.push_back(each.sizes.size());
  const auto equation =
      text && text->is_string() ? EinsumEquation::read(text->as_string(), ranks) : std::optional<EinsumEquation>();
  if (!equation || ranks.empty()) return std::nullopt;
  std::map<int, SizeExpr> sizes;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (std::size_t d = 0; d < ranks[i]; ++d) {
      const SizeExpr& here = c.inputs[i].sizes[d];
      SizeExpr& size = sizes.try_emplace(equation->operands[i][d], 1).first->second;
      size = size == SizeExpr(1) ? here : here == SizeExpr(1) ? size : max(size, here);
    }
  }
  const auto volume = [&](const std::set<int>& labels) {
    SizeExpr product = 1;
    for (const int label : labels) product = product * sizes.at(label);
    return product;
  };
  Operations total;
  std::set<int> left(equation->operands[0].begin(), equation->operands[0].end());
  if (equation->operands.size() == 1) return Operations{0, volume(left)};
  for (std::size_t i = 1; i < equation->operands.size(); ++i) {
    left.insert(equation->operands[i].begin(), equation->operands[i].end());
    total.macs = total.macs + volume(left);
    // What neither the result nor a later operand has is summed over.
    std::set<int> needed(equation->output.begin(), equation->output.end());
    for (std::size_t later = i + 1; later < equation->operands.size(); ++later)
      needed.insert(equation->operands[later].begin(), equation->operands[later].end());
    std::erase_if(left, [&](int label) { return !needed.count(label); });
  }
  total.flops = 2 * total.macs;
  return total;
}

// ── Recurrent layers ───────────────────────────────────────────────────────────────────────────────────────────────

namespace {

void add_weight(Operations& total, const TensorType& weight, const SizeExpr& steps) {
  const SizeExpr macs = weight.numel() * steps;
  total.macs = total.macs + macs;
  total.flops = total.flops + 2 * macs + 2 * weight.sizes[0] * steps;
}

}  // namespace

std::optional<Operations> recurrent_layer(const CallShapes& c) {
  if (c.inputs.empty()) return std::nullopt;
  std::size_t parameters = c.num_parameters;
  for (const char* name : {"params", "weights"}) {
    if (const Argument* list = c.call.argument(name)) parameters = list->elements().size();
  }
  if (parameters == 0 || parameters >= c.inputs.size()) return std::nullopt;
  const SizeExpr steps = rows_of(c.inputs[0]);
  Operations total;
  for (const TensorType& parameter : c.inputs.last(parameters)) {
    if (parameter.sizes.size() == 2) add_weight(total, parameter, steps);
  }
  return total;
}

std::optional<Operations> recurrent_cell(const CallShapes& c, std::size_t first_weight) {
  if (c.inputs.size() < first_weight + 2) return std::nullopt;
  Operations total;
  for (std::size_t i = first_weight; i < first_weight + 2; ++i) {
    if (c.inputs[i].sizes.size() != 2) return std::nullopt;
    add_weight(total, c.inputs[i], rows_of(c.inputs[0]));
  }
  return total;
}

// ── Attention ──────────────────────────────────────────────────────────────────────────────────────────────────────

std::optional<Operations> attention(const CallShapes& c) {
  if (c.inputs.size() < 3 || c.outputs.empty()) return std::nullopt;
  const TensorType &query = c.inputs[0], &key = c.inputs[1];
  if (key.sizes.size() < 2 || c.inputs[2].sizes.empty()) return std::nullopt;
  const SizeExpr keys = key.sizes[key.sizes.size() - 2], pairs = rows_of(c.outputs[0]) * keys;
  const SizeExpr macs = (query.numel() + c.outputs[0].numel()) * keys;
  return Operations{macs, 2 * macs + 5 * pairs};
}

std::optional<Operations> multi_head_attention(const CallShapes& c, bool batch_first) {
  if (c.inputs.size() < 3) return std::nullopt;
  const TensorType &query = c.inputs[0], &key = c.inputs[1], &value = c.inputs[2];
  if (query.sizes.size() < 2 || query.sizes.size() > 3 || key.sizes.empty()) return std::nullopt;
  const SizeExpr batch = query.sizes.size() == 2 ? SizeExpr(1) : query.sizes[batch_first ? 0 : 1];
  SizeExpr pairs = batch == SizeExpr(0) ? batch : floor_div(rows_of(query) * rows_of(key), batch), heads = 1;
  // Of all heads, not their mean: how many there are.
  if (c.outputs.size() > 1 && c.outputs[1].sizes.size() > query.sizes.size()) {
    const TensorType& weights = c.outputs[1];
    heads = weights.sizes[weights.sizes.size() - 3];
    pairs = heads == SizeExpr(0) ? heads : floor_div(weights.numel(), heads);
  }
  const SizeExpr embedding = query.sizes.back();
  const SizeExpr macs = embedding * (2 * query.numel() + key.numel() + value.numel()) + 2 * pairs * embedding;
  return Operations{macs, 2 * macs + 5 * pairs * heads};
}

}  // namespace fx::internal::cost
