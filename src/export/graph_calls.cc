// Calls of operators: what they are called here, which arguments they take here, what their results are.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fxgraph/export/graph_reader.h>
#include <fxgraph/export/operators.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/run/python_calls.h>
#include <fxgraph/run/value.h>

namespace fx::pt2 {
namespace {

// Arguments that newer releases gave to operators and older ones can do without: they only check more.
constexpr std::pair<const char*, const char*> kOnlyChecks[] = {
    {"aten::_assert_tensor_metadata", "device"},
    {"aten::_assert_tensor_metadata", "layout"},
};

bool only_checks(Symbol target, const std::string& argument) {
  return std::ranges::any_of(kOnlyChecks,
                             [&](const auto& row) { return target == row.first && argument == row.second; });
}

// Releases gave defaults to optional arguments that earlier ones want to see.
void add_missing_nones(const c10::FunctionSchema& schema, std::size_t positional, const std::vector<NamedValue>& inputs,
                       std::vector<NamedArgument>& kwargs) {
  for (std::size_t i = positional; i < schema.arguments().size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    if (argument.default_value() || argument.type()->kind() != c10::TypeKind::OptionalType) continue;
    if (std::ranges::find(inputs, argument.name(), &NamedValue::name) == inputs.end())
      kwargs.push_back({Symbol(argument.name()), Argument()});
  }
}

// Where a number of any kind is taken now, earlier releases take an int.
Argument older_value(const Argument& value, const c10::Type& type) {
  if (!value.is_float() || value.as_float() != std::trunc(value.as_float())) return value;
  const bool is_int = c10::IntType::get()->isSubtypeOf(type) && !c10::FloatType::get()->isSubtypeOf(type);
  return is_int ? Argument(static_cast<std::int64_t>(value.as_float())) : value;
}

// Indices of 32 bits are taken by newer releases alone.
bool takes_short_indices() {
  static const bool takes = [] {
    try {
      at::zeros({2}).index({at::zeros({1}, at::kInt)});
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }();
  return takes;
}

bool is_list_of_indices(const c10::Argument& argument) {
  const auto list = argument.type()->cast<c10::ListType>();
  return list && list->getElementType()->kind() == c10::TypeKind::OptionalType;
}

}  // namespace

void GraphReader::refuse(const std::string& target, const std::string& why) {
  refusals_.calls.emplace(target + (why.empty() ? "" : " (" + why + ")"), name_);
}

// What this release takes for the value.
Argument GraphReader::value_for(const Argument& value, const c10::Argument& taken) {
  if (takes_short_indices() || !is_list_of_indices(taken)) return older_value(value, *taken.type());
  return map_nodes(value, [&](Node& each) -> Argument {
    const TensorMeta* meta = meta_of(each);
    if (!meta || meta->dtype != DType::int32) return each;
    return call("aten::to.dtype", {each, DType::int64});
  });
}

void GraphReader::call_operator(const std::string& text, const std::vector<NamedValue>& inputs, const Json& json) {
  const Symbol target = target_of(text);
  const Json& results = member(json, "outputs");
  if (target == "operator.pow" && power_of_size(inputs, results)) return;
  const TorchOperator* known = find_exported_operator(target);
  if (!known && !find_python_function(Op::call_function, target) &&
      internal::candidate_overloads(Op::call_function, target).empty())
    refuse(text, "");
  const bool by_name = known && target == canonical_target(Symbol(text));
  std::vector<Argument> args;
  std::vector<NamedArgument> kwargs;
  for (const NamedValue& input : inputs) {
    if (input.value.kind() == ArgumentKind::dtype && !is_available(input.value.as_dtype()))
      refuse(text, "there is no torch." + std::string(to_string(input.value.as_dtype())) + " in this LibTorch");
    const auto index = by_name ? known->schema->argumentIndexWithName(input.name) : c10::nullopt;
    if (by_name && !index) {
      // An argument that this release does not have yet: None is what leaving it out means.
      if (!input.value.is_none() && !only_checks(target, input.name))
        refuse(text, "its argument '" + input.name + "' is not known");
      continue;
    }
    const c10::Argument* taken = index ? &known->schema->arguments()[static_cast<std::size_t>(*index)] : nullptr;
    const bool keyword = input.keyword || (taken && taken->kwarg_only());
    const Argument value = taken ? value_for(input.value, *taken) : input.value;
    if (keyword && !input.name.empty()) {
      kwargs.push_back({Symbol(input.name), value});
    } else {
      args.push_back(value);
    }
  }
  if (by_name) add_missing_nones(*known->schema, args.size(), inputs, kwargs);
  Node& made = call(target, args, kwargs, name_);
  bool is_tuple = array_of(results).size() > 1;
  if (text.starts_with("torch.ops.higher_order.")) {
    const Json* single = find_member(json, "is_hop_single_tensor_return");
    is_tuple |= single && !boolean_of(*single);
  }
  bind_results(made, results, is_tuple);
}

// A whole number to a small power as products: the powers of whole numbers that TorchScript has are floats.
bool GraphReader::power_of_size(const std::vector<NamedValue>& inputs, const Json& results) {
  constexpr std::int64_t kMost = 8;
  const bool is_whole = array_of(results).size() == 1 && results[0].contains("as_sym_int");
  if (!is_whole || inputs.size() != 2 || !inputs[1].value.is_int()) return false;
  const std::int64_t exponent = inputs[1].value.as_int();
  if (exponent < 2 || exponent > kMost) return false;
  const Argument& base = inputs[0].value;
  Argument power = base;
  for (std::int64_t i = 1; i < exponent; ++i)
    power = call("operator.mul", {power, base}, {}, i + 1 == exponent ? name_ : "");
  bind_results(power.node(), results, false);
  return true;
}

// `(token, result) = with_effects(token, operator, arguments)` keeps effects in order; nodes are in order here, and the
// operator alone is called.
void GraphReader::call_with_effects(std::vector<NamedValue> inputs, const Json& json) {
  if (inputs.size() < 2 || !inputs[1].value.is_string() || results_.empty())
    malformed("'with_effects' has no operator");
  const std::string text(inputs[1].value.as_string());
  inputs.erase(inputs.begin(), inputs.begin() + 2);
  const TorchOperator* known = find_exported_operator(target_of(text));
  for (std::size_t i = 0; known && i < inputs.size() && i < known->schema->arguments().size(); ++i) {
    if (inputs[i].name.empty()) inputs[i].name = known->schema->arguments()[i].name();
  }
  bind(results_[0], Argument());
  results_.erase(results_.begin());
  name_ = results_.size() == 1 ? results_[0] : "";
  Json outputs = member(json, "outputs");
  outputs.erase(0);
  call_operator(text, inputs, {{"outputs", std::move(outputs)}});
}

// Each result in use gets its getitem, as FX has it.
void GraphReader::bind_results(Node& made, const Json& outputs, bool is_tuple) {
  const auto element = [&](Node& whole, std::size_t index, const std::string& name) -> Node& {
    return call("operator.getitem", {whole, index}, {}, name);
  };
  const Json::array_t& results = array_of(outputs);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto [kind, value] = variant_of(results[i]);
    if (kind == "as_none") continue;
    if (kind == "as_tensors") {
      Node* list = is_tuple ? nullptr : &made;
      const Json::array_t& tensors = array_of(value);
      for (std::size_t j = 0; j < tensors.size(); ++j) {
        const std::string& name = string_of(member(tensors[j], "name"));
        if (uses(name) == 0) continue;
        if (!list) list = &element(made, i, "");
        bind(name, element(*list, j, name));
      }
      continue;
    }
    if (results_[i].empty()) {
      throw Error(ErrorKind::unsupported, "a result of '" + name_ + "' is '" + kind + "', which is not read here");
    }
    if (!is_tuple) {
      bind(results_[i], made);
    } else if (uses(results_[i]) > 0) {
      bind(results_[i], element(made, i, results_[i]));
    }
  }
}

}  // namespace fx::pt2
