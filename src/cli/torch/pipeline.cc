// fxgraph pipeline, and fxgraph run of a folder that it wrote.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include <fxgraph/cli/options.h>
#include <fxgraph/cli/torch/backend.h>
#include <fxgraph/rewriter/partition/pipeline.h>
#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/output_file.h>
#include <fxgraph/torchscript/import.h>

namespace fx::cli {
namespace {

namespace files = std::filesystem;

std::string plan_file(const std::string& folder) { return (files::path(folder) / "plan.json").string(); }
std::string stage_file(const std::string& folder, std::size_t stage) {
  return (files::path(folder) / fmt::format("stage_{}.pt", stage)).string();
}

void make_folder(const std::string& folder) {
  std::error_code error;
  files::create_directories(folder, error);
  if (!files::is_directory(folder, error))
    throw Error(ErrorKind::io, fmt::format("{} is no folder and cannot be made; -o names where the stages go", folder));
}

// What the plan file says beside the plan.
struct SavedPlan {
  PipelinePlan plan;
  std::vector<std::string> inputs;
};

void save_plan(const std::string& folder, const SavedPlan& saved) {
  nlohmann::ordered_json out = nlohmann::ordered_json::parse(saved.plan.json());
  out["inputs"] = saved.inputs;
  write_file(plan_file(folder), [&](std::ostream& file) { file << out.dump(2) << '\n'; });
}

SavedPlan load_plan(const std::string& folder) {
  std::ifstream file(plan_file(folder));
  if (!file) {
    throw Error(ErrorKind::io,
                fmt::format("{} cannot be read; write the stages with fxgraph pipeline", plan_file(folder)));
  }
  std::ostringstream text;
  text << file.rdbuf();
  try {
    SavedPlan saved{PipelinePlan::from_json(text.str()), {}};
    for (const nlohmann::json& input : nlohmann::json::parse(text.str()).at("inputs")) saved.inputs.push_back(input);
    return saved;
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorKind::syntax, fmt::format("{}: {}", plan_file(folder), error.what()));
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}: {}", plan_file(folder), error.what()));
  }
}

/// The program on a whole batch and on its parts: what mixes the samples differs.
void check_micro_batches(GraphModule& module, const std::vector<c10::IValue>& inputs, std::int64_t parts) {
  const at::NoGradGuard inference;
  const c10::IValue whole = module.run(inputs);
  const std::int64_t batch =
      inputs.empty() || !inputs[0].isTensor() || inputs[0].toTensor().dim() == 0 ? 0 : inputs[0].toTensor().size(0);
  if (batch < parts || !whole.isTensor() || whole.toTensor().dim() == 0) return;  // told by the run itself
  std::vector<at::Tensor> results;
  for (std::int64_t i = 0; i < parts; ++i) {
    const std::int64_t begin = batch * i / parts, end = batch * (i + 1) / parts;
    std::vector<c10::IValue> some;
    for (const c10::IValue& input : inputs) {
      const bool cut = input.isTensor() && input.toTensor().dim() > 0 && input.toTensor().size(0) == batch;
      some.push_back(cut ? c10::IValue(input.toTensor().narrow(0, begin, end - begin)) : input);
    }
    results.push_back(module.run(some).toTensor());
  }
  const double difference = relative_difference(whole, at::cat(results, 0), 1e-3);
  if (difference <= 1e-3) return;
  throw Error(
      ErrorKind::mismatch,
      fmt::format("the program mixes the samples of a batch: {} micro-batches give other results than the whole "
                  "(relative difference {:.1e}); leave --micro-batches out",
                  parts, difference));
}

fx::PipelineOptions options_of(const PipelineCommand& command) {
  fx::PipelineOptions options;
  options.cost = command.measured ? fx::PipelineOptions::Cost::measured : fx::PipelineOptions::Cost::modelled;
  options.slack = command.slack / 100;
  options.max_weights = static_cast<std::int64_t>(command.max_weights * 1024 * 1024);
  options.allow_random = command.allow_random;
  return options;
}

}  // namespace

int TorchBackend::pipeline(const PipelineCommand& command) {
  const std::unique_ptr<Model> model = load(command.file);
  GraphModule& module = dynamic_cast<TorchModel&>(*model).module();
  const std::vector<TensorInfo> infos = parse_inputs(command.inputs);
  check_inputs(module.graph(), infos.size());
  const std::vector<c10::IValue> inputs = random_inputs(infos);
  if (command.micro_batches > 1) check_micro_batches(module, inputs, command.micro_batches);
  const PipelineStages stages =
      split_pipeline(module, static_cast<std::size_t>(command.stages), inputs, options_of(command));
  make_folder(command.output);
  for (std::size_t i = 0; i < stages.modules.size(); ++i) stages.modules[i]->save(stage_file(command.output, i));
  save_plan(command.output, {stages.plan, command.inputs});
  const auto micro_batches = static_cast<std::size_t>(command.micro_batches);
  if (command.json) {
    nlohmann::ordered_json out = nlohmann::ordered_json::parse(stages.plan.json());
    out.erase("wiring");
    out["bubble"] = stages.plan.bubble(micro_batches);
    out["saved"] = command.output;
    fmt::print("{}\n", out.dump(2));
    return kDone;
  }
  fmt::print("{}{} micro-batches: {:.0f} % of the machines' time is waiting\nsaved {}\n", stages.plan.str(),
             micro_batches, 100 * stages.plan.bubble(micro_batches), command.output);
  return kDone;
}

namespace {

WorkerAddress address_of(const RunOptions& options) {
  WorkerAddress address = workers_from_environment().value_or(WorkerAddress());
  if (options.rank >= 0) address.rank = options.rank;
  if (options.world > 0) address.world = options.world;
  if (!options.master.empty()) set_master(address, options.master);
  address.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(options.timeout * 1000));
  return address;
}

struct StageRun {
  c10::IValue result;
  std::vector<double> seconds;
};

StageRun run_rounds(Pipeline& pipe, const std::vector<c10::IValue>& inputs, const RunOptions& options) {
  StageRun done;
  const PipelineRun how{.micro_batches = static_cast<std::size_t>(options.micro_batches)};
  for (int i = 0; i < options.repeat; ++i) {
    const auto start = std::chrono::steady_clock::now();
    done.result = pipe.run(inputs, how);
    done.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::ranges::sort(done.seconds);
  return done;
}

void print_run(const StageRun& done, const Pipeline& pipe, const WorkerAddress& address, const RunOptions& options) {
  const double median = done.seconds[done.seconds.size() / 2];
  const double half = (done.seconds[done.seconds.size() * 3 / 4] - done.seconds[done.seconds.size() / 4]) / 2;
  const PipelineStatistics statistics = pipe.statistics();
  double all = 0;
  for (const double seconds : done.seconds) all += seconds;
  const double busy = statistics.busy_seconds / all;
  const std::int64_t sent = statistics.sent_bytes / options.repeat;
  if (options.json) {
    nlohmann::ordered_json out = {{"rank", address.rank},     {"world", address.world},
                                  {"seconds", median},        {"spread", half},
                                  {"repeat", options.repeat}, {"busy", busy},
                                  {"sent_bytes", sent},       {"outputs", nlohmann::json::array()}};
    for (const TensorInfo& info : tensor_infos(done.result))
      out["outputs"].push_back({{"sizes", info.sizes}, {"dtype", to_string(info.dtype)}});
    fmt::print("{}\n", out.dump());
    return;
  }
  fmt::print("rank {} of {}: {} ± {} (median of {}), busy {:.0f} %, sent {}\n", address.rank, address.world,
             human_seconds(median), human_seconds(half), options.repeat, 100 * busy,
             human_bytes(static_cast<double>(sent)));
}

}  // namespace

int TorchBackend::run_stage(const RunOptions& options) {
  const SavedPlan saved = load_plan(options.file);
  const WorkerAddress address = address_of(options);
  if (address.world != static_cast<int>(saved.plan.stages.size())) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{} has {} stages and there are {} ranks: start one for each stage", options.file,
                            saved.plan.stages.size(), address.world));
  }
  Workers workers = connect(address);
  try {
    const auto stage = fx::load(stage_file(options.file, static_cast<std::size_t>(address.rank)));
    Pipeline pipe(saved.plan, stage, workers);
    const std::vector<TensorInfo> infos = parse_inputs(options.inputs.empty() ? saved.inputs : options.inputs);
    const std::vector<c10::IValue> inputs = address.rank == 0 ? random_inputs(infos) : std::vector<c10::IValue>();
    const StageRun done = run_rounds(pipe, inputs, options);
    if (!options.output.empty() && !done.result.isNone()) {
      write_file(options.output, [&](std::ostream& file) {
        const std::vector<char> bytes = torch::jit::pickle_save(done.result);
        file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
      });
    }
    pipe.finish();
    print_run(done, pipe, address, options);
    return kDone;
  } catch (const std::exception& error) {
    // Threads of the connection may wait for a rank that is gone: this process does not wait for them.
    workers.give_up(fmt::format("rank {}: {}", address.rank, describe(error)));
    std::cerr << "fxgraph: " << describe(error) << std::endl;
    flush_output();
    std::_Exit(kFailed);
  }
}

}  // namespace fx::cli
