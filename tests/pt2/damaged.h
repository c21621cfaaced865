// Archives of the corpus with bytes, records or members of their JSON changed, and what loading them says.
#pragma once

#include <caffe2/serialize/inline_container.h>
#include <fxgraph/export/load.h>
#include <fxgraph/support/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "tests/support/scratch_folder.h"

namespace fx::testing {

using Json = nlohmann::json;
using ::testing::HasSubstr;

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::string archive_of(const std::string& name) { return "tests/corpus/pt2/" + name + ".pt2"; }

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

// The archive with records changed: all of them below its folder.
inline std::string rewritten(const std::string& name, const std::map<std::string, std::string>& changes) {
  std::string bytes;
  caffe2::serialize::PyTorchStreamReader reader(archive_of(name));
  caffe2::serialize::PyTorchStreamWriter writer([&](const void* data, std::size_t size) {
    bytes.append(static_cast<const char*>(data), size);
    return size;
  });
  for (const std::string& record : reader.getAllRecords()) {
    if (record.starts_with(".data/") || record == "byteorder" || record == "version") continue;
    const auto found = changes.find(record);
    auto [data, size] = reader.getRecord(record);
    const std::string content =
        found == changes.end() ? std::string(static_cast<const char*>(data.get()), size) : found->second;
    writer.writeRecord(record, content.data(), content.size());
  }
  writer.writeEndOfFile();
  return bytes;
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
