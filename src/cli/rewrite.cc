// fxgraph rewrite: replace a pattern, check, save.
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include <fxgraph/cli/commands.h>
#include <fxgraph/cli/options.h>
#include <fxgraph/rewriter/replace_pattern.h>
#include <fxgraph/text/print.h>

namespace fx::cli {

namespace {

constexpr int kVerifyRounds = 8;

nlohmann::ordered_json to_json(const RewriteReport& report) {
  nlohmann::ordered_json out = {
      {"applied", report.applied}, {"stop", to_string(report.stop)}, {"refused", nlohmann::json::array()}};
  for (const Refusal& refusal : report.refused)
    out["refused"].push_back({{"node", refusal.node}, {"reason", refusal.reason}});
  if (!report.written_out.empty()) out["written_out"] = report.written_out;
  return out;
}

// A function that nobody knows, the program neither, is a slip.
void refuse_new_functions(const Graph& replacement, const Graph& program) {
  for (const Node& node : replacement.nodes()) {
    const std::string_view name = node.target().view();
    if (!node.is(Op::call_function) || name.find("::") != name.npos || is_known_function(node.target())) continue;
    if (!program.find_nodes(Op::call_function, node.target()).empty()) continue;
    throw Error(ErrorKind::not_found, fmt::format("--replacement: no function {} is known, and the program calls none; "
                                                  "write aten:: before the name of an operator",
                                                  name));
  }
}

}  // namespace

int rewrite(const RewriteOptions& options, Backend* backend) {
  if (options.verify && options.inputs.empty())
    throw MissingOption("--verify runs the program, so it needs its inputs: add --input, like --input 1x3x224x224");
  const Pattern pattern(read_pattern(options.pattern));
  refuse(pattern.problems(), options.allowed);
  const Replacement replacement(read_pattern(options.replacement));
  if (replacement.graph()) refuse(call_problems(*replacement.graph()), options.allowed);
  const auto model = load_model(options.file, backend, options.inputs);
  for (const std::string& name_space : options.allowed) trust(model->graph(), name_space);
  if (replacement.graph()) refuse_new_functions(*replacement.graph(), model->graph());
  const auto original = options.verify ? load_model(options.file, backend, options.inputs) : nullptr;

  const ModelFacts facts(*model, options.file, options.inputs);
  ReplaceOptions replace;
  replace.find = facts.options_for(pattern);
  replace.find.leaves = options.leaves;
  replace.find.definitions = options.definitions;
  replace.name = "rewrite";
  replace.allow_output_aliases = options.allow_output_aliases;
  const RewriteReport report = model->replace(pattern, replacement, replace);
  model->graph().lint();

  std::optional<double> difference;
  if (options.verify) {
    const double tolerance = original->tolerance(options.inputs);
    difference = model->difference(*original, options.inputs, kVerifyRounds);
    if (!(*difference <= tolerance)) {
      throw Error(
          ErrorKind::mismatch,
          fmt::format("{}: the rewritten program differs by {:.1e} (relative), more than {:.0e}; nothing was saved",
                      options.file, *difference, tolerance));
    }
  }
  // The result goes to standard output unless a file is named: then what is said about it goes there.
  const bool to_stdout = options.output.empty() || options.output == "-";
  std::ostringstream said;
  if (options.json) {
    nlohmann::ordered_json out = to_json(report);
    if (difference) out["difference"] = *difference;
    if (to_stdout)
      out["graph"] = print_graph(model->graph());
    else
      out["saved"] = options.output;
    said << out.dump(2) << '\n';
  } else {
    said << report << '\n';
    if (difference)
      said << fmt::format("verified: {} random inputs, largest relative difference {:.1e}\n", kVerifyRounds,
                          *difference);
  }
  if (!to_stdout) model->save(options.output, options.inputs);
  if (options.json) {
    std::cout << said.str();
  } else if (to_stdout) {
    std::cerr << said.str();
    write_output("", print_graph(model->graph()));
  } else {
    std::cout << said.str() << "saved " << options.output << '\n';
  }
  return kDone;
}

}  // namespace fx::cli
