// fxgraph report: what the analyses found, and whether it is worse than it was.
#include <fxgraph/report/report.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>

#include <fxgraph/cli/commands.h>
#include <fxgraph/cli/options.h>
#include <fxgraph/report/baseline.h>
#include <fxgraph/report/page.h>
#include <fxgraph/report/size_formulas.h>

namespace fx::cli {

namespace {

/// What to make for a value of --format. The page needs the graph beside the report.
using Write = std::string (*)(const Report&, const Graph&, const ReportInputs&, const fx::ReportOptions&);
const std::map<std::string, Write> kFormats = {
    {"text",
     [](const Report& report, const Graph&, const ReportInputs&, const fx::ReportOptions&) { return to_text(report); }},
    {"json",
     [](const Report& report, const Graph&, const ReportInputs&, const fx::ReportOptions&) { return to_json(report); }},
    {"html", [](const Report&, const Graph& graph, const ReportInputs& inputs,
                const fx::ReportOptions& options) { return to_html(graph, inputs, options); }},
};

/// `5%` or `5`: 0.05.
double parse_limit(std::string text) {
  if (text.ends_with('%')) text.pop_back();
  double percent = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  if (error != std::errc() || end != text.data() + text.size() || !(percent >= 0)) {
    throw Error(ErrorKind::invalid_argument, "--limit " + text + ": not a share; write a number of percent, like 5%");
  }
  return percent / 100;
}

Report::BaselinePart compare(const Report& report, const ReportOptions& options) {
  const double limit = parse_limit(options.limit);
  std::ifstream file(options.baseline, std::ios::binary);
  if (!file || std::filesystem::is_directory(options.baseline))
    throw Error(ErrorKind::io, "cannot read " + options.baseline + ": name a report in JSON that exists");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  try {
    Report::BaselinePart part = compare_with_baseline(report, text, limit);
    part.file = options.baseline;
    return part;
  } catch (const Error& error) {
    throw Error(error.kind(), options.baseline + ": " + error.message());
  }
}

/// All parts when none is chosen, but those that need shapes and have none.
fx::ReportOptions parts_of(const ReportOptions& options) {
  fx::ReportOptions parts;
  if (options.dead_code || options.liveness || options.uses || options.dominance || options.cost) {
    parts.dead_code = options.dead_code;
    parts.liveness = options.liveness;
    parts.uses = options.uses;
    parts.dominance = options.dominance;
    parts.cost = options.cost;
  }
  if (options.measure && !options.cost) throw MissingOption("--measure times what --cost estimates: add --cost");
  if (options.cost && options.inputs.empty()) {
    throw MissingOption("--cost needs shapes: add --input, like --input 1x3x224x224");
  }
  if (options.formulas && options.inputs.shapes.empty()) {
    throw MissingOption("--formulas needs shapes to begin with: add --input, like --input 1x3x224x224");
  }
  if (options.inputs.empty()) parts.cost = false;
  return parts;
}

/// Says in one line what got worse by more than is allowed.
int verdict(const Report& report) {
  if (!report.baseline) return kDone;
  std::string worse;
  for (const Report::Measured* measure : report.baseline->past_limit())
    worse += (worse.empty() ? "" : ", ") + to_string(*measure);
  if (worse.empty()) return kDone;
  std::cerr << "fxgraph: " << report.name << " is worse than " << report.baseline->file << ": " << worse
            << "; undo the change, allow more with --limit, or make a new baseline\n";
  return kFailed;
}

}  // namespace

int report(const ReportOptions& options, Backend* backend) {
  const fx::ReportOptions parts = parts_of(options);
  if (backend) backend->prepare_machine(options.threads);
  const auto model = load_model(options.file, backend, options.inputs);
  Shapes shapes;
  ReportInputs inputs;
  inputs.name = options.file;
  inputs.modules = model->modules();
  inputs.attributes = model->attributes();
  if (!options.inputs.empty()) {
    shapes = model->propagate_shapes(options.inputs);
    inputs.shapes = &shapes;
  }
  NodeTimes times;
  if (options.measure) {
    times = model->times(options.inputs);
    inputs.times = &times;
  }
  Report report = make_report(model->graph(), inputs, parts);
  if (options.formulas) {
    const std::vector<TensorInfo> given = parse_inputs(options.inputs.shapes);
    report.sizes = size_formulas(model->graph(), model->at_open_sizes(given), inputs, parts);
  }
  if (!options.baseline.empty()) report.baseline = compare(report, options);
  write_output(options.output, kFormats.at(options.format)(report, model->graph(), inputs, parts));
  return verdict(report);
}

}  // namespace fx::cli
