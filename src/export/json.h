// Looking into JSON that someone else wrote: what is missing or of another type is an Error that says where.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include <fxgraph/support/error.h>

namespace fx::pt2 {

using Json = nlohmann::json;

[[noreturn]] inline void malformed(const std::string& what) {
  throw Error(ErrorKind::io, "is malformed: " + what + "; export the program again");
}

/// The member `name`; null when it is absent or None. Throws when `object` is no object.
inline const Json* find_member(const Json& object, const char* name) {
  if (!object.is_object()) malformed(std::string("an object with '") + name + "' is expected");
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

inline const Json& member(const Json& object, const char* name) {
  const Json* found = find_member(object, name);
  if (!found) malformed(std::string("'") + name + "' is missing");
  return *found;
}

inline const std::string& string_of(const Json& value) {
  if (!value.is_string()) malformed("a string is expected instead of " + value.dump().substr(0, 60));
  return value.get_ref<const std::string&>();
}

inline std::int64_t integer_of(const Json& value) {
  const bool fits = value.is_number_unsigned() ? value.get<std::uint64_t>() <= INT64_MAX : value.is_number_integer();
  if (!fits) malformed("an integer of 64 bits is expected instead of " + value.dump().substr(0, 60));
  return value.get<std::int64_t>();
}

inline bool boolean_of(const Json& value) {
  if (!value.is_boolean()) malformed("true or false is expected instead of " + value.dump().substr(0, 60));
  return value.get<bool>();
}

/// A number; those that JSON cannot say are strings.
inline double float_of(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "Infinity") return HUGE_VAL;
  if (value == "-Infinity") return -HUGE_VAL;
  if (value == "NaN") return std::nan("");
  malformed("a number is expected instead of " + value.dump().substr(0, 60));
}

inline const Json::array_t& array_of(const Json& value) {
  if (!value.is_array()) malformed("a list is expected instead of " + value.dump().substr(0, 60));
  return value.get_ref<const Json::array_t&>();
}

/// A union: an object with one member that says which. Returns its name and value.
inline std::pair<const std::string&, const Json&> variant_of(const Json& value) {
  if (!value.is_object() || value.size() != 1) malformed("a choice with one member is expected");
  return {value.begin().key(), value.begin().value()};
}

}  // namespace fx::pt2
