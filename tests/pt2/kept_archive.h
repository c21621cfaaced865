// An archive that a test writes, for a test alone or for Python, too: with FXGRAPH_TEST_PT2_KEEP=FOLDER it stays there
// with recordings of what fxgraph did with it, which tests/newest/check_written.py repeats and compares.
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/scratch_folder.h"

namespace fx::testing {

/// Recordings are repeated in the order in which they were made, on one module as it is after loading.
class KeptArchive {
 public:
  explicit KeptArchive(const std::string& name)
      : keep_(std::getenv("FXGRAPH_TEST_PT2_KEEP")),
        path_(((keep_ ? std::filesystem::path(keep_) : scratch_.path()) / (name + ".pt2")).string()) {}

  const std::string& path() const { return path_; }
  bool is_kept() const { return keep_ != nullptr; }

  /// The program gives `outputs` for `inputs`.
  void gives(const std::vector<c10::IValue>& inputs, const c10::IValue& outputs) {
    record("gives", {tuple(inputs), outputs});
  }
  /// The program throws.
  void refuses(const std::vector<c10::IValue>& inputs) { record("refuses", {tuple(inputs)}); }
  /// The sum of the results is that before each step of SGD by `rate`.
  void trains(const std::vector<c10::IValue>& inputs, double rate, const std::vector<double>& losses) {
    record("trains", {tuple(inputs), rate, losses});
  }
  /// Those of the names, and no others of the program's, are of one memory.
  void shares(const std::vector<std::string>& names) { record("shares", {names}); }
  /// run_decompositions() refuses it, as it does such a program that Python exported.
  void cannot_be_decomposed() { record("undecomposed", {}); }

 private:
  static c10::IValue tuple(std::vector<c10::IValue> values) { return c10::ivalue::Tuple::create(std::move(values)); }

  void record(const std::string& what, std::vector<c10::IValue> values) {
    if (!keep_) return;
    values.insert(values.begin(), what);
    const std::vector<char> bytes = torch::jit::pickle_save(tuple(std::move(values)));
    std::ofstream(path_ + "." + std::to_string(recordings_++) + ".io", std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

  const char* keep_;
  ScratchFolder scratch_;
  std::string path_;
  int recordings_ = 0;
};

}  // namespace fx::testing
