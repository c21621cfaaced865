#include <fxgraph/run/nested_graph.h>

#include <ATen/ATen.h>

#include <utility>

#include <fxgraph/run/autocast_scope.h>
#include <fxgraph/run/failure.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

using c10::IValue;
using internal::fail;
using Values = std::vector<IValue>;

Values values_of(const IValue& value) {
  if (value.isNone()) return {};
  return value.isTuple() || value.isList() ? elements_of(value) : Values{value};
}

IValue tuple_of(Values values) { return c10::ivalue::Tuple::create(std::move(values)); }

thread_local NestedGraphRunner* runner = nullptr;

void append(Values& values, const Values& more) { values.insert(values.end(), more.begin(), more.end()); }

bool holds(const IValue& value) { return value.isTensor() ? value.toTensor().is_nonzero() : value.toBool(); }

IValue cond(Values& args) { return nested_graph(args[holds(args[0]) ? 1 : 2]).call(values_of(args[3])); }

IValue while_loop(Values& args) {
  NestedGraph& condition = nested_graph(args[0]);
  NestedGraph& body = nested_graph(args[1]);
  Values carried = values_of(args[2]);
  const std::size_t count = carried.size();
  append(carried, values_of(args.size() > 3 ? args[3] : IValue()));
  while (true) {
    const IValue more = condition.call(carried);
    if (!holds(more.isTuple() ? values_of(more).at(0) : more)) break;
    const Values next = values_of(body.call(carried));
    if (next.size() != count) fail("the body of a while_loop returns another number of values than it carries");
    std::copy(next.begin(), next.end(), carried.begin());
  }
  carried.resize(count);
  return tuple_of(std::move(carried));
}

std::int64_t length_of(const Values& sequences) {
  if (sequences.empty() || !sequences[0].isTensor() || sequences[0].toTensor().dim() == 0)
    fail("there is nothing to go through: a tensor with a dimension is expected");
  return sequences[0].toTensor().size(0);
}

// One step's slice of every sequence, then what every step gets.
Values slices(const Values& sequences, std::int64_t at) {
  Values values;
  for (const IValue& sequence : sequences) values.emplace_back(sequence.toTensor().select(0, at));
  return values;
}

// Columns of results, a row per step, stacked.
Values stacked(const std::vector<Values>& rows) {
  Values all;
  for (std::size_t column = 0; column < rows.at(0).size(); ++column) {
    std::vector<at::Tensor> parts;
    for (const Values& row : rows) parts.push_back(row.at(column).toTensor());
    all.emplace_back(at::stack(parts));
  }
  return all;
}

// Functions that nothing runs give no shape for their results.
void check_not_empty(std::int64_t length) {
  if (length == 0) fail("there is nothing to go through: dimension 0 is empty");
}

IValue map(Values& args) {
  const Values sequences = values_of(args[1]);
  const std::int64_t length = length_of(sequences);
  check_not_empty(length);
  std::vector<Values> rows;
  for (std::int64_t i = 0; i < length; ++i) {
    Values inputs = slices(sequences, i);
    append(inputs, values_of(args[2]));
    rows.push_back(values_of(nested_graph(args[0]).call(std::move(inputs))));
  }
  return tuple_of(stacked(rows));
}

// scan(combine, init, xs, additional_inputs); releases before 2.7 had a dimension and a direction before the last.
IValue scan(Values& args) {
  if (args.size() > 4) fail("this scan was exported by an old release of torch; export it again with 2.7 or later");
  Values carried = values_of(args[1]);
  const std::size_t count = carried.size();
  const Values sequences = values_of(args[2]);
  const std::int64_t length = length_of(sequences);
  check_not_empty(length);
  std::vector<Values> rows;
  for (std::int64_t i = 0; i < length; ++i) {
    append(carried, slices(sequences, i));
    append(carried, values_of(args.size() > 3 ? args[3] : IValue()));
    const Values results = values_of(nested_graph(args[0]).call(std::move(carried)));
    if (results.size() < count) fail("the body of a scan returns fewer values than it carries");
    carried.assign(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(count));
    rows.emplace_back(results.begin() + static_cast<std::ptrdiff_t>(count), results.end());
  }
  append(carried, stacked(rows));
  return tuple_of(std::move(carried));
}

IValue associative_scan(Values& args) {
  const Values sequences = values_of(args[1]);
  const std::int64_t length = length_of(sequences);
  check_not_empty(length);
  std::vector<Values> rows{slices(sequences, 0)};
  for (std::int64_t i = 1; i < length; ++i) {
    Values inputs = rows.back();
    append(inputs, slices(sequences, i));
    append(inputs, values_of(args.size() > 2 ? args[2] : IValue()));
    rows.push_back(values_of(nested_graph(args[0]).call(std::move(inputs))));
  }
  return tuple_of(stacked(rows));
}

// The call's values from the `first` on are the graph's.
IValue call_with_rest(Values& args, std::size_t graph, std::size_t first) {
  return nested_graph(args.at(graph)).call(Values(args.begin() + static_cast<std::ptrdiff_t>(first), args.end()));
}

IValue wrap_with_set_grad_enabled(Values& args) {
  const at::AutoGradMode mode(args.at(0).toBool());
  return call_with_rest(args, 1, 2);
}

IValue wrap_with_autocast(Values& args) {
  std::optional<at::ScalarType> type;
  if (!args[1].isNone()) type = static_cast<at::ScalarType>(args[1].toInt());
  const AutocastScope scope(c10::Device(args[0].toStringRef()).type(), type, args[2].toBool(),
                            args[3].isNone() || args[3].toBool());
  return call_with_rest(args, 4, 5);
}

}  // namespace

NestedGraphRunner::NestedGraphRunner() : outer_(std::exchange(runner, this)) {}
NestedGraphRunner::~NestedGraphRunner() { runner = outer_; }

NestedGraph& nested_graph(const IValue& value) {
  if (!value.isCapsule()) fail("a graph is expected among the arguments, and a " + value.tagKind() + " given");
  return static_cast<NestedGraph&>(*value.toCapsule());
}

IValue NestedGraph::call(Values inputs) {
  if (runner) return runner->run(*module_, std::move(inputs));
  std::shared_ptr<const Plan> plan;
  {
    const std::lock_guard lock(mutex_);
    if (!plan_ || !plan_->is_current(*module_)) plan_ = Plan::compile(*module_);
    plan = plan_;
  }
  return plan->run(*module_, std::move(inputs));
}

IValue nested_graph_value(const std::shared_ptr<torch::nn::Module>& module) {
  const auto owning = std::dynamic_pointer_cast<const OwningModule>(module);
  if (!owning) return IValue();
  return IValue::make_capsule(c10::make_intrusive<NestedGraph>(owning));
}

const std::vector<PythonFunction>& higher_order_functions() {
  static const auto& table = *new std::vector<PythonFunction>{
      {"higher_order::cond", {"pred", "true_fn", "false_fn", "operands"}, cond},
      {"higher_order::while_loop", {"cond_fn", "body_fn", "carried_inputs", "additional_inputs"}, while_loop, 3},
      {"higher_order::map_impl", {"f", "xs", "pos_args"}, map},
      {"higher_order::scan", {"combine_fn", "init", "xs", "additional_inputs"}, scan, 3},
      {"higher_order::associative_scan", {"combine_fn", "xs", "additional_inputs"}, associative_scan, 2},
      {"higher_order::wrap_with_set_grad_enabled", {}, wrap_with_set_grad_enabled, 2},
      {"higher_order::wrap_with_autocast", {}, wrap_with_autocast, 5},
      {"higher_order::invoke_subgraph", {}, [](Values& args) { return call_with_rest(args, 0, 2); }, 2},
      {"higher_order::wrap", {}, [](Values& args) { return call_with_rest(args, 0, 1); }, 1},
      {"higher_order::strict_mode",
       {"callable", "operands"},
       [](Values& args) { return nested_graph(args[0]).call(values_of(args[1])); }},
      {"higher_order::tag_activation_checkpoint", {}, [](Values& args) { return call_with_rest(args, 0, 1); }, 1},
  };
  return table;
}

}  // namespace fx
