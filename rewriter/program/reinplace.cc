// Alias sets are those of the graph before the pass. A call that now writes puts its result into its input's sets; but
// nothing reads these any more, so what is asked of later calls has the same answer.
#include <fxgraph/rewriter/program/reinplace.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/ops/schema.h>
#include <fxgraph/rewriter/rewriter.h>

namespace fx {
namespace {

/// The variant of `schema` that writes its first argument and is the same otherwise; null when there is none.
const OperatorSchema* writing_variant(const OperatorSchema& schema) {
  if (schema.traits.view) return nullptr;  // it makes no tensor of its own, and detach_ throws on views
  const std::string name = schema.target.str();
  const std::string packet(packet_of(name));
  const OperatorSchema* found = find_schema(Symbol(packet + "_" + name.substr(packet.size())));
  if (!found || schema.returns.size() != 1 || found->arguments.size() != schema.arguments.size()) return nullptr;
  for (std::size_t i = 0; i < schema.arguments.size(); ++i) {
    const SchemaArgument &a = schema.arguments[i], &b = found->arguments[i];
    if (a.name != b.name || a.type.base != b.type.base || a.type.list != b.type.list || a.alias.writes) return nullptr;
    if (b.alias.writes != (i == 0)) return nullptr;
  }
  return found;
}

/// True when no two elements share memory.
bool has_own_elements(const TensorInfo& tensor) {
  if (tensor.strides.empty()) return true;
  std::vector<std::pair<std::int64_t, std::int64_t>> dims;  // stride, size
  for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
    if (tensor.sizes[i] > 1) dims.emplace_back(tensor.strides[i], tensor.sizes[i]);
  }
  std::ranges::sort(dims);
  std::int64_t reach = 1;
  for (const auto& [stride, size] : dims) {
    if (stride < reach) return false;
    reach = stride * size;
  }
  return true;
}

bool same_layout(const TensorInfo& a, const TensorInfo& b) {
  if (a.dtype != b.dtype || a.sizes != b.sizes || a.device != b.device) return false;
  return a.strides == b.strides || (a.is_contiguous() && b.is_contiguous());
}

class Reinplacer {
 public:
  Reinplacer(Graph& graph, const Shapes& shapes, const EffectsOptions& options)
      : graph_(graph),
        shapes_(shapes),
        effects_(graph, options),
        place_(graph, 0),
        last_read_(effects_.num_sets(), 0),
        returned_(effects_.num_sets(), false) {
    std::size_t place = 0;
    for (const Node& node : graph.nodes()) {
      place_[node] = ++place;
      node.for_each_input([&](const Node& input) {
        for (const Effects::Set set : effects_.sets(input)) {
          last_read_[set] = place;
          if (node.is(Op::output)) returned_[set] = true;
        }
      });
      // A call that returns what it was given may show it to whoever reads its result: the sets say so.
    }
  }

  ReinplaceReport run() {
    ReinplaceReport report;
    Rewriter rewriter(graph_);
    for (Node& node : graph_.nodes()) {
      const OperatorSchema* schema = node.is(Op::call_function) ? schema_of(node) : nullptr;
      const OperatorSchema* variant = schema && schema->target == node.target() ? writing_variant(*schema) : nullptr;
      if (!variant) continue;
      if (const std::optional<std::string> why = why_not(node)) {
        report.kept.emplace_back(&node, *why);
        continue;
      }
      rewriter.set_target(node, variant->target);
      report.changed.push_back(&node);
    }
    return report;
  }

 private:
  std::optional<std::string> why_not(const Node& node) const {
    const Node* written = node.args().empty() ? nullptr : node.arg(0).node_or_null();
    if (!written) return "its first argument is no tensor";
    const std::string name = "%" + written->name();
    if (written->is(Op::placeholder)) return name + " is an input";
    if (written->is(Op::get_attr)) return name + " is a parameter or buffer";
    if (effects_.sets(*written).empty()) return "the storage of " + name + " is not known";
    for (const Effects::Set set : effects_.sets(*written)) {
      if (effects_.is_external(set)) return name + " may share storage with an input or a parameter";
      if (returned_[set]) return name + " is returned, or a view of it";
      if (last_read_[set] > place_[node]) return name + ", or a view of it, is read later";
    }
    if (!written->is(Op::call_function) && !written->is(Op::call_method))
      return name + " is made by a module, which may keep it";
    const TensorInfo *before = info(*written), *after = info(node);
    if (!before || !after) return "shapes are not known";
    if (!same_layout(*before, *after))
      return "its result is " + to_string(*after) + ", " + name + " is " + to_string(*before);
    if (!has_own_elements(*before)) return "elements of " + name + " share memory";
    std::optional<std::string> why;
    bool first = true;
    node.for_each_input([&](const Node& other) {
      // The value itself once more is read element by element, as it is written.
      const bool itself = std::exchange(first, false);
      if (itself || why) return;
      if (&other != written && effects_.may_alias(other, *written))
        why = "%" + other.name() + " may share storage with " + name;
      if (&other == written && !is_pointwise(node)) why = name + " is also another argument";
    });
    return why;
  }

  static bool is_pointwise(const Node& node) {
    const OperatorSchema* schema = schema_of(node);
    return schema && schema->traits.pointwise;
  }
  const TensorInfo* info(const Node& node) const {
    return node.id() < shapes_.size() ? shapes_[node].tensor() : nullptr;
  }

  Graph& graph_;
  const Shapes& shapes_;
  Effects effects_;
  NodeMap<std::size_t> place_;
  std::vector<std::size_t> last_read_;  // by set: the place of the last node that is given a value in it
  std::vector<bool> returned_;
};

}  // namespace

ReinplaceReport reinplace(Graph& graph, const Shapes& shapes, const EffectsOptions& effects) {
  return Reinplacer(graph, shapes, effects).run();
}

}  // namespace fx
