// Explanations are made by searching again with an observer that lets failed comparisons pass. What it let pass on the
// way through the pattern with the fewest of them are the obstacles: all of them, not just the first.
#include <fxgraph/matchers/explain.h>

#include <algorithm>
#include <map>

#include <fxgraph/matchers/explain_words.h>
#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/matchers/reading.h>
#include <fxgraph/matchers/write_order.h>

namespace fx {

namespace internal {

namespace {

constexpr std::size_t kMostObstacles = 12;
constexpr int kMostWays = 200;

struct Obstacle {
  std::string text;               ///< path and reason
  std::string kind;               ///< the reason without names, to count equal ones
  const Node* uses_of = nullptr;  ///< whose use count is wrong
};

/// Lets failures pass as long as there are not more of them than on the best way so far.
class Obstacles : public FailureObserver {
 public:
  Obstacles(const CompiledPattern& program, Engine& engine) : program_(program), engine_(engine) {}

  bool failed(std::uint32_t pattern, const Value& value, const Node* user, Mismatch why,
              std::uint32_t detail) override {
    if (found_.size() >= limit_) return false;
    const Node* at = why == Mismatch::uses || why == Mismatch::no_user || !user ? value.node : user;
    add(explain_failure(program_, engine_, {pattern, value, user, why, detail}), user ? user : at, at,
        std::to_string(pattern) + " " + std::to_string(static_cast<int>(why)) + " " + found(value, why, detail));
    if (why == Mismatch::uses) found_.back().uses_of = value.node;
    return true;
  }
  std::size_t waived() const override { return found_.size(); }
  void back_to(std::size_t waived) override { found_.resize(std::min(waived, found_.size())); }

  void add_escapes() {
    for (const auto& [value, user] : engine_.escapes()) {
      const bool told = std::any_of(found_.begin(), found_.end(),
                                    [&, at = value](const Obstacle& known) { return known.uses_of == at; });
      if (!told) add(value->name() + " is used outside the match too, by " + user->name(), value, value, "escapes");
    }
  }

  void add_write(const Node& writer, const Node& anchor) {
    add(writer.name() + " writes in between to what the match reads", &anchor, &anchor, "writes");
  }

  void set_limit(std::size_t limit) { limit_ = limit; }
  const std::vector<Obstacle>& found() const { return found_; }

 private:
  void add(const std::string& reason, const Node* bound, const Node* at, const std::string& kind) {
    std::string path = make_path(bound);
    if (at && at != bound) path += " <- " + at->name();
    found_.push_back({path.empty() ? reason : path + ": " + reason, kind, nullptr});
  }

  static std::string found(const Value& value, Mismatch why, std::uint32_t detail) {
    if (why == Mismatch::opcode_or_target && value.node) {
      const bool path =
          value.node->is(Op::call_module) || value.node->is(Op::get_attr) || value.node->is(Op::placeholder);
      return path ? std::string(to_string(value.node->op())) : value.node->target().str();
    }
    return std::to_string(detail);
  }

  /// The nodes of the match from a result down to `at`: `relu_4 <- add_2 <- conv2d_9`.
  std::string make_path(const Node* at) const {
    if (!at) return {};
    std::vector<const Node*> matched;
    for (std::uint32_t i = 0; i < program_.size(); ++i) {
      if (engine_.is_bound(i) && program_.node(i).kind == PatternKind::call) matched.push_back(engine_.value(i).node);
    }
    for (const auto& [pattern, node] : engine_.interior()) matched.push_back(node);
    std::string text = at->name();
    for (const Node* node = at; node;) {
      const auto uses = [&](const Node* user) {
        bool any = false;
        if (user != node) user->for_each_input([&](const Node& input) { any |= &input == node; });
        return any;
      };
      const auto user = std::find_if(matched.begin(), matched.end(), uses);
      node = user == matched.end() ? nullptr : *user;
      if (node) text = node->name() + " <- " + text;
    }
    return text;
  }

  const CompiledPattern& program_;
  Engine& engine_;
  std::size_t limit_ = kMostObstacles;
  std::vector<Obstacle> found_;
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
  std::string bindings;  ///< when it fits
  std::vector<Obstacle> obstacles;
  std::size_t bound = 0;  ///< how much of the pattern fits
};

/// Explained searches, one node at a time.
class Explainer {
 public:
  Explainer(const Searched& searched, const Pattern& pattern, std::uint32_t anchor)
      : options_(searched.options),
        program_(pattern, options_),
        plan_(program_.facts().plan(PresentCalls(searched.graph), anchor)),
        engine_(program_, searched.graph, options_, stats_),
        order_(searched) {
    engine_.set_plan(plan_);
    if (searched.reading) engine_.see_forms(searched.reading->forms());
  }

  const SearchPlan& plan() const { return plan_; }
  CompiledPattern& program() { return program_; }

  Attempt at(const Node& node) {
    Attempt best = search(node, nullptr);
    if (best.fits) return best;
    Obstacles obstacles(program_, engine_);
    engine_.set_observer(&obstacles);
    best = search(node, &obstacles);
    engine_.set_observer(nullptr);
    return best;
  }

 private:
  Attempt search(const Node& node, Obstacles* obstacles) {
    Attempt best;
    const Value value{const_cast<Node*>(&node), nullptr};
    if (!program_.may_be(plan_.anchor, node)) {
      if (!obstacles) return best;
      obstacles->failed(plan_.anchor, value, nullptr, Mismatch::opcode_or_target, 0);
      best.obstacles = obstacles->found();
      return best;
    }
    engine_.start(*value.node);
    for (int way = 0; (!obstacles || way < kMostWays) && engine_.next(); ++way) {
      if (!obstacles) {
        if ((options_.contained && engine_.escape().first) || order_.write_between(engine_.matched_nodes())) continue;
        return {true, bindings_of(MatchBuilder::make(program_, engine_)), {}, 0};
      }
      if (options_.contained) obstacles->add_escapes();
      const Node* writer = obstacles->found().empty() ? order_.write_between(engine_.matched_nodes()) : nullptr;
      if (writer) obstacles->add_write(*writer, node);
      const std::size_t count = obstacles->found().size();
      const bool fewer = best.obstacles.empty() || count < best.obstacles.size();
      if (fewer || (count == best.obstacles.size() && engine_.depth() > best.bound)) {
        best.obstacles = obstacles->found();
        best.bound = engine_.depth();
        obstacles->set_limit(count);
      }
    }
    if (obstacles && best.obstacles.empty())
      best.obstacles = {
          {node.name() + ": more than " + std::to_string(kMostObstacles) + " things are different", "", nullptr}};
    return best;
  }

  const FindOptions& options_;
  FindStats stats_;
  CompiledPattern program_;
  SearchPlan plan_;
  Engine engine_;
  WriteOrder order_;
};

}  // namespace

}  // namespace internal

std::string explain(const Graph& graph, const Pattern& pattern, const Node& node, const FindOptions& options) {
  const internal::Searched searched(graph, {&pattern, 1}, options);
  const Node* value = searched.value_of(node);
  if (!value) return node.name() + ": its module gives several values; ask about what takes them apart";
  internal::Explainer explainer(searched, pattern, internal::PatternAccess::of(pattern).anchor);
  internal::Attempt attempt = explainer.at(*value);
  for (const Node* form : searched.forms_of(*value)) {
    if (!attempt.fits)
      if (internal::Attempt other = explainer.at(*form); other.fits) attempt = std::move(other);
  }
  if (attempt.fits) return node.name() + ": fits" + (attempt.bindings.empty() ? "" : "; " + attempt.bindings);
  std::string text;
  for (const internal::Obstacle& obstacle : attempt.obstacles) text += (text.empty() ? "" : "; ") + obstacle.text;
  return text;
}

namespace {

/// The modules that are not read as operators; empty when there are none.
std::string closed_modules(const Graph& graph, const FindOptions& options) {
  std::vector<std::string> paths;
  for (const Node& node : graph.nodes()) {
    if (node.is(Op::call_module)) paths.push_back(node.target().str());
  }
  if (paths.empty()) return {};
  std::string text = options.leaves ? "; modules are leaves here: " : "; nobody looks into the modules ";
  for (std::size_t i = 0; i < std::min<std::size_t>(paths.size(), 3); ++i) text += (i > 0 ? ", " : "") + paths[i];
  return text + (paths.size() > 3 ? " and " + std::to_string(paths.size() - 3) + " more" : "");
}

/// The operators that must be there and are not.
std::string absent_operators(const Graph& graph, const FindOptions& options, internal::CompiledPattern& program) {
  std::string text;
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    if (program.node(i).kind != internal::PatternKind::call || !program.is_required(i)) continue;
    const auto is_there = [&](const Node& node) {
      return program.may_be(i, node) || !internal::misfit(program.node(i), program.called(node)).empty();
    };
    if (std::ranges::any_of(graph.nodes(), is_there)) continue;
    const std::string wanted = internal::describe(program.pattern(), i);
    const bool function = program.node(i).op == Op::call_function;
    text += "the graph has no " + (wanted.starts_with("a ") ? wanted.substr(2) : wanted) +
            (function ? closed_modules(graph, options) : "") + "\n";
  }
  return text;
}

/// Places with the same obstacles.
struct Group {
  std::size_t count = 0;
  internal::Attempt attempt;        ///< at the first of them
  std::vector<std::string> places;  ///< the first few
};

constexpr std::size_t kPlaces = 5;  // that are named

/// `b, c, d and 12 more`: the places after the first.
std::string other_places(const Group& group) {
  std::string text;
  for (std::size_t i = 1; i < group.places.size(); ++i) text += (i > 1 ? ", " : "") + group.places[i];
  if (group.count > group.places.size()) text += " and " + std::to_string(group.count - group.places.size()) + " more";
  return text;
}

std::string to_text(const Group& group) {
  const std::vector<internal::Obstacle>& obstacles = group.attempt.obstacles;
  const std::string count = std::to_string(group.count) + " × ";
  const std::string others = other_places(group);
  if (obstacles.size() == 1) return count + obstacles[0].text + (others.empty() ? "" : "; also at " + others) + "\n";
  std::string text = count + std::to_string(obstacles.size()) + " obstacles, the first place is " +
                     group.places.front() + (others.empty() ? "" : ", then " + others) + "\n";
  for (const internal::Obstacle& obstacle : obstacles) text += "    " + obstacle.text + "\n";
  return text;
}

/// The nearest misses first: few obstacles, much that fits, many places.
bool is_nearer(const Group& a, const Group& b) {
  const auto rank = [](const Group& group) {
    return std::tuple(group.attempt.obstacles.size(), ~group.attempt.bound, ~group.count);
  };
  return rank(a) < rank(b);
}

}  // namespace

std::string near_misses(const Graph& program, const Pattern& pattern, const FindOptions& given, std::size_t lines) {
  const internal::Searched searched(program, {&pattern, 1}, given);
  const auto& [reading, graph, options] = searched;
  internal::Explainer explainer(searched, pattern, internal::PatternAccess::of(pattern).anchor);
  internal::SearchPlan everywhere = explainer.plan();
  everywhere.impossible = false;  // an operator that is not there is an obstacle like any other
  std::map<std::string, std::size_t> known;
  std::vector<Group> groups;  // in the order of their first places
  std::size_t fits = 0;
  std::size_t tried = 0;
  internal::for_each_candidate(graph, explainer.program(), everywhere, [&](Node& node) {
    internal::Attempt attempt = explainer.at(node);
    ++tried;
    fits += attempt.fits;
    if (attempt.fits) return true;
    std::string kinds;
    for (const internal::Obstacle& obstacle : attempt.obstacles) kinds += obstacle.kind + ";";
    const auto [at, fresh] = known.emplace(kinds, groups.size());
    if (fresh) groups.push_back({0, std::move(attempt), {}});
    Group& group = groups[at->second];
    ++group.count;
    if (group.places.size() < kPlaces) group.places.push_back(node.name());
    return true;
  });
  std::stable_sort(groups.begin(), groups.end(), is_nearer);
  std::string text = std::to_string(tried) + (tried == 1 ? " place" : " places") + " tried, " + std::to_string(fits) +
                     (fits == 1 ? " fits\n" : " fit\n");
  text += absent_operators(graph, options, explainer.program());
  for (std::size_t i = 0; i < std::min(lines, groups.size()); ++i) text += to_text(groups[i]);
  if (groups.size() > lines) text += "and " + std::to_string(groups.size() - lines) + " more reasons\n";
  return text;
}

}  // namespace fx
