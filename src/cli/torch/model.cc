// Loading, saving, running and comparing programs with weights.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "cli/options.h"
#include "cli/torch/backend.h"
#include "module/module_effects.h"
#include "module/shape_prop.h"
#include "module/state_keeper.h"
#include "module/value.h"
#include "rewriter/program/verify.h"
#include "text/parse.h"
#include "text/print.h"
#include "torchscript/export.h"
#include "torchscript/import.h"

namespace fx::cli {

std::unique_ptr<Model> TorchBackend::load(const std::string& path) {
  const Progress progress("loading " + path);
  if (is_torchscript(path)) return std::make_unique<TorchModel>(fx::load(path));
  return std::make_unique<TorchModel>(std::make_shared<GraphModule>(load_graph_text(path)));
}

ModuleEffects TorchModel::module_effects() { return fx::module_effects(*module_); }

std::vector<AttributeInfo> TorchModel::attributes() {
  std::vector<AttributeInfo> found;
  for (const auto& item : module_->named_parameters())
    found.push_back({item.key(), static_cast<std::int64_t>(item.value().nbytes())});
  for (const auto& item : module_->named_buffers())
    found.push_back({item.key(), static_cast<std::int64_t>(item.value().nbytes())});
  return found;
}

std::unique_ptr<TorchModel> TorchModel::clone() const {
  return std::make_unique<TorchModel>(module_->clone_graph_module());
}

Shapes TorchModel::propagate_shapes(const std::vector<TensorInfo>& inputs) {
  const at::NoGradGuard no_grad;
  const Progress progress("propagating shapes");
  const StateKeeper keeper(*module_);
  return fx::propagate_shapes(*module_, inputs);
}

void TorchModel::save(const std::string& path) {
  if (path == "-" || path.empty() || !is_torchscript(path)) {
    write_output(path, print_graph(graph()));
    return;
  }
  fx::save(*module_, path);
}

std::vector<TensorInfo> checked_inputs(GraphModule& module, const std::vector<std::string>& shapes) {
  std::vector<TensorInfo> inputs = parse_inputs(shapes);
  std::size_t required = 0, total = 0;
  std::string names;
  for (const Node* placeholder : module.graph().placeholders()) {
    ++total;
    if (placeholder->args().empty()) required = total;
    names += (names.empty() ? "" : ", ") + placeholder->name();
  }
  if (inputs.size() >= required && inputs.size() <= total) return inputs;
  throw Error(
      ErrorKind::invalid_argument,
      fmt::format("{} --input given, but the program takes {} ({}); give one --input for each, in order", inputs.size(),
                  required == total ? std::to_string(total) : fmt::format("{} to {}", required, total), names));
}

std::vector<c10::IValue> random_inputs(const std::vector<TensorInfo>& infos) {
  std::vector<c10::IValue> inputs;
  for (const TensorInfo& info : infos) {
    const at::Tensor zeros = zeros_like_info(info);
    if (zeros.is_floating_point() || zeros.is_complex()) {
      inputs.emplace_back(at::randn(zeros.sizes()).to(zeros.options()));
    } else {
      inputs.emplace_back(at::randint(0, 2, zeros.sizes()).to(zeros.options()));
    }
  }
  return inputs;
}

double time_forward(GraphModule& module, const std::vector<c10::IValue>& inputs, int repeat) {
  const at::NoGradGuard no_grad;
  module.run(inputs);
  std::vector<double> seconds;
  for (int i = 0; i < repeat; ++i) {
    const auto start = std::chrono::steady_clock::now();
    module.run(inputs);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + repeat / 2, seconds.end());
  return seconds[static_cast<std::size_t>(repeat / 2)];
}

double TorchModel::difference(Model& before, const std::vector<TensorInfo>& inputs, int rounds) {
  const at::NoGradGuard no_grad;
  auto& reference = dynamic_cast<TorchModel&>(before);
  const StateKeeper keeper(*module_), reference_keeper(reference.module());
  double worst = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::vector<c10::IValue> values = random_inputs(inputs);
    const auto copies = [&] {
      std::vector<c10::IValue> copy;
      for (const c10::IValue& value : values) copy.push_back(value.deepcopy());
      return copy;
    };
    // One seed for both, so that programs that draw random numbers can be compared.
    at::manual_seed(static_cast<std::uint64_t>(round));
    const c10::IValue expected = reference.module().run(copies());
    at::manual_seed(static_cast<std::uint64_t>(round));
    const c10::IValue found = module_->run(copies());
    worst = std::max(worst, relative_difference(expected, found));
  }
  return worst;
}

}  // namespace fx::cli
