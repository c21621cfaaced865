#include <fxgraph/run/input_kind.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fxgraph/ir/meta.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/support/error.h>

namespace fx::internal {

bool asks_type(const Node& placeholder) {
  for (const Node& user : placeholder.users()) {
    if (user.is_call(python::kIsInstance)) return true;
  }
  return false;
}

InputKind input_kind(const Node& placeholder) {
  static constexpr std::pair<std::string_view, InputKind> kKinds[] = {{"int", InputKind::integer},
                                                                      {"float", InputKind::floating},
                                                                      {"bool", InputKind::boolean},
                                                                      {"str", InputKind::string}};
  const Meta* meta = placeholder.find_meta();
  const std::string* annotation = meta ? meta->get<std::string>(meta_key::kType) : nullptr;
  if (!annotation) return InputKind::any;
  const auto known =
      std::ranges::find(kKinds, std::string_view(*annotation), &std::pair<std::string_view, InputKind>::first);
  if (known == std::end(kKinds)) return InputKind::any;
  return asks_type(placeholder) ? InputKind::any : known->second;
}

void require_kind(const std::string& input, const c10::IValue& value, InputKind kind) {
  if (is_of_kind(value, kind)) return;
  static constexpr std::array<const char*, 5> kNames = {"", "an int", "a float", "a bool", "a str"};
  throw Error(
      ErrorKind::invalid_argument,
      "the input '" + input + "' must be " + kNames[static_cast<std::size_t>(kind)] + ", but is a " + value.tagKind());
}

}  // namespace fx::internal
