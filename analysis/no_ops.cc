#include <fxgraph/analysis/no_ops.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/support/flat_map.h>

namespace fx {

namespace {

bool is_number(const Argument* a, double value) {
  return a && (a->is_int() || a->is_float()) && a->as_float() == value;
}
bool is_bool(const Argument* a, bool value) { return a && a->is_bool() && a->as_bool() == value; }
bool is_int(const Argument* a, std::int64_t value) { return a && a->is_int() && a->as_int() == value; }
bool is_absent(const Argument* a) { return !a || a->is_none(); }

// An alpha of 0 does not make a sum with inf or NaN, nor does a 0 times an alpha of inf.
bool adds_zero(const Call& c) {
  const Argument* alpha = c.argument("alpha");
  return is_number(c.argument("other"), 0.0) &&
         (!alpha || ((alpha->is_int() || alpha->is_float()) && std::isfinite(alpha->as_float())));
}
bool times_one(const Call& c) { return is_number(c.argument("other"), 1.0); }
bool divides_by_one(const Call& c) {
  return is_number(c.argument("other"), 1.0) && is_absent(c.argument("rounding_mode"));
}
bool to_the_one(const Call& c) { return is_number(c.argument("exponent"), 1.0); }
bool drops_nothing(const Call& c) { return !effects_of(c).random; }
bool same_dimension(const Call& c) {
  const Argument *a = c.argument("dim0"), *b = c.argument("dim1");
  return a && b && a->is_int() && b->is_int() && a->as_int() == b->as_int();
}
bool identity_order(const Call& c) {
  const Argument* dims = c.argument("dims");
  if (!dims || !dims->is_sequence()) return false;
  std::int64_t next = 0;
  for (const Argument& dim : dims->elements()) {
    if (!dim.is_int() || dim.as_int() != next++) return false;
  }
  return true;
}
bool whole_slice(const Call& c) {
  const Argument* end = c.argument("end");
  const bool to_end = !end || end->is_none() || (end->is_int() && end->as_int() == INT64_MAX);
  return (is_absent(c.argument("start")) || is_int(c.argument("start"), 0)) && to_end && is_int(c.argument("step"), 1);
}
// Unless something writes to it in between: see find_no_ops.
bool rectified_before(const Call& c) {
  static const Symbol kRelu = canonical_target("aten::relu"), kRelu6 = canonical_target("aten::relu6");
  const Call before = call_of(c.argument(0)->node());
  return before && (operator_name(before.schema()) == kRelu || operator_name(before.schema()) == kRelu6);
}
bool is_default_format(const Call& c) {
  const Argument* format = c.argument("memory_format");
  return is_absent(c.argument("memory_format")) ||
         (format->kind() == ArgumentKind::memory_format && format->as_memory_format().name == "contiguous_format");
}
bool makes_no_copy(const Call& c) {
  return !is_bool(c.argument("copy"), true) && is_absent(c.argument("memory_format"));
}
bool always(const Call&) { return true; }

struct NoOpForm {
  const char* packet;
  bool needs_shapes;  ///< the type and the sizes must be known to stay
  bool (*holds)(const Call&);
  const char* reason;
};

constexpr NoOpForm kForms[] = {
    {"aten::add", true, adds_zero, "adds 0"},
    {"aten::sub", true, adds_zero, "subtracts 0"},
    {"aten::mul", true, times_one, "multiplies by 1"},
    {"aten::div", true, divides_by_one, "divides by 1"},
    {"aten::pow", true, to_the_one, "raises to the power 1"},
    {"aten::dropout", false, drops_nothing, "drops nothing at inference"},
    {"aten::feature_dropout", false, drops_nothing, "drops nothing at inference"},
    {"aten::alpha_dropout", false, drops_nothing, "drops nothing at inference"},
    {"aten::feature_alpha_dropout", false, drops_nothing, "drops nothing at inference"},
    {"aten::transpose", false, same_dimension, "swaps a dimension with itself"},
    {"aten::permute", false, identity_order, "keeps the order of the dimensions"},
    {"aten::slice", false, whole_slice, "takes the whole dimension"},
    {"aten::relu", false, rectified_before, "rectifies what is rectified already"},
    {"aten::view", true, always, "keeps the shape"},
    {"aten::reshape", true, always, "keeps the shape"},
    {"aten::flatten", true, always, "keeps the shape"},
    {"aten::expand", true, always, "keeps the shape"},
    {"aten::squeeze", true, always, "keeps the shape"},
    {"aten::to", true, makes_no_copy, "keeps the type"},
    {"aten::contiguous", true, is_default_format, "is contiguous already"},
};

bool keeps_type_and_sizes(const Shapes& shapes, const Node& node, const Node& input) {
  const TensorInfo *out = shapes[node].tensor(), *in = shapes[input].tensor();
  return out && in && out->dtype == in->dtype && out->device == in->device && out->sizes == in->sizes &&
         out->is_contiguous() == in->is_contiguous();
}

const NoOpForm* form_for(const Call& call) {
  static const FlatMap<const NoOpForm*> by_packet = [] {
    FlatMap<const NoOpForm*> map;
    for (const NoOpForm& form : kForms) map[Symbol(form.packet).id()] = &form;
    return map;
  }();
  const Symbol packet = call ? Symbol::find(packet_of(operator_name(call.schema()).view())) : Symbol();
  const NoOpForm* const* form = packet.empty() ? nullptr : by_packet.find(packet.id());
  return form ? *form : nullptr;
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
  if (!form || form->needs_shapes || form->holds == rectified_before) return nullptr;
  Node* input = read_first(call);
  return input && form->holds(call) ? input : nullptr;
}

std::vector<NoOp> find_no_ops(const Graph& graph, const Shapes* shapes, const Effects* effects) {
  std::vector<NoOp> found;
  std::optional<Effects> own;
  for (const Node& node : graph.nodes()) {
    const Call call = call_of(node);
    const NoOpForm* form = form_for(call);
    Node* input = form ? read_first(call) : nullptr;
    if (!input) continue;
    if (form->needs_shapes && !(shapes && keeps_type_and_sizes(*shapes, node, *input))) continue;
    if (!form->holds(call)) continue;
    if (form->holds == rectified_before) {
      if (!effects) effects = &own.emplace(graph);
      if (effects->write_between(*input, *input, node)) continue;
    }
    found.push_back({const_cast<Node*>(&node), input, form->reason});
  }
  return found;
}

}  // namespace fx
