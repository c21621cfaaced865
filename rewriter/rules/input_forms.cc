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
  for (const DType type :
       {DType::float32, DType::float64, DType::bfloat16, DType::float16, DType::int64, DType::boolean}) {
    if (type == info.dtype) continue;
    others.push_back(info);
    others.back().dtype = type;
  }
  return others;
}

InputForms::Form rank_of(const TensorInfo& info) {
  const std::size_t rank = info.sizes.size();
  return {InputProperty::rank, kRankQuestion, static_cast<std::int64_t>(rank),
          "of " + std::to_string(rank) + (rank == 1 ? " dimension" : " dimensions"), of_other_ranks};
}

InputForms::Form type_of(const TensorInfo& info) {
  return {InputProperty::dtype, kTypeQuestion, static_cast<std::int64_t>(to_scalar_type(info.dtype)),
          to_string(Argument(info.dtype)), of_other_types};
}

}  // namespace

bool is_asserted(const Node& input, InputProperty property) {
  return std::ranges::any_of(Contract(input.graph()).conditions(), [&](const Condition& condition) {
    return std::ranges::any_of(condition.measures, [&](const Measure& measure) {
      return measure.input == input.name() && measure.part.empty() && measure.property == property;
    });
  });
}

InputForms::InputForms(GraphModule& module, const std::vector<TensorInfo>& inputs)
    : module_(module), inputs_(inputs), before_(std::make_shared<GraphModule>(module, module.graph().clone())) {}

void InputForms::assert_ranks(std::string_view rule) { assert_all(rank_of, rule); }
void InputForms::assert_types(std::string_view rule) { assert_all(type_of, rule); }

bool InputForms::takes(const std::vector<TensorInfo>& inputs) const {
  const at::NoGradGuard no_grad;
  try {
    ShapeProp(*before_).propagate(inputs);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

bool InputForms::takes_another(std::size_t input, OthersOf others_of) const {
  const TensorInfo& example = inputs_[input];
  const std::vector<TensorInfo> others = others_of(example);
  for (std::size_t form = 0; form < others.size(); ++form) {
    std::vector<TensorInfo> alone = inputs_, together = inputs_;
    alone[input] = others[form];
    for (TensorInfo& other : together) {
      if (other.sizes.size() == example.sizes.size() && other.dtype == example.dtype) other = others_of(other)[form];
    }
    if (takes(alone) || (inputs_.size() > 1 && takes(together))) return true;
  }
  return false;
}

void InputForms::assert_all(Form (*form_of)(const TensorInfo&), std::string_view rule) {
  const bool tells = takes(inputs_);  // otherwise meta tensors cannot tell what else the program takes
  const std::vector<Node*> placeholders = module_.graph().placeholders();
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Form form = form_of(inputs_[i]);
    Node& input = *placeholders[i];
    if (is_asserted(input, form.property) || (tells && !takes_another(i, form.others))) continue;
    Rewriter rewriter(module_.graph());
    const auto at = rewriter.inserting_before(*placeholders.back()->next());
    Node& asked = rewriter.call_function(form.question, {input});
    rewriter.assertions().add(SizeRelation::equal, asked, form.answer,
                              input.name() + " must be " + form.text +
                                  ", as those that it was optimised for: " + std::string(rule) + " went by that");
  }
}

}  // namespace fx::rules
