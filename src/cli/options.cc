#include "cli/options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

namespace fx::cli {

bool is_torchscript(const std::string& path) {
  if (path == "-") return false;
  std::ifstream file(path, std::ios::binary);
  std::array<char, 4> magic{};
  if (file && file.read(magic.data(), magic.size()))
    return std::memcmp(magic.data(), "PK\3\4", 4) == 0 || path.ends_with(".pt");
  return path.ends_with(".pt") || path.ends_with(".pth");
}

std::vector<TensorInfo> parse_inputs(const std::vector<std::string>& shapes) {
  std::vector<TensorInfo> inputs;
  for (const std::string& shape : shapes) {
    std::optional<TensorInfo> info = parse_tensor_info(shape);
    if (!info) {
      throw Error(ErrorKind::invalid_argument,
                  "--input " + shape +
                      ": not a shape; write sizes joined by x and optionally a type, like 1x3x224x224 or 2x16:int64");
    }
    inputs.push_back(std::move(*info));
  }
  return inputs;
}

void write_beside(const std::string& path, const std::function<void(const std::string&)>& write) {
  namespace fs = std::filesystem;
  const fs::path target(path);
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  if (!fs::is_directory(folder)) {
    throw Error(ErrorKind::io,
                "cannot write " + path + ": the folder " + folder.string() + " does not exist; create it first");
  }
  if (fs::is_directory(target))
    throw Error(ErrorKind::io, "cannot write " + path + ": it is a folder; name a file in it");
  const std::string temporary = (folder / fmt::format(".{}.{}", target.filename().string(), getpid())).string();
  try {
    write(temporary);
    fs::rename(temporary, target);
  } catch (const fs::filesystem_error& error) {
    std::remove(temporary.c_str());
    throw Error(ErrorKind::io, "cannot write " + path + ": " + error.code().message());
  } catch (...) {
    std::remove(temporary.c_str());
    throw;
  }
}

void write_output(const std::string& path, std::string_view text) {
  if (path.empty() || path == "-") {
    std::cout << text << std::flush;
    return;
  }
  write_beside(path, [&](const std::string& temporary) {
    std::ofstream file(temporary, std::ios::binary);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    file.close();
    if (!file) throw Error(ErrorKind::io, "cannot write " + path + ": " + std::strerror(errno));
  });
}

Progress::Progress(std::string_view what) {
  if (!isatty(STDERR_FILENO)) return;
  width_ = what.size();
  std::cerr << what << std::flush;
}

Progress::~Progress() {
  if (width_ > 0) std::cerr << '\r' << std::string(width_, ' ') << '\r' << std::flush;
}

namespace {

std::string scaled(double value, double step, std::initializer_list<const char*> units) {
  auto unit = units.begin();
  while (value >= step && unit + 1 != units.end()) {
    value /= step;
    ++unit;
  }
  if (unit == units.begin() && value == static_cast<double>(static_cast<long long>(value))) {
    return fmt::format("{:.0f}{}", value, *unit);
  }
  return fmt::format("{:.{}f}{}", value, value < 100 ? 1 : 0, *unit);
}

}  // namespace

std::string human_count(double count) { return scaled(count, 1000, {"", " k", " M", " G", " T"}); }
std::string human_bytes(double bytes) { return scaled(bytes, 1024, {" B", " KiB", " MiB", " GiB", " TiB"}); }
std::string human_seconds(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} µs", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.1f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

}  // namespace fx::cli
