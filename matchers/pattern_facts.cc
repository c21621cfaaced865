#include <fxgraph/matchers/pattern_facts.h>

#include <algorithm>

#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/ops/schema_registry.h>
#include <fxgraph/support/error.h>

namespace fx::internal {

namespace {

/// True when the call says the same with its first two operands the other way round.
bool commutes(const PatternNode& node, const OperandPlan& plan, bool commute_all) {
  if (node.args.size() < 2 || node.args[0] == node.args[1]) return false;
  // `add.Scalar(Tensor, Scalar)` says for itself which is which.
  const SchemaType *first = plan.operands[0].type, *second = plan.operands[1].type;
  if (second && first->text != second->text) return false;
  return node.commutative || (commute_all && plan.schema && plan.schema->traits.commutative);
}

/// Whether calls that are written with this target may be of another overload: `aten::view(x, dtype)` is no
/// `aten::view` of sizes. Overloads that take another number of arguments by position are told apart by that.
bool may_be_another(Symbol target) {
  const TargetInfo& info = target_info(target);
  if (!info.schema || info.exact) return false;
  const auto least = [](const OperatorSchema& schema) {
    return std::ranges::count_if(schema.arguments, [](const SchemaArgument& argument) {
      return !argument.keyword_only && !argument.default_value;
    });
  };
  const auto most = [](const OperatorSchema& schema) { return static_cast<std::ptrdiff_t>(schema.num_positional()); };
  const auto wants_out = [](const SchemaArgument& argument) {
    return argument.keyword_only && !argument.default_value;  // which the other has not
  };
  return std::ranges::any_of(*info.overloads, [&](const OperatorSchema* other) {
    return other != info.schema && least(*other) <= most(*info.schema) && least(*info.schema) <= most(*other) &&
           std::ranges::none_of(other->arguments, wants_out);
  });
}

}  // namespace

/// Names that LibTorch takes for one operator may call its arguments by others: `axis0` of swapaxes is transpose's
/// `dim0`.
static int position_of(Symbol keyword, const OperatorSchema& schema, const PatternNode& node) {
  if (const int own = schema.index_of(keyword); own >= 0) return own;
  for (const std::vector<Symbol>& names : {node.targets.names(), node.operators}) {
    for (const Symbol name : names) {
      for (const OperatorSchema* other : *target_info(name).overloads) {
        if (other->arguments.size() == schema.arguments.size() && other->index_of(keyword) >= 0)
          return other->index_of(keyword);
      }
    }
  }
  return -1;
}

/// `commutative(aten::add(2, x))` of the overload that takes the number behind the tensor.
bool PatternFacts::is_number_first(const PatternNode& call, const OperatorSchema& schema) const {
  if (!call.commutative || call.args.size() < 2 || schema.num_positional() < 2) return false;
  const PatternKind kind = node(call.args[0]).kind;
  const bool number = kind == PatternKind::literal || kind == PatternKind::hole;
  return number && schema.arguments[0].type.is_tensor() && !schema.arguments[1].type.is_tensor();
}

OperandPlan PatternFacts::make_plan(std::uint32_t call, const OperatorSchema* schema) const {
  const PatternNode& node = this->node(call);
  OperandPlan plan;
  plan.schema = schema;
  std::vector<bool> mentioned(schema ? schema->arguments.size() : 0);
  const bool turned = schema && is_number_first(node, *schema);
  for (std::size_t at = 0; at < node.args.size(); ++at) {
    const std::size_t i = turned && at < 2 ? 1 - at : at;
    plan.operands.push_back({.pattern = node.args[at], .position = static_cast<std::int32_t>(i)});
    if (!schema) continue;
    if (i < schema->num_positional()) {
      mentioned[i] = true;
      plan.operands.back().keyword = schema->arguments[i].name;
      plan.operands.back().type = &schema->arguments[i].type;
    } else {
      plan.possible &= schema->varargs;
    }
  }
  for (const auto& [name, value] : node.kwargs) {
    const int position = schema ? position_of(name, *schema, node) : -1;
    const Symbol keyword = position < 0 ? name : schema->arguments[static_cast<std::size_t>(position)].name;
    plan.operands.push_back({.pattern = value, .position = position, .keyword = keyword});
    plan.possible &= !schema || position >= 0;
    if (position < 0) continue;
    mentioned[static_cast<std::size_t>(position)] = true;
    plan.operands.back().type = &schema->arguments[static_cast<std::size_t>(position)].type;
  }
  for (std::size_t i = 0; i < mentioned.size(); ++i) {
    if (!mentioned[i] && !node.open && !changes_no_value(schema->arguments[i].name))
      plan.unmentioned.push_back(static_cast<std::uint16_t>(i));
  }
  plan.plain = plan.unmentioned.empty() ? mentioned.size() : plan.unmentioned[0];
  if (schema) plan.plain = std::min(plan.plain, schema->num_positional());
  for (const std::uint16_t position : plan.unmentioned) {
    if (!schema->arguments[position].default_value) plan.plain = 0;
  }
  plan.commutes = commutes(node, plan, commute_all);
  return plan;
}

PatternFacts::PatternFacts(const PatternData& data, bool commute)
    : pattern(&data),
      commute_all(commute),
      schemas(schema_generation()),
      needs_shapes(internal::needs_shapes(*pattern)),
      needs_module_types(internal::needs_module_types(*pattern)),
      hot(pattern->nodes.size()),
      fixed_plans(pattern->nodes.size()) {
  for (std::uint32_t i = 0; i < hot.size(); ++i) {
    const PatternNode& node = pattern->nodes[i];
    has_alternatives |= node.kind == PatternKind::one_of;
    has_negations |= node.kind == PatternKind::negation;
    has_interior |= node.kind == PatternKind::transparent || node.kind == PatternKind::dominated;
    has_constants |= node.kind == PatternKind::constant;
    Hot& own = hot[i];
    own.tested = node.has_conditions() || node.tensor;
    if (node.kind != PatternKind::call) continue;
    own.call = true;
    own.op = node.op;
    const bool any_type = node.types.accepts_all();
    own.any_target = node.targets.accepts_all() && any_type;
    const std::vector<Symbol>& names = node.names();
    if (node.targets.is_finite() && node.targets.spellings().empty() && names.size() == 1 && any_type) {
      own.fixed_plan = true;
      fixed_plans[i] = make_plan(i, node.op == Op::call_function ? find_overload(names[0]) : nullptr);
      // The operands of a graph's own calls are of any kind, too.
      if (node.op != Op::call_function || pattern->from_graph || !may_be_another(names[0])) own.single = names[0];
    } else if (node.op != Op::call_function) {
      own.fixed_plan = true;
      fixed_plans[i] = make_plan(i, nullptr);
    }
  }
  find_direct();
}

void PatternFacts::check(const FindOptions& options) const {
  if (!options.shapes && needs_shapes) {
    throw Error(ErrorKind::invalid_argument,
                "pattern: it says what tensors must be, and no shapes are known; give them as FindOptions::shapes");
  }
  if (!options.modules.type && needs_module_types) {
    throw Error(ErrorKind::invalid_argument,
                "pattern: it names types of modules, and none are known; search the GraphModule, or give them as "
                "FindOptions::modules");
  }
}

std::shared_ptr<const PatternFacts> PatternAccess::facts(const Pattern& pattern, const FindOptions& options) {
  const PatternFacts& own = pattern.prepared_->facts;
  if (!options.commutative && own.schemas == schema_generation()) return {pattern.prepared_, &own};
  return std::make_shared<PatternFacts>(of(pattern), options.commutative);
}

// ── Where to start ───────────────────────────────────────────────────────────────────────────────────────────────────

// A node is direct when every match binds it, and users lead from it to a root: no alternative lies between them, and
// nothing that is seen through.
void PatternFacts::find_direct() {
  direct.assign(hot.size(), false);
  direct_children.resize(hot.size());
  for (const std::uint32_t root : pattern->roots) direct[root] = true;
  required = direct;
  for (std::uint32_t i = static_cast<std::uint32_t>(hot.size()); i-- > 0;) {  // users before operands
    const PatternNode& node = pattern->nodes[i];
    if (direct[i] && node.kind == PatternKind::call)
      node.for_each_child([&](std::uint32_t child) { add_direct_children(i, child); });
    if (required[i]) for_each_bound(i, [&](std::uint32_t child) { required[child] = true; });
  }
}

/// The children that are bound whenever the node is.
template <typename Visit>
void PatternFacts::for_each_bound(std::uint32_t index, Visit&& visit) const {
  const PatternNode& node = pattern->nodes[index];
  if (node.kind == PatternKind::one_of || node.kind == PatternKind::negation) return;
  if (node.kind == PatternKind::dominated) return visit(node.args[0]);
  node.for_each_child(visit);
}

void PatternFacts::add_direct_children(std::uint32_t call, std::uint32_t index) {
  const PatternNode& node = pattern->nodes[index];
  if (node.kind == PatternKind::sequence) {
    for (const std::uint32_t element : node.args) add_direct_children(call, element);
    return;
  }
  direct[index] = true;
  direct_children[call].push_back(index);
}

/// Adds what a call or alternatives of calls are written as in the graph; false when that takes more than the target.
bool PatternFacts::keys_of(std::uint32_t index, const PresentCalls& present, std::vector<TargetKey>& keys) const {
  const PatternNode& test = node(index);
  if (test.kind == PatternKind::one_of) {
    return std::ranges::all_of(test.args, [&](std::uint32_t arg) { return keys_of(arg, present, keys); });
  }
  if (!is_function_or_method(test.op) && !test.targets.is_finite()) return false;
  const auto add = [&](const TargetKey& key) {
    if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  };
  if (!is_function_or_method(test.op)) {
    for (const Symbol name : test.targets.names()) add({test.op, name});
    return true;
  }
  for (const TargetKey& key : present.keys) {
    if (test.targets.accepts_all() ? key.op == test.op : fit(index, key.op, key.target) != Fit::no) add(key);
  }
  return true;
}

std::size_t PatternFacts::count(const PresentCalls& present, std::uint32_t index, std::vector<TargetKey>& keys) const {
  if (!keys_of(index, present, keys)) {
    keys.clear();
    return present.graph.size();
  }
  std::size_t sum = 0;
  for (const TargetKey& key : keys) sum += present.graph.count(key.op, key.target);
  return sum;
}

PresentCalls::PresentCalls(const Graph& searched) : graph(searched) {
  keys.reserve(16);
  graph.any_called([&](Op op, Symbol target) {
    if (is_function_or_method(op)) keys.push_back({op, target});
    return false;
  });
}

SearchPlan PatternFacts::plan(const PresentCalls& present, std::uint32_t anchor) const {
  SearchPlan plan;
  for (std::uint32_t i = static_cast<std::uint32_t>(size());
       i-- > 0;) {  // of equally rare ones the nearest to a result
    if (!required[i] || !only_calls(*pattern, i)) continue;
    std::vector<TargetKey> keys;
    const std::size_t candidates = count(present, i, keys);
    plan.impossible |= candidates == 0;
    if (!direct[i]) continue;
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

// Marks what is bound whenever `index` is: not what lies behind an alternative. GivenOperands have smaller indices than
// their users, so one pass downward does.
void PatternFacts::reach(std::uint32_t index, std::vector<bool>& reached) const {
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
bool PatternFacts::next_step(const std::vector<bool>& reached, PlanStep& step) const {
  constexpr int kNone = 3;
  int best = kNone;
  for (std::uint32_t i = 0; i < size(); ++i) {
    if (reached[i]) continue;
    for (const std::uint32_t child : direct_children[i]) {
      if (!reached[child]) continue;
      const PatternKind kind = node(child).kind;
      const bool literal = kind == PatternKind::literal || kind == PatternKind::hole;
      const int rank = kind == PatternKind::call || kind == PatternKind::one_of ? 0
                       : kind == PatternKind::attribute                         ? 2
                       : literal || kind == PatternKind::transparent            ? kNone
                                                                                : 1;
      if (rank >= best) continue;
      best = rank;
      step = {i, child};
    }
  }
  if (best != kNone) return true;
  for (const std::uint32_t root : pattern->roots) {
    if (reached[root]) continue;
    step = {root, kNoPattern};
    return true;
  }
  return false;
}

}  // namespace fx::internal
