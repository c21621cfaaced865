#include <fxgraph/cli/options.h>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include <fxgraph/support/output_file.h>

namespace fx::cli {

namespace {

/// What cannot be made is refused by the words of whoever asks for it, not by those of an allocator.
void require_memory(const std::string& shape, const TensorInfo& info) {
  double bytes = static_cast<double>(element_size(info.dtype));
  for (const std::int64_t size : info.sizes) bytes *= static_cast<double>(size);
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (bytes <= memory) return;
  throw Error(ErrorKind::invalid_argument, "--input " + shape + ": " + human_bytes(bytes) + ", and this machine has " +
                                               human_bytes(memory) + " of memory; give smaller sizes");
}

}  // namespace

std::string complaint(const CallProblem& problem, const std::vector<std::string>& allowed) {
  if (!problem.foreign_namespace) return problem.message;
  const auto is_own = [&](const std::string& space) { return problem.name.view().starts_with(space); };
  if (std::ranges::any_of(allowed, is_own)) return {};
  const std::string space = problem.name.str().substr(0, problem.name.view().find("::") + 2);
  return problem.message + "; if it is an operator of your own, say --allow " + space;
}

void refuse(const std::vector<CallProblem>& problems, const std::vector<std::string>& allowed) {
  for (const CallProblem& problem : problems) {
    if (const std::string said = complaint(problem, allowed); !said.empty()) throw UnknownName(said);
  }
}

ProgramForm form_of(const std::string& path, ProgramForm otherwise) {
  return path.empty() || path == "-" ? ProgramForm::text : form_by_ending(path).value_or(otherwise);
}

void require_form(const std::string& path) {
  if (!path.empty() && path != "-" && !form_by_ending(path))
    throw Error(ErrorKind::invalid_argument,
                path + ": its ending names no form that a program is written in: " + usual_endings());
}

std::vector<TensorInfo> parse_inputs(const std::vector<std::string>& shapes) {
  std::vector<TensorInfo> inputs;
  for (const std::string& shape : shapes) {
    std::optional<TensorInfo> info = parse_tensor_info(shape);
    if (!info) {
      throw Error(ErrorKind::invalid_argument,
                  "--input " + shape +
                      ": not a shape; write sizes joined by x and optionally a type, like 1x3x224x224 or 2x16:int64, "
                      "or :float32 for a tensor without dimensions");
    }
    require_memory(shape, *info);
    inputs.push_back(std::move(*info));
  }
  return inputs;
}

void write_output(const std::string& path, std::string_view text) {
  if (path.empty() || path == "-") {
    std::cout << text << std::flush;
    return;
  }
  write_file(path, [&](std::ostream& file) { file.write(text.data(), static_cast<std::streamsize>(text.size())); });
}

bool flush_output() {
  std::cout.flush();
  return std::cout.good() && std::fflush(stdout) == 0 && !std::ferror(stdout);
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
std::string human_decibels(double signal_to_noise) {
  if (std::isinf(signal_to_noise)) return signal_to_noise > 0 ? "equal" : "nothing in common";
  return fmt::format("{:.1f} dB", signal_to_noise);
}

}  // namespace fx::cli
