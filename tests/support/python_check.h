// What Python's torch says of files that a test wrote. Python is an option of the build: FXGRAPH_TEST_PYTHON names it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace fx::testing {

/// Python, where it has torch.
inline std::optional<std::string> python_with_torch() {
  const char* python = std::getenv("FXGRAPH_TEST_PYTHON");
  if (!python || std::system((std::string(python) + " -c 'import torch' 2> /dev/null").c_str()) != 0)
    return std::nullopt;
  return python;
}

/// Whether `script` comes to its end without an error. Its argument is `folder`, where `data` lies as data.pt.
inline bool passes_in_python(const std::string& python, const std::filesystem::path& folder, const char* script,
                             const std::vector<char>& data) {
  std::ofstream(folder / "data.pt", std::ios::binary).write(data.data(), static_cast<std::streamsize>(data.size()));
  std::ofstream(folder / "check.py") << script;
  const std::string command = python + " -B -W ignore " + (folder / "check.py").string() + " " + folder.string();
  return std::system(command.c_str()) == 0;
}

}  // namespace fx::testing
