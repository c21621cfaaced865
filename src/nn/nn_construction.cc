#include <fxgraph/nn/nn_construction.h>

#include <algorithm>
#include <string>

#include <fxgraph/codegen/cpp_value.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/nn/nn_modules.h>

namespace fx {
namespace {

std::string in_a_list(std::string list, const std::string& text) { return list + (list.empty() ? "" : ", ") + text; }

std::string cpp_literal_of(const Argument& value) {
  if (!value.is_sequence()) return internal::cpp_literal(value);
  std::string elements;
  for (const Argument& each : value.elements()) elements = in_a_list(elements, cpp_literal_of(each));
  return "{" + elements + "}";
}

std::string cpp_text(const HyperParameter& each) {
  return each.cpp_value.empty() ? cpp_literal_of(each.value) : each.cpp_value;
}

// Setters, `T(TOptions(3).bias(false))`; else all by position, as far as the last that is not left out.
std::string cpp_construction(const ModuleType& type, const HyperParameters& all) {
  std::string arguments, set;
  if (type.cpp_options.empty()) {
    const auto last = std::ranges::find_if(all.rbegin(), all.rend(), [](const auto& each) { return !each.is_default; });
    for (auto each = all.begin(); each != last.base(); ++each) arguments = in_a_list(arguments, cpp_text(*each));
    return type.cpp_type + "(" + arguments + ")";
  }
  for (const HyperParameter& each : all) {
    if (each.by_position) {
      arguments = in_a_list(arguments, cpp_text(each));
    } else if (!each.is_default) {
      set += "." + (each.cpp_setter.empty() ? each.name : each.cpp_setter) + "(" + cpp_text(each) + ")";
    }
  }
  return type.cpp_type + "(" + type.cpp_options + "(" + arguments + ")" + set + ")";
}

std::string python_construction(const ModuleType& type, const HyperParameters& all) {
  std::string arguments;
  for (const HyperParameter& each : all) {
    if (each.by_position)
      arguments = in_a_list(arguments, to_string(each.value));
    else if (!each.is_default)
      arguments = in_a_list(arguments, each.name + "=" + to_string(each.value));
  }
  return type.qualified_name + "(" + arguments + ")";
}

}  // namespace

std::optional<CodeModule> construction_of(const torch::nn::Module& module) {
  const ModuleType* type = find_module_type(module);
  const std::optional<HyperParameters> made_with =
      type && type->hyper_parameters ? type->hyper_parameters(module) : std::nullopt;
  if (!made_with) return std::nullopt;
  CodeModule made;
  made.type = type->cpp_type;
  made.header = type->cpp_header;
  if (!type->cpp_type.empty()) made.construction = cpp_construction(*type, *made_with);
  made.python_import = split_path(type->qualified_name).first;
  if (!made.python_import.empty()) made.python_construction = python_construction(*type, *made_with);
  made.result = type->result.value_or(CodeModule::Result());
  made.training = module.is_training();
  if (made.construction.empty() && made.python_construction.empty()) return std::nullopt;
  return made;
}

std::optional<CodeModule::Result> result_of(const torch::nn::Module& module) {
  const auto* leaf = dynamic_cast<const LeafModule*>(&module);
  const ModuleType* type = leaf ? find_module_type(leaf->qualified_name()) : find_module_type(module);
  return type ? type->result : std::nullopt;
}

}  // namespace fx
