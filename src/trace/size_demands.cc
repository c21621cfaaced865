#include <fxgraph/trace/size_demands.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fxgraph/contract/symbolic_shapes.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/run/value.h>

namespace fx::internal {
namespace {

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

constexpr char kOfGroup = 'g';

}  // namespace

std::string group_symbol(std::uint32_t group) { return kOfGroup + std::to_string(group); }

std::uint32_t group_of_symbol(const std::string& symbol) {
  return static_cast<std::uint32_t>(std::stoul(symbol.substr(1)));
}

std::vector<SizeCondition> demands_of(std::uint32_t at, const ProbedProgram& program, const Probe& run,
                                      const SizeGroups& groups) {
  return Demands(program, run, groups).of(at);
}

}  // namespace fx::internal
