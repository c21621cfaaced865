#include <fxgraph/ops/normalize_args.h>

#include <algorithm>
#include <string>
#include <string_view>

#include <fxgraph/ops/call.h>
#include <fxgraph/ops/element.h>
#include <fxgraph/ops/schema.h>

namespace fx {
namespace {

/// What stands between the brackets of an annotation such as `Tuple[a, List[b]]`, taken apart at its commas.
std::vector<std::string_view> type_arguments(std::string_view inside) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  const auto add = [&](std::size_t end) {
    std::string_view part = inside.substr(begin, end - begin);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    parts.push_back(part);
    begin = end + 1;
  };
  for (std::size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] == '[' || inside[i] == '(') ++depth;
    if (inside[i] == ']' || inside[i] == ')') --depth;
    if (inside[i] == ',' && depth == 0) add(i);
  }
  add(inside.size());
  return parts;
}

std::optional<std::string_view> element_type(std::string_view type, std::int64_t index) {
  for (const std::string_view module : {"typing.", "builtins."}) {
    if (type.starts_with(module)) type.remove_prefix(module.size());
  }
  const std::size_t open = type.find('[');
  if (open == std::string_view::npos || type.back() != ']') return std::nullopt;
  const std::string_view container = type.substr(0, open);
  const std::vector<std::string_view> parts = type_arguments(type.substr(open + 1, type.size() - open - 2));
  if (container == "List" || container == "list") return parts.size() == 1 ? std::optional(parts[0]) : std::nullopt;
  if (container != "Tuple" && container != "tuple") return std::nullopt;
  if (parts.size() == 2 && parts[1] == "...") return parts[0];
  const auto count = static_cast<std::int64_t>(parts.size());
  if (index < 0) index += count;
  if (index < 0 || index >= count || parts[static_cast<std::size_t>(index)].empty()) return std::nullopt;
  return parts[static_cast<std::size_t>(index)];
}

const std::string* type_of(const Node& node) {
  const Meta* meta = node.find_meta();
  return meta ? meta->get<std::string>(meta_key::kType) : nullptr;
}

}  // namespace

std::optional<NormalizedArguments> normalized_arguments(const Node& node, bool to_kwargs) {
  const Call call = call_of(node);
  const OperatorSchema* schema = call && !call.is_translated() ? &call.schema() : nullptr;
  if (!schema || schema->varargs || check_call(*schema, node.args(), node.kwargs())) return std::nullopt;
  NormalizedArguments result;
  for (std::size_t i = 0; i < schema->arguments.size(); ++i) {
    const Argument* value = call.argument(i);
    if (!value) return std::nullopt;
    if (!to_kwargs && i < node.args().size()) {
      result.args.push_back(*value);
    } else {
      result.kwargs.push_back({schema->arguments[i].name, *value});
    }
  }
  return result;
}

std::size_t normalize_args(Graph& graph) {
  std::size_t changed = 0;
  for (Node& node : graph.nodes()) {
    const std::optional<NormalizedArguments> normal = normalized_arguments(node);
    if (!normal || (node.args().empty() && node.kwargs().to_vector() == normal->kwargs)) continue;
    node.set_args_kwargs({}, normal->kwargs);
    ++changed;
  }
  return changed;
}

std::size_t annotate_getitem_nodes(Graph& graph) {
  std::size_t changed = 0;
  for (Node& node : graph.nodes()) {
    const std::optional<Element> taken = taken_element(node);
    const std::string* type = taken ? type_of(*taken->of) : nullptr;
    if (!type) continue;
    const auto element = element_type(*type, taken->index);
    if (!element || (type_of(node) && *type_of(node) == *element)) continue;
    node.meta().set(meta_key::kType, std::string(*element));
    ++changed;
  }
  return changed;
}

}  // namespace fx
