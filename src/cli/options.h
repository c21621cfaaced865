// What the program's commands share: reading and writing files, shapes, progress, and the way errors end the program.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/tensor_info.h>

namespace fx::cli {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;  // bad input, or a check that failed
inline constexpr int kUsage = 2;   // the command line itself is wrong

/// True when `path` names a TorchScript archive rather than FX text: by its content if it exists, else by its ending.
bool is_torchscript(const std::string& path);

/// True when a program saved as `path` becomes a TorchScript archive: by the ending of the name; `otherwise` when that
/// does not say.
bool saves_torchscript(const std::string& path, bool otherwise);

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

/// `25.6 M`, `24.1 MiB`, `41.2 ms`: numbers as people say them.
std::string human_count(double count);
std::string human_bytes(double bytes);
std::string human_seconds(double seconds);

}  // namespace fx::cli
