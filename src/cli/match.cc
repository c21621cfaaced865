// fxgraph match: where a pattern fits, what its names stand for there, and why it does not fit elsewhere.
#include <fxgraph/matchers/matcher.h>

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include <fxgraph/cli/commands.h>
#include <fxgraph/cli/options.h>
#include <fxgraph/matchers/explain.h>

namespace fx::cli {

std::string read_pattern(const std::string& pattern) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(pattern, error);
  const bool is_folder = std::filesystem::is_directory(status);
  if (!std::filesystem::exists(status) || is_folder) {
    // A name with a dot or slash and nothing that patterns are made of is a file that is not there.
    const bool is_name = pattern.find("::") != std::string::npos && pattern.find('/') == std::string::npos;
    if (!is_name && pattern.find_first_of("(%\n ") == std::string::npos &&
        pattern.find_first_of("./") != std::string::npos) {
      throw Error(ErrorKind::io, "cannot read the pattern " + pattern + ": " +
                                     (is_folder ? "it is a folder; name a file" : "there is no such file"));
    }
    return pattern;
  }
  if (is_archive(pattern)) {
    throw Error(ErrorKind::invalid_argument, "the pattern " + pattern + " is a saved program, and patterns are text: " +
                                                 "write it as fxgraph show --format text does, or as an expression");
  }
  std::ifstream file(pattern, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw Error(ErrorKind::io, "cannot read the pattern " + pattern);
  return std::move(text).str();
}

namespace {

nlohmann::ordered_json to_json(const Match& match) {
  nlohmann::ordered_json out = {
      {"anchor", match.anchor().name()}, {"nodes", nlohmann::json::array()}, {"captures", nlohmann::json::object()}};
  for (const Node* node : match.nodes()) out["nodes"].push_back(node->name());
  for (const Node* node : match.skipped()) out["skipped"].push_back(node->name());
  for (const auto& [name, value] : match.bindings()) out["captures"][name.str()] = to_string(value, NodeStyle::plain);
  return out;
}

}  // namespace

FindOptions pattern_facts(Model& model, const std::string& file, const Pattern& pattern, const InputOptions& inputs,
                          Shapes& shapes) {
  FindOptions found;
  found.modules = model.modules();
  if (pattern.needs_module_types() && !found.modules.type) {
    throw Error(ErrorKind::invalid_argument,
                "the pattern names types of modules, and " + file +
                    " does not know them: match the saved program, or modules by path, call_module[path](x)");
  }
  if (pattern.needs_shapes() && inputs.empty())
    throw Error(ErrorKind::invalid_argument, "the pattern asks for shapes: say those of the inputs, --input SHAPE");
  if (inputs.empty()) return found;
  shapes = model.propagate_shapes(inputs);
  found.shapes = &shapes;
  return found;
}

int match(const MatchOptions& options, Backend* backend) {
  const Pattern written(read_pattern(options.pattern));
  refuse(written.problems(), options.allowed);
  const Pattern pattern = options.see_through ? written.seeing_through() : written;
  const auto model = load_model(options.file, backend, options.inputs);
  FindStats stats;
  Shapes shapes;
  FindOptions find_options = pattern_facts(*model, options.file, pattern, options.inputs, shapes);
  const std::string misses = options.explain ? near_misses(model->graph(), pattern, find_options) : "";
  find_options.stats = &stats;
  const std::vector<Match> matches = find(model->graph(), pattern, find_options);
  if (options.json) {
    nlohmann::ordered_json out = {
        {"pattern", pattern.str()}, {"stop", to_string(stats.stop)}, {"matches", nlohmann::json::array()}};
    for (const Match& found : matches) out["matches"].push_back(to_json(found));
    if (options.explain) out["near_misses"] = misses;
    std::cout << out.dump(2) << '\n';
    return kDone;
  }
  for (const Match& found : matches) std::cout << found << '\n';
  fmt::print("{} match{} in {} nodes\n", matches.size(), matches.size() == 1 ? "" : "es", model->graph().size());
  if (stats.stop != SearchStop::complete)
    fmt::print("the search stopped early ({}): there may be more\n", to_string(stats.stop));
  if (!misses.empty()) fmt::print("\nwhere it does not fit\n{}{}", misses, misses.ends_with('\n') ? "" : "\n");
  return kDone;
}

}  // namespace fx::cli
