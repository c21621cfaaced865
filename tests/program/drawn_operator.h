// One operator and one draw of arguments, by its schema: a node over placeholders, and their values.
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include <fxgraph/run/operators.h>
#include <fxgraph/run/value.h>
#include <fxgraph/testing/hostile/arguments.h>

namespace fx::testing {

class DrawnOperator {
 public:
  DrawnOperator(const OperatorSchema& schema, std::uint64_t seed) : random_(seed), schema_(schema) {
    constexpr std::array<std::int64_t, 4> kSizes = {2, 3, 3, 1};
    constexpr std::array kTypes = {at::kFloat, at::kFloat, at::kFloat, at::kDouble, at::kLong, at::kBool, at::kInt};
    n_ = random_.pick(kSizes);
    rank_ = random_.below(5);
    type_ = random_.pick(kTypes);
    const hostile::ValueSource source{
        .tensor = [&](const SchemaArgument& parameter, const at::Tensor&) { return &tensor(parameter.name.view()); },
        .value_of = [&](const Node& node) { return values_[node.id()]; }};
    if (const auto call = hostile::draw_call(random_, schema_, source, {.optional_percent = 35}))
      node_ = &graph_.call_function(schema_.target, call->args, call->kwargs);
  }

  /// Null when no call can be drawn.
  Node* node() const { return node_; }
  Graph& graph() { return graph_; }
  const OperatorSchema& schema() const { return schema_; }
  /// Of the placeholders, which come first, by id.
  const std::vector<at::Tensor>& values() const { return values_; }

  /// All arguments of the operator with these values for the placeholders; nothing when they do not fit.
  std::optional<torch::jit::Stack> arguments(const TorchOperator& op, const std::vector<at::Tensor>& values) const {
    CallValues call;
    const auto look_up = [&](Node& input) -> c10::IValue { return values[input.id()]; };
    for (const Argument& argument : node_->args()) call.args.push_back(to_ivalue(argument, nullptr, look_up));
    for (const auto& [name, argument] : node_->kwargs())
      call.kwargs.emplace_back(name, to_ivalue(argument, nullptr, look_up));
    torch::jit::Stack stack;
    return bind_values(*op.schema, call, stack) ? std::optional(std::move(stack)) : std::nullopt;
  }

 private:
  Node& tensor(std::string_view name) {
    hostile::TensorForm form{std::vector<std::int64_t>(rank_, n_), type_};
    if (random_.chance(15)) form.sizes.assign(random_.below(5), n_);
    const bool vector = name == "bias" || name == "weight" || name.starts_with("running_") || name == "mean";
    if (vector && random_.chance(70)) form.sizes = {n_};
    if (name == "mask" || name == "condition") form.type = at::kBool;
    if ((name == "index" || name == "indices") && random_.chance(80)) form.type = at::kLong;
    Node& node = graph_.placeholder("t");
    values_.push_back(draw_tensor(random_, form, hostile::Numbers::tame));
    // Indices are in range.
    if (name == "index" || name == "indices" || name == "offsets") hostile::fill(values_.back(), 0);
    return node;
  }

  hostile::Random random_;
  const OperatorSchema& schema_;
  std::int64_t n_ = 2;
  std::size_t rank_ = 2;
  at::ScalarType type_ = at::kFloat;
  Graph graph_;
  std::vector<at::Tensor> values_;
  Node* node_ = nullptr;
};

}  // namespace fx::testing
