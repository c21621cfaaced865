#include "tests/support/record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace fx::testing {

namespace {

constexpr std::size_t kLong = 100, kShown = 3;

/// FNV-1a: the same on every platform.
std::string digest(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return std::string(digits, 12);
}

std::string line_of(const Recorded& one) {
  const auto lines = std::ranges::count(one.found, '\n');
  if (lines == 0 && one.found.size() <= kLong) return one.name + " | " + one.found;
  return one.name + " | " + std::to_string(lines) + " lines, " + digest(one.found);
}

}  // namespace

void expect_as_recorded(const std::string& record, const std::vector<Recorded>& all) {
  const std::string path = "tests/corpus/records/" + record + ".txt";
  if (std::getenv("FXGRAPH_WRITE_RECORDS")) {
    std::ofstream file(path);
    for (const Recorded& one : all) file << line_of(one) << '\n';
    return;
  }
  std::ifstream file(path);
  std::size_t different = 0;
  std::string expected;
  for (const Recorded& one : all) {
    if (!std::getline(file, expected)) expected = "(nothing)";
    if (line_of(one) == expected || ++different > kShown) continue;
    ADD_FAILURE() << path << " says\n  " << expected << "\nand it is\n  " << line_of(one) << "\n" << one.found;
  }
  EXPECT_FALSE(std::getline(file, expected)) << path << " has more: " << expected;
  EXPECT_EQ(different, 0u) << "where that is right, FXGRAPH_WRITE_RECORDS=1 writes " << path << " anew";
}

}  // namespace fx::testing
