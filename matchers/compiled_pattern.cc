#include <fxgraph/matchers/compiled_pattern.h>

#include <algorithm>

#include <fxgraph/support/error.h>

namespace fx::internal {

namespace {

void check_facts(const PatternData& pattern, const FindOptions& options) {
  if (!options.shapes && needs_shapes(pattern)) {
    throw Error(ErrorKind::invalid_argument,
                "pattern: it says what tensors must be, and no shapes are known; give them as FindOptions::shapes");
  }
  if (!options.module_type && needs_module_types(pattern)) {
    throw Error(ErrorKind::invalid_argument,
                "pattern: it names types of modules, and none are known; give them as FindOptions::module_type");
  }
}

}  // namespace

CompiledPattern::CompiledPattern(std::shared_ptr<const PatternData> pattern, const FindOptions& options)
    : pattern_(std::move(pattern)),
      options_(options),
      normalize_(options.normalize),
      commute_all_(options.commutative) {
  check_facts(*pattern_, options);
  hot_.resize(size());
  fixed_plans_.resize(size());
  for (std::uint32_t i = 0; i < size(); ++i) {
    const PatternNode& node = pattern_->nodes[i];
    has_alternatives_ |= node.kind == PatternKind::one_of;
    has_negations_ |= node.kind == PatternKind::negation;
    has_interior_ |= node.kind == PatternKind::transparent || node.kind == PatternKind::dominated;
    has_constants_ |= node.kind == PatternKind::constant;
    hot_[i].tested = node.min_uses > 0 || node.max_uses != kManyUses || !node.conditions.empty() || node.tensor;
    if (node.kind != PatternKind::call) continue;
    Hot& hot = hot_[i];
    hot.op = node.op;
    const bool any_type = node.types.accepts_all();
    hot.any_target = node.targets.accepts_all() && any_type;
    if (node.targets.is_finite() && node.targets.names().size() == 1 && any_type) {
      hot.single = node.targets.names()[0];
      hot.fixed_plan = true;
      fixed_plans_[i] = make_plan(node, node.op == Op::call_function ? find_schema(hot.single) : nullptr);
    } else if (node.op != Op::call_function) {
      hot.fixed_plan = true;
      fixed_plans_[i] = make_plan(node, nullptr);
    }
  }
  find_direct();
}

TargetKey CompiledPattern::normalized_key(const Node& node) const {
  if (node.is(Op::call_function) || node.is(Op::call_method)) {
    if (const OperatorSchema* schema = schema_of(node)) return {Op::call_function, schema->target};
  }
  return {node.op(), node.target()};
}

bool CompiledPattern::accepts_slowly(std::uint32_t call, Symbol target) {
  std::uint8_t& known = accepted_[(std::uint64_t{call} << 32) | target.id()];
  if (known == 0) {
    const bool fits = node(call).targets.contains(target) && accepts_type(node(call).types, target);
    known = fits ? 2 : 1;
  }
  return known == 2;
}

/// `torch.nn.modules.conv.Conv2d` is also a `Conv2d`.
bool CompiledPattern::accepts_type(const TargetSet& types, Symbol path) const {
  if (types.accepts_all()) return true;
  const std::string type = options_.module_type(path.view());
  const std::size_t last = type.find_last_of(".:");
  return !type.empty() &&
         (types.contains(Symbol(type)) || (last != std::string::npos && types.contains(Symbol(type.substr(last + 1)))));
}

bool CompiledPattern::may_be(std::uint32_t index, const Node& node) {
  const PatternNode& pattern = this->node(index);
  if (pattern.kind == PatternKind::call) return accepts(index, key(node));
  for (const std::uint32_t alternative : pattern.args) {
    if (may_be(alternative, node)) return true;
  }
  return false;
}

bool CompiledPattern::commutes(std::uint32_t call, const CallPlan& plan) const {
  const PatternNode& node = this->node(call);
  if (node.args.size() < 2 || node.args[0] == node.args[1]) return false;
  // `add.Scalar(Tensor, Scalar)` says for itself which is which.
  if (plan.schema && plan.schema->arguments.size() > 1 &&
      plan.schema->arguments[0].type.text != plan.schema->arguments[1].type.text)
    return false;
  return node.commutative || (commute_all_ && plan.schema && plan.schema->traits.commutative);
}

const CallPlan& CompiledPattern::call_plan(std::uint32_t call, const Node& node, const TargetKey& key) {
  if (hot_[call].fixed_plan) return fixed_plans_[call];
  const std::uint64_t id = (std::uint64_t{call} << 32) | key.target.id();
  const auto known = other_plans_.find(id);
  if (known != other_plans_.end()) return known->second;
  const OperatorSchema* schema = normalize_ ? schema_of(node) : find_schema(key.target);
  return other_plans_.emplace(id, make_plan(this->node(call), schema)).first->second;
}

CallPlan CompiledPattern::make_plan(const PatternNode& node, const OperatorSchema* schema) const {
  CallPlan plan;
  plan.schema = schema;
  std::vector<bool> mentioned(schema ? schema->arguments.size() : 0);
  for (std::size_t i = 0; i < node.args.size(); ++i) {
    plan.operands.push_back({node.args[i], static_cast<std::int32_t>(i), {}});
    if (!schema) continue;
    if (i < mentioned.size()) {
      mentioned[i] = true;
      plan.operands.back().keyword = schema->arguments[i].name;
    } else {
      plan.possible &= schema->varargs;
    }
  }
  for (const auto& [name, value] : node.kwargs) {
    const int position = schema ? schema->index_of(name) : -1;
    plan.operands.push_back({value, position, name});
    if (position >= 0) mentioned[static_cast<std::size_t>(position)] = true;
    plan.possible &= !schema || position >= 0;
  }
  for (std::size_t i = 0; i < mentioned.size(); ++i) {
    if (!mentioned[i] && !node.open) plan.unmentioned.push_back(static_cast<std::uint16_t>(i));
  }
  plan.plain = plan.unmentioned.empty() ? mentioned.size() : plan.unmentioned[0];
  for (const std::uint16_t position : plan.unmentioned) {
    if (!schema->arguments[position].default_value) plan.plain = 0;
  }
  return plan;
}

// ── Where to start ───────────────────────────────────────────────────────────────────────────────────────────────────

// A node is direct when every match binds it, and users lead from it to a root: no alternative lies between them, and
// nothing that is seen through.
void CompiledPattern::find_direct() {
  direct_.assign(size(), false);
  direct_children_.resize(size());
  for (const std::uint32_t root : pattern_->roots) direct_[root] = true;
  required_ = direct_;
  for (std::uint32_t i = static_cast<std::uint32_t>(size()); i-- > 0;) {  // users before operands
    const PatternNode& pattern = node(i);
    if (direct_[i] && pattern.kind == PatternKind::call)
      pattern.for_each_child([&](std::uint32_t child) { add_direct_children(i, child); });
    if (required_[i]) for_each_bound(i, [&](std::uint32_t child) { required_[child] = true; });
  }
}

/// The children that are bound whenever the node is.
template <typename Visit>
void CompiledPattern::for_each_bound(std::uint32_t index, Visit&& visit) const {
  const PatternNode& pattern = node(index);
  if (pattern.kind == PatternKind::one_of || pattern.kind == PatternKind::negation) return;
  if (pattern.kind == PatternKind::dominated) return visit(pattern.args[0]);
  pattern.for_each_child(visit);
}

void CompiledPattern::add_direct_children(std::uint32_t call, std::uint32_t index) {
  if (node(index).kind == PatternKind::sequence) {
    for (const std::uint32_t element : node(index).args) add_direct_children(call, element);
    return;
  }
  direct_[index] = true;
  direct_children_[call].push_back(index);
}

/// Adds what a call or alternatives of calls may be; false when that is no finite list.
bool CompiledPattern::keys_of(std::uint32_t index, std::vector<TargetKey>& keys) const {
  const PatternNode& pattern = node(index);
  if (pattern.kind == PatternKind::one_of) {
    return std::all_of(pattern.args.begin(), pattern.args.end(), [&](std::uint32_t arg) { return keys_of(arg, keys); });
  }
  if (pattern.op == Op::output || pattern.op == Op::placeholder || !pattern.targets.is_finite()) return false;
  for (const Symbol name : pattern.targets.names()) {
    const TargetKey key{pattern.op, name};
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  }
  return true;
}

std::size_t CompiledPattern::count(const Graph& graph, std::uint32_t index, std::vector<TargetKey>& keys) const {
  if (!keys_of(index, keys)) {
    keys.clear();
    return graph.size();
  }
  if (normalize_) return graph.size();
  std::size_t sum = 0;
  for (const TargetKey& key : keys) sum += graph.count(key.op, key.target);
  return sum;
}

SearchPlan CompiledPattern::plan(const Graph& graph, std::uint32_t anchor) const {
  SearchPlan plan;
  for (std::uint32_t i = static_cast<std::uint32_t>(size());
       i-- > 0;) {  // of equally rare ones the nearest to a result
    if (!required_[i] || !only_calls(*pattern_, i)) continue;
    std::vector<TargetKey> keys;
    const std::size_t candidates = count(graph, i, keys);
    plan.impossible |= candidates == 0;
    if (!direct_[i]) continue;
    const bool better = anchor == kNoPattern ? plan.anchor == kNoPattern || candidates < plan.candidates : i == anchor;
    if (!better) continue;
    plan.anchor = i;
    plan.keys = std::move(keys);
    plan.candidates = candidates;
  }
  std::vector<bool> reached(size());
  reach(plan.anchor, reached);
  for (PlanStep step; next_step(reached, step);) {
    plan.steps.push_back(step);
    reach(step.call, reached);
  }
  return plan;
}

// Marks what is bound whenever `index` is: not what lies behind an alternative. Operands have smaller indices than
// their users, so one pass downward does.
void CompiledPattern::reach(std::uint32_t index, std::vector<bool>& reached) const {
  reached[index] = true;
  std::vector<bool> below(size());
  below[index] = true;
  for (std::uint32_t i = index + 1; i-- > 0;) {
    if (!below[i]) continue;
    reached[i] = true;
    for_each_bound(i, [&](std::uint32_t child) { below[child] = true; });
  }
}

/// The next call to match, the ones reached through a matched call first, then through a wildcard; the whole graph
/// last.
bool CompiledPattern::next_step(const std::vector<bool>& reached, PlanStep& step) const {
  int best = 3;
  for (std::uint32_t i = 0; i < size(); ++i) {
    if (reached[i] || !direct_[i]) continue;
    for (const std::uint32_t child : direct_children_[i]) {
      if (!reached[child]) continue;
      const PatternKind kind = node(child).kind;
      const int rank = kind == PatternKind::call || kind == PatternKind::one_of ? 0
                       : kind == PatternKind::attribute                         ? 2
                                                                                : 1;
      const bool literal = kind == PatternKind::literal || kind == PatternKind::hole;
      if (literal || kind == PatternKind::transparent || rank >= best) continue;
      best = rank;
      step = {i, child};
    }
  }
  if (best < 3) return true;
  for (const std::uint32_t root : pattern_->roots) {
    if (reached[root]) continue;
    step = {root, kNoPattern};
    return true;
  }
  return false;
}

}  // namespace fx::internal
