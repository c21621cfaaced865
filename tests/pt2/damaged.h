// Archives of the corpus with bytes, records or members of their JSON changed, and what loading them says.
#pragma once

#include <caffe2/serialize/inline_container.h>
#include <fxgraph/export/load.h>
#include <fxgraph/run/archive.h>
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
#include "tests/support/zip_of.h"

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

inline Records records_of(const std::string& name) {
  ArchiveReader reader(archive_of(name));
  Records all;
  for (const std::string& record : reader.names()) {
    all.emplace_back(record, std::string(reader.size(record), '\0'));
    reader.read(record, all.back().second.data());
  }
  return all;
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
