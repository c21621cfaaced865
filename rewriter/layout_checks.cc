#include <fxgraph/rewriter/layout_checks.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include <fxgraph/ops/call.h>
#include <fxgraph/ops/element.h>
#include <fxgraph/ops/records/operator_flags.h>

namespace fx::internal {

namespace {

const Symbol kFormat("memory_format");

bool is_preserve(const Argument& format) {
  static const Argument kPreserve(MemoryFormat{Symbol("preserve_format")});
  return format == kPreserve || format == Argument(1);
}

/// The memory format that the call names, if it does.
const Argument* named_format(const Call& call) {
  const Argument* format = call.kwargs().find(kFormat);
  // Where there is none by that name, the index is beyond all.
  const auto index = static_cast<std::size_t>(call.schema().index_of(kFormat));
  if (!format && index < std::min(call.args().size(), call.schema().num_positional())) format = &call.args()[index];
  return format && !format->is_none() ? format : nullptr;
}

/// Where the strides of a value show. A view may be impossible, numbers be drawn for other elements, and a reshape copy
/// what it looked at before.
class LayoutReaders {
 public:
  LayoutReaders(const TrackedEffects& effects, bool dense) : effects_(effects), dense_(dense) {}

  /// The first reader of the strides of `value`, or, if its dimensions may lie in another order, of what follows them;
  /// null when there is none, `value` itself when there are too many places to look at. Other gaps are seen in views
  /// alone: what else is computed has none.
  const Node* find(const Node& value, bool reordered) const {
    constexpr std::size_t kMost = 1024;
    std::vector<const Node*> open = {&value};
    for (std::size_t next = 0; next < open.size(); ++next) {
      const bool shared = (effects_.escapes(*open[next]) || is_written(*open[next])) && !has_one_reader(*open[next]);
      for (const Node& user : open[next]->users()) {
        if (user.is(Op::output)) continue;
        const Call call = call_of(user);
        if (call && reads(user, call, shared)) return &user;
        const bool anew = call && has_flag(call.schema().target, OperatorFlag::gives_contiguous);
        if (reordered ? anew : !effects_.may_alias_input(user, *open[next])) continue;
        if (open.size() == kMost) return &value;
        if (std::ranges::find(open, &user) == open.end()) open.push_back(&user);
      }
    }
    return nullptr;
  }

 private:
  bool is_written(const Node& node) const { return effects_.any_writes() && effects_.is_written(node); }
  /// Whatever shares the storage of `value` comes from its one reader: whether that copies shows to nobody.
  bool has_one_reader(const Node& value) const {
    constexpr int kMost = 64;
    const Node* at = &value;
    for (int steps = 0; steps < kMost; ++steps) {
      if (at->num_users() != 1) return false;
      const Node* shares = nullptr;
      int sources = 0;
      at->for_each_input([&](const Node& input) {
        if (&input == shares || !effects_.may_alias_input(*at, input)) return;
        shares = &input;
        ++sources;
      });
      if (sources != 1) return sources == 0 && effects_.is_fresh(*at);
      at = shares;
    }
    return false;
  }
  bool reads(const Node& user, const Call& call, bool shared) const {
    const OperatorSchema& schema = call.schema();
    // It raises of what is not contiguous.
    const Argument* format = schema.target == "aten::contiguous" ? named_format(call) : nullptr;
    if (format && is_preserve(*format)) return true;
    return (!dense_ && has_flag(schema.target, OperatorFlag::raises_by_strides)) ||
           has_flag(schema.target, OperatorFlag::differs_by_strides) || schema.traits.reads_layout() ||
           effects_.of(user).random || (shared && schema.traits.may_copy) || overwrites_operand(user, schema);
  }
  /// `addmm_(w, w, x)`: what is multiplied is overwritten meanwhile, in an order that the kernel chooses by strides.
  bool overwrites_operand(const Node& user, const OperatorSchema& schema) const {
    if (schema.traits.pointwise || !effects_.of(user).writes) return false;
    bool found = false;
    effects_.for_each_written_cell(user, [&](Cell written) {
      std::size_t operands = 0;
      user.for_each_input(
          [&](const Node& input) { effects_.for_each_cell(input, [&](Cell cell) { operands += cell == written; }); });
      found |= operands > 1;
    });
    return found;
  }

  const TrackedEffects& effects_;
  const bool dense_;
};

Layout layout_of(const OperatorSchema& schema) {
  if (schema.traits.pointwise) return Layout::taken;
  if (schema.traits.view && !schema.traits.may_copy)
    return has_flag(schema.target, OperatorFlag::views_all) ? Layout::taken : Layout::part;
  if (has_flag(schema.target, OperatorFlag::gives_contiguous)) return Layout::contiguous;
  return schema.traits.may_copy ? Layout::either : Layout::follows;
}

}  // namespace

bool same_calls(const Call& a, const Call& b, std::size_t first) {
  if (&a.schema() != &b.schema()) return false;
  for (std::size_t i = first; i < a.schema().arguments.size(); ++i) {
    const Argument *x = a.argument(i), *y = b.argument(i);
    if (x != y && (!x || !y || *x != *y)) return false;
  }
  return true;
}

bool needs_strides(const OperatorSchema& schema) {
  return schema.traits.reads_layout() || has_flag(schema.target, OperatorFlag::raises_by_strides) ||
         has_flag(schema.target, OperatorFlag::differs_by_strides);
}

bool reads_layout(const Node& node) {
  const Call call = call_of(node);
  return call && call.schema().traits.reads_layout();
}

bool keeps_layout(Symbol target) {
  const auto keeps = [](const OperatorSchema* schema) {
    return layout_of(*schema) == Layout::taken && schema->index_of(kFormat) < 0;
  };
  const std::vector<const OperatorSchema*>& several = candidate_overloads(Op::call_function, target);
  const OperatorSchema* one = several.empty() ? find_overload(target) : nullptr;
  return one ? keeps(one) : std::ranges::all_of(several, keeps);
}

namespace {

/// The call among `made` that decides how a value lies; null when it lies as something else does.
struct Decided {
  Layout layout;
  const Node* by = nullptr;
};

Decided decided(const Node& node, std::span<Node* const> made) {
  const Node* at = &node;
  for (;;) {
    if (const std::optional<Element> taken = taken_element(*at); taken && std::ranges::find(made, at) != made.end()) {
      at = taken->of;
      if (std::ranges::find(made, at) == made.end()) return {Layout::part};
    }
    const Call call = call_of(*at);
    if (!call) return {Layout::taken};
    if (const Argument* format = named_format(call); format && !is_preserve(*format)) return {Layout::follows, at};
    if (!call.schema().traits.pointwise && !has_flag(call.schema().target, OperatorFlag::copies_in_order))
      return {layout_of(call.schema()), at};
    const Node* first = call.args().empty() ? nullptr : call.args()[0].node_or_null();
    if (std::ranges::find(made, first) == made.end()) return {Layout::taken};
    at = first;
  }
}

}  // namespace

Layout layout_of(const Node& node, std::span<Node* const> made) { return decided(node, made).layout; }

std::pair<Layout, Layout> layouts_of(const Node& old, std::span<Node* const> old_nodes, const Node& result,
                                     std::span<Node* const> new_nodes) {
  const Node *one = &old, *other = &result;
  for (;;) {
    const Decided a = decided(*one, old_nodes), b = decided(*other, new_nodes);
    if (a.layout != Layout::part || b.layout != Layout::part || !a.by || !b.by) return {a.layout, b.layout};
    const Call x = call_of(*a.by), y = call_of(*b.by);
    if (!x || !y || !same_calls(x, y, 1)) return {a.layout, b.layout};
    const Argument *of_one = x.argument(0), *of_other = y.argument(0);
    if (!of_one || !of_other) return {a.layout, b.layout};
    one = of_one->node_or_null();
    other = of_other->node_or_null();
    if (one && one == other) return {Layout::taken, Layout::taken};
    if (std::ranges::count(old_nodes, one) == 0 || std::ranges::count(new_nodes, other) == 0)
      return {a.layout, b.layout};
  }
}

namespace {

/// A value from outside, or a view of one, or how a call that lays out anew does so.
struct Operand {
  const Node* node;
  Layout layout;
  const Node* view = nullptr;

  friend bool operator==(const Operand& a, const Operand& b) {
    return a.node == b.node && a.layout == b.layout && same_view(a.view, b.view);
  }
  static bool same_view(const Node* a, const Node* b) {
    if (!a || !b) return a == b;
    const Call of_a = call_of(*a), of_b = call_of(*b);
    if (of_a && of_b) return same_calls(of_a, of_b, 1);
    return !of_a && !of_b && a->target() == b->target() &&
           a->args().subspan(1).to_vector() == b->args().subspan(1).to_vector();
  }
};

/// What a value is computed of element by element, by calls among `members`, in the order in which they take it.
struct Operands {
  std::vector<Operand> all;
  bool several = false;  ///< some call has a choice

  Operands(const Node& value, std::span<Node* const> members) {
    std::vector<const Node*> open = {&value}, seen, taken;
    while (!open.empty()) {
      const Node& node = *open.back();
      open.pop_back();
      if (std::ranges::find(seen, &node) != seen.end()) continue;
      seen.push_back(&node);
      const bool inside = std::ranges::find(members, &node) != members.end();
      const Call call = inside ? call_of(node) : Call();
      const bool pointwise = call && call.schema().traits.pointwise;
      if (!pointwise && !(call && has_flag(call.schema().target, OperatorFlag::copies_in_order))) {
        add(operand_of(node, inside, call));
        continue;
      }
      taken.clear();
      for (std::size_t i = 0; i < (pointwise ? call.schema().arguments.size() : 1); ++i) {
        const Argument* argument = call.argument(i);
        if (argument) for_each_node(*argument, [&](const Node& input) { taken.push_back(&input); });
      }
      several |= taken.size() > 1;
      open.insert(open.end(), taken.rbegin(), taken.rend());
    }
  }

 private:
  static Operand operand_of(const Node& node, bool inside, const Call& call) {
    if (!inside) return {&node, Layout::taken};
    const Layout layout = call ? layout_of(call.schema()) : Layout::taken;
    const ArgumentSpan args = call ? call.args() : node.args();
    const bool view = layout == Layout::taken && !args.empty();
    return {view ? args[0].node_or_null() : nullptr, layout, view ? &node : nullptr};
  }
  void add(const Operand& operand) {
    if (std::ranges::find(all, operand) == all.end()) all.push_back(operand);
  }
};

}  // namespace

bool same_operands(const Node& old, std::span<Node* const> old_nodes, const Node& result,
                   std::span<Node* const> new_nodes) {
  const Operands then(old, old_nodes), now(result, new_nodes);
  return (!then.several && !now.several) || then.all == now.all;
}

Verdict check_layout(const Node& old, bool reordered, const TrackedEffects& effects, bool dense) {
  const Node* reader = LayoutReaders(effects, dense).find(old, reordered);
  if (!reader) return {};
  return Objection{&old, "its replacement may lie in memory differently, and " + reader->name() + " depends on that"};
}

}  // namespace fx::internal
