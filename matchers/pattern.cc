#include <fxgraph/matchers/pattern.h>

#include <algorithm>
#include <ostream>
#include <unordered_map>

#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace internal {

namespace {

constexpr int kMaxDepth = 500;  // of an expression; graphs of any depth are read without recursion

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorKind::invalid_argument, "pattern: " + message);
}

bool is_reference(const ExprNode& node) {
  return (node.kind == PatternKind::any || node.kind == PatternKind::value) && !node.tensor;
}

}  // namespace

bool PatternTest::has_conditions() const { return !conditions.empty() || min_uses > 0 || max_uses != kManyUses; }

namespace {

/// Turns expressions into a flat DAG in which equal names and equal identities are one node.
class Flattener {
 public:
  explicit Flattener(const std::vector<match::Expr>& results) {
    for (const match::Expr& result : results) define(result, 0);
    for (const match::Expr& result : results) data_.outputs.push_back(add(result));
  }
  PatternData take() { return std::move(data_); }

 private:
  /// First pass: which expression says what a name stands for. A plain wildcard only refers.
  void define(const match::Expr& expr, int depth) {
    if (depth > kMaxDepth)
      refuse("an expression nests at most " + std::to_string(kMaxDepth) + " deep; write it as a graph");
    const ExprNode& node = PatternAccess::of(expr);
    if (!visited_.emplace(&node, true).second) return;
    if (!node.name.empty()) {
      const auto at = definitions_.emplace(node.name, &node).first;
      if (at->second->identity != node.identity) redefine(at->second, node);
    }
    for (const match::Expr& arg : node.args) define(arg, depth + 1);
    for (const auto& [name, arg] : node.kwargs) define(arg, depth + 1);
    for (const match::Expr& dim : node.dims) define(dim, depth + 1);
    for (const match::Expr& tail : node.tail) define(tail, depth + 1);
  }

  static void redefine(const ExprNode*& known, const ExprNode& node) {
    if (is_reference(node)) {
      if (is_reference(*known) && node.kind == PatternKind::value) known = &node;
    } else if (is_reference(*known)) {
      known = &node;
    } else if (known->kind != node.kind || node.kind == PatternKind::call || node.kind == PatternKind::one_of ||
               known->hole != node.hole || !(known->targets == node.targets)) {
      refuse("the name " + node.name.str() + " stands for two different things");
    }
  }

  std::uint32_t add(const match::Expr& expr) {
    const ExprNode* node = &PatternAccess::of(expr);
    const ExprNode* said = node;
    if (!node->name.empty()) node = definitions_.at(node->name);
    if (const auto known = by_identity_.find(node->identity); known != by_identity_.end()) {
      if (known->second == kInProgress) refuse("the value " + node->name.str() + " is made from itself");
      const std::uint32_t index = known->second;
      if (said->tensor && !data_.nodes[index].tensor) {
        std::vector<std::uint32_t> dims;
        for (const match::Expr& dim : said->dims) dims.push_back(add(dim));
        data_.nodes[index].dims = std::move(dims);
      }
      merge(data_.nodes[index], *said);
      return index;
    }
    by_identity_[node->identity] = kInProgress;
    PatternNode made;
    static_cast<PatternTest&>(made) = *node;
    for (const match::Expr& arg : node->args) made.args.push_back(add(arg));
    for (const auto& [name, arg] : node->kwargs) made.kwargs.emplace_back(name, add(arg));
    for (const match::Expr& dim : node->dims) made.dims.push_back(add(dim));
    if (!node->tail.empty()) made.tail = add(node->tail[0]);
    merge(made, *said);
    const auto index = static_cast<std::uint32_t>(data_.nodes.size());
    data_.nodes.push_back(std::move(made));
    return by_identity_[node->identity] = index;
  }

  /// What another mention of the same value asks for holds too.
  static void merge(PatternNode& node, const ExprNode& said) {
    if (!node.tensor) {
      node.tensor = said.tensor;
    } else if (said.tensor && !(said.tensor == node.tensor)) {
      refuse("the tensor " + node.name.str() + " is described in two ways; say all of it in one place");
    }
    node.min_uses = std::max(node.min_uses, said.min_uses);
    node.max_uses = std::min(node.max_uses, said.max_uses);
    if (node.name.empty()) node.name = said.name;
    if (said.conditions.size() > node.conditions.size()) node.conditions = said.conditions;
  }

  static constexpr std::uint32_t kInProgress = ~std::uint32_t{0};
  PatternData data_;
  std::unordered_map<const ExprNode*, bool> visited_;
  std::unordered_map<Symbol, const ExprNode*> definitions_;
  std::unordered_map<std::uint64_t, std::uint32_t> by_identity_;
};

}  // namespace

int PatternData::find(Symbol name) const {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].name == name && !name.empty()) return static_cast<int>(i);
  }
  return -1;
}

bool only_calls(const PatternData& data, std::uint32_t index) {
  const PatternNode& node = data.nodes[index];
  if (node.kind == PatternKind::call) return true;
  if (node.kind != PatternKind::one_of) return false;
  for (const std::uint32_t alternative : node.args) {
    if (!only_calls(data, alternative)) return false;
  }
  return true;
}

bool is_bound(const PatternData& data, std::uint32_t index) {
  if (!data.from_graph || std::ranges::count(data.outputs, index) != 0) return true;
  bool found = false;
  for (const PatternNode& node : data.nodes) node.for_each_child([&](std::uint32_t child) { found |= child == index; });
  return found || data.nodes[index].kind == PatternKind::call;
}

namespace {

/// What stands for the path of dominates(): a test of one node at a time.
bool is_path(const PatternData& data, std::uint32_t index) {
  const PatternNode& node = data.nodes[index];
  if (node.kind == PatternKind::call) return node.bare && node.name.empty();
  return node.kind == PatternKind::one_of &&
         std::all_of(node.args.begin(), node.args.end(), [&](std::uint32_t arg) { return is_path(data, arg); });
}

void check_parts(const PatternData& data) {
  for (const PatternNode& node : data.nodes) {
    if (node.kind == PatternKind::dominated && !is_path(data, node.args[1]))
      refuse("the path of dominates() is an operator without arguments or name, or alternatives of those");
    if (node.unordered && node.args.empty()) refuse("an unordered list says at least one element");
  }
}

}  // namespace

bool needs_shapes(const PatternData& data) {
  return std::any_of(data.nodes.begin(), data.nodes.end(), [](const PatternNode& node) { return node.tensor; });
}

bool needs_module_types(const PatternData& data) {
  return std::any_of(data.nodes.begin(), data.nodes.end(),
                     [](const PatternNode& node) { return !node.types.accepts_all(); });
}

void finish_pattern(PatternData& data) {
  resolve_calls(data);
  for (const CallProblem& problem : data.problems) {
    if (!problem.foreign_namespace && has_schema_source()) refuse(problem.message);
  }
  for (PatternNode& node : data.nodes) {
    if (node.name == "_") node.name = {};  // which is nobody's name
  }
  check_parts(data);
  std::vector<bool> mentioned(data.nodes.size());
  for (const PatternNode& node : data.nodes) {
    node.for_each_child([&](std::uint32_t child) { mentioned[child] = true; });
  }
  for (const std::uint32_t output : data.outputs) {
    const PatternNode& node = data.nodes[output];
    if (node.kind == PatternKind::literal || node.kind == PatternKind::hole || node.kind == PatternKind::absent ||
        node.kind == PatternKind::rest) {
      refuse("it returns a literal; only values that the graph computes can be returned");
    }
    if (node.kind == PatternKind::sequence) refuse("a returned value is one node, not a list");
    if (std::find(data.roots.begin(), data.roots.end(), output) == data.roots.end()) data.roots.push_back(output);
  }
  for (const std::uint32_t root : data.roots) {
    const bool call = only_calls(data, root);
    if (call && data.anchor == kNoPattern) data.anchor = root;
    if (!call && !mentioned[root]) {
      refuse("it says no operator that must be there for " +
             (data.nodes[root].name.empty() ? "a result" : data.nodes[root].name.str()) +
             ", so everything would match; a result is a call, or an input of one");
    }
  }
  if (data.anchor == kNoPattern)
    refuse("it says no operator that must be there, so everything would match; return a call");
}

PatternData flatten(const std::vector<match::Expr>& results, bool check) {
  if (results.empty()) refuse("it returns nothing");
  PatternData data = Flattener(results).take();
  for (std::uint32_t i = 0; i < data.nodes.size(); ++i) {
    const PatternKind kind = data.nodes[i].kind;
    const bool input = kind == PatternKind::any || kind == PatternKind::value || kind == PatternKind::hole ||
                       kind == PatternKind::attribute || kind == PatternKind::constant || kind == PatternKind::rest;
    if (input && !data.nodes[i].name.empty()) data.inputs.push_back(i);
  }
  if (check) finish_pattern(data);
  return data;
}

}  // namespace internal

Pattern::Pattern(const match::Expr& result) : Pattern(std::vector<match::Expr>{result}) {}
Pattern::Pattern(const std::vector<match::Expr>& results)
    : prepared_(std::make_shared<internal::PreparedPattern>(internal::flatten(results))) {}
Pattern::Pattern(const Graph& graph, const PatternOptions& options)
    : prepared_(std::make_shared<internal::PreparedPattern>(internal::read_graph(graph, options))) {}
Pattern::Pattern(std::string_view text)
    : prepared_(std::make_shared<internal::PreparedPattern>(internal::parse_pattern(text))) {}

std::vector<Symbol> Pattern::captures() const {
  std::vector<Symbol> names;
  for (const internal::PatternNode& node : prepared_->data.nodes) {
    if (!node.name.empty()) names.push_back(node.name);
  }
  return names;
}

std::vector<Symbol> Pattern::inputs() const {
  std::vector<Symbol> names;
  for (const std::uint32_t input : prepared_->data.inputs) names.push_back(prepared_->data.nodes[input].name);
  return names;
}

Pattern::Pattern(std::string_view text, const Predicates& predicates)
    : prepared_(std::make_shared<internal::PreparedPattern>(internal::parse_pattern(text, predicates))) {}

Pattern Pattern::seeing_through() const {
  Pattern changed = *this;
  changed.prepared_ = std::make_shared<internal::PreparedPattern>(internal::seeing_through(prepared_->data));
  return changed;
}

const std::vector<CallProblem>& Pattern::problems() const { return prepared_->data.problems; }
bool Pattern::needs_shapes() const { return internal::needs_shapes(prepared_->data); }
bool Pattern::needs_module_types() const { return internal::needs_module_types(prepared_->data); }
std::size_t Pattern::num_outputs() const { return prepared_->data.outputs.size(); }
std::string Pattern::str() const { return internal::print_pattern(prepared_->data); }
std::ostream& operator<<(std::ostream& out, const Pattern& pattern) { return out << pattern.str(); }

}  // namespace fx
