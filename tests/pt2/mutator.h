// Archives changed at random: in a member of their JSON, in their records, in their bytes.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/pt2/damaged.h"

namespace fx::testing {

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  std::size_t below(std::size_t limit) { return random_() % limit; }
  template <typename Values>
  const auto& one_of(const Values& values) {
    return values[below(std::size(values))];
  }

  /// Changes what some place says, leaves it out, doubles it or gives it the value of another.
  void change(Json& document) {
    const Json flat = document.flatten();
    std::vector<std::string> paths;
    for (const auto& [path, value] : flat.items()) {
      if (path.find("/metadata/") == std::string::npos) paths.push_back(path);
    }
    if (paths.empty()) return;
    Json::json_pointer at(one_of(paths));
    if (at.empty()) return;
    if (below(2) == 0) {
      document[at] = odd_value_for(flat.at(at.to_string()), flat, paths);
      return;
    }
    for (std::size_t up = below(4); up > 0 && !at.parent_pointer().empty(); --up) at = at.parent_pointer();
    const Json whole = document[at];
    Json& parent = document[at.parent_pointer()];
    switch (below(5)) {
      case 0: document[at] = flat.at(one_of(paths)); break;
      case 1: document[at] = Json(document[Json::json_pointer(one_of(paths)).parent_pointer()]); break;
      case 2:
        if (parent.is_object()) parent.erase(at.back());
        if (parent.is_array()) parent.erase(std::stoul(at.back()));
        break;
      case 3:
        if (parent.is_array()) parent.push_back(whole);
        if (parent.is_object()) parent[at.back() + "_again"] = whole;
        break;
      default:
        if (parent.is_array()) std::swap(parent[below(parent.size())], parent[below(parent.size())]);
    }
  }

  /// Records: name and content, in order; several may have one name.
  void change(std::vector<std::pair<std::string, std::string>>& records) {
    if (records.empty()) return;
    const std::size_t at = below(records.size()), other = below(records.size());
    std::string& content = records[at].second;
    switch (below(8)) {
      case 0: records.erase(records.begin() + static_cast<std::ptrdiff_t>(at)); break;
      case 1: records.push_back(std::pair(records[at])); break;
      case 2: records.emplace_back(records[at].first, records[other].second); break;
      case 3: content.clear(); break;
      case 4: content.resize(below(content.size() + 1)); break;
      case 5: content += std::string(1 + below(100), static_cast<char>(random_())); break;
      case 6: std::swap(content, records[other].second); break;
      default:
        records[at].first = one_of(std::vector<std::string>{"", "..", "../" + records[at].first, "/etc/passwd", "a\nb",
                                                            records[at].first + "/", "models/other.json",
                                                            "data/weights/../weights/weight_0"});
    }
  }

  /// Bytes; two of three times near the end, where the zip's directory is.
  void damage(std::string& bytes) {
    if (bytes.empty()) return;
    const std::size_t at =
        below(3) == 0 ? below(bytes.size()) : bytes.size() - 1 - below(std::min<std::size_t>(bytes.size(), 2000));
    switch (below(5)) {
      case 0: bytes[at] ^= static_cast<char>(1 << below(8)); break;
      case 1: bytes[at] = static_cast<char>(random_()); break;
      case 2: bytes.erase(at, below(40)); break;
      case 3: bytes.resize(at); break;
      default: bytes.insert(at, std::string(1 + below(40), static_cast<char>(random_())));
    }
  }

 private:
  Json odd_value_for(const Json& value, const Json& flat, const std::vector<std::string>& paths) {
    if (value.is_number() && below(4) != 0) {
      constexpr std::int64_t kNumbers[] = {-1,        0,         1,         2,           3,         7,
                                           255,       1 << 16,   INT32_MAX, INT32_MIN,   INT64_MAX, INT64_MIN,
                                           1LL << 32, 1LL << 40, 1LL << 62, -(1LL << 40)};
      const Json odd[] = {1e308, -1e308, 0.5, "NaN", "Infinity", "-Infinity", UINT64_MAX};
      if (below(3) == 0) return one_of(odd);
      if (below(3) == 0 && value.is_number_integer()) return value.get<std::int64_t>() + (below(2) == 0 ? 1 : -1);
      return one_of(kNumbers);
    }
    if (value.is_string() && below(3) != 0) {  // the name of another: a cycle, or what is of another kind
      for (int tries = 0; tries < 50; ++tries) {
        const Json& other = flat.at(one_of(paths));
        if (other.is_string()) return other;
      }
    }
    const Json values[] = {
        nullptr,        "",   "..",  "../../etc/passwd",   "a\nb", std::string(300, 'x'), Json::array(),
        Json::object(), true, false, Json::array({1, "a"})};
    return one_of(values);
  }

  std::mt19937 random_;
};

}  // namespace fx::testing
