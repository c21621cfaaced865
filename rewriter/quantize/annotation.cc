#include <fxgraph/rewriter/quantize/annotation.h>

#include <memory>
#include <numeric>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/rewriter/quantize/flat_program.h>
#include <fxgraph/rewriter/rules/weights.h>

namespace fx::quantize {

namespace {

bool is_share(const Mark& mark) { return mark.row && mark.row->role == Role::share; }

bool joins(const Row& row) { return row.role == Role::concat || row.role == Role::share_all; }

bool is_float(const at::Tensor& tensor) { return tensor.defined() && tensor.scalar_type() == at::kFloat; }

/// A value changes by a write after it, through any alias. What weights are is settled when the program is converted:
/// no write at all may reach them, nor may a caller be given them.
std::function<std::string(const Node&)> change_test(const GraphModule& flat) {
  const auto effects = std::make_shared<Effects>(flat);
  const auto weights = std::make_shared<rules::ProgramEffects>(flat);
  return [effects, weights](const Node& value) -> std::string {
    if (value.is(Op::get_attr)) return weights->not_constant(value.target().str());
    for (const Effects::Set set : effects->sets(value)) {
      for (const Node* writer : effects->writers(set)) {
        if (value.is_before(*writer)) return "the program writes to " + value.name();
      }
    }
    return {};
  };
}

}  // namespace

const Row* row_for(const Node& node) {
  if (!node.is(Op::call_function)) return nullptr;
  const Call call = call_of(node);
  if (call && call.schema().arguments.size() > 1 && literal_number(call.argument(1))) {
    const Row* row = row_of(std::string(packet_of(node.target().view())) + ".Scalar");
    if (row && row->role == Role::by_number) return row;
  }
  return row_of(node.target().view());
}

void for_each_quantized_operand(const Row& row, const Node& node, const std::function<void(Node&)>& visit) {
  const std::size_t count = row.role == Role::elementwise ? 2 : 1;
  const Call call = call_of(node);
  for (std::size_t i = 0; i < count; ++i) {
    const Argument* value = call ? call.argument(i) : i < node.args().size() ? &node.args()[i] : nullptr;
    if (value) for_each_node(*value, visit);
  }
}

// LibTorch's engines have transposed convolutions with one scale only.
std::optional<std::int64_t> channel_axis(const Row& row) {
  if (row.packet.starts_with("aten::conv_transpose")) return std::nullopt;
  return 0;
}

Annotation::Annotation(const GraphModule& flat, const Shapes& shapes, const QuantConfig& config, Finiteness finiteness)
    : flat_(flat),
      shapes_(shapes),
      finiteness_(std::move(finiteness)),
      marks_(flat.graph()),
      wanted_(flat.graph(), false),
      made_(flat.graph(), false),
      ranges_(flat.graph(), kNone) {
  changes_ = change_test(flat);
  mark_candidates(config);
  fuse_activations();
  spread();
  find_ranges();
}

bool Annotation::is_float_tensor(const Node& value) const {
  const TensorInfo* info = shapes_[value].tensor();
  return info && info->dtype == DType::float32;
}

bool Annotation::is_float_value(const Node& value) const {
  const TensorInfos& tensors = shapes_[value].tensors;
  for (const TensorInfo& info : tensors) {
    if (info.dtype != DType::float32) return false;
  }
  return !tensors.empty();
}

// ── Candidates ───────────────────────────────────────────────────────────────────────────────────────────────────────

std::string Annotation::weight_obstacle(const Site& site) const {
  const Argument *weight = site.call.argument("weight"), *bias = site.call.argument("bias");
  const Node* attribute = weight ? weight->node_or_null() : nullptr;
  if (!attribute || !attribute->is(Op::get_attr)) return "its weight is computed, not an attribute";
  if (std::string why = changes_(*attribute); !why.empty()) return why;
  if (!is_float(flat_.find_attribute(attribute->target().str()))) return "its weight is not float32";
  if (bias && !bias->is_none()) {
    const Node* value = bias->node_or_null();
    if (!value || !value->is(Op::get_attr)) return "its bias is computed, not an attribute";
    if (std::string why = changes_(*value); !why.empty()) return why;
    if (!is_float(flat_.find_attribute(value->target().str()))) return "its bias is not float32";
  }
  for (const char* name : {"stride", "padding", "dilation", "output_padding", "groups"}) {
    const Argument* value = site.call.argument(name);
    bool computed = false;
    if (value) for_each_node(*value, [&](Node&) { computed = true; });
    if (computed) return std::string("its ") + name + " is computed";
  }
  const bool matrix = flat_.attribute(attribute->target().str()).dim() == 2;
  if (packet_of(site.call.schema().target.view()) == "aten::linear" && !matrix) return "its weight is no matrix";
  return {};
}

std::string Annotation::obstacle(Node& node, const Row& row) const {
  const Call call = call_of(node);
  if (!call) {
    if (row.packet != python::kGetItem) return "the operator " + node.target().str() + " is not known";
    Node* list = node.args().empty() ? nullptr : node.arg(0).node_or_null();
    if (!list || !is_share(marks_[*list])) return "what it takes out of is not quantized";
    return is_float_tensor(node) ? "" : "its value is not a float32 tensor";
  }
  if (effects_of(node).writes) return "it writes to its operand";
  const Site site{shapes_, call};
  std::string reason;
  std::size_t operands = 0;
  const std::size_t expected = row.role == Role::elementwise ? 2 : 1;
  for_each_quantized_operand(row, node, [&](Node& value) {
    ++operands;
    if (!reason.empty()) return;
    reason = changes_(value);
    if (reason.empty() && !is_float_tensor(value)) {
      reason = value.name() + " is not a float32 tensor";
    }
  });
  if (!reason.empty()) return reason;
  if (operands < expected) return "there is no quantized kernel for numbers";
  if (!changes_(node).empty()) return "the program writes to its value";
  if (!is_float_value(node)) return "its value is not float32";
  if (row.rank && site.input_rank() != row.rank) {
    return "the kernel wants an input of rank " + std::to_string(row.rank) + ", this has " +
           std::to_string(site.input_rank());
  }
  if (row.role == Role::weighted) {
    if (reason = weight_obstacle(site); !reason.empty()) return reason;
    if (row.packet == "aten::linear" && site.input_rank() < 2) return "the kernel wants a batch";
  }
  return row.obstacle ? row.obstacle(site) : "";
}

// No range holds infinity: masks of it, logarithms of zero.
std::string Annotation::not_finite_obstacle(const Node& node, const Row& row) {
  std::string reason;
  for_each_quantized_operand(row, node, [&](Node& value) {
    if (finiteness_.not_finite.contains(value.name())) reason = value.name() + " is not finite for a sample";
  });
  if (!reason.empty() && !finiteness_.finite.contains(node.name())) finiteness_.not_finite.insert(node.name());
  return reason.empty() && finiteness_.not_finite.contains(node.name()) ? "its value is not finite for a sample"
                                                                        : reason;
}

void Annotation::mark_candidates(const QuantConfig& config) {
  for (Node& node : const_cast<Graph&>(flat_.graph()).nodes()) {
    Mark& mark = marks_[node];
    if (node.is(Op::placeholder) || node.is(Op::get_attr) || node.is(Op::output)) continue;
    const std::string packet(packet_of(node.target().view()));
    mark.settings = &config.settings_for(node.name(), packet, layer_type(node), layer_path(node));
    const Row* row = row_for(node);
    if (!row) {
      mark.reason = "there is no quantized kernel for " + (node.is(Op::call_module) ? node.target().str() : packet);
    } else if (mark.settings->mode == QuantMode::keep_float) {
      mark.reason = "the configuration keeps it in float";
    } else if (mark.settings->mode != QuantMode::fixed_range) {
      mark.reason = "the mode " + std::string(to_string(mark.settings->mode)) + " leaves its values in float";
    } else {
      mark.reason = obstacle(node, *row);
      if (mark.reason.empty()) mark.reason = not_finite_obstacle(node, *row);
    }
    // Those that share wait for what is beside them.
    if (mark.reason.empty()) {
      mark.row = row;
      mark.quantized = row->role != Role::share;
    }
  }
}

void Annotation::fuse_activations() {
  for (Node& node : const_cast<Graph&>(flat_.graph()).nodes()) {
    Mark& mark = marks_[node];
    if (!mark.quantized || mark.row->role == Role::fixed || mark.row->role == Role::by_number) continue;
    if (node.num_users() != 1) continue;
    Node& user = *node.users().begin();
    if (!is_share(marks_[user]) || !bounds_of(user).is_activation) continue;
    mark.activation = &user;
    marks_[user].part_of = &node;
    marks_[user].quantized = true;
  }
}

void Annotation::spread() {
  const auto nodes = const_cast<Graph&>(flat_.graph()).nodes();
  for (Node& node : nodes) {
    const Mark& mark = marks_[node];
    if (!mark.quantized || mark.part_of) continue;
    for_each_quantized_operand(*mark.row, node, [&](Node& value) { wanted_[value] = true; });
    made_[mark.activation ? *mark.activation : node] = true;
  }
  for (Node& node : nodes.reversed()) {
    Mark& mark = marks_[node];
    if (!is_share(mark) || mark.part_of || !wanted_[node]) continue;
    mark.quantized = true;
    for_each_quantized_operand(*mark.row, node, [&](Node& value) { wanted_[value] = true; });
  }
  for (Node& node : nodes) {
    Mark& mark = marks_[node];
    if (!is_share(mark) || mark.part_of) continue;
    for_each_quantized_operand(*mark.row, node, [&](Node& value) { mark.quantized |= made_[value]; });
    if (mark.quantized) {
      made_[node] = true;
      for_each_quantized_operand(*mark.row, node, [&](Node& value) { wanted_[value] = true; });
    } else {
      mark.reason = "nothing beside it is quantized";
    }
  }
}

void Annotation::find_ranges() {
  for (Node& node : const_cast<Graph&>(flat_.graph()).nodes()) {
    if (!wanted_[node] && !made_[node]) continue;
    const Mark& mark = marks_[node];
    int& range = ranges_[node];
    if (is_share(mark) && !mark.part_of && mark.quantized) {
      for_each_quantized_operand(*mark.row, node, [&](Node& value) { range = ranges_[value]; });
      continue;
    }
    range = static_cast<int>(roots_.size());
    roots_.push_back(&node);
    const QuantSettings* settings = made_[node] ? marks_[maker(node)].settings : nullptr;
    for (const Node& user : node.users()) {
      if (!settings && reads_quantized(user, node)) settings = marks_[user].settings;
    }
    quantizers_.push_back(settings ? settings->activation : Quantizer());
  }
  join_ranges();
}

bool Annotation::has_free_range(const Node& root) const {
  if (!made_[root]) return true;
  const Role role = marks_[maker(root)].row->role;
  return role != Role::fixed && role != Role::by_number;
}

// What is joined has one range, so that joining rounds nothing anew. An activation after it gives the result bounds of
// its own.
void Annotation::join_ranges() {
  std::vector<int> joined(roots_.size());
  std::iota(joined.begin(), joined.end(), 0);
  const auto find = [&](int range) {
    while (joined[static_cast<std::size_t>(range)] != range)
      range = joined[static_cast<std::size_t>(range)] =
          joined[static_cast<std::size_t>(joined[static_cast<std::size_t>(range)])];
    return range;
  };
  const auto nodes = const_cast<Graph&>(flat_.graph()).nodes();
  for (Node& node : nodes) {
    const Mark& mark = marks_[node];
    if (!mark.quantized || mark.activation || !joins(*mark.row)) continue;
    for_each_quantized_operand(*mark.row, node, [&](Node& value) {
      const int own = find(ranges_[node]), other = find(ranges_[value]);
      if (own != other && has_free_range(root(other)) && quantizer(own) == quantizer(other))
        joined[static_cast<std::size_t>(other)] = own;
    });
  }
  for (Node& node : nodes) {
    if (ranges_[node] != kNone) ranges_[node] = find(ranges_[node]);
  }
}

const Node& Annotation::maker(const Node& root) const { return marks_[root].part_of ? *marks_[root].part_of : root; }

bool Annotation::reads_quantized(const Node& user, const Node& value) const {
  const Mark& mark = marks_[user];
  if (!mark.quantized || mark.part_of) return false;
  bool reads = false;
  for_each_quantized_operand(*mark.row, user, [&](Node& each) { reads |= &each == &value; });
  return reads;
}

}  // namespace fx::quantize
