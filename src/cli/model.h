// What the commands work on: a program from FX text, a TorchScript file or an archive of torch.export, and the door to
// the half that needs LibTorch.
//
// The program `fxgraph` itself is built without LibTorch, so that it starts in milliseconds. When a command needs
// LibTorch (a file with weights, shapes, running) it hands over to `fxgraph-torch` beside it: the same program with a
// backend.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fxgraph/analysis/dead_code.h>
#include <fxgraph/codegen/code.h>
#include <fxgraph/effects/module_info.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/node_times.h>
#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/report/size_formulas.h>
#include <fxgraph/rewriter/replace_pattern.h>

namespace fx::cli {

/// What a program is given: shapes, as --input says them, or the values in a file. Nothing, where none were named.
struct InputOptions {
  std::vector<std::string> shapes{};
  std::string values{};
  bool empty() const { return shapes.empty() && values.empty(); }
};

/// A loaded program.
class Model {
 public:
  virtual ~Model() = default;
  virtual Graph& graph() = 0;
  /// What is known of its submodules; nothing of those of FX text.
  virtual ModuleInfo modules() { return {}; }
  /// Its parameters and buffers; nothing when they are not known.
  virtual std::vector<AttributeInfo> attributes() { return {}; }
  /// Its source code; with the shapes of its weights where they are known.
  virtual std::string code(Language language) { return fx::code(graph(), language); }
  /// Rewrites every match, as replace_pattern() does.
  virtual RewriteReport replace(const Pattern& pattern, const Replacement& replacement, const ReplaceOptions& options) {
    return replace_pattern(graph(), pattern, replacement, options);
  }
  /// Shapes of all values for these inputs. Needs LibTorch.
  virtual Shapes propagate_shapes(const InputOptions& inputs) = 0;
  /// The sizes of these inputs that vary, and those of all values as formulas of them. Needs LibTorch.
  virtual OpenProgram at_open_sizes(const std::vector<TensorInfo>& inputs) = 0;
  /// How long each node takes. Needs LibTorch.
  virtual NodeTimes times(const InputOptions& inputs) = 0;
  /// Writes the program in the form that the ending of `path` names, `.pt`, `.pt2` or text, or else in that it came in.
  /// `inputs` tell the shapes of which a `.pt2` holds some, where the program does not say them itself; may be empty.
  virtual void save(const std::string& path, const InputOptions& inputs) = 0;
  /// The largest relative difference that counts as equal, for inputs of these types.
  virtual double tolerance(const InputOptions&) { return 1e-4; }
  /// Compares with `before` on random inputs, so many times, or on the values given; returns the largest relative
  /// difference. Needs LibTorch.
  virtual double difference(Model& before, const InputOptions& inputs, int rounds) = 0;
};

struct RunOptions {
  std::string file;
  InputOptions inputs;
  int repeat = 1;
  int threads = 0;  ///< 0: as LibTorch has it
  bool hold_memory = false;
  bool json = false;
  // Of a folder with the stages of a pipeline:
  int rank = -1;  ///< -1: what the launcher's environment says
  int world = 0;  ///< 0: likewise
  std::string master;
  int micro_batches = 0;  ///< 0: what the plan says
  double timeout = 60;
  std::string output;  ///< for the result
};

struct PipelineCommand {
  std::string file;
  InputOptions inputs;
  std::string output;
  int stages = 2;
  int micro_batches = 1;
  bool modelled = false;
  int threads = 0;         ///< 0: as LibTorch has it
  double slack = 10;       ///< in percent
  double max_weights = 0;  ///< in MiB; 0: no limit
  double max_memory = 0;   ///< the same
  bool allow_random = false;
  bool json = false;
};

struct OptimizeOptions {
  std::string file;
  std::vector<std::string> rules;
  InputOptions inputs;
  std::string output;
  std::string target;          ///< see fx::OptimizeOptions
  bool concurrent = false;     ///< the same
  bool whole_batches = false;  ///< no micro-batches
  bool keep_sizes = false;     ///< see fx::OptimizeOptions
  std::string dtype;           ///< see fx::OptimizeOptions; empty, bf16 or bfloat16
  int threads = 0;             ///< 0: as LibTorch has it
  bool verify = false;
  bool json = false;
};

struct QuantizeOptions {
  std::string file;
  InputOptions inputs;
  std::string calibrate;  ///< a file of samples, or "random"
  std::string output;
  std::string mode = "static";
  std::string backend = "auto";
  std::string config;      ///< a file
  std::string min_sqnr;    ///< `30dB`; empty: whatever comes out
  std::string keep_float;  ///< "auto", or expressions for paths
  double min_agreement = 0;
  bool equalize = false;
  bool correct_bias = false;
  bool compare = false;
  bool reasons = false;
  std::string report = "text";  ///< text, json or html
};

struct ConversionOptions {
  std::string file;
  std::string output;
  InputOptions inputs;
  bool fixed = false;  ///< a `.pt2` holds for the sizes of the inputs alone
};

/// The commands that only exist with LibTorch, and loading with weights.
class Backend {
 public:
  virtual ~Backend() = default;
  /// A TorchScript file whose control flow hangs on its inputs is read at `inputs`.
  virtual std::unique_ptr<Model> load(const std::string& path, const InputOptions& inputs = {}) = 0;
  /// Opens a shared library for the operators that it registers. Throws Error(io).
  virtual void open_library(const std::string& path) = 0;
  virtual int run(const RunOptions& options) = 0;
  /// Cuts a program into stages and saves them.
  virtual int pipeline(const PipelineCommand& command) = 0;
  /// Runs this process's stage of a pipeline.
  virtual int run_stage(const RunOptions& options) = 0;
  virtual int optimize(const OptimizeOptions& options) = 0;
  virtual int quantize(const QuantizeOptions& options) = 0;
  virtual int convert(const ConversionOptions& options) = 0;
  virtual int rules(const std::string& name, bool json) = 0;
  /// LibTorch's version and what it computes with, a line each.
  virtual std::string versions() = 0;
  /// Sets the number of threads, unless that is 0; says on standard error in one line when the machine is slower than
  /// it need be.
  virtual void prepare_machine(int threads) = 0;
  /// What an exception says, in a line.
  virtual std::string describe(const std::exception& error) = 0;
};

/// Loads FX text, or with a backend also archives. Throws Error(unsupported) for an archive without one.
std::unique_ptr<Model> load_model(const std::string& path, Backend* backend, const InputOptions& inputs = {});

/// The whole program: parses the command line, runs one command, returns the exit code. `backend` may be null;
/// then `hand_over` asks another program, which has one, before a name is refused, and returns when there is none.
int run_program(int argc, char** argv, Backend* backend, const std::function<void()>& hand_over = {});

}  // namespace fx::cli
