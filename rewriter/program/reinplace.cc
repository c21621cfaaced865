// Alias sets are those of the graph before the pass. A call that now writes puts its result into its input's sets; but
// nothing reads these any more, so what is asked of later calls has the same answer. A scatter that goes leaves its
// place to its base: from there on the base is asked about as the scatter.
#include <fxgraph/rewriter/program/reinplace.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <fxgraph/effects/in_place.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/rewriter/program/view_places.h>
#include <fxgraph/rewriter/rewriter.h>
#include <fxgraph/run/call_target.h>

namespace fx {
namespace {

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

bool same_elements(const TensorInfo& a, const TensorInfo& b) {
  return a.dtype == b.dtype && a.sizes == b.sizes && a.device == b.device;
}

bool same_layout(const TensorInfo& a, const TensorInfo& b) {
  return same_elements(a, b) && (a.strides == b.strides || (a.is_contiguous() && b.is_contiguous()));
}

/// `masked_select` and `x[mask]`: other data give other sizes.
bool is_sized_by_data(const Node& node) {
  if (const Call call = call_of(node)) {
    const TorchOperator* called = torch_operator(call);
    return call.schema().target == "aten::index.Tensor" ||
           (called && called->handle && data_decide_sizes(*called->handle, call.schema().target));
  }
  return node.is_call(python::kGetItem) && node.args().size() == 2 && names_nodes(node.arg(1));
}

/// Calls `visit(const Node&)` for all that a call takes beside its first argument.
template <typename Visit>
void for_each_other(const Call& call, Visit&& visit) {
  for (std::size_t i = 1; i < call.schema().arguments.size(); ++i) {
    if (const Argument* value = call.argument(i)) for_each_node(*value, visit);
  }
}

class Reinplacer {
 public:
  Reinplacer(Graph& graph, const Shapes& shapes, const EffectsOptions& options)
      : graph_(graph),
        rewriter_(graph),
        shapes_(shapes),
        effects_(graph, options),
        places_(shapes),
        place_(graph, 0),
        stands_for_(graph, nullptr),
        holder_(graph, nullptr),
        sized_by_data_(graph, false),
        last_read_(effects_.num_sets(), 0),
        returned_(effects_.num_sets(), false) {
    std::size_t place = 0;
    for (const Node& node : graph.nodes()) {
      place_[node] = ++place;
      bool by_data = is_sized_by_data(node);
      node.for_each_input([&](const Node& input) {
        by_data |= sized_by_data_[input];
        for (const Effects::Set set : effects_.sets(input)) {
          last_read_[set] = place;
          if (node.is(Op::output)) returned_[set] = true;
        }
      });
      sized_by_data_[node] = by_data;
      // A call that returns what it was given may show it to whoever reads its result: the sets say so.
    }
  }

  ReinplaceReport run() {
    for (Node& node : graph_.nodes()) {
      const Call call = call_of(node);
      if (!call) continue;
      if (const auto scatter = places_.scatter_view(node)) {
        copy_into_view(node, call, *scatter);
      } else if (const OperatorSchema* variant = in_place_overload(call.schema())) {
        write(node, call, *variant);
      }
    }
    return std::move(report_);
  }

 private:
  // ── Operators ──────────────────────────────────────────────────────────────────────────────────────────────────────
  void write(Node& node, const Call& call, const OperatorSchema& variant) {
    const Argument* first = call.argument(0);
    const Node* written = first ? first->node_or_null() : nullptr;
    if (!written) return report_.kept.emplace_back(&node, "its first argument is no tensor"), void();
    std::vector<Node*> needless;
    if (const auto why = why_not(node, call, *written, needless)) return report_.kept.emplace_back(&node, *why), void();
    spell_as_operator(node);
    rewriter_.set_target(node, variant.target);
    report_.changed.push_back(&node);
    remove(needless);
  }

  /// The same; `scatters` are those that go then: nobody else reads what is written over, or sees its strides.
  std::optional<std::string> why_not(const Node& node, const Call& call, const Node& written,
                                     std::vector<Node*>& scatters) {
    if (const auto why = why_not(node, call, written)) return why;
    if (is_read_after(written, node)) {
      scatters = scatters_back(node, written);
      if (scatters.empty()) return "%" + written.name() + ", or a view of it, is read later";
    }
    const TensorInfo &before = *info(written), &after = *info(node);
    if (same_layout(before, after) || (!scatters.empty() && node.num_users() == 1)) return std::nullopt;
    return "its result is " + described(after) + ", %" + written.name() + " is " + described(before);
  }

  void remove(const std::vector<Node*>& scatters) {
    for (Node* scatter : scatters) {
      report_.removed.push_back(scatter->name());
      leave_to(*scatter, *places_.scatter_view(*scatter)->base);
    }
  }

  /// Why this call cannot write its result into `written`, whoever reads that later.
  std::optional<std::string> why_not(const Node& node, const Call& call, const Node& written) const {
    const std::string name = "%" + written.name();
    if (written.is(Op::placeholder)) return name + " is an input";
    if (written.is(Op::get_attr)) return name + " is a parameter or buffer";
    if (sets_of(written).empty()) return "the storage of " + name + " is not known";
    for (const Effects::Set set : sets_of(written)) {
      if (effects_.is_external(set)) return name + " may share storage with an input or a parameter";
      if (returned_[set]) return name + " is returned, or a view of it";
    }
    if (!written.is(Op::call_function) && !written.is(Op::call_method))
      return name + " is made by a module, which may keep it";
    const TensorInfo *before = info(written), *after = info(node);
    if (!before || !after) return "shapes are not known";
    if (!same_elements(*before, *after))
      return "its result is " + to_string(*after) + ", " + name + " is " + to_string(*before);
    if (!has_own_elements(*before)) return "elements of " + name + " share memory";
    if (sized_by_data_[node] && has_other_tensor(call)) return "its size, or that of " + name + ", depends on data";
    std::optional<std::string> why;
    for_each_other(call, [&](const Node& other) {
      if (why) return;
      if (&other != &written && may_alias(other, written)) why = "%" + other.name() + " may share storage with " + name;
      // The value itself once more is read element by element, as it is written.
      if (&other == &written && !call.schema().traits.pointwise) why = name + " is also another argument";
    });
    return why;
  }

  /// Beside the one to write, one that may make the result larger than that.
  bool has_other_tensor(const Call& call) const {
    bool found = false;
    for_each_other(call, [&](const Node& other) {
      const TensorInfo* tensor = info(other);
      found |= !tensor || !tensor->sizes.empty();
    });
    return found;
  }

  /// With strides where these are not the usual ones.
  static std::string described(const TensorInfo& tensor) {
    std::string text = to_string(tensor);
    if (tensor.is_contiguous()) return text;
    text += " with strides [";
    for (std::size_t i = 0; i < tensor.strides.size(); ++i) text += (i ? ", " : "") + std::to_string(tensor.strides[i]);
    return text + "]";
  }

  bool is_read_after(const Node& value, const Node& node) const {
    return std::ranges::any_of(sets_of(value), [&](Effects::Set set) { return last_read_[set] > place_[node]; });
  }

  // ── Scatters ───────────────────────────────────────────────────────────────────────────────────────────────────────
  void copy_into_view(Node& node, const Call& call, const ScatterView& scatter) {
    const Node& base = *scatter.base;
    std::vector<Node*> needless;
    std::optional<std::string> why = why_not(node, call, base, needless);
    const TensorInfo* source = info(*scatter.source);
    if (!why && (!source || source->sizes != scatter.place.sizes))
      why = "%" + scatter.source->name() + " has not the sizes of the view";
    if (why) return report_.kept.emplace_back(&node, *why), void();
    const auto before = rewriter_.inserting_before(node);
    std::vector<Argument> args = {*scatter.base};
    args.insert(args.end(), scatter.args.begin(), scatter.args.end());
    Node& view = rewriter_.call_function(scatter.target, args);
    report_.changed.push_back(&rewriter_.call_function("aten::copy_", {view, *scatter.source}));
    leave_to(node, *scatter.base);
    remove(needless);
  }

  /// The scatters after `node` that put its result where `written` lies, one into the other, if these are all that
  /// looks at that storage afterwards; else none.
  std::vector<Node*> scatters_back(const Node& node, const Node& written) {
    const std::optional<ViewPlace> place = places_.of(written);
    bool is_scattered = false;
    for (const Node& user : node.users()) {
      is_scattered = is_scattered || is_scatter_of(user, node);
      for (const Node& next : user.users()) is_scattered = is_scattered || (viewed(user) && is_scatter_of(next, user));
    }
    if (!place || !is_scattered) return {};
    Places there = {{&node, *place}};  // in that storage, if the call writes
    std::vector<Node*> scatters;
    for (Node* reader : readers_after(written, node)) {
      const std::optional<ScatterView> scatter = places_.scatter_view(*reader);
      if (!scatter || !shares_set(*scatter->base, written)) return {};
      const std::optional<ViewPlace> source = place_in(there, *scatter->source), base = places_.of(*scatter->base);
      if (!source || !base || !scatter->place.is_same(*source)) return {};
      scatters.push_back(reader);
      there.emplace_back(reader, *base);
    }
    if (scatters.empty()) return {};
    for (const auto& [value, where] : there) {
      const bool is_last = value == scatters.back();
      if (value != &node && (is_last || value->num_users() > 1) && !keeps_layout(*value)) return {};
      if (!is_last && (is_read_after(*value, *scatters.back()) || is_returned(*value) || is_written(*value))) return {};
    }
    return scatters;
  }

  using Places = std::vector<std::pair<const Node*, ViewPlace>>;

  /// What a call of `view` gives another shape; null for any other node.
  static const Node* viewed(const Node& node) {
    const Call call = call_of(node);
    const Argument* source = call && call.schema().target == "aten::view" ? call.argument(0) : nullptr;
    return source ? source->node_or_null() : nullptr;
  }

  /// Of one of them, or of another shape of one.
  std::optional<ViewPlace> place_in(const Places& there, const Node& value) const {
    const auto find = [&](const Node* node) {
      return std::ranges::find(there, node, &std::pair<const Node*, ViewPlace>::first);
    };
    if (const auto at = find(&value); at != there.end()) return at->second;
    const auto at = find(viewed(value));
    const TensorInfo* tensor = info(value);
    if (at == there.end() || !tensor) return std::nullopt;
    const TensorInfo shape{.sizes = at->second.sizes, .strides = at->second.strides};
    if (!shape.is_contiguous() || !tensor->is_contiguous()) return std::nullopt;
    return ViewPlace::contiguous(at->second.root, at->second.offset, tensor->sizes);
  }

  bool keeps_layout(const Node& scatter) {
    const TensorInfo *made = info(scatter), *base = info(*places_.scatter_view(scatter)->base);
    return made && base && same_layout(*base, *made) && has_own_elements(*base);
  }

  bool is_scatter_of(const Node& user, const Node& source) {
    const auto scatter = places_.scatter_view(user);
    return scatter && scatter->source == &source && scatter->base != &source;
  }

  /// What is given a value in the storage of `value` after `node`, views of it left out, in graph order.
  std::vector<Node*> readers_after(const Node& value, const Node& node) const {
    std::vector<Node*> readers;
    for (const Effects::Set set : sets_of(value)) {
      for (Node* member : effects_.members(set)) {
        Node* const at = holder_[*member] ? holder_[*member] : member;
        if (at->is_erased()) continue;
        for (Node& user : at->users()) {
          if (place_[user] <= place_[node] || &user == &node) continue;
          const Call call = call_of(user);
          const auto sets = effects_.sets(user);
          if (call && call.schema().traits.view && std::ranges::find(sets, set) != sets.end()) continue;
          readers.push_back(&user);
        }
      }
    }
    std::ranges::sort(readers, {}, [&](const Node* reader) { return place_[*reader]; });
    readers.erase(std::ranges::unique(readers).begin(), readers.end());
    return readers;
  }

  bool is_returned(const Node& value) const {
    return std::ranges::any_of(sets_of(value), [&](Effects::Set set) { return returned_[set]; });
  }
  bool is_written(const Node& value) const {
    return std::ranges::any_of(sets_of(value), [&](Effects::Set set) { return !effects_.writers(set).empty(); });
  }

  void leave_to(Node& scatter, Node& base) {
    for (const Effects::Set set : sets_of(base)) {
      for (const Effects::Set theirs : effects_.sets(scatter)) {
        last_read_[set] = std::max(last_read_[set], last_read_[theirs]);
        returned_[set] = returned_[set] || returned_[theirs];
      }
    }
    rewriter_.replace_all_uses_with(scatter, base);
    rewriter_.erase_node(scatter);
    stands_for_[base] = &scatter;
    holder_[scatter] = &base;
  }

  // ── Aliases ────────────────────────────────────────────────────────────────────────────────────────────────────────
  std::span<const Effects::Set> sets_of(const Node& node) const {
    return effects_.sets(stands_for_[node] ? *stands_for_[node] : node);
  }
  bool shares_set(const Node& a, const Node& b) const {
    return std::ranges::any_of(
        sets_of(a), [&](Effects::Set set) { return std::ranges::find(sets_of(b), set) != sets_of(b).end(); });
  }
  bool may_alias(const Node& a, const Node& b) const { return shares_set(a, b) || effects_.may_alias(a, b); }

  const TensorInfo* info(const Node& node) const {
    return node.id() < shapes_.size() ? shapes_[node].tensor() : nullptr;
  }

  Graph& graph_;
  Rewriter rewriter_;
  const Shapes& shapes_;
  Effects effects_;
  ViewPlaces places_;
  NodeMap<std::size_t> place_;
  NodeMap<const Node*> stands_for_;     // a base that scatters left their place to: the last of them
  NodeMap<Node*> holder_;               // of such a scatter: the base
  NodeMap<bool> sized_by_data_;         // or made of what is
  std::vector<std::size_t> last_read_;  // by set: the place of the last node that is given a value in it
  std::vector<bool> returned_;
  ReinplaceReport report_;
};

}  // namespace

ReinplaceReport reinplace(Graph& graph, const Shapes& shapes, const EffectsOptions& effects) {
  return Reinplacer(graph, shapes, effects).run();
}

ReinplaceReport reinplace(GraphModule& module, const Shapes& shapes) {
  return reinplace(module.graph(), shapes, {.modules = module_info(module)});
}

}  // namespace fx
