// The half of the program that needs LibTorch: models with weights, running, optimising.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fxgraph/cli/model.h>
#include <fxgraph/cli/options.h>
#include <fxgraph/cli/torch/measures.h>
#include <fxgraph/module/code.h>
#include <fxgraph/module/graph_module.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/rewriter/program/replace_pattern.h>

namespace fx::cli {

/// A program with its weights.
class TorchModel : public Model {
 public:
  /// `form`: what it came as.
  explicit TorchModel(std::shared_ptr<GraphModule> module, ProgramForm form)
      : module_(std::move(module)), form_(form) {}
  Graph& graph() override { return module_->graph(); }
  ModuleInfo modules() override { return module_info(*module_); }
  std::vector<AttributeInfo> attributes() override;
  std::string code(Language language) override { return fx::code(*module_, language); }
  RewriteReport replace(const Pattern& pattern, const Replacement& replacement,
                        const ReplaceOptions& options) override {
    return replace_pattern(*module_, pattern, replacement, options);
  }
  Shapes propagate_shapes(const InputOptions& inputs) override;
  OpenProgram at_open_sizes(const std::vector<TensorInfo>& inputs) override;
  NodeTimes times(const InputOptions& inputs) override;
  void save(const std::string& path, const InputOptions& inputs) override;
  double tolerance(const InputOptions& inputs) override;
  double difference(Model& before, const InputOptions& inputs, int rounds) override;

  GraphModule& module() { return *module_; }
  std::unique_ptr<TorchModel> clone() const;
  /// True when the last difference() compared inputs of another batch size too: the program took them.
  bool compared_other_batch() const { return other_batch_; }

 private:
  double difference_of_another_batch(GraphModule& reference, const std::vector<TensorInfo>& inputs);

  bool other_batch_ = false;
  std::shared_ptr<GraphModule> module_;
  ProgramForm form_;
};

class TorchBackend : public Backend {
 public:
  std::unique_ptr<Model> load(const std::string& path, const InputOptions& inputs = {}) override;
  void open_library(const std::string& path) override;
  int run(const RunOptions& options) override;
  int pipeline(const PipelineCommand& command) override;
  int run_stage(const RunOptions& options) override;
  int optimize(const OptimizeOptions& options) override;
  int quantize(const QuantizeOptions& options) override;
  int convert(const ConversionOptions& options) override;
  int rules(const std::string& name, bool json) override;
  std::string versions() override;
  void prepare_machine(int threads) override;
  std::string describe(const std::exception& error) override;
};

/// Random inputs of those shapes: normal for floating-point types, small non-negative numbers for the others.
std::vector<c10::IValue> random_inputs(const std::vector<TensorInfo>& infos);

/// Throws Error(invalid_argument) that says what inputs the program takes, unless so many may be given.
void check_inputs(const Graph& graph, std::size_t given);

/// The values in the file, or random ones of the shapes. Those for a program throw as check_inputs.
/// @{
std::vector<c10::IValue> values_of(const InputOptions& inputs);
std::vector<c10::IValue> inputs_for(const Graph& graph, const InputOptions& inputs);
/// @}

/// The shapes of the inputs, which must be tensors: Error(invalid_argument) names the one that is none.
std::vector<TensorInfo> infos_of(const InputOptions& inputs);

/// Times forwards of several programs turn about, so that a machine that grows slower favours none, after one each to
/// warm up. `runs` for each; 0: as many as fit in a quarter of a second, at least 3 and at most 21.
std::vector<MeasuredTime> time_forwards(const std::vector<GraphModule*>& modules,
                                        const std::vector<c10::IValue>& inputs, std::size_t runs = 0);

/// `13.4 ± 0.2 ms`; without a spread when there was one run.
std::string to_string(const MeasuredTime& time);

}  // namespace fx::cli
