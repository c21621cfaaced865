// fxgraph run and rules.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "cli/torch/backend.h"
#include "module/value.h"
#include "rewriter/rules/rules.h"

namespace fx::cli {

int TorchBackend::run(const RunOptions& options) {
  const std::unique_ptr<Model> model = load(options.file);
  GraphModule& module = dynamic_cast<TorchModel&>(*model).module();
  const std::vector<c10::IValue> inputs = random_inputs(checked_inputs(module, options.inputs));
  const at::NoGradGuard no_grad;
  const TensorInfos outputs = tensor_infos(module.run(inputs));
  const double seconds = time_forward(module, inputs, options.repeat);
  if (options.json) {
    nlohmann::ordered_json out = {
        {"seconds", seconds}, {"repeat", options.repeat}, {"outputs", nlohmann::json::array()}};
    for (const TensorInfo& info : outputs)
      out["outputs"].push_back({{"sizes", info.sizes}, {"dtype", to_string(info.dtype)}});
    fmt::print("{}\n", out.dump(2));
    return kDone;
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) fmt::print("output {}: {}\n", i, to_string(outputs[i]));
  fmt::print("forward: {} (median of {})\n", human_seconds(seconds), options.repeat);
  return kDone;
}

int TorchBackend::rules(const std::string& name, bool json) {
  std::vector<const rules::ProgramRule*> selected;
  if (name.empty()) {
    for (const rules::ProgramRule& rule : rules::all_rules()) selected.push_back(&rule);
  } else {
    selected = rules::select({name});
  }
  if (json) {
    nlohmann::ordered_json out = nlohmann::json::array();
    for (const rules::ProgramRule* rule : selected) {
      out.push_back({{"name", rule->name},
                     {"summary", rule->summary},
                     {"preconditions", rule->preconditions},
                     {"promise", rules::to_string(rule->promise)}});
    }
    fmt::print("{}\n", out.dump(2));
    return kDone;
  }
  for (const rules::ProgramRule* rule : selected) {
    fmt::print("{:<20} {}\n{:<20}   where {}\n{:<20}   promise: {}\n", rule->name, rule->summary, "",
               rule->preconditions, "", rules::to_string(rule->promise));
  }
  if (name.empty()) {
    fmt::print("\ngroups\n");
    for (const rules::Group& group : rules::groups())
      fmt::print("{:<20} {}: {}\n", group.name, group.summary, fmt::join(group.rules, ", "));
  }
  return kDone;
}

}  // namespace fx::cli
