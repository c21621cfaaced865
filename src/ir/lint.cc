// The invariants of a graph. Their numbers are listed, with what each is for, in docs/ir.md.
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fxgraph/ir/definition_order.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/support/flat_map.h>

namespace fx {

namespace {

enum Check : int {
  kSingleOutputLast = 1,
  kPlaceholdersFirst = 2,
  kDefinedBeforeUse = 3,
  kOwnNodes = 4,
  kUniqueNames = 5,
  kOrder = 6,
  kUsesAgree = 7,
  kArguments = 8,
};

// Says whether a name was seen before. A bit per stem and number, since numbers are dense; a hash for those far beyond
// the names of their stem, so that the bits stay within the size of the graph.
class NameSet {
 public:
  /// Adds `name`; false when it was there.
  bool insert(NodeName name) {
    const std::uint32_t bit = name.number + 1;  // 0: no number
    Stem& stem = stem_of(name.stem);
    if (bit / 64 > stem.count + 1) return sparse_insert(name, bit);
    ++stem.count;
    if (bit / 64 >= stem.bits.size()) stem.bits.resize(bit / 64 + 1);
    std::uint64_t& word = stem.bits[bit / 64];
    const std::uint64_t mask = std::uint64_t{1} << (bit % 64);
    const bool fresh = !(word & mask);
    word |= mask;
    return fresh && (sparse_.size() == 0 || !sparse_.find(key(name, bit)));
  }

 private:
  struct Stem {
    std::uint32_t count = 0;
    std::vector<std::uint64_t> bits;
  };
  static std::uint64_t key(NodeName name, std::uint32_t bit) { return (std::uint64_t{name.stem.id()} << 32) | bit; }
  bool sparse_insert(NodeName name, std::uint32_t bit) { return !std::exchange(sparse_[key(name, bit)], true); }

  Stem& stem_of(Symbol symbol) {
    if (symbol == last_symbol_ && last_) return *last_;
    std::uint32_t& index = indices_[symbol.id()];
    if (index == 0) {
      stems_.emplace_back();
      index = static_cast<std::uint32_t>(stems_.size());
    }
    last_symbol_ = symbol;
    return *(last_ = &stems_[index - 1]);
  }

  Symbol last_symbol_;
  Stem* last_ = nullptr;
  FlatMap<std::uint32_t> indices_;
  std::deque<Stem> stems_;
  FlatMap<bool> sparse_;
};

std::string used_too_early(const Node& node, const Node& input) {
  if (&input == &node) return "it uses its own value; give it another input";
  return "it uses " + input.name() + ", which is defined after it; move one of them";
}

std::string broken_rule(const LintViolation& v) {
  return v.node + ": " + v.message + " [rule " + std::to_string(v.rule) + "]";
}

constexpr std::string_view kOneBroken = "the graph breaks an invariant: ";

class Linter {
 public:
  Linter(const Graph& graph) : graph_(graph) {}

  std::vector<LintViolation> run() {
    NameSet names;
    bool past_placeholders = false;
    const Node* previous = nullptr;
    for (const Node& node : graph_.nodes()) {
      if (previous && !previous->is_before(node)) {
        report(kOrder, node, "its order label does not follow that of " + previous->name());
      }
      previous = &node;
      if (!names.insert(node.name_parts()))
        report(kUniqueNames, node, "another node has the same name; rename one of them");
      past_placeholders |= !node.is(Op::placeholder);
      check_place(node, past_placeholders);
      check_arguments(node);
      check_inputs(node);
      check_uses(node);
    }
    if (uses_from_arguments_ != uses_from_rings_) report(kUsesAgree, *previous, "uses and users disagree in number");
    return std::move(violations_);
  }

 private:
  void report(Check rule, const Node& node, std::string message) {
    violations_.push_back({rule, node.name(), std::move(message)});
  }

  void check_place(const Node& node, bool past_placeholders) {
    if (node.is(Op::placeholder) && past_placeholders) {
      report(kPlaceholdersFirst, node, "this input comes after other operations; move it to the start");
    }
    if (node.is(Op::output) && node.next()) {
      report(kSingleOutputLast, node,
             "the output is followed by " + node.next()->name() + "; nothing may come after it");
    }
    if (node.is(Op::output) && &node != graph_.output_node()) report(kSingleOutputLast, node, "a second output");
  }

  void check_arguments(const Node& node) {
    const std::size_t args = node.args().size(), kwargs = node.kwargs().size();
    switch (node.op()) {
      case Op::placeholder:
        if (args > 1 || kwargs) report(kArguments, node, "a placeholder takes at most one argument, its default");
        break;
      case Op::output:
        if (args != 1 || kwargs) report(kArguments, node, "an output takes exactly one argument");
        break;
      case Op::call_method:
        if (args == 0) report(kArguments, node, "a call_method needs the object as its first argument");
        break;
      default: break;
    }
    if (node.target().empty()) report(kArguments, node, "the target is empty");
  }

  void check_inputs(const Node& node) {
    node.for_each_input([&](const Node& input) {
      if (&input.graph() != &graph_ || input.is_erased()) {
        report(kOwnNodes, node,
               "an argument names a node that is " + std::string(input.is_erased() ? "erased" : "of another graph"));
      } else if (!input.is_before(node)) {
        report(kDefinedBeforeUse, node, used_too_early(node, input));
      }
      ++uses_from_arguments_;
    });
  }

  // Every use in the ring names this node, and the ring counts its distinct users. That no use is missing from the
  // rings follows from the two totals: as many uses in the rings as nodes among the arguments.
  // Uses of a value that has many lie at regular distances: what is 12 times as far ahead as the last two are behind is
  // asked for.
  void check_uses(const Node& node) {
    if (!node.has_users()) return;
    std::uint32_t users = 0;
    const Argument *last = nullptr, *last_but_one = nullptr;
    for (const Use use : node.uses()) {
      const Argument* at = &use.argument();
      internal::prefetch_near(at, 12 * (reinterpret_cast<const char*>(at) -
                                        reinterpret_cast<const char*>(std::exchange(last_but_one, last))));
      last = at;
      if (use.argument().node_or_null() != &node) report(kUsesAgree, node, "a use in its list names another node");
      users += use.is_first();
      ++uses_from_rings_;
    }
    if (users != node.num_users()) report(kUsesAgree, node, "its number of users is wrong");
  }

  const Graph& graph_;
  std::size_t uses_from_arguments_ = 0, uses_from_rings_ = 0;
  std::vector<LintViolation> violations_;
};

}  // namespace

std::vector<LintViolation> Graph::check() const { return Linter(*this).run(); }

void Graph::lint() const {
  const std::vector<LintViolation> violations = check();
  if (violations.empty()) return;
  std::string message = std::string(kOneBroken) + broken_rule(violations.front());
  if (violations.size() > 1) {
    message = "the graph breaks invariants in " + std::to_string(violations.size()) + " places:";
    for (std::size_t i = 0; i < violations.size(); ++i)
      message += (i == 0 ? " " : "; ") + std::to_string(i + 1) + ". " + broken_rule(violations[i]);
  }
  throw Error(ErrorKind::lint, message, violations.front().node);
}

void require_definitions_before_uses(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    node.for_each_input([&](const Node& input) {
      if (input.is_before(node)) return;
      throw Error(ErrorKind::lint,
                  std::string(kOneBroken) + broken_rule({kDefinedBeforeUse, node.name(), used_too_early(node, input)}),
                  node.name());
    });
  }
}

}  // namespace fx
