// fxgraph pipeline, and fxgraph run of a folder that it wrote.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <thread>

#include <fxgraph/cli/options.h>
#include <fxgraph/cli/torch/backend.h>
#include <fxgraph/cli/torch/samples.h>
#include <fxgraph/ir/node_times.h>
#include <fxgraph/rewriter/partition/pipeline.h>
#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/run/machine.h>
#include <fxgraph/run/micro_batches.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/output_file.h>
#include <fxgraph/torchscript/export.h>
#include <fxgraph/torchscript/import.h>

namespace fx::cli {
namespace {

namespace files = std::filesystem;

std::string plan_file(const std::string& folder) { return (files::path(folder) / "plan.json").string(); }
std::string stage_file(const std::string& folder, std::size_t stage) {
  return (files::path(folder) / fmt::format("stage_{}.pt", stage)).string();
}

// What the plan file says beside the plan.
struct SavedPlan {
  PipelinePlan plan;
  std::vector<std::string> inputs;   // shapes of the examples; none when values were given
  std::vector<std::string> digests;  // of the files of the stages
};

/// FNV-1a of a file's bytes.
std::string digest_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw Error(ErrorKind::io, fmt::format("{} cannot be read; each rank needs plan.json and its own stage", path));
  }
  std::uint64_t hash = 1469598103934665603ull;
  std::vector<char> buffer(1 << 20);
  while (file) {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    for (std::streamsize i = 0; i < file.gcount(); ++i)
      hash = (hash ^ static_cast<unsigned char>(buffer[static_cast<std::size_t>(i)])) * 1099511628211ull;
  }
  return fmt::format("{:016x}", hash);
}

/// Writes files into a folder all or none: into one beside them first, whose files then take their places.
class Exchange {
 public:
  explicit Exchange(const std::string& folder)
      : folder_(folder),
        was_there_(files::is_directory(folder, none_)),
        beside_((files::path(folder) / fmt::format(".stages.{}", getpid())).string()) {
    make_folder(beside_);
  }
  ~Exchange() {
    files::remove_all(beside_, none_);
    if (!was_there_) files::remove(folder_, none_);  // where nothing came into it
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Where to write the files meanwhile.
  const std::string& place() const { return beside_; }
  /// The stages, then the plan that names them; those of an older, longer plan go.
  void commit(std::size_t stages) {
    for (std::size_t i = 0; i < stages; ++i) require_file(stage_file(folder_, i));
    require_file(plan_file(folder_));
    files::remove(plan_file(folder_), none_);
    for (std::size_t i = 0; i < stages; ++i) files::rename(stage_file(beside_, i), stage_file(folder_, i));
    files::rename(plan_file(beside_), plan_file(folder_));
    while (files::remove(stage_file(folder_, stages), none_)) ++stages;
  }

 private:
  void require_file(const std::string& path) {
    if (files::is_directory(path, none_))
      throw Error(ErrorKind::io, fmt::format("cannot write {}: it is a folder; remove it or choose another -o", path));
  }

  std::error_code none_;  // nobody looks at it
  std::string folder_;
  bool was_there_;
  std::string beside_;
};

void save_plan(const std::string& folder, const SavedPlan& saved) {
  nlohmann::ordered_json out = nlohmann::ordered_json::parse(saved.plan.json());
  out["inputs"] = saved.inputs;
  out["digests"] = saved.digests;
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
    SavedPlan saved{PipelinePlan::from_json(text.str()), {}, {}};
    const nlohmann::json all = nlohmann::json::parse(text.str());
    saved.inputs = all.value("inputs", saved.inputs);
    saved.digests = all.value("digests", saved.digests);
    if (saved.digests.size() != saved.plan.stages.size())
      throw Error(ErrorKind::syntax, "this is no plan of a pipeline: it does not name a file for each stage");
    return saved;
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorKind::syntax,
                fmt::format("{}: it is no plan of a pipeline: write one with fxgraph pipeline", plan_file(folder)));
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}: {}", plan_file(folder), error.what()));
  }
}

/// The program on a whole batch and on its parts: what mixes the samples differs. On copies, as running may write.
void check_micro_batches(const GraphModule& module, const std::vector<c10::IValue>& inputs, std::size_t parts) {
  const at::NoGradGuard inference;
  const std::int64_t batch = batch_of(inputs);
  check_batch(batch, parts);
  const c10::IValue whole = module.clone_graph_module()->run(inputs);
  const auto copy = module.clone_graph_module();
  std::vector<c10::IValue> results;
  for (std::size_t i = 0; i < parts; ++i) {
    std::vector<c10::IValue> some;
    for (const c10::IValue& input : inputs) some.push_back(cut(input, batch, i, parts));
    results.push_back(copy->run(some));
  }
  const double difference = relative_difference(whole, join(results, batch), 1e-3);
  if (difference <= 1e-3) return;
  throw Error(
      ErrorKind::mismatch,
      fmt::format("the program mixes the samples of a batch: {} micro-batches give other results than the whole "
                  "(relative difference {:.1e}); leave --micro-batches out",
                  parts, difference));
}

fx::PipelineOptions options_of(const PipelineCommand& command) {
  fx::PipelineOptions options;
  options.cost = command.modelled ? fx::PipelineOptions::Cost::modelled : fx::PipelineOptions::Cost::measured;
  options.slack = command.slack / 100;
  options.max_weights = static_cast<std::int64_t>(command.max_weights * 1024 * 1024);
  options.max_memory = static_cast<std::int64_t>(command.max_memory * 1024 * 1024);
  options.micro_batches = static_cast<std::size_t>(command.micro_batches);
  options.allow_random = command.allow_random;
  return options;
}

}  // namespace

namespace {

/// What a plan promises when every stage has a machine for itself.
nlohmann::ordered_json promises(const PipelinePlan& plan) {
  const PipelineForecast alone = plan.forecast({.micro_batches = plan.micro_batches});
  const PipelineForecast on = plan.forecast({.micro_batches = plan.micro_batches, .rounds = 10});
  nlohmann::ordered_json out = {{"bubble", alone.bubble}, {"busy", on.busy}};
  if (plan.measured) out.update({{"seconds_alone", alone.seconds}, {"seconds", on.seconds}});
  return out;
}

void print_promises(const PipelinePlan& plan) {
  const nlohmann::ordered_json all = promises(plan);
  fmt::print("{} micro-batch{}, a machine for each stage{}: ", plan.micro_batches, plan.micro_batches == 1 ? "" : "es",
             plan.measured ? "" : ", as modelled");
  if (plan.measured) fmt::print("{} for a batch; ", human_seconds(all.at("seconds_alone").get<double>()));
  fmt::print("the stages wait {:.0f} % of their time for a batch alone\nbatch after batch: ",
             100 * all.at("bubble").get<double>());
  if (plan.measured) fmt::print("{} each; ", human_seconds(all.at("seconds").get<double>()));
  std::string busy;
  for (const double part : all.at("busy").get<std::vector<double>>())
    busy += fmt::format("{}{:.0f}", busy.empty() ? "" : ", ", 100 * part);
  fmt::print("the stages compute {} % of the time\n", busy);
}

}  // namespace

int TorchBackend::pipeline(const PipelineCommand& command) {
  prepare_machine(command.threads);
  const std::unique_ptr<Model> model = load(command.file, command.inputs);
  GraphModule& module = dynamic_cast<TorchModel&>(*model).module();
  const std::vector<c10::IValue> inputs = inputs_for(module.graph(), command.inputs);
  const auto micro_batches = static_cast<std::size_t>(command.micro_batches);
  if (micro_batches > 1 && !command.allow_random) check_micro_batches(module, inputs, micro_batches);
  const PipelineStages stages =
      split_pipeline(module, static_cast<std::size_t>(command.stages), inputs, options_of(command));
  for (const auto& stage : stages.modules) to_torchscript(*stage);  // what cannot be written says so before anything is
  Exchange exchange(command.output);
  SavedPlan saved{stages.plan, command.inputs.shapes, {}};
  for (std::size_t i = 0; i < stages.modules.size(); ++i) {
    const std::string file = stage_file(exchange.place(), i);
    fx::save(*stages.modules[i], file);
    saved.digests.push_back(digest_of(file));
  }
  save_plan(exchange.place(), saved);
  exchange.commit(stages.modules.size());
  if (command.json) {
    nlohmann::ordered_json out = nlohmann::ordered_json::parse(stages.plan.json());
    out.erase("wiring");
    out["forecast"] = promises(stages.plan);
    out["saved"] = command.output;
    fmt::print("{}\n", out.dump(2));
    return kDone;
  }
  fmt::print("{}", stages.plan.str());
  print_promises(stages.plan);
  fmt::print("saved {}\n", command.output);
  return kDone;
}

namespace {

WorkerAddress address_of(const RunOptions& options) {
  const bool has_master = !options.master.empty(), is_whole = has_master && options.rank >= 0 && options.world > 0;
  WorkerAddress address;
  if (!is_whole) address = workers_from_environment().value_or(address);
  if (options.rank >= 0) address.rank = options.rank;
  if (options.world > 0) address.world = options.world;
  if (!options.master.empty()) set_master(address, options.master);
  address.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(options.timeout * 1000));
  return address;
}

/// What one rank measured: after a first round, which makes the connections.
struct StageRun {
  c10::IValue result;
  std::vector<double> seconds;  // of each round
  PipelineStatistics work;
};

StageRun run_rounds(Pipeline& pipe, const std::vector<c10::IValue>& inputs, const RunOptions& options,
                    std::size_t micro_batches) {
  StageRun done;
  const PipelineRun how{.micro_batches = micro_batches};
  done.result = pipe.run(inputs, how);
  const PipelineStatistics before = pipe.statistics();
  for (int i = 0; i < options.repeat; ++i) {
    const auto start = std::chrono::steady_clock::now();
    pipe.run(inputs, how);
    done.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  done.work = pipe.statistics();
  done.work.processor_seconds -= before.processor_seconds;
  done.work.waiting_seconds -= before.waiting_seconds;
  done.work.sent_bytes -= before.sent_bytes;
  return done;
}

/// Which rank shares a machine with which, and how many of them it has processors for.
PipelineSetting setting_of(Workers& workers) {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  const auto here = std::thread::hardware_concurrency() / static_cast<double>(threads());
  const std::vector<std::string> machines = workers.exchange("machine", fmt::format("{} {}", here, name));
  PipelineSetting setting;
  std::map<std::string, std::size_t> known;
  for (const std::string& words : machines) {
    const std::size_t space = words.find(' ');
    const auto [at, is_new] = known.emplace(words.substr(space + 1), known.size());
    // A stage alone is as fast as it was when it was measured.
    if (is_new) setting.processors.push_back(std::max(1.0, std::stod(words.substr(0, space))));
    setting.machine_of.push_back(at->second);
  }
  return setting;
}

/// What was measured beside what the plan expects of the rank.
nlohmann::ordered_json figures(const StageRun& done, const PipelinePlan& plan, const WorkerAddress& address,
                               const RunOptions& options, PipelineSetting setting) {
  const MeasuredTime time = summarize(done.seconds);
  const double all = std::accumulate(done.seconds.begin(), done.seconds.end(), 0.0);
  const auto rank = static_cast<std::size_t>(address.rank);
  setting.rounds = 1 + time.runs;  // with the one that is not counted
  const PipelineForecast forecast = plan.forecast(setting);
  nlohmann::ordered_json out = {
      {"rank", address.rank},
      {"world", address.world},
      {"micro_batches", setting.micro_batches},
      {"machines", setting.processors.size()},
      {"threads", threads()},
      {"repeat", options.repeat},
      {"seconds", time.seconds},
      {"spread", time.spread},
      {"busy", all > 0 ? done.work.processor_seconds / all : 0},
      {"sent_bytes", done.work.sent_bytes / options.repeat},
      {"forecast",
       {{"measured", plan.measured}, {"busy", forecast.busy[rank]}, {"sent_bytes", plan.stages[rank].sent_bytes}}},
      {"outputs", nlohmann::json::array()}};
  if (plan.measured) out["forecast"]["seconds"] = forecast.seconds;
  if (!done.result.isNone()) {
    for (const TensorInfo& info : tensor_infos(done.result))
      out["outputs"].push_back({{"sizes", info.sizes}, {"dtype", to_string(info.dtype)}});
  }
  return out;
}

void print_run(const nlohmann::ordered_json& done, bool json) {
  if (json) {
    fmt::print("{}\n", done.dump());
    return;
  }
  const int repeat = done.at("repeat").get<int>();
  std::string time = human_seconds(done.at("seconds").get<double>());
  if (repeat > 1) time += fmt::format(" ± {} (median of {})", human_seconds(done.at("spread").get<double>()), repeat);
  const nlohmann::ordered_json& plan = done.at("forecast");
  const char* source = plan.at("measured").get<bool>() ? "plan" : "model";
  if (plan.contains("seconds")) time += fmt::format(" (plan: {})", human_seconds(plan.at("seconds").get<double>()));
  fmt::print("rank {} of {}: {}, busy {:.0f} % ({}: {:.0f} %), sent {} (plan: {})\n", done.at("rank").get<int>(),
             done.at("world").get<int>(), time, 100 * done.at("busy").get<double>(), source,
             100 * plan.at("busy").get<double>(), human_bytes(done.at("sent_bytes").get<double>()),
             human_bytes(plan.at("sent_bytes").get<double>()));
}

/// A rank alone with its stage.
std::shared_ptr<GraphModule> load_stage(const std::string& folder, const SavedPlan& saved, int rank) {
  const auto stage = static_cast<std::size_t>(rank);
  const std::string file = stage_file(folder, stage);
  if (digest_of(file) != saved.digests[stage]) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{} is not the file that the plan was made with; copy the folder again", file));
  }
  return fx::load(file);
}

/// What rank 0 puts in.
std::vector<c10::IValue> first_inputs(const RunOptions& options, const SavedPlan& saved) {
  if (!options.inputs.values.empty()) return values_of(options.inputs);
  if (options.inputs.empty() && saved.inputs.empty()) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{} was made with --values: give rank 0 such a file, or shapes by --input", options.file));
  }
  at::manual_seed(0);  // the same inputs in every run
  return random_inputs(parse_inputs(options.inputs.empty() ? saved.inputs : options.inputs.shapes));
}

}  // namespace

int TorchBackend::run_stage(const RunOptions& options) {
  const SavedPlan saved = load_plan(options.file);
  // The plan's times hold for its threads; who starts many ranks on one machine says how many each may use.
  prepare_machine(options.threads || std::getenv("OMP_NUM_THREADS") ? options.threads : saved.plan.threads);
  const WorkerAddress address = address_of(options);
  if (address.world != static_cast<int>(saved.plan.stages.size())) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{} has {} stages and there are {} ranks: start one for each stage", options.file,
                            saved.plan.stages.size(), address.world));
  }
  // c10d's own threads throw where nobody catches when what they are connected to goes.
  std::set_terminate([] {
    std::cerr << "fxgraph: the connection to rank 0 broke" << std::endl;
    std::_Exit(kFailed);
  });
  Workers workers = connect(address);
  try {
    const std::shared_ptr<GraphModule> stage = load_stage(options.file, saved, address.rank);
    stage->hold_memory(options.hold_memory);
    Pipeline pipe(saved.plan, stage, workers);
    const std::vector<c10::IValue> inputs =
        address.rank == 0 ? first_inputs(options, saved) : std::vector<c10::IValue>();
    PipelineSetting setting = setting_of(workers);
    setting.micro_batches =
        options.micro_batches > 0 ? static_cast<std::size_t>(options.micro_batches) : saved.plan.micro_batches;
    const StageRun done = run_rounds(pipe, inputs, options, setting.micro_batches);
    if (!options.output.empty() && address.rank == address.world - 1) write_value(options.output, done.result);
    pipe.finish();
    print_run(figures(done, saved.plan, address, options, setting), options.json);
    return kDone;
  } catch (const std::exception& error) {
    // Threads of the connection may wait for a rank that is gone: this process does not wait for them.
    const std::string self = fmt::format("rank {}: ", address.rank), what = describe(error);
    workers.give_up(what.starts_with(self) ? what : self + what);
    std::cerr << "fxgraph: " << what << std::endl;
    flush_output();
    std::_Exit(kFailed);
  }
}

}  // namespace fx::cli
