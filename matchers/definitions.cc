#include <fxgraph/matchers/definitions.h>

#include <algorithm>
#include <array>

#include <fxgraph/matchers/definition_conditions.h>
#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/support/error.h>

namespace fx {

std::string_view to_string(Promise promise) {
  static constexpr std::array<std::string_view, 4> kNames = {"bit-exact", "reassociates", "approximate",
                                                             "lower-precision"};
  return kNames[static_cast<std::size_t>(promise)];
}

const Argument* DefinitionSite::argument(std::string_view name) const {
  const int at = internal::PatternAccess::of(match_).find(Symbol(name));
  return at < 0 ? nullptr : &match_.values()[static_cast<std::size_t>(at)];
}

std::optional<double> DefinitionSite::number(std::string_view name) const {
  const Argument* value = argument(name);
  if (!value || (!value->is_int() && !value->is_float())) return std::nullopt;
  return value->as_float();
}

const TensorInfo* DefinitionSite::tensor(std::string_view name) const {
  const Argument* value = argument(name);
  const Node* node = value ? value->node_or_null() : nullptr;
  return node ? tensor(*node) : nullptr;
}

const TensorInfo* DefinitionSite::tensor(const Node& node) const {
  const TensorInfo* info = info_(node);
  if (info && std::ranges::find(read_, &node) == read_.end()) read_.push_back(&node);
  return info;
}

TypeSet floating_types() { return {DType::float16, DType::bfloat16, DType::float32, DType::float64}; }

bool DefinitionSite::is_as_said() const {
  return std::ranges::all_of(values_, [&](const auto& said) {
    const Argument* bound = argument(said.first);
    return !bound || *bound == said.second;
  });
}

bool DefinitionSite::may_be_floating() const {
  const TensorInfo* result = info_(match_.anchor());
  const auto fits = [&](const TensorInfo* info) {
    return !info || (floating_types().contains(info->dtype) && (!result || result->dtype == info->dtype));
  };
  return fits(result) && std::ranges::all_of(match_.bindings(), [&](const auto& bound) {
           const Node* node = bound.second.node_or_null();
           return !node || fits(info_(*node));
         });
}

bool DefinitionSite::says(std::string_view name) const {
  return std::ranges::any_of(values_, [&](const auto& said) { return said.first == name; });
}

const Argument* DefinitionSite::value(std::string_view name) const {
  for (const auto& [said, value] : values_) {
    if (said == name) return &value;
  }
  return argument(name);
}

std::span<const Definition> definitions() {
  static const std::vector<Definition>& rows = *new std::vector<Definition>(internal::definition_table());
  return rows;
}

const Definition& definition(std::string_view name) {
  const auto rows = definitions();
  const auto row = std::ranges::find(rows, name, &Definition::name);
  if (row == rows.end()) throw Error(ErrorKind::not_found, "no operator is defined as '" + std::string(name) + "'");
  return *row;
}

}  // namespace fx
