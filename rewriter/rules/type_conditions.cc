#include <fxgraph/rewriter/rules/type_conditions.h>

#include <algorithm>
#include <string>
#include <vector>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/records/operator_flags.h>
#include <fxgraph/rewriter/rules/kernels.h>

namespace fx::rules {

namespace {

bool names_dtype(const Call& call) {
  const Argument* dtype = call.argument("dtype");
  return dtype && !dtype->is_none();
}

/// Adds the values whose types the result of `node` may have, and takes from `types` what it cannot have; false when
/// nothing is known of it.
bool add_sources(const Node& node, std::vector<const Node*>& open, TypeSet& types) {
  const Call call = call_of(node);
  if (call.args().empty() || names_dtype(call)) return false;
  const std::string_view packet = packet_of(operator_name(call.schema()).view());
  if (has_kernel_types(packet)) types = result_types(packet);
  if (has_kernel_types(packet)) return true;
  const Node* first = call.args()[0].node_or_null();
  if (!first) return false;
  open.push_back(first);
  if (typed_by(node)) return true;
  if (packet != "aten::add" && packet != "aten::sub" && packet != "aten::mul" && packet != "aten::div") return false;
  const Argument* other = call.args().size() > 1 ? &call.args()[1] : nullptr;
  if (other && other->is_node()) open.push_back(&other->node());
  return other && (other->is_node() || other->is_int() || other->is_float());
}

/// The types that the value may have.
TypeSet types_of(const Match& match, std::string_view name) {
  TypeSet types;
  if (const TensorFacts info = match.info(name)) {
    types.add(info.dtype());
    return types;
  }
  constexpr std::size_t kMost = 64;
  std::vector<const Node*> open = {&match[name]};
  for (std::size_t next = 0; next < open.size(); ++next) {
    TypeSet own;
    if (next == kMost || !add_sources(*open[next], open, own)) return TypeSet::all();
    types = types | own;
  }
  return types;
}

}  // namespace

const Node* typed_by(const Node& node) {
  const Call call = call_of(node);
  const bool keeps = call && !call.args().empty() && !names_dtype(call) &&
                     has_flag(operator_name(call.schema()), OperatorFlag::keeps_type);
  return keeps ? call.args()[0].node_or_null() : nullptr;
}

bool is_floating(const Match& match, std::string_view name) {
  const TensorFacts info = match.info(name);
  return info && info.is_of(floating_types());
}

Decision has_kernel(const Match& match, std::string_view name, std::string_view packet) {
  if (const TensorFacts info = match.info(name); info && info.is_of(floating_types() & kernel_types(packet)))
    return true;
  const TypeSet types = types_of(match, name);
  if (types.is_within(floating_types() & kernel_types(packet))) return true;
  if (types == TypeSet::all())
    return refuse("whether its input is of a floating-point type is not known; give --input");
  if (!types.is_within(floating_types())) return false;
  return refuse("there is no " + std::string(packet) + " for numbers of its type, or of a type that it may have");
}

bool same_type(const Match& match, std::string_view a, std::string_view b) {
  return match.info(a) && match.info(b) && match.info(a).is_of_type_of(match.info(b));
}

}  // namespace fx::rules
