#include <fxgraph/rewriter/common_subexpression.h>

#include <algorithm>
#include <bit>
#include <span>
#include <utility>
#include <vector>

#include <fxgraph/effects/tracked_effects.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/ops/argument_type.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/python_target.h>
#include <fxgraph/rewriter/layout_checks.h>
#include <fxgraph/rewriter/legality.h>
#include <fxgraph/support/flat_map.h>

namespace fx {

namespace {

using internal::Cell;
using internal::TrackedEffects;

bool argument_is_list(const Argument& argument) { return internal::argument_type(argument).list; }

// How often each storage has been written so far.
class Versions {
 public:
  Versions(const Graph& graph, const ModuleInfo& modules)
      : index_(graph, modules, /*told=*/false), any_write_(index_.any_writes()) {
    if (any_write_) index_.expect_writes();
    // A mode is something that every call reads.
    if (index_.any_impure()) any_write_ |= std::ranges::any_of(graph.nodes(), internal::switches_mode);
  }

  const TrackedEffects& index() const { return index_; }
  bool any_write() const { return any_write_; }
  bool ever_written(const Node& node) const { return any_write_ && index_.is_written(node); }
  /// Whether something may put others into the list that the value is, or take some out.
  bool ever_written_as_list(const Node& node) const {
    return argument_is_list(Argument(const_cast<Node&>(node))) && index_.any_writer(node, [&](const Node& writer) {
      bool found = false;
      for_each_written(
          writer, [&](const Argument& written) { found |= argument_is_list(written); }, index_.modules());
      return found;
    });
  }
  bool ever_viewed_in_place(const Node& node) const { return any_write_ && index_.has_inplace_view(node); }
  /// Calls `visit` with the version of each thing that the call reads.
  template <typename Visit>
  void for_each_read(const Node& node, Visit&& visit) {
    if (!any_write_) return;
    index_.for_each_read_cell(node, [&](Cell read) { visit(versions_[read]); });
    visit(mode_);
  }
  /// To be called for each node in order: what it writes gets a new version.
  void pass(const Node& node) {
    if (!any_write_ || !index_.of(node).impure()) return;
    index_.for_each_written_cell(node, [&](Cell written) { ++versions_[written]; });
    mode_ += internal::switches_mode(node);
  }

 private:
  TrackedEffects index_;
  bool any_write_;
  FlatMap<std::uint32_t> versions_;  // by cell
  std::uint32_t mode_ = 0;
};

// A call that does not fit the overload it names is compared as it is written.
bool binds_all(const Call& call) {
  const OperatorSchema& schema = call.schema();
  if (schema.varargs || call.args().size() > schema.arguments.size()) return false;
  const KwargSpan kwargs = call.kwargs();
  return std::all_of(kwargs.begin(), kwargs.end(), [&](const auto& each) { return schema.index_of(each.name) >= 0; });
}

// x + 2 y is not y + 2 x.
bool rest_is_default(const Call& call) {
  if (call.args().size() == 2 && call.kwargs().empty()) return true;
  const std::vector<SchemaArgument>& wanted = call.schema().arguments;
  for (std::size_t i = 2; i < wanted.size(); ++i) {
    const std::optional<Argument>& standard = wanted[i].default_value;
    if (!standard || !same_argument(wanted[i].type, *call.argument(i), *standard)) return false;
  }
  return true;
}

bool may_swap(const Call& call) {
  const OperatorTraits& traits = call.schema().traits;
  return traits.commutative && !traits.zeros_by_order && call.args().size() >= 2 && call.args()[0].is_node() &&
         call.args()[1].is_node() && rest_is_default(call);
}

// A call that is compared as it is written counts as none.
Call bound_call(const Node& node) {
  Call call = call_of(node);
  return call && binds_all(call) ? call : Call();
}

// Commutative operands count in a fixed order.
bool is_swapped(const Call& call) { return may_swap(call) && call.args()[1].node().id() < call.args()[0].node().id(); }
const Argument* argument_at(const Call& call, bool swapped, std::size_t i) {
  return call.argument(swapped && i < 2 ? 1 - i : i);
}

// True when the targets alone tell that the calls differ: mostly they do.
bool differ_by_target(const Node& a, const Node& b) {
  if (a.op() == b.op() && a.target() == b.target()) return false;
  const auto may_be_operator = [](const Node& node) { return node.is(Op::call_function) || node.is(Op::call_method); };
  if (!may_be_operator(a) || !may_be_operator(b)) return true;
  if (a.op() == b.op() && a.is(Op::call_function)) {
    const internal::TargetInfo &of_a = internal::target_info(a.target()), &of_b = internal::target_info(b.target());
    if (!of_a.overloads->empty() && !of_b.overloads->empty())
      return of_a.overloads != of_b.overloads || (of_a.exact && of_b.exact && of_a.schema != of_b.schema);
  }
  const std::vector<Symbol>& packets = internal::python_target(b.op(), b.target()).packets;
  return std::ranges::none_of(internal::python_target(a.op(), a.target()).packets,
                              [&](Symbol packet) { return std::ranges::find(packets, packet) != packets.end(); });
}

bool same_as_written(const Node& a, const Node& b) {
  const KwargSpan of_a = a.kwargs(), of_b = b.kwargs();
  if (a.op() != b.op() || a.target() != b.target() || of_a.size() != of_b.size()) return false;
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    if (of_a.name(i) != of_b.name(i) || of_a.value(i) != of_b.value(i)) return false;
  }
  return std::ranges::equal(a.args(), b.args());
}

bool same_calls(const Node& a, const Node& b) {
  if (same_as_written(a, b)) return true;
  if (differ_by_target(a, b)) return false;
  const Call left = bound_call(a), right = bound_call(b);
  if (!left != !right) return false;
  if (!left) return false;
  if (is_swapped(left) == is_swapped(right)) return internal::same_calls(left, right);
  const auto same = [&](std::size_t i, std::size_t j) {
    const Argument *x = left.argument(i), *y = right.argument(j);
    return x && y && *x == *y;
  };
  return internal::same_calls(left, right, 2) && same(0, 1) && same(1, 0);
}

// What the call takes first, or null.
const Argument* first_of(const Call& call) {
  return call && !call.schema().arguments.empty() ? call.argument(0) : nullptr;
}

class Eliminator {
 public:
  Eliminator(Graph& graph, const ModuleInfo& modules, const std::function<bool(const Node&)>& banned)
      : graph_(graph),
        banned_(banned),
        sets_(graph, modules),
        escaped_(graph.id_bound(), false),
        indexed_(graph.id_bound(), false) {
    if (sets_.any_write()) seen_.reserve(graph.size());
    if (const Node* output = graph.output_node()) mark_escapes(*output);
  }

  std::size_t run() {
    const std::size_t before = graph_.size();
    for (Node& node : graph_.nodes()) {
      sets_.pass(node);
      if (!mergeable(node)) continue;
      if (Node* earlier = earlier_equal(node); earlier && keeps_layout(node, *earlier)) {
        if (escapes(node)) mark_escape(*earlier);
        node.replace_all_uses_with(*earlier);
        graph_.erase_node(node);
      }
    }
    return before - graph_.size();
  }

 private:
  static bool is_call(const Node& node) { return node.is_callable() || node.is(Op::get_attr); }
  bool mergeable(const Node& node) {
    if (!is_call(node) || sets_.index().of(node).is_one_of_its_own() || (banned_ && banned_(node))) return false;
    // A read of an attribute is the attribute itself, and a view looks at what it looks at, written or not; any other
    // value that is written stays its own, and so does one whose form is changed in place.
    if (node.is(Op::get_attr) || !sets_.ever_written(node)) return true;
    return sets_.index().of(node).aliases && !sets_.ever_viewed_in_place(node) && !sets_.ever_written_as_list(node);
  }

  // The elements of `y + x` lie as those of y do.
  bool keeps_layout(const Node& node, const Node& earlier) const {
    if (same_as_written(node, earlier)) return true;
    const Call call = call_of(node), other = call_of(earlier);
    const Argument* first = first_of(call);
    return !first || *first == *first_of(other) || !internal::check_layout(node, true, sets_.index());
  }

  // A call that this one may be replaced by, or null; then it is remembered for later ones where that is needed.
  Node* earlier_equal(Node& node) {
    if (!sets_.any_write()) {
      // Equal calls are users of the same inputs: of the one with the fewest users, nearly always a handful.
      Node* rarest = nullptr;
      bool indexed = false;
      node.for_each_input([&](Node& input) {
        if (!rarest || input.num_users() < rarest->num_users()) rarest = &input;
        indexed = indexed || indexed_[input.id()];
      });
      if (rarest && rarest->num_users() <= kHandful) {
        Node* equal = equal_user(*rarest, node);
        if (!equal && indexed) remember(hash(node), node);
        return equal;
      }
      if (rarest && !indexed_[rarest->id()]) index_users(*rarest, node);
    }
    const std::uint64_t key = hash(node);
    const std::uint32_t first = seen_[key];
    Node* earlier = first ? graph_.node_by_id(first - 1) : nullptr;
    if (earlier) return same(*earlier, node) ? earlier : nullptr;
    remember(key, node);
    remember_versions(node);
    return nullptr;
  }

  // The first in order, should there be several.
  Node* equal_user(Node& value, Node& node) {
    if (value.num_users() == 1) return nullptr;
    Node* found = nullptr;
    for (Node& user : value.users()) {
      if (!user.is_before(node) || (found && !user.is_before(*found)) || !same(user, node)) continue;
      if (!banned_ || !banned_(user)) found = &user;
    }
    return found;
  }

  // From now on every call that uses `value` is in seen_.
  void index_users(Node& value, const Node& end) {
    indexed_[value.id()] = true;
    for (Node& user : value.users()) {
      if (user.is_before(end) && mergeable(user)) remember(hash(user), user);
    }
  }

  void remember(std::uint64_t key, const Node& node) {
    std::uint32_t& first = seen_[key];
    const Node* known = first ? graph_.node_by_id(first - 1) : nullptr;
    if (!known || node.is_before(*known)) first = node.id() + 1;
  }

  void mark_escapes(const Node& output) {
    output.for_each_input([&](Node& input) { mark_escape(input); });
  }
  void mark_escape(const Node& node) {
    sets_.index().for_each_root(node, [&](std::uint64_t root) {
      if (root < escaped_.size()) {
        escaped_[root] = true;
      } else {
        escaped_attributes_[root] = true;
      }
    });
  }
  bool escapes(const Node& node) const {
    bool found = false;
    sets_.index().for_each_root(node, [&](std::uint64_t root) {
      found |= root < escaped_.size() ? escaped_[root]
                                      : root == TrackedEffects::kAnyRoot || escaped_attributes_.find(root) != nullptr;
    });
    return found;
  }

  void hash_argument(std::uint64_t& seed, const Argument& argument) const {
    const auto mix = [&](std::uint64_t value) { seed = (std::rotl(seed, 23) ^ value) * 0x9E3779B97F4A7C15ull; };
    if (argument.is_node()) {
      mix(argument.node().id() + 1);
    } else if (!argument.is_container()) {
      mix(argument.hash());
    } else {
      for (const Argument& element : argument.elements()) hash_argument(seed, element);
    }
  }

  std::uint64_t hash(const Node& node) {
    const Call call = bound_call(node);
    const bool swapped = call && is_swapped(call);
    std::uint64_t seed =
        call ? call.schema().target.id() : (static_cast<std::uint64_t>(node.op()) << 32) | node.target().id();
    for (std::size_t i = 0; call && i < call.schema().arguments.size(); ++i) {
      if (const Argument* argument = argument_at(call, swapped, i)) hash_argument(seed, *argument);
    }
    if (!call) {
      for (const Argument& argument : node.args()) hash_argument(seed, argument);
      for (const auto& [name, argument] : node.kwargs()) {
        hash_argument(seed, argument);
        seed += name.id();
      }
    }
    sets_.for_each_read(node, [&](std::uint32_t version) {  // in any order
      const std::uint64_t mixed = version * 0xD6E8FEB86659FD93ull;
      seed += mixed ^ (mixed >> 32);
    });
    return seed == FlatMap<int>::kEmptyKey ? 0 : seed;
  }

  // Hashes of unequal calls may collide: compare. The versions read by the earlier call are kept beside it.
  bool same(const Node& a, const Node& b) {
    if (!same_calls(a, b)) return false;
    if (!reads_versions_of(b, a)) return false;
    // Two results stay two; but two views of one value, or two reads of an attribute, share storage as it is. Each of
    // the views is a tensor, whose sizes a caller who has both may change.
    if (a.is(Op::get_attr)) return true;
    const NodeEffects own = sets_.index().of(a);  // and of b
    if (own.aliases) return !internal::is_result(a) || !internal::is_result(b);
    return own.may_alias ? !escapes(a) || !escapes(b) : !escaped_[a.id()] || !escaped_[b.id()];
  }

  // Adds them to versions_.
  std::span<const std::uint32_t> add_versions_of(const Node& node) {
    const std::size_t before = versions_.size();
    sets_.for_each_read(node, [&](std::uint32_t version) { versions_.push_back(version); });
    const std::span<std::uint32_t> added = std::span(versions_).subspan(before);
    std::ranges::sort(added);  // spellings differ in the order in which they take things
    return added;
  }
  bool reads_versions_of(const Node& node, const Node& earlier) {
    if (!sets_.any_write()) return true;
    const std::span<const std::uint32_t> now = add_versions_of(node);
    const auto [from, count] = std::as_const(versions_at_)[earlier];
    const bool same = std::ranges::equal(now, std::span(versions_).subspan(from, count));
    versions_.resize(versions_.size() - now.size());
    return same;
  }
  void remember_versions(const Node& node) {
    if (!sets_.any_write()) return;
    const auto from = static_cast<std::uint32_t>(versions_.size());
    versions_at_[node] = {from, static_cast<std::uint32_t>(add_versions_of(node).size())};
  }

  Graph& graph_;
  const std::function<bool(const Node&)>& banned_;
  Versions sets_;
  static constexpr std::uint32_t kHandful = 8;
  std::vector<bool> escaped_;         // by the id of a root: some value that may share its storage is returned
  FlatMap<bool> escaped_attributes_;  // the same of other roots; all true
  std::vector<bool> indexed_;         // by id: all users so far are in seen_
  FlatMap<std::uint32_t> seen_;
  NodeMap<std::pair<std::uint32_t, std::uint32_t>> versions_at_;  // from where, and how many: read when it was met
  std::vector<std::uint32_t> versions_;
};

}  // namespace

std::size_t eliminate_common_subexpressions(Graph& graph, const ModuleInfo& modules,
                                            const std::function<bool(const Node&)>& banned) {
  return Eliminator(graph, modules, banned).run();
}

}  // namespace fx
