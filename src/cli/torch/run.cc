// fxgraph run and rules.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include <fxgraph/cli/options.h>
#include <fxgraph/cli/torch/backend.h>
#include <fxgraph/cli/torch/samples.h>
#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/rewriter/rules/rules.h>
#include <fxgraph/run/machine.h>
#include <fxgraph/run/value.h>

namespace fx::cli {

int TorchBackend::run(const RunOptions& options) {
  if (options.rank >= 0 || options.world > 0 || !options.master.empty() || options.micro_batches > 0) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("--rank, --world, --master and --micro-batches are for the folder of a pipeline, and {} is "
                            "none: write one with fxgraph pipeline",
                            options.file));
  }
  prepare_machine(options.threads);
  const std::unique_ptr<Model> model = load(options.file, options.inputs);
  GraphModule& module = dynamic_cast<TorchModel&>(*model).module();
  const std::vector<c10::IValue> inputs = inputs_for(module.graph(), options.inputs);
  module.hold_memory(options.hold_memory);
  const at::NoGradGuard no_grad;
  const c10::IValue result = module.run(copies_of(inputs));
  if (!options.output.empty()) write_value(options.output, result);
  const TensorInfos outputs = tensor_infos(result);
  const MeasuredTime time = time_forwards({&module}, inputs, static_cast<std::size_t>(options.repeat))[0];
  const MicroBatches cut = module.micro_batches();
  const std::int64_t part = cut.to_cut(inputs) ? cut.size : 0;
  if (options.json) {
    nlohmann::ordered_json out = {{"seconds", time.seconds},           {"spread", time.spread},
                                  {"repeat", options.repeat},          {"threads", threads()},
                                  {"held_bytes", module.held_bytes()}, {"micro_batch", part},
                                  {"outputs", nlohmann::json::array()}};
    for (const TensorInfo& info : outputs)
      out["outputs"].push_back({{"sizes", info.sizes}, {"dtype", to_string(info.dtype)}});
    fmt::print("{}\n", out.dump(2));
    return kDone;
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) fmt::print("output {}: {}\n", i, to_string(outputs[i]));
  const std::string runs = options.repeat == 1 ? "one run" : fmt::format("median of {}", options.repeat);
  fmt::print("forward: {} ({}, threads: {}{})\n", to_string(time), runs, threads(),
             part > 0 ? fmt::format(", micro-batches of {}", part) : "");
  if (options.hold_memory) fmt::print("memory held: {}\n", human_bytes(static_cast<double>(module.held_bytes())));
  return kDone;
}

namespace {

// What a rewrite looks for, line by line.
void print_rewrites(const rules::OptimizeRule& rule) {
  for (const Rule& rewrite : rule.rules()) {
    fmt::print("\n  {}\n", rewrite.name);
    std::istringstream lines(rewrite.pattern.str());
    for (std::string line; std::getline(lines, line);) fmt::print("    {}\n", line);
  }
}

}  // namespace

int TorchBackend::rules(const std::string& name, bool json) {
  std::vector<const rules::OptimizeRule*> selected;
  if (name.empty()) {
    selected.assign(rules::all_rules().begin(), rules::all_rules().end());
  } else {
    selected = rules::select({name});
  }
  if (json) {
    nlohmann::ordered_json out = nlohmann::json::array();
    for (const rules::OptimizeRule* rule : selected) {
      nlohmann::ordered_json entry = {{"name", rule->name},
                                      {"group", rules::to_string(rule->group)},
                                      {"inference", rule->inference},
                                      {"summary", rule->summary},
                                      {"preconditions", rule->preconditions},
                                      {"promise", to_string(rule->promise)},
                                      {"patterns", nlohmann::json::array()}};
      for (const Rule& rewrite : rule->rules()) entry["patterns"].push_back(rewrite.pattern.str());
      out.push_back(std::move(entry));
    }
    fmt::print("{}\n", out.dump(2));
    return kDone;
  }
  for (const rules::OptimizeRule* rule : selected) {
    fmt::print("{:<22} {}\n{:<22}   where {}\n{:<22}   promise: {}\n", rule->name, rule->summary, "",
               rule->preconditions, "", to_string(rule->promise));
    if (!name.empty()) print_rewrites(*rule);
  }
  if (name.empty()) {
    fmt::print("\ngroups\n");
    for (const rules::Selection& selection : rules::selections()) {
      std::vector<std::string_view> names;
      for (const rules::OptimizeRule* rule : selection.rules) names.push_back(rule->name);
      fmt::print("{:<22} {}: {}\n", selection.name, selection.summary, fmt::join(names, ", "));
    }
  }
  return kDone;
}

}  // namespace fx::cli
