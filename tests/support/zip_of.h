// Zip archives of any records, with the checksums that belong to them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fx::testing {

/// Names below the archive's folder, and contents.
using Records = std::vector<std::pair<std::string, std::string>>;

inline std::uint32_t checksum_of(const std::string& bytes) {
  std::uint32_t value = 0xffffffff;
  for (const char c : bytes) {
    value ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? 0xedb88320u : 0u);
  }
  return ~value;
}

// A zip of whatever records, which LibTorch's writer would refuse (names twice, names that lead elsewhere).
inline std::string zip_of(const Records& records) {
  const auto number = [](std::uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += i < 8 ? static_cast<char>(value >> (8 * i)) : '\0';
    return text;
  };
  std::string zip, directory;
  for (const auto& [name, content] : records) {
    const std::string path = "archive/" + name;
    // Version, flags, stored as it is, time and date; checksum, sizes; length of the name, and of nothing else.
    const std::string common = number(20, 2) + number(0, 8) + number(checksum_of(content), 4) +
                               number(content.size(), 4) + number(content.size(), 4) + number(path.size(), 2) +
                               number(0, 2);
    directory += number(0x02014b50, 4) + number(20, 2) + common + number(0, 10) + number(zip.size(), 4) + path;
    zip += number(0x04034b50, 4) + common + path + content;
  }
  const std::string end = number(0x06054b50, 4) + number(0, 4) + number(records.size(), 2) + number(records.size(), 2) +
                          number(directory.size(), 4) + number(zip.size(), 4) + number(0, 2);
  return zip + directory + end;
}

// The same archive with the checksums that its records have now, as far as it has records: what is changed gets past
// them.
inline std::string with_right_checksums(std::string zip) {
  const auto number = [&](std::size_t at, std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes && at + i < zip.size(); ++i)
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(zip[at + i])) << (8 * i);
    return value;
  };
  for (std::size_t at = zip.find("PK\1\2"); at != std::string::npos; at = zip.find("PK\1\2", at + 4)) {
    const std::uint64_t size = number(at + 24, 4), header = number(at + 42, 4), method = number(at + 10, 2);
    const std::uint64_t begin = header + 30 + number(header + 26, 2) + number(header + 28, 2);
    if (method != 0 || begin > zip.size() || size > zip.size() - begin || at + 20 > zip.size()) continue;
    const std::uint32_t checksum = checksum_of(zip.substr(begin, size));
    for (std::size_t i = 0; i < 4; ++i) {
      zip[at + 16 + i] = static_cast<char>(checksum >> (8 * i));
      if (header + 18 <= zip.size()) zip[header + 14 + i] = static_cast<char>(checksum >> (8 * i));
    }
  }
  return zip;
}

}  // namespace fx::testing
