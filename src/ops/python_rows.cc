#include <fxgraph/ops/python_rows.h>

#include <algorithm>
#include <charconv>

#include <fxgraph/ir/target.h>

namespace fx::internal {

namespace {

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// Calls `visit` for each part of `a, b, c`. The tables hold no commas inside parts.
template <typename Visit>
void for_each_part(std::string_view text, Visit&& visit) {
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    visit(trimmed(text.substr(0, comma)));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
}

Argument read_literal(std::string_view text) {
  if (text == "None") return {};
  if (text == "True") return Argument(true);
  if (text == "False") return Argument(false);
  if (text == "[]") return Argument::list({});
  if (text.starts_with('\'')) return Argument(text.substr(1, text.size() - 2));
  if (const auto dtype = parse_dtype(text)) return Argument(*dtype);
  const char* const end = text.data() + text.size();
  std::int64_t integer = 0;
  if (std::from_chars(text.data(), end, integer).ptr == end) return Argument(integer);
  double number = 0;
  if (std::from_chars(text.data(), end, number).ptr == end) return Argument(number);
  throw Error(ErrorKind::syntax, "python_names.cc: '" + std::string(text) + "' is no literal and no parameter");
}

std::size_t find_parameter(const PythonRow& row, std::string_view name) {
  const auto at = std::ranges::find_if(row.parameters, [&](const auto& parameter) { return parameter.name == name; });
  return at == row.parameters.end() ? PythonItem::kLiteral : static_cast<std::size_t>(at - row.parameters.begin());
}

void read_parameter(PythonRow& row, std::string_view text) {
  PythonParameter& parameter = row.parameters.emplace_back();
  const std::size_t equals = text.find('=');
  if (equals != std::string_view::npos) parameter.default_value = read_literal(text.substr(equals + 1));
  parameter.rest = text.starts_with('*');
  parameter.name =
      Symbol(text.substr(parameter.rest, equals == std::string_view::npos ? equals : equals - parameter.rest));
}

void read_condition(PythonRow& row, std::string_view text) {
  const std::size_t at = text.find_first_of("!>=");
  const char c = text[at];
  PythonCondition condition{find_parameter(row, text.substr(0, at)), PythonCondition::Test::equal, {}};
  if (c == '!') condition.test = PythonCondition::Test::not_equal;
  if (c == '>') condition.test = PythonCondition::Test::at_least;
  condition.value = read_literal(text.substr(at + (c == '=' ? 1 : 2)));
  if (condition.parameter == PythonItem::kLiteral) {
    throw Error(ErrorKind::syntax, "python_names.cc: condition '" + std::string(text) + "' names no parameter");
  }
  row.conditions.push_back(std::move(condition));
}

void read_item(PythonRow& row, std::string_view text) {
  PythonItem& item = row.items.emplace_back();
  if (const std::size_t equals = text.find('='); equals != std::string_view::npos) {
    item.keyword = Symbol(text.substr(0, equals));
    text.remove_prefix(equals + 1);
  }
  if (const std::size_t at = text.find('@'); at != std::string_view::npos) {
    const std::string_view as = text.substr(at + 1);
    item.repeated = as == "once" ? 1 : as == "twice" ? 2 : as == "thrice" ? 3 : 0;
    item.half = as == "left"    ? PythonItem::Half::left
                : as == "right" ? PythonItem::Half::right
                                : PythonItem::Half::none;
    if (item.repeated == 0 && item.half == PythonItem::Half::none) item.words = as;
    text = text.substr(0, at);
  }
  const std::size_t bar = text.find('|');
  item.parameter = find_parameter(row, text.substr(0, bar));
  if (item.parameter == PythonItem::kLiteral) {
    item.literal = read_literal(text);
  } else if (bar != std::string_view::npos) {
    item.literal = read_literal(text.substr(bar + 1));
  }
}

PythonRow read_row(const FunctionRow& text) {
  PythonRow row;
  row.name = text.name;
  for_each_part(text.parameters, [&](std::string_view part) { read_parameter(row, part); });
  for_each_part(text.when, [&](std::string_view part) { read_condition(row, part); });
  row.inplace = find_parameter(row, "inplace");
  const std::size_t open = text.call.find('(');
  row.target = Symbol(text.call.substr(0, open));
  row.same_arguments = !text.call.empty() && open == std::string_view::npos;
  if (open != std::string_view::npos) {
    for_each_part(text.call.substr(open + 1, text.call.size() - open - 2),
                  [&](std::string_view part) { read_item(row, part); });
  }
  return row;
}

std::vector<PythonRow> read_all() {
  std::vector<PythonRow> rows;
  for (const FunctionRow& text : python_functions()) rows.push_back(read_row(text));
  std::ranges::stable_sort(rows, {}, &PythonRow::name);
  return rows;
}

const std::vector<PythonRow>& all_rows() {
  static const std::vector<PythonRow> rows = read_all();
  return rows;
}

}  // namespace

std::span<const PythonRow> python_rows(std::string_view name) {
  const auto found = std::ranges::equal_range(all_rows(), name, {}, &PythonRow::name);
  return {found.begin(), found.end()};
}

std::vector<std::string_view> python_functions_of(std::string_view packet) {
  std::vector<std::string_view> names;
  for (const OperatorRow& row : python_operators()) {
    if (row.packet == packet) names.push_back(row.name);
  }
  for (const PythonRow& row : all_rows()) {
    if (packet_of(row.target.view()) == packet && (names.empty() || names.back() != row.name))
      names.push_back(row.name);
  }
  return names;
}

}  // namespace fx::internal
