#include <fxgraph/rewriter/rules/input_forms.h>

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <string>

#include <fxgraph/rewriter/rewriter.h>
#include <fxgraph/run/value.h>
#include <fxgraph/shapes/shape_prop.h>

namespace fx::rules {

namespace {

/// The same with a dimension more or less, first or last.
std::vector<TensorInfo> of_other_ranks(const TensorInfo& info) {
  std::vector<TensorInfo> others;
  const auto add = [&](std::vector<std::int64_t> sizes) {
    others.push_back(info);
    others.back().sizes = std::move(sizes);
    others.back().strides.clear();
  };
  const std::vector<std::int64_t>& sizes = info.sizes;
  std::vector<std::int64_t> more = sizes;
  more.insert(more.begin(), 2);
  add(more);
  more = sizes;
  more.push_back(2);
  add(more);
  if (sizes.empty()) return others;
  add(std::vector<std::int64_t>(sizes.begin() + 1, sizes.end()));
  add(std::vector<std::int64_t>(sizes.begin(), sizes.end() - 1));
  return others;
}

std::vector<TensorInfo> of_other_types(const TensorInfo& info) {
  std::vector<TensorInfo> others;
  for (const DType type : {DType::float32, DType::float64, DType::int64, DType::boolean}) {
    if (type == info.dtype) continue;
    others.push_back(info);
    others.back().dtype = type;
  }
  return others;
}

bool is_asserted(const Node& input, const char* question) {
  for (const Node& asked : input.users()) {
    if (!asked.is_call(question)) continue;
    for (const Node& holds : asked.users()) {
      for (const Node& user : holds.users()) {
        if (user.is_call("torch._assert")) return true;
      }
    }
  }
  return false;
}

}  // namespace

InputForms::InputForms(GraphModule& module, const std::vector<TensorInfo>& inputs) : module_(module), inputs_(inputs) {
  if (!inputs.empty()) before_ = std::make_shared<GraphModule>(module, module.graph().clone());
}

bool InputForms::takes(const std::vector<TensorInfo>& inputs) const {
  const at::NoGradGuard no_grad;
  try {
    ShapeProp(*before_).propagate(inputs);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

bool InputForms::takes_another(std::size_t input, std::vector<TensorInfo> (*others_of)(const TensorInfo&)) const {
  if (!takes(inputs_)) return true;  // meta tensors cannot tell
  const TensorInfo& example = inputs_[input];
  for (std::size_t form = 0; form < others_of(example).size(); ++form) {
    std::vector<TensorInfo> alone = inputs_, together = inputs_;
    alone[input] = others_of(example)[form];
    for (TensorInfo& other : together) {
      if (other.sizes.size() == example.sizes.size() && other.dtype == example.dtype) other = others_of(other)[form];
    }
    if (takes(alone) || (inputs_.size() > 1 && takes(together))) return true;
  }
  return false;
}

void InputForms::assert_ranks(std::string_view rule) {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const auto rank = static_cast<std::int64_t>(inputs_[i].sizes.size());
    assert_that(i, "aten::dim", rank, "of " + std::to_string(rank) + (rank == 1 ? " dimension" : " dimensions"), rule,
                of_other_ranks);
  }
}

void InputForms::assert_types(std::string_view rule) {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    assert_that(i, "prim::dtype", static_cast<std::int64_t>(to_scalar_type(inputs_[i].dtype)),
                to_string(Argument(inputs_[i].dtype)), rule, of_other_types);
  }
}

void InputForms::assert_that(std::size_t input, const char* question, std::int64_t answer, const std::string& what,
                             std::string_view rule, std::vector<TensorInfo> (*others_of)(const TensorInfo&)) {
  const std::vector<Node*> placeholders = module_.graph().placeholders();
  Node& of = *placeholders[input];
  if (is_asserted(of, question) || !takes_another(input, others_of)) return;
  Rewriter rewriter(module_.graph());
  const auto at = rewriter.inserting_before(*placeholders.back()->next());
  Node& asked = rewriter.call_function(question, {of});
  Node& holds = rewriter.call_function("operator.eq", {asked, answer});
  const std::string message =
      of.name() + " must be " + what + ", as those that it was optimised for: " + std::string(rule) + " went by that";
  rewriter.call_function("torch._assert", {holds, Argument(message)});
}

}  // namespace fx::rules
