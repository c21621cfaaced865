// What a file holds, for tests of what is written.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace fx::testing {

/// All bytes of the file; nothing when it cannot be read.
inline std::string file_text(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace fx::testing
