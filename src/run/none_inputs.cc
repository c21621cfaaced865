#include <fxgraph/run/none_inputs.h>

#include <algorithm>

#include <fxgraph/ir/argument.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/run/value.h>

namespace fx::internal {
namespace {

bool is_none(const c10::IValue& value) { return value.isNone() || (value.isTensor() && !value.toTensor().defined()); }

// Lists of numbers are left out, which hold none.
c10::ArrayRef<c10::IValue> parts_of(const c10::IValue& value) {
  if (value.isTuple()) return value.toTupleRef().elements().asArrayRef();
  const bool numbers = value.isIntList() || value.isDoubleList() || value.isBoolList();
  return value.isList() && !numbers ? value.toListRef() : c10::ArrayRef<c10::IValue>();
}

bool has_none(const c10::IValue& value) {
  if (is_none(value)) return true;
  if (!value.isGenericDict()) return std::ranges::any_of(parts_of(value), has_none);
  const auto dict = value.toGenericDict();
  return std::any_of(dict.begin(), dict.end(), [](const auto& item) { return has_none(item.value()); });
}

std::string part(const std::string& name, const Argument& key) { return name + "[" + to_string(key) + "]"; }

// Empty for what is no input and no part of one.
std::string path_of(const Node& node) {
  if (node.is(Op::placeholder)) return node.target().str();
  if (node.target() != python::kGetItem || node.args().size() != 2 || !node.arg(0).is_node()) return {};
  if (!node.arg(1).is_int() && !node.arg(1).is_string()) return {};
  const std::string whole = path_of(node.arg(0).node());
  return whole.empty() ? whole : part(whole, node.arg(1));
}

}  // namespace

void add_none_inputs(std::vector<std::string>& found, const std::string& name, const c10::IValue& value) {
  if (!has_none(value)) return;
  if (is_none(value)) found.push_back(name);
  if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict()) {
      if (const auto key = to_argument(item.key())) add_none_inputs(found, part(name, *key), item.value());
    }
    return;
  }
  const c10::ArrayRef<c10::IValue> parts = parts_of(value);
  for (std::size_t i = 0; i < parts.size(); ++i)
    add_none_inputs(found, part(name, Argument(static_cast<std::int64_t>(i))), parts[i]);
}

std::string cause_of_failure(const Node& node, const std::vector<std::string>& none_inputs, const std::string& cause) {
  if (none_inputs.empty()) return cause;
  std::string input;
  node.for_each_input([&](const Node& each) {
    const std::string path = path_of(each);
    if (input.empty() && std::ranges::find(none_inputs, path) != none_inputs.end()) input = path;
  });
  if (input.empty()) return cause;
  const std::string said = "the input '" + input + "' is None";
  const auto speaks_of = [&](const char* text) { return cause.find(text) != std::string::npos; };
  if (speaks_of("None") || speaks_of("undefined") || speaks_of("INTERNAL ASSERT"))
    return said + ", where the program takes a value";
  return cause + "; " + said;
}

}  // namespace fx::internal
