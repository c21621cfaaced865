// What the program's commands share: reading and writing files, shapes, progress, and the way errors end the program.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/ops/call_check.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/program_form.h>

namespace fx::cli {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;  // bad input, or a check that failed
inline constexpr int kUsage = 2;   // the command line itself is wrong

/// An option without another that it needs; the program ends with kUsage.
class MissingOption : public Error {
 public:
  explicit MissingOption(const std::string& message) : Error(ErrorKind::invalid_argument, message) {}
};

/// A name that no operator has, as far as the built-in list goes: the program with LibTorch knows more.
class UnknownName : public Error {
 public:
  explicit UnknownName(const std::string& message) : Error(ErrorKind::not_found, message) {}
};

/// What to say of a problem; empty where its namespace is among the `allowed`.
std::string complaint(const CallProblem& problem, const std::vector<std::string>& allowed);

/// Throws UnknownName for the first problem. Namespaces in `allowed` (`mylib::`) are taken at their author's word.
void refuse(const std::vector<CallProblem>& problems, const std::vector<std::string>& allowed);

/// What a program saved as `path` becomes: by the ending of the name; `otherwise` when that does not say. Text for
/// standard output.
ProgramForm form_of(const std::string& path, ProgramForm otherwise);

/// Throws Error(invalid_argument) when its ending names none, and it is not `-`.
void require_form(const std::string& path);

/// Parses the values of --input. Throws Error(invalid_argument) that shows the form.
std::vector<TensorInfo> parse_inputs(const std::vector<std::string>& shapes);

/// Writes `text` to `path`, or to standard output when `path` is empty or "-".
/// A file is there whole or not at all (support/output_file.h).
void write_output(const std::string& path, std::string_view text);

/// Sends off what was written to standard output; false when some of it could not be.
bool flush_output();

/// A line on the terminal while something takes long; nothing in a pipe. Cleared at the end.
class Progress {
 public:
  explicit Progress(std::string_view what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  std::size_t width_ = 0;
};

/// `25.6 M`, `24.1 MiB`, `41.2 ms`, `30.2 dB` (`equal` without noise): numbers as people say them.
std::string human_count(double count);
std::string human_bytes(double bytes);
std::string human_seconds(double seconds);
std::string human_decibels(double signal_to_noise);

}  // namespace fx::cli
