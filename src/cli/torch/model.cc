// Loading, saving, running and comparing programs with weights.
#include <ATen/ATen.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include <fxgraph/cli/options.h>
#include <fxgraph/cli/torch/backend.h>
#include <fxgraph/cli/torch/samples.h>
#include <fxgraph/contract/open_sizes.h>
#include <fxgraph/export/guards.h>
#include <fxgraph/export/save.h>

#include <fxgraph/module/profile.h>
#include <fxgraph/module/state_keeper.h>
#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/run/machine.h>
#include <fxgraph/run/value.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/torchscript/export.h>
#include <fxgraph/torchscript/import.h>
#include <torch/version.h>

namespace fx::cli {

std::unique_ptr<Model> TorchBackend::load(const std::string& path, const InputOptions& inputs) {
  const Progress progress("loading " + path);
  if (!is_archive(path))
    return std::make_unique<TorchModel>(std::make_shared<GraphModule>(load_graph_text(path)), ProgramForm::text);
  const ProgramForm form = form_of_file(path);
  LoadOptions options;
  if (form == ProgramForm::torchscript && !inputs.empty()) options.lazy_examples = [&] { return values_of(inputs); };
  return std::make_unique<TorchModel>(fx::load(path, options), form);
}

void TorchBackend::open_library(const std::string& path) {
  const std::string place = path.find('/') == std::string::npos && std::filesystem::exists(path) ? "./" + path : path;
  if (!dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL))
    throw Error(ErrorKind::io,
                "--library " + path + ": " + dlerror() + "; name a library that is built for this LibTorch");
}

std::string TorchBackend::versions() { return "LibTorch " TORCH_VERSION "\nBLAS: " + blas_name(); }

void TorchBackend::prepare_machine(int threads) {
  set_threads(threads > 0 ? threads : fx::threads());  // the BLAS, too: what is printed is what runs
  keep_freed_memory();
  if (const std::string notice = slow_blas_notice(); !notice.empty()) fmt::print(stderr, "fxgraph: {}\n", notice);
}

std::string TorchBackend::describe(const std::exception& error) {
  return dynamic_cast<const Error*>(&error) ? error.what() : first_line(error);
}

std::vector<AttributeInfo> TorchModel::attributes() {
  std::vector<AttributeInfo> found;
  for (const auto& item : module_->named_parameters())
    found.push_back({item.key(), static_cast<std::int64_t>(item.value().nbytes())});
  for (const auto& item : module_->named_buffers())
    found.push_back({item.key(), static_cast<std::int64_t>(item.value().nbytes())});
  return found;
}

std::unique_ptr<TorchModel> TorchModel::clone() const {
  return std::make_unique<TorchModel>(module_->clone_graph_module(), form_);
}

Shapes TorchModel::propagate_shapes(const InputOptions& inputs) {
  const at::NoGradGuard no_grad;
  const Progress progress("propagating shapes");
  const StateKeeper keeper(*module_);
  if (!inputs.values.empty()) return fx::propagate_shapes(*module_, inputs_for(graph(), inputs));
  const std::vector<TensorInfo> infos = parse_inputs(inputs.shapes);
  check_inputs(graph(), infos.size());
  return fx::propagate_shapes(*module_, infos);
}

// Those that are one symbol, or as many times one, vary together.
OpenProgram TorchModel::at_open_sizes(const std::vector<TensorInfo>& inputs) {
  const Progress progress("working out which sizes vary");
  const std::vector<Node*> placeholders = graph().placeholders();
  const auto name = [&](std::size_t input, std::size_t dim) {
    return fmt::format("{}[{}]", placeholders[input]->name(), dim);
  };
  const auto shapes_of = [this](const std::vector<TensorType>& types, const SizeRanges& ranges) {
    return fx::propagate_shapes(*module_, {types.begin(), types.end()}, ranges);
  };
  const OpenSizes open = open_sizes(inputs, name, shapes_of);
  std::map<std::string, OpenProgram::Size> found;
  for (std::size_t input = 0; input < inputs.size(); ++input) {
    for (std::size_t dim = 0; dim < inputs[input].sizes.size(); ++dim) {
      const SizeExpr& size = open.inputs[input].sizes[dim];
      size.for_each_symbol([&](const std::string& symbol) {
        OpenProgram::Size& varying = found[symbol];
        varying.symbol = symbol;
        varying.step = open.step(symbol);
        if (size != SizeExpr(varying.step) * SizeExpr::symbol(symbol)) return;
        varying.example = inputs[input].sizes[dim] / varying.step;
        varying.said += (varying.said.empty() ? "" : " = ") + name(input, dim);
      });
    }
  }
  std::vector<OpenProgram::Size> sizes;
  SizeRanges ranges = open.ranges;
  for (auto& [symbol, size] : found) {
    SizeRange& range = ranges[symbol];
    range.min = std::max<std::int64_t>(range.min.value_or(0), size.step > 1 ? 1 : 2);  // as they were found
    sizes.push_back(std::move(size));
  }
  return {std::move(sizes), shapes_of(open.inputs, ranges)};
}

void TorchModel::save(const std::string& path, const InputOptions& inputs) {
  switch (form_of(path, form_)) {
    case ProgramForm::text: return write_output(path, pt2::text_of(*module_));
    case ProgramForm::torchscript: return fx::save(*module_, path);
    case ProgramForm::exported:
      return save_exported(*module_, path, {.inputs = values_of(inputs), .sizes = ExportedSizes::found});
  }
}

void check_inputs(const Graph& graph, std::size_t given) {
  std::size_t required = 0, total = 0;
  std::string names;
  for (const Node* placeholder : graph.placeholders()) {
    ++total;
    if (placeholder->args().empty()) required = total;
    names += (names.empty() ? "" : ", ") + placeholder->name();
  }
  if (given >= required && given <= total) return;
  throw Error(ErrorKind::invalid_argument,
              fmt::format("{} inputs given, but the program takes {} ({}); give one --input for each, in order", given,
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

std::vector<c10::IValue> values_of(const InputOptions& inputs) {
  return inputs.values.empty() ? random_inputs(parse_inputs(inputs.shapes)) : read_inputs(inputs.values);
}

std::vector<c10::IValue> inputs_for(const Graph& graph, const InputOptions& inputs) {
  std::vector<c10::IValue> values = values_of(inputs);
  check_inputs(graph, values.size());
  return values;
}

std::vector<TensorInfo> infos_of(const InputOptions& inputs) {
  if (inputs.values.empty()) return parse_inputs(inputs.shapes);
  std::vector<TensorInfo> infos;
  for (const c10::IValue& value : read_inputs(inputs.values)) {
    if (!value.isTensor())
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("--values {}: input {} is a {}, and what is asked for takes tensors only", inputs.values,
                              infos.size() + 1, value.tagKind()));
    infos.push_back(tensor_info(value.toTensor()));
  }
  return infos;
}

std::vector<MeasuredTime> time_forwards(const std::vector<GraphModule*>& modules,
                                        const std::vector<c10::IValue>& inputs, std::size_t runs) {
  constexpr std::size_t kLeast = 3, kMost = 21;
  constexpr std::chrono::milliseconds kBudget{250};
  using Clock = std::chrono::steady_clock;
  const at::NoGradGuard no_grad;
  for (GraphModule* module : modules) module->run(copies_of(inputs));
  std::vector<std::vector<double>> seconds(modules.size());
  const Clock::time_point begin = Clock::now();
  for (std::size_t run = 0; run < (runs ? runs : kMost); ++run) {
    if (!runs && run >= kLeast && Clock::now() - begin > kBudget) break;
    for (std::size_t i = 0; i < modules.size(); ++i) {
      std::vector<c10::IValue> own = copies_of(inputs);  // the program may write to them
      const Clock::time_point start = Clock::now();
      modules[i]->run(std::move(own));
      seconds[i].push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
  }
  std::vector<MeasuredTime> times;
  for (std::vector<double>& each : seconds) times.push_back(summarize(std::move(each)));
  return times;
}

NodeTimes TorchModel::times(const InputOptions& inputs) {
  const std::vector<c10::IValue> values = inputs_for(graph(), inputs);
  const at::NoGradGuard no_grad;
  const Progress progress("measuring");
  const StateKeeper keeper(*module_);
  return profile(*module_, values);
}

std::string to_string(const MeasuredTime& time) {
  if (time.runs < 2) return human_seconds(time.seconds);
  const auto [scale, unit] = time.seconds < 1e-3 ? std::pair(1e6, "µs")
                             : time.seconds < 1  ? std::pair(1e3, "ms")
                                                 : std::pair(1.0, "s");
  return fmt::format("{:.1f} ± {:.1f} {}", time.seconds * scale, time.spread * scale, unit);
}

double TorchModel::tolerance(const InputOptions& inputs) {
  for (const at::Tensor& parameter : module_->parameters()) {
    if (parameter.is_floating_point()) return usual_tolerance(parameter.scalar_type());
  }
  for (const c10::IValue& value : values_of(inputs)) {
    if (value.isTensor() && value.toTensor().is_floating_point())
      return usual_tolerance(value.toTensor().scalar_type());
  }
  return usual_tolerance(at::kFloat);
}

double TorchModel::difference(Model& before, const InputOptions& inputs, int rounds) {
  const at::NoGradGuard no_grad;
  auto& reference = dynamic_cast<TorchModel&>(before);
  const StateKeeper keeper(*module_), reference_keeper(reference.module());
  double worst = 0;
  for (int round = 0; round < (inputs.values.empty() ? rounds : 1); ++round) {
    const std::vector<c10::IValue> values = inputs_for(graph(), inputs);
    // Both write their buffers on from round to round; the seed is one, for programs that draw random numbers.
    worst = std::max(worst, calls_difference(reference.module(), *module_, values, static_cast<std::uint64_t>(round)));
  }
  if (!inputs.values.empty()) return worst;
  return std::max(worst, difference_of_another_batch(reference.module(), parse_inputs(inputs.shapes)));
}

// The first dimensions of that size together: that is the batch. A program that holds for one size says so by throwing.
double TorchModel::difference_of_another_batch(GraphModule& reference, const std::vector<TensorInfo>& inputs) {
  other_batch_ = false;
  std::vector<TensorInfo> larger = inputs;
  std::int64_t batch = -1;
  for (TensorInfo& info : larger) {
    if (info.sizes.empty() || (batch >= 0 && info.sizes[0] != batch)) continue;
    batch = info.sizes[0];
    ++info.sizes[0];
    info.strides.clear();
  }
  if (batch <= 0) return 0;
  const std::vector<c10::IValue> values = random_inputs(larger);
  try {
    const StateKeeper keeper(reference);  // only one of the two makes this call
    reference.run(copies_of(values));
  } catch (const std::exception&) {
    return 0;
  }
  other_batch_ = true;
  return calls_difference(reference, *module_, values, 0);
}

}  // namespace fx::cli
