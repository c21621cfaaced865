// Archives of the corpus with bytes, records or members of their JSON changed, and what loading them says.
#pragma once

#include <caffe2/serialize/inline_container.h>
#include <fxgraph/export/archive.h>
#include <fxgraph/export/load.h>
#include <fxgraph/support/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/pt2/archives.h"
#include "tests/support/file_text.h"
#include "tests/support/scratch_folder.h"

namespace fx::testing {

using Json = nlohmann::json;
using ::testing::HasSubstr;

inline std::string archive_of(const std::string& name) { return corpus() + "/" + name + ".pt2"; }

// What loading these bytes says; empty when it works. Anything but an Error that names the file fails the test.
inline std::string outcome(const std::string& bytes) {
  const ScratchFolder scratch;
  const std::string path = scratch / "damaged.pt2";
  std::ofstream(path, std::ios::binary) << bytes;
  try {
    load_exported(path)->graph().lint();
    return "";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(path));
    return error.what();
  }
}

/// Names below the archive's folder, and contents.
using Records = std::vector<std::pair<std::string, std::string>>;

inline Records records_of(const std::string& name) {
  pt2::ArchiveReader reader(archive_of(name));
  Records all;
  for (const std::string& record : reader.names()) {
    all.emplace_back(record, std::string(reader.size(record), '\0'));
    reader.read(record, all.back().second.data());
  }
  return all;
}

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

// The archive with records changed: all of them below its folder.
inline std::string rewritten(const std::string& name, const std::map<std::string, std::string>& changes) {
  Records records = records_of(name);
  for (auto& [record, content] : records) {
    const auto found = changes.find(record);
    if (found != changes.end()) content = found->second;
  }
  return zip_of(records);
}

inline std::string record_of(const std::string& name, const std::string& record) {
  caffe2::serialize::PyTorchStreamReader reader(archive_of(name));
  auto [data, size] = reader.getRecord(record);
  return {static_cast<const char*>(data.get()), size};
}

inline Json program_of(const std::string& name) { return Json::parse(record_of(name, "models/model.json")); }

inline std::string outcome_of(const std::string& name, const Json& program) {
  return outcome(rewritten(name, {{"models/model.json", program.dump()}}));
}

}  // namespace fx::testing
