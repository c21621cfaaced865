// fxgraph show, lint, draw: a graph as it stands.
#include <fmt/format.h>

#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include <fxgraph/cli/commands.h>
#include <fxgraph/cli/options.h>
#include <fxgraph/codegen/code.h>
#include <fxgraph/text/operator_counts.h>
#include <fxgraph/text/print.h>
#include <fxgraph/text/size_report.h>

namespace fx::cli {

namespace {

std::string print_table(const Graph& graph) {
  std::ostringstream out;
  graph.print_tabular(out);
  if (const std::string sizes = SizeReport(graph).str(); !sizes.empty()) out << "\nholds for sizes\n" << sizes;
  return out.str();
}

using Printer = std::string (*)(Model&);
template <Language language>
std::string print_code(Model& model) {
  return model.code(language);
}
const std::vector<std::pair<std::string, Printer>> kShown = {
    {"table", [](Model& model) { return print_table(model.graph()); }},
    {"text", [](Model& model) { return print_graph(model.graph()); }},
    {"python", print_code<Language::python>},
    {"torchscript", print_code<Language::torchscript>},
    {"cpp", print_code<Language::cpp>},
    {"dot", [](Model& model) { return print_dot(model.graph()); }},
    {"operators", [](Model& model) { return operator_table(model.graph(), model.modules()); }},
    {"json", [](Model& model) { return print_json(model.graph()); }}};

}  // namespace

std::vector<std::string> show_formats() {
  std::vector<std::string> names;
  for (const auto& [name, printer] : kShown) names.push_back(name);
  return names;
}

int show(const ShowOptions& options, Backend* backend) {
  const auto model = load_model(options.file, backend, options.inputs);
  for (const auto& [name, printer] : kShown) {
    if (name == options.format) write_output("", printer(*model));
  }
  return kDone;
}

namespace {

constexpr int kCallable = 9;  // its number in docs/ir.md

}  // namespace

int lint(const LintOptions& options, Backend* backend) {
  const auto model = load_model(options.file, backend, options.inputs);
  std::vector<LintViolation> violations = model->graph().check();
  const std::vector<CallProblem> problems = call_problems(model->graph());
  if (!backend) refuse(problems, options.allowed);
  for (const CallProblem& problem : problems) {
    if (std::string said = complaint(problem, options.allowed); !said.empty())
      violations.push_back({kCallable, problem.node, std::move(said)});
  }
  if (options.json) {
    nlohmann::ordered_json out = {{"nodes", model->graph().size()}, {"violations", nlohmann::json::array()}};
    for (const LintViolation& v : violations) {
      out["violations"].push_back({{"rule", v.rule}, {"node", v.node}, {"message", v.message}});
    }
    std::cout << out.dump(2) << '\n';
  } else if (violations.empty()) {
    fmt::print("{}: {} nodes, no invariant broken\n", options.file, model->graph().size());
  }
  if (violations.empty()) return kDone;
  if (!options.json) {
    for (const LintViolation& v : violations)
      std::cerr << fmt::format("fxgraph: {}: {}: {} [rule {}]\n", options.file, v.node, v.message, v.rule);
  }
  return kFailed;
}

}  // namespace fx::cli
