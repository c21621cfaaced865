#include "matchers/explain.h"

#include <algorithm>
#include <map>

#include "matchers/engine.h"

namespace fx {

namespace internal {

namespace {

/// "'aten::add.Tensor'", "one of …", in the words of the pattern text.
std::string describe_targets(const TargetSet& set) {
  std::vector<std::string> parts;
  for (const Symbol name : set.names()) parts.push_back(name.str());
  for (const std::string& expression : set.expressions()) parts.push_back("/" + expression + "/");
  for (const Tag tag : set.tags()) parts.push_back("a " + std::string(to_string(tag)) + " operator");
  if (parts.empty()) return "any call";
  std::string text = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) text += (i + 1 == parts.size() ? " or " : ", ") + parts[i];
  return text;
}

std::string describe(const PatternData& data, std::uint32_t index) {
  const PatternNode& node = data.nodes[index];
  constexpr std::string_view kHoles[] = {"a literal", "an int", "a float", "a bool", "a string"};
  switch (node.kind) {
    case PatternKind::any: return "any value";
    case PatternKind::value: return "a node";
    case PatternKind::call:
      return (node.op == Op::call_function ? "" : std::string(to_string(node.op)) + " of ") +
             describe_targets(node.targets);
    case PatternKind::attribute:
      return node.targets.accepts_all() ? "a get_attr" : "get_attr " + describe_targets(node.targets);
    case PatternKind::literal: return to_string(node.literal);
    case PatternKind::hole: return std::string(kHoles[static_cast<std::size_t>(node.hole)]);
    case PatternKind::sequence:
      return "a list of " + std::string(node.open ? "at least " : "") + std::to_string(node.args.size());
    case PatternKind::one_of: {
      std::string text;
      for (std::size_t i = 0; i < node.args.size(); ++i) text += (i > 0 ? " or " : "") + describe(data, node.args[i]);
      return text;
    }
    case PatternKind::absent: return "nothing";
    case PatternKind::rest: return "anything";
    case PatternKind::constant: return "a constant";
    case PatternKind::negation: return "anything but " + describe(data, node.args[0]);
    case PatternKind::transparent: return describe(data, node.args[0]);
    case PatternKind::dominated: return describe(data, node.args[0]) + " through " + describe(data, node.args[1]);
  }
  return {};
}

std::string describe(const Value& value) {
  if (value.missing()) return "nothing";
  if (!value.node) return to_string(*value.argument, NodeStyle::plain);
  const Node& node = *value.node;
  return node.name() + " (" + (node.is(Op::call_function) ? "" : std::string(to_string(node.op())) + " ") +
         node.target().str() + ")";
}

std::string list_users(const Node& node) {
  std::string text;
  std::size_t shown = 0;
  for (const Node& user : node.users()) {
    if (shown++ == 5) return text + ", …";
    text += (shown > 1 ? ", " : "") + user.name();
  }
  return text;
}

std::string count_words(std::uint32_t count) {
  constexpr std::string_view kWords[] = {"no use", "one use", "two uses", "three uses", "four uses"};
  return count < 5 ? std::string(kWords[count]) : std::to_string(count) + " uses";
}

/// Remembers the failure that came furthest: the one with most values bound, of equals the first.
class Furthest : public FailureObserver {
 public:
  Furthest(const Program& program, const Engine& engine) : program_(program), engine_(engine) {}

  std::size_t waived() const override { return 0; }
  void back_to(std::size_t) override {}
  bool failed(std::uint32_t pattern, const Value& value, const Node* user, Mismatch why,
              std::uint32_t detail) override {
    const Node* at = why == Mismatch::uses && value.node ? value.node : user;
    note(
        engine_.depth(), pattern, [&] { return reason(pattern, value, user, why, detail); }, user, at);
    return false;
  }

  void escaped(Node& value, Node& user) {
    const std::uint32_t pattern = pattern_of(value);
    note(
        engine_.depth() + 1, pattern,
        [&] { return value.name() + " is used outside the match too, by " + user.name(); }, &value, &value);
  }

  bool any() const { return depth_ > 0; }
  std::size_t depth() const { return depth_; }
  /// What is wanted and what is there, naming nodes.
  const std::string& reason() const { return reason_; }
  const std::string& path() const { return path_; }
  /// The reason without names, to count equal ones.
  const std::string& kind() const { return kind_; }

 private:
  template <typename Words>
  void note(std::size_t depth, std::uint32_t pattern, Words&& words, const Node* bound, const Node* at) {
    if (depth + 1 <= depth_) return;
    depth_ = depth + 1;
    reason_ = words();
    path_ = make_path(bound);
    if (at != bound) path_ += (path_.empty() ? "" : " <- ") + at->name();
    kind_ = describe(program_.pattern(), pattern);
  }

  std::uint32_t pattern_of(const Node& node) const {
    for (std::uint32_t i = 0; i < program_.size(); ++i) {
      if (engine_.is_bound(i) && engine_.value(i).node == &node && program_.node(i).kind == PatternKind::call) return i;
    }
    return 0;
  }

  /// The bound calls from a result of the pattern down to `at`: `relu_4 <- add_2 <- conv2d_9`.
  std::string make_path(const Node* at) const {
    if (!at) return {};
    std::string text = at->name();
    const Node* node = at;
    for (std::uint32_t i = pattern_of(*at) + 1; i < program_.size(); ++i) {
      if (!engine_.is_bound(i) || program_.node(i).kind != PatternKind::call || engine_.value(i).node == node) continue;
      const Node* user = engine_.value(i).node;
      bool uses = false;
      user->for_each_input([&](const Node& input) { uses |= &input == node; });
      if (!uses) continue;
      text = user->name() + " <- " + text;
      node = user;
    }
    return text;
  }

  std::string argument_name(const Node* user, const Value& value) const {
    if (!user) return {};
    const OperatorSchema* schema = schema_of(*user);
    const ArgumentSpan args = user->args();
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (&args[i] == value.argument) {
        return "argument " +
               (schema && i < schema->arguments.size() ? schema->arguments[i].name.str() : std::to_string(i)) + ": ";
      }
    }
    for (const auto& [name, argument] : user->kwargs()) {
      if (&argument == value.argument) return "argument " + name.str() + ": ";
    }
    return {};
  }

  std::string reason(std::uint32_t pattern, const Value& value, const Node* user, Mismatch why,
                     std::uint32_t detail) const {
    const PatternNode& node = program_.node(pattern);
    const std::string where = argument_name(user, value);
    switch (why) {
      case Mismatch::uses: return uses_reason(node, *value.node);
      case Mismatch::condition: return where + "wants " + node.conditions[detail].what + ", found " + describe(value);
      case Mismatch::other_value:
        return where + "wants " + describe(engine_.value(pattern)) + " again, as " +
               (node.name.empty() ? "before" : node.name.str()) + ", found " + describe(value);
      case Mismatch::arity:
        return "wants " + std::to_string(node.args.size()) + " arguments, found " + std::to_string(detail) +
               "; write ... to leave the rest open";
      case Mismatch::keyword:
        return "has an argument that the pattern does not mention: " + keyword(*value.node, detail);
      case Mismatch::not_default: return default_reason(*value.node, detail);
      default: return where + "wants " + describe(program_.pattern(), pattern) + ", found " + describe(value);
    }
  }

  static std::string keyword(const Node& node, std::uint32_t detail) {
    return detail < node.kwargs().size() ? node.kwargs().name(detail).str() : node.target().str();
  }

  static std::string uses_reason(const PatternNode& node, const Node& value) {
    std::string wanted = count_words(node.min_uses);
    if (node.min_uses != node.max_uses) {
      wanted = node.max_uses == kManyUses ? "at least " + wanted
                                          : std::to_string(node.min_uses) + " to " + count_words(node.max_uses);
    }
    return "wants " + wanted + " of " + value.name() + ", it has " +
           count_words(value.num_users())
               .substr(0, value.num_users() < 5 ? count_words(value.num_users()).find(' ') : std::string::npos) +
           (value.has_users() ? " (" + list_users(value) + ")" : "");
  }

  static std::string default_reason(const Node& node, std::uint32_t position) {
    const OperatorSchema* schema = schema_of(node);
    if (!schema) return "has an argument that the pattern does not mention";
    const SchemaArgument& argument = schema->arguments[position];
    const Argument* found = bound_argument(*schema, node, position);
    return "wants " + argument.name.str() + "=" +
           (argument.default_value ? to_string(*argument.default_value) : "nothing") + ", its default, found " +
           (found ? to_string(*found, NodeStyle::plain) : "nothing") + "; write ... to leave it open";
  }

  const Program& program_;
  const Engine& engine_;
  std::size_t depth_ = 0;
  std::string reason_;
  std::string path_;
  std::string kind_;
};

std::string bindings_of(const Match& match) {
  std::string text;
  for (const auto& [name, value] : match.bindings()) {
    text += (text.empty() ? "" : ", ") + name.str() + " is " + to_string(value, NodeStyle::plain);
  }
  return text;
}

struct Attempt {
  bool fits = false;
  std::size_t depth = 0;
  std::string text;
  std::string kind;
};

/// One explained search at one node.
class Explainer {
 public:
  Explainer(const Graph& graph, const Pattern& pattern, const FindOptions& options, std::uint32_t anchor)
      : options_(options),
        program_(pattern.shared_data(), options),
        plan_(program_.plan(graph, anchor)),
        engine_(program_, graph, options, stats_) {
    engine_.set_plan(plan_);
  }

  const SearchPlan& plan() const { return plan_; }
  Program& program() { return program_; }

  Attempt at(const Node& node) {
    Furthest furthest(program_, engine_);
    const Value value{const_cast<Node*>(&node), nullptr};
    if (!program_.may_be(plan_.anchor, node)) {
      furthest.failed(plan_.anchor, value, nullptr, Mismatch::opcode_or_target, 0);
      return {false, 0, node.name() + ": " + furthest.reason(), furthest.kind()};
    }
    engine_.set_observer(&furthest);
    engine_.start(*value.node);
    while (engine_.next()) {
      const auto [inner, user] = options_.contained ? engine_.escape() : std::pair<Node*, Node*>();
      if (!inner) return {true, 0, node.name() + ": fits; " + bindings_of(MatchBuilder::make(program_, engine_)), {}};
      furthest.escaped(*inner, *user);
    }
    engine_.set_observer(nullptr);
    if (!furthest.any())
      return {false,
              0,
              node.name() + ": " +
                  (engine_.exhausted() ? "the budget is used up" : "a value it is joined with has no such user"),
              {}};
    const std::string path = furthest.path().empty() ? node.name() : furthest.path();
    return {false, furthest.depth(), path + ": " + furthest.reason(), furthest.kind()};
  }

 private:
  const FindOptions& options_;
  FindStats stats_;
  Program program_;
  SearchPlan plan_;
  Engine engine_;
};

}  // namespace

}  // namespace internal

std::string explain(const Graph& graph, const Pattern& pattern, const Node& node, const FindOptions& options) {
  return internal::Explainer(graph, pattern, options, internal::first_result(pattern.data())).at(node).text;
}

namespace {

/// The operators that must be there and are not.
std::string absent_operators(const Graph& graph, const Pattern& pattern, const FindOptions& options) {
  std::string text;
  if (options.normalize) return text;
  for (const internal::PatternNode& node : pattern.data().nodes) {
    if (node.kind != internal::PatternKind::call || !node.targets.is_finite()) continue;
    bool present = false;
    for (const Symbol name : node.targets.names()) present |= graph.count(node.op, name) > 0;
    if (!present) text += "the graph has no " + internal::describe_targets(node.targets) + "\n";
  }
  return text;
}

struct Group {
  std::size_t count = 0;
  std::size_t depth = 0;
  std::size_t first = 0;
  std::string text;
};

}  // namespace

std::string near_misses(const Graph& graph, const Pattern& pattern, const FindOptions& options, std::size_t lines) {
  internal::Explainer explainer(graph, pattern, options, internal::first_result(pattern.data()));
  internal::SearchPlan everywhere = explainer.plan();
  everywhere.impossible = false;  // an operator that is not there is an obstacle like any other
  std::map<std::pair<std::size_t, std::string>, Group> groups;
  std::size_t fits = 0;
  std::size_t tried = 0;
  if (everywhere.candidates > 0) {
    internal::for_each_candidate(graph, explainer.program(), everywhere, [&](Node& node) {
      const internal::Attempt attempt = explainer.at(node);
      ++tried;
      fits += attempt.fits;
      if (attempt.fits) return true;
      Group& group = groups[{attempt.depth, attempt.kind}];
      if (group.count++ == 0) group = {1, attempt.depth, tried, attempt.text};
      return true;
    });
  }
  std::vector<Group> sorted;
  for (auto& [key, group] : groups) sorted.push_back(std::move(group));
  std::stable_sort(sorted.begin(), sorted.end(), [](const Group& a, const Group& b) {
    return a.depth != b.depth ? a.depth > b.depth : a.count != b.count ? a.count > b.count : a.first < b.first;
  });
  std::string text = std::to_string(tried) + (tried == 1 ? " place" : " places") + " tried, " + std::to_string(fits) +
                     (fits == 1 ? " fits\n" : " fit\n");
  text += absent_operators(graph, pattern, options);
  for (std::size_t i = 0; i < std::min(lines, sorted.size()); ++i) {
    text += std::to_string(sorted[i].count) + " × " + sorted[i].text + "\n";
  }
  if (sorted.size() > lines) text += "and " + std::to_string(sorted.size() - lines) + " more reasons\n";
  return text;
}

}  // namespace fx
