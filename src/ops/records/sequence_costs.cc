// The operators whose cost is more than one product: einsum, recurrent layers, attention.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fxgraph/ops/records/cost_formulas.h>
#include <fxgraph/ops/schema.h>

namespace fx::internal::cost {

namespace {

/// Of what has a last dimension: all without it.
SizeExpr rows_of(const TensorType& tensor) {
  SizeExpr rows = 1;
  for (std::size_t i = 0; i + 1 < tensor.sizes.size(); ++i) rows = rows * tensor.sizes[i];
  return rows;
}

// ── einsum ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Labels are letters; the dimensions that an ellipsis stands for are negative, counted from the right.
using Labels = std::vector<int>;

/// Reads one operand's part of an equation, `b...ij`, for a tensor of that rank.
std::optional<Labels> labels_of(std::string_view part, std::size_t rank) {
  Labels labels;
  const std::size_t dots = part.find("...");
  const std::size_t letters = part.size() - (dots == part.npos ? 0 : 3);
  if (letters > rank || (dots == part.npos && letters != rank)) return std::nullopt;
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (i == dots) {
      for (std::size_t d = rank - letters; d > 0; --d) labels.push_back(-static_cast<int>(d));
      i += 2;
    } else {
      labels.push_back(part[i]);
    }
  }
  return labels;
}

struct Equation {
  std::vector<Labels> operands;
  std::map<int, SizeExpr> sizes;
  std::set<int> output;
};

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0, end = 0; end != text.npos; begin = end + 1) {
    end = text.find(at, begin);
    parts.push_back(text.substr(begin, end == text.npos ? end : end - begin));
  }
  return parts;
}

std::optional<Equation> parse_equation(const CallShapes& c) {
  const Argument* text = c.node.args().size() > 0 ? &c.node.args()[0] : nullptr;
  if (!text || !text->is_string()) return std::nullopt;
  std::string equation(text->as_string());
  std::erase(equation, ' ');
  const std::size_t arrow = equation.find("->");
  const std::vector<std::string_view> parts = split(std::string_view(equation).substr(0, arrow), ',');
  if (parts.size() != c.inputs.size()) return std::nullopt;
  Equation parsed;
  std::map<int, int> count;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const TensorType& tensor = c.inputs[i];
    const std::optional<Labels> labels = labels_of(parts[i], tensor.sizes.size());
    if (!labels) return std::nullopt;
    for (std::size_t d = 0; d < labels->size(); ++d) {
      SizeExpr& size = parsed.sizes.try_emplace((*labels)[d], 1).first->second;
      size = size == SizeExpr(1) ? tensor.sizes[d] : tensor.sizes[d] == SizeExpr(1) ? size : max(size, tensor.sizes[d]);
    }
    for (const int label : std::set<int>(labels->begin(), labels->end())) ++count[label];
    parsed.operands.push_back(*labels);
  }
  for (const auto& [label, times] : count) {
    const bool named =
        arrow != equation.npos && label > 0 && equation.find(static_cast<char>(label), arrow + 2) != equation.npos;
    // Without an arrow the result has what stands once; what an ellipsis stands for is kept.
    if (named || label < 0 || (arrow == equation.npos && times == 1)) parsed.output.insert(label);
  }
  return parsed;
}

}  // namespace

std::optional<Operations> einsum(const CallShapes& c) {
  const std::optional<Equation> equation = parse_equation(c);
  if (!equation) return std::nullopt;
  const auto volume = [&](const std::set<int>& labels) {
    SizeExpr product = 1;
    for (const int label : labels) product = product * equation->sizes.at(label);
    return product;
  };
  Operations total;
  std::set<int> left(equation->operands[0].begin(), equation->operands[0].end());
  if (equation->operands.size() == 1) return Operations{0, volume(left)};
  for (std::size_t i = 1; i < equation->operands.size(); ++i) {
    left.insert(equation->operands[i].begin(), equation->operands[i].end());
    total.macs = total.macs + volume(left);
    // What neither the result nor a later operand has is summed over.
    std::set<int> needed = equation->output;
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
