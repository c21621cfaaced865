#include <fxgraph/rewriter/common_subexpression.h>

#include <bit>
#include <vector>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/ops/schema.h>
#include <fxgraph/support/flat_map.h>

namespace fx {

namespace {

// Which values may share storage, which of those sets are written, and how often so far.
// Sets are joined over the results that alias their inputs and over reads of one attribute.
class AliasSets {
 public:
  AliasSets(const Graph& graph, const ModuleEffects& modules) : parent_(graph.id_bound()), effects_(graph) {
    for (std::uint32_t id = 0; id < parent_.size(); ++id) parent_[id] = id;
    FlatMap<std::uint32_t> attributes;
    for (const Node& node : graph.nodes()) {
      const NodeEffects effects = effects_[node] = effects_of(node, modules);
      if (node.is(Op::get_attr)) {
        const std::uint32_t first = attributes[node.target().id()];
        if (first)
          join(node.id(), first - 1);
        else
          attributes[node.target().id()] = node.id() + 1;
      }
      if (effects.may_alias) for_each_aliased_input(node, [&](Node& input) { join(node.id(), input.id()); });
      any_write_ |= effects.writes || effects.unknown;
    }
    if (!any_write_) return;
    written_.resize(parent_.size());
    version_.resize(parent_.size());
    for (const Node& node : graph.nodes()) {
      for_each_write(node, [&](std::uint32_t set) { written_[set] = true; });
    }
  }

  const NodeEffects& effects(const Node& node) const { return effects_[node]; }
  bool any_write() const { return any_write_; }
  bool ever_written(const Node& node) { return any_write_ && written_[find(node.id())]; }
  std::uint32_t version(const Node& node) { return any_write_ ? version_[find(node.id())] : 0; }
  std::uint32_t find(std::uint32_t id) {
    while (parent_[id] != id) id = parent_[id] = parent_[parent_[id]];
    return id;
  }
  /// To be called for each node in order: what it writes gets a new version.
  void pass(const Node& node) {
    if (any_write_) for_each_write(node, [&](std::uint32_t set) { ++version_[set]; });
  }

 private:
  void join(std::uint32_t a, std::uint32_t b) { parent_[find(a)] = find(b); }

  template <typename Visit>
  void for_each_write(const Node& node, Visit visit) {
    const NodeEffects& effects = effects_[node];
    if (effects.unknown || (effects.writes && node.is(Op::call_module))) {
      node.for_each_input([&](Node& input) { visit(find(input.id())); });
    } else if (effects.writes) {
      for_each_written(node, [&](const Argument& argument) {
        for_each_node(argument, [&](Node& input) { visit(find(input.id())); });
      });
    }
  }

  std::vector<std::uint32_t> parent_;
  NodeMap<NodeEffects> effects_;
  bool any_write_ = false;
  std::vector<bool> written_;
  std::vector<std::uint32_t> version_;
};

// Reads a call's arguments in the order of its schema, commutative operands in a fixed order.
class BoundCall {
 public:
  explicit BoundCall(const Node& node)
      : node_(node), schema_(node.is(Op::call_function) ? find_schema(node.target()) : nullptr) {
    if (schema_ && (schema_->varargs || node.args().size() > schema_->arguments.size())) schema_ = nullptr;
    if (schema_ && schema_->traits.commutative && node.args().size() >= 2 && node.args()[0].is_node() &&
        node.args()[1].is_node()) {
      swapped_ = node.args()[1].node().id() < node.args()[0].node().id();
    }
  }
  std::size_t size() const {
    return schema_ ? schema_->arguments.size() : node_.args().size() + 2 * node_.kwargs().size();
  }
  const Argument* at(std::size_t i) const {
    if (schema_) return bound_argument(*schema_, node_, swapped_ && i < 2 ? 1 - i : i);
    return i < node_.args().size() ? &node_.args()[i] : &node_.kwargs().value((i - node_.args().size()) / 2);
  }
  // Without a schema keyword names take part as they stand.
  std::uint32_t name_at(std::size_t i) const {
    if (schema_ || i < node_.args().size()) return 0;
    return node_.kwargs().name((i - node_.args().size()) / 2).id();
  }

 private:
  const Node& node_;
  const OperatorSchema* schema_;
  bool swapped_ = false;
};

class Eliminator {
 public:
  Eliminator(Graph& graph, const ModuleEffects& modules, const std::function<bool(const Node&)>& banned)
      : graph_(graph),
        banned_(banned),
        sets_(graph, modules),
        escapes_(graph.id_bound(), false),
        indexed_(graph.id_bound(), false) {
    if (sets_.any_write()) seen_.reserve(graph.size());
    if (const Node* output = graph.output_node()) mark_escapes(*output);
  }

  std::size_t run() {
    const std::size_t before = graph_.size();
    for (Node& node : graph_.nodes()) {
      sets_.pass(node);
      if (!mergeable(node)) continue;
      if (Node* earlier = earlier_equal(node)) {
        node.replace_all_uses_with(*earlier);
        graph_.erase_node(node);
      }
    }
    return before - graph_.size();
  }

 private:
  static bool is_call(const Node& node) {
    return node.is(Op::call_function) || node.is(Op::call_method) || node.is(Op::call_module) || node.is(Op::get_attr);
  }
  bool mergeable(const Node& node) {
    if (!is_call(node) || sets_.effects(node).impure() || (banned_ && banned_(node))) return false;
    // A read of an attribute is the attribute itself, written or not; any other value that is written stays its own.
    return node.is(Op::get_attr) || !sets_.ever_written(node) || sets_.effects(node).may_alias;
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
    output.for_each_input([&](Node& input) { escapes_[sets_.find(input.id())] = true; });
  }
  bool escapes(const Node& node) { return escapes_[sets_.find(node.id())]; }

  void hash_argument(std::uint64_t& seed, const Argument& argument) const {
    const auto mix = [&](std::uint64_t value) { seed = (std::rotl(seed, 23) ^ value) * 0x9E3779B97F4A7C15ull; };
    if (argument.is_node()) {
      mix(argument.node().id() + 1);
    } else if (!argument.is_container()) {
      mix(argument.hash());
    } else {
      mix(static_cast<std::uint64_t>(argument.kind()) + argument.elements().size() * 32);
      for (const Argument& element : argument.elements()) hash_argument(seed, element);
    }
  }

  std::uint64_t hash(const Node& node) {
    std::uint64_t seed = (static_cast<std::uint64_t>(node.op()) << 32) | node.target().id();
    const BoundCall call(node);
    for (std::size_t i = 0; i < call.size(); ++i) {
      if (const Argument* argument = call.at(i)) hash_argument(seed, *argument);
      seed += call.name_at(i);
    }
    if (sets_.any_write())
      node.for_each_input([&](Node& input) { seed = (seed ^ sets_.version(input)) * 0x9E3779B97F4A7C15ull; });
    return seed == FlatMap<int>::kEmptyKey ? 0 : seed;
  }

  // Hashes of unequal calls may collide: compare. The versions read by the earlier call are kept beside it.
  bool same(const Node& a, const Node& b) {
    if (a.op() != b.op() || a.target() != b.target()) return false;
    const BoundCall left(a), right(b);
    if (left.size() != right.size()) return false;
    for (std::size_t i = 0; i < left.size(); ++i) {
      const Argument *x = left.at(i), *y = right.at(i);
      if (left.name_at(i) != right.name_at(i) || !x != !y || (x && !(*x == *y))) return false;
    }
    if (sets_.any_write() && versions_of(b) != versions_[a]) return false;
    const bool alias = sets_.find(a.id()) == sets_.find(b.id());
    return alias || !escapes(a) || !escapes(b);
  }

  std::vector<std::uint32_t> versions_of(const Node& node) {
    std::vector<std::uint32_t> versions;
    node.for_each_input([&](Node& input) { versions.push_back(sets_.version(input)); });
    return versions;
  }
  void remember_versions(const Node& node) {
    if (sets_.any_write()) versions_[node] = versions_of(node);
  }

  Graph& graph_;
  const std::function<bool(const Node&)>& banned_;
  AliasSets sets_;
  static constexpr std::uint32_t kHandful = 8;
  std::vector<bool> escapes_;  // by alias set: some member is returned
  std::vector<bool> indexed_;  // by id: all users so far are in seen_
  FlatMap<std::uint32_t> seen_;
  NodeMap<std::vector<std::uint32_t>> versions_;
};

}  // namespace

std::size_t eliminate_common_subexpressions(Graph& graph, const ModuleEffects& modules,
                                            const std::function<bool(const Node&)>& banned) {
  return Eliminator(graph, modules, banned).run();
}

}  // namespace fx
