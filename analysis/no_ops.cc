#include <fxgraph/analysis/no_ops.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/ops/effects.h>
#include <fxgraph/ops/schema.h>
#include <fxgraph/support/flat_map.h>

namespace fx {

namespace {

/// One call under test. Arguments are asked for by their schema names.
struct Call {
  const Node& node;
  const Node& input;

  const Argument* argument(std::string_view name) const { return bound_argument(node, name); }
  bool is_number(std::string_view name, double value) const {
    const Argument* a = argument(name);
    return a && (a->is_int() || a->is_float()) && a->as_float() == value;
  }
  bool is_bool(std::string_view name, bool value) const {
    const Argument* a = argument(name);
    return a && a->is_bool() && a->as_bool() == value;
  }
  bool is_int(std::string_view name, std::int64_t value) const {
    const Argument* a = argument(name);
    return a && a->is_int() && a->as_int() == value;
  }
  bool absent(std::string_view name) const {
    const Argument* a = argument(name);
    return !a || a->is_none();
  }
};

// An alpha of 0 does not make a sum with inf or NaN, nor does a 0 times an alpha of inf.
bool adds_zero(const Call& c) {
  const Argument* alpha = c.argument("alpha");
  return c.is_number("other", 0.0) &&
         (!alpha || ((alpha->is_int() || alpha->is_float()) && std::isfinite(alpha->as_float())));
}
bool times_one(const Call& c) { return c.is_number("other", 1.0); }
bool divides_by_one(const Call& c) { return c.is_number("other", 1.0) && c.absent("rounding_mode"); }
bool to_the_one(const Call& c) { return c.is_number("exponent", 1.0); }
bool drops_nothing(const Call& c) { return c.is_bool("train", false) || c.is_number("p", 0.0); }
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
  return (c.absent("start") || c.is_int("start", 0)) && to_end && c.is_int("step", 1);
}
// Unless something writes to it in between: see find_no_ops.
bool rectified_before(const Call& c) {
  static const Symbol kRelu = canonical_target("aten::relu"), kRelu6 = canonical_target("aten::relu6");
  return c.input.target() == kRelu || c.input.target() == kRelu6;
}
bool is_default_format(const Call& c) {
  const Argument* format = c.argument("memory_format");
  return c.absent("memory_format") ||
         (format->kind() == ArgumentKind::memory_format && format->as_memory_format().name == "contiguous_format");
}
bool makes_no_copy(const Call& c) { return !c.is_bool("copy", true) && c.absent("memory_format"); }
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
    {"aten::true_divide", true, divides_by_one, "divides by 1"},
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

const NoOpForm* form_for(const Node& node) {
  static const FlatMap<const NoOpForm*> by_packet = [] {
    FlatMap<const NoOpForm*> map;
    for (const NoOpForm& form : kForms) map[Symbol(form.packet).id()] = &form;
    return map;
  }();
  const Symbol packet = Symbol::find(packet_of(node.target().view()));
  const NoOpForm* const* form = packet.empty() ? nullptr : by_packet.find(packet.id());
  return form ? *form : nullptr;
}

/// Of a call that takes a tensor first, and only reads it.
bool holds(const NoOpForm& form, const Node& node) {
  return form.holds({node, node.arg(0).node()}) && !effects_of(node).writes;
}
bool takes_a_node(const Node& node) {
  return node.is(Op::call_function) && !node.args().empty() && node.args()[0].is_node();
}

}  // namespace

Node* no_op_argument(const Node& node) {
  const NoOpForm* form = takes_a_node(node) ? form_for(node) : nullptr;
  if (!form || form->needs_shapes || form->holds == rectified_before) return nullptr;
  return holds(*form, node) ? &node.args()[0].node() : nullptr;
}

std::vector<NoOp> find_no_ops(const Graph& graph, const Shapes* shapes, const Effects* effects) {
  std::vector<NoOp> found;
  std::optional<Effects> own;
  FlatMap<std::optional<const NoOpForm*>> forms;  // by target: a graph has few
  for (const Node& node : graph.nodes()) {
    if (!takes_a_node(node)) continue;
    std::optional<const NoOpForm*>& known = forms[node.target().id()];
    if (!known) known = form_for(node);
    const NoOpForm* form = *known;
    if (!form) continue;
    Node& input = node.args()[0].node();
    if (form->needs_shapes && !(shapes && keeps_type_and_sizes(*shapes, node, input))) continue;
    if (!holds(*form, node)) continue;
    if (form->holds == rectified_before) {
      if (!effects) effects = &own.emplace(graph);
      if (effects->write_between(input, input, node)) continue;
    }
    found.push_back({const_cast<Node*>(&node), &input, form->reason});
  }
  return found;
}

}  // namespace fx
