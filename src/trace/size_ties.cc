// The parts of a SizeSearch that tie what does not vary alone to dimensions of the same size, and that ask what an
// operator demands of the sizes of its inputs: equal ones, multiples, those that a weight has. Its record says so
// (fxgraph/ops/records/size_inference.h), and nothing has to be tried for it.
#include <fxgraph/trace/size_search.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <fxgraph/contract/symbolic_shapes.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/run/value.h>
#include <fxgraph/symbolic/relations.h>

namespace fx::internal {
namespace {

// The size of a group, and its group.
constexpr char kOfGroup = 'g';
std::string group_symbol(std::uint32_t group) { return kOfGroup + std::to_string(group); }
std::uint32_t group_of_symbol(const std::string& symbol) {
  return static_cast<std::uint32_t>(std::stoul(symbol.substr(1)));
}

// What a call asks of the sizes of groups, where numbers that `run` has had otherwise than the first trace are
// nobody's.
class Demands {
 public:
  Demands(const ProbedProgram& program, const Probe& run, const SizeGroups& groups)
      : log_(program.log), session_(program.session), run_(run), groups_(groups) {
    const std::vector<BoundTensor>& inputs = groups.inputs();
    for (std::uint32_t input = 0; input < inputs.size(); ++input) {
      if (inputs[input].example.layout() != at::kStrided) continue;
      TensorType type = tensor_type(tensor_info(inputs[input].example));
      const bool is_contiguous = type.is_contiguous();
      for (const SizeDimension& dimension : groups.dimensions) {
        if (dimension.input == input) type.sizes[static_cast<std::size_t>(dimension.dim)] = size_of(dimension.group);
      }
      type.strides = is_contiguous ? std::optional(contiguous_strides(type.sizes)) : std::nullopt;
      inputs_.emplace(log_.index_of(*inputs[input].node), std::move(type));
    }
    for (const Probe::Change& change : run.changes()) changed_.insert(change.call);
  }

  std::vector<SizeCondition> of(std::uint32_t last) {
    for (std::uint32_t call = 0; call < last; ++call) values_.push_back(value_of(call));
    InferredCall asked = infer_call(last);
    return std::move(asked.conditions);
  }

 private:
  // What is two and more in the first trace broadcasts with nothing else there.
  SizeExpr size_of(std::uint32_t index) {
    const SizeGroup& group = groups_.groups[index];
    if (group.fixed) return group.size;
    const std::string symbol = group_symbol(index);
    facts_.declare(symbol, {std::min<std::int64_t>(group.size, 2), std::nullopt});
    return SizeExpr::symbol(symbol);
  }

  AbstractValue value_of(std::uint32_t call) {
    if (const auto input = inputs_.find(call); input != inputs_.end()) return input->second;
    const TraceLog::Call& each = log_[call];
    if (each.op == Op::get_attr) return as_it_is(call);
    if (each.target == python::kGetItem) {
      const ArgumentSpan arguments = log_.arguments(call);
      const Node* of = arguments[0].node_or_null();
      const AbstractValue::List* list = of ? values_[log_.index_of(*of)].list() : nullptr;
      const bool is_one = list && arguments[1].is_int() && arguments[1].as_int() >= 0 &&
                          static_cast<std::size_t>(arguments[1].as_int()) < list->size();
      return is_one ? (*list)[static_cast<std::size_t>(arguments[1].as_int())] : AbstractValue();
    }
    InferredCall made = infer_call(call);
    if (made.outcome != InferredCall::Outcome::known) return as_it_is(call);
    return made.results.size() == 1 ? std::move(made.results[0]) : AbstractValue(std::move(made.results));
  }

  // Nothing where it depends on sizes.
  AbstractValue as_it_is(std::uint32_t call) const {
    const at::Tensor first = session_.value_of(*log_[call].node);
    if (!first.defined() || first.layout() != at::kStrided) return {};
    const bool is_same = call >= run_.num_calls() || first.sizes() == run_.sizes_of(call);
    return is_same ? AbstractValue(tensor_type(tensor_info(first))) : AbstractValue();
  }

  InferredCall infer_call(std::uint32_t call) {
    const TraceLog::Call& each = log_[call];
    if (!each.record || !each.record->schema || changed_.contains(call)) return {};
    std::vector<AbstractValue> arguments;
    for (const Argument& argument : log_.arguments(call)) {
      arguments.push_back(
          AbstractValue::of(argument, [this](const Node& node) { return values_[log_.index_of(node)]; }));
    }
    return infer(*each.record->schema, arguments, facts_, fresh_);
  }

  const TraceLog& log_;
  const Session& session_;
  const Probe& run_;
  const SizeGroups& groups_;
  std::map<std::uint32_t, TensorType> inputs_;  // by their calls
  std::set<std::uint32_t> changed_;
  std::vector<AbstractValue> values_;
  SizeFacts facts_;
  FreshSymbols fresh_;
};

bool holds_at(const SizeCondition& condition, const std::map<std::string, std::int64_t>& sizes) {
  const std::optional<std::int64_t> left = condition.left.evaluate(sizes), right = condition.right.evaluate(sizes);
  if (!left || !right) return false;
  if (condition.relation == SizeRelation::holds) return *left != 0;
  if (condition.relation == SizeRelation::multiple) return *right != 0 && *left % *right == 0;
  const auto row = std::ranges::find(kRelations, condition.relation, &RelationRow::relation);
  return row->holds(static_cast<double>(*left), static_cast<double>(*right));
}

}  // namespace

// What the call that should have come asks of sizes is in its record: nothing has to be tried. False where that says
// nothing, or more than this. Of a call that was not made nobody knows its numbers: only what is equal counts.
bool SizeSearch::settle_as_demanded(const GroupSizes& sizes, const Probe& failure) {
  const std::uint32_t at = program_.log.operator_at(failure.failed_at());
  if (failure.came_through() || at >= program_.log.size() || failure.slices_more()) return false;
  std::map<std::string, std::int64_t> tried;
  for (std::uint32_t i = 0; i < sizes.size(); ++i) tried.emplace(group_symbol(i), sizes[i]);
  bool is_settled = false;
  for (const SizeCondition& demand : Demands(program_, failure, groups_).of(at)) {
    std::set<std::string> asked;
    const auto note = [&](const std::string& symbol) { asked.insert(symbol); };
    demand.left.for_each_symbol(note);
    demand.right.for_each_symbol(note);
    const bool is_of_groups =
        std::ranges::all_of(asked, [&](const std::string& symbol) { return tried.contains(symbol); });
    if (asked.empty() || !is_of_groups || holds_at(demand, tried)) continue;
    const std::uint32_t first = group_of_symbol(*asked.begin()), last = group_of_symbol(*asked.rbegin());
    if (groups_.groups[first].dimensions.empty() || groups_.groups[last].dimensions.empty()) continue;  // tied by now
    const bool is_tie = demand.relation == SizeRelation::equal && demand.left.is_symbol() && demand.right.is_symbol();
    if (is_tie && groups_.groups[first].size == groups_.groups[last].size) {
      groups_.tie(first, last);
    } else {
      const bool is_one = demand.relation == SizeRelation::equal && demand.left.is_symbol() &&
                          demand.right.is_integer() &&
                          holds_at(demand, {{group_symbol(first), groups_.groups[first].size}});
      if (!is_one || !failure.operator_refused() || !fix_unless_near(first, sizes[first], failure)) continue;
    }
    is_settled = true;
    SizeGroup& group = groups_.groups[std::min(first, last)];
    group.explain_by(reason(failure), failure.place());
  }
  return is_settled;
}

// A weight has the sizes that it has. Else what is one broadcasts, and a program may slice a table for smaller ones.
bool SizeSearch::fix_unless_near(std::uint32_t index, std::int64_t tried, const Probe& failure) {
  SizeGroup& group = groups_.groups[index];
  const std::uint32_t last = failure.failed_at();
  const bool is_larger = tried > group.size;
  if (is_held_by_parameter(failure) || !works_at({index}, group.size + (is_larger ? -1 : 1), last)) {
    group.fix(reason(failure), failure.where());
    return true;
  }
  if (!is_larger || works_at({index}, tried, last)) return false;
  group.above = group.size + 1;
  return true;
}

bool SizeSearch::works_at(const Some& some, std::int64_t size, std::uint32_t last) {
  return size >= 1 && works(groups_.examples_with(some, size), last);
}

// Any two of one size, for they may be so by chance; else all that fail. Returns those left over.
SizeSearch::Some SizeSearch::tie(Some culprits, const Some& active, const GroupSizes& sizes, std::uint32_t last) {
  Some left;
  while (!culprits.empty()) {
    const std::uint32_t first = culprits.front();
    const auto is_alike = [&](std::uint32_t other) {
      const SizeGroup& group = groups_.groups[other];
      return group.size == groups_.groups[first].size && !group.fixed && !group.dimensions.empty();
    };
    Some alike;
    std::ranges::copy_if(culprits, std::back_inserter(alike), is_alike);
    Some others = alike;
    std::ranges::copy_if(active, std::back_inserter(others), [&](std::uint32_t each) {
      return is_alike(each) && std::ranges::find(alike, each) == alike.end();
    });
    const auto partner = std::ranges::find_if(others, [&](std::uint32_t other) {
      return other != first && works_at({first, other}, sizes[first], last);
    });
    Some tied = {first};
    if (partner != others.end()) {
      tied.push_back(*partner);
    } else if (alike.size() > 2 && works_at(alike, sizes[first], last)) {
      tied = alike;
    } else {
      left.push_back(first);
    }
    for (const std::uint32_t each : tied) {
      if (each != first) groups_.tie(first, each);
      std::erase(culprits, each);
    }
  }
  return left;
}

}  // namespace fx::internal
