// fxgraph match: where a pattern fits, what its names stand for there, and why it does not fit elsewhere.
#include <fxgraph/matchers/matcher.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
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
  if (const auto rows = match.definitions(); !rows.empty()) out["definitions"] = rows;
  for (const auto& [name, value] : match.bindings()) out["captures"][name.str()] = to_string(value, NodeStyle::plain);
  return out;
}

}  // namespace

ModelFacts::ModelFacts(Model& model, const std::string& file, const InputOptions& inputs) : file_(file) {
  find_.modules = model.modules();
  if (inputs.empty()) return;
  shapes_ = model.propagate_shapes(inputs);
  find_.shapes = &shapes_;
}

FindOptions ModelFacts::options_for(const Pattern& pattern) const {
  if (pattern.needs_module_types() && !find_.modules.type) {
    throw Error(ErrorKind::invalid_argument,
                "the pattern names types of modules, and " + file_ +
                    " does not know them: match the saved program, or modules by path, call_module[path](x)");
  }
  if (pattern.needs_shapes() && !find_.shapes)
    throw Error(ErrorKind::invalid_argument, "the pattern asks for shapes: say those of the inputs, --input SHAPE");
  return find_;
}

namespace {

/// A search as the options say it.
struct Question {
  std::string name;
  Pattern pattern;
};

Pattern prepared(const std::string& text, const MatchOptions& options) {
  const Pattern written(text);
  refuse(written.problems(), options.allowed);
  return options.see_through ? written.seeing_through() : written;
}

/// What a file of patterns holds: each under a line `[name]`.
std::vector<Question> read_questions(const MatchOptions& options) {
  std::istringstream lines(read_pattern(options.patterns));
  std::vector<std::pair<std::string, std::string>> texts;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('[') && line.ends_with(']')) {
      texts.emplace_back(line.substr(1, line.size() - 2), "");
    } else if (!texts.empty()) {
      texts.back().second += line + "\n";
    } else if (line.find_first_not_of(" \t") != std::string::npos && !line.starts_with('#')) {
      throw Error(ErrorKind::syntax, options.patterns + ": a pattern stands under a line with its name, [name]");
    }
  }
  if (texts.empty())
    throw Error(ErrorKind::syntax, options.patterns + " has no pattern: write [name] and the pattern below it");
  std::vector<Question> questions;
  for (const auto& [name, text] : texts) {
    try {
      questions.push_back({name, prepared(text, options)});
    } catch (const Error& error) {
      throw Error(error.kind(), options.patterns + ": [" + name + "]: " + error.what());
    }
  }
  return questions;
}

struct Answer {
  std::vector<Match> matches;
  FindStats stats;
  std::string misses;  ///< when asked for
};

Answer answer(Model& model, const ModelFacts& facts, const Pattern& pattern, const MatchOptions& options,
              bool explain) {
  Answer answer;
  FindOptions find_options = facts.options_for(pattern);
  find_options.leaves = options.leaves;
  find_options.definitions = options.definitions;
  find_options.stats = &answer.stats;
  answer.matches = find(model.graph(), pattern, find_options);
  find_options.stats = nullptr;
  if (!explain) return answer;
  answer.misses = near_misses(model.graph(), pattern, find_options);
  find_options.definitions = true;
  const std::vector<Match> defined = answer.matches.empty() && !options.definitions
                                         ? find(model.graph(), pattern, find_options)
                                         : std::vector<Match>();
  for (const Match& found : defined) {
    std::ostringstream text;
    text << found;
    answer.misses += "with --definitions it fits: " + std::move(text).str() + "\n";
  }
  return answer;
}

/// The rows of a table, without what is said around them.
std::vector<std::string> rows_of(const std::string& table) {
  std::vector<std::string> rows;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string row;
    for (std::string word; words >> word;) row += (row.empty() ? "" : " ") + word;
    rows.push_back(std::move(row));
  }
  return rows;
}

/// kDone when the table is that in the file.
int compare_tables(const std::string& file, const std::string& table) {
  const std::vector<std::string> wanted = rows_of(read_pattern(file)), found = rows_of(table);
  std::string differences;
  for (const std::string& row : wanted) {
    if (!std::ranges::count(found, row)) differences += "\n  expected: " + row;
  }
  for (const std::string& row : found) {
    if (!std::ranges::count(wanted, row)) differences += "\n  found:    " + row;
  }
  if (differences.empty()) return kDone;
  throw Error(ErrorKind::mismatch, "the table is not that of " + file + differences);
}

std::optional<std::size_t> expected_number(const std::string& text) {
  if (text.empty()) return std::nullopt;
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw MissingOption("--expect takes the number of matches; with --patterns a file");
  return number;
}

/// The patterns by the files, and whether all is as expected.
int match_table(const MatchOptions& options, Backend* backend) {
  const std::vector<Question> questions = read_questions(options);
  std::vector<std::vector<std::size_t>> counts(questions.size());
  std::vector<std::string> misses(questions.size());
  for (const std::string& file : options.files) {
    const auto model = load_model(file, backend, options.inputs);
    const ModelFacts facts(*model, file, options.inputs);
    for (std::size_t i = 0; i < questions.size(); ++i) {
      const Answer found = answer(*model, facts, questions[i].pattern, options, options.explain);
      counts[i].push_back(found.matches.size());
      if (options.explain && found.matches.empty()) misses[i] += file + "\n" + found.misses;
    }
  }
  if (options.json) {
    nlohmann::ordered_json out = {{"files", options.files}, {"patterns", nlohmann::json::object()}};
    for (std::size_t i = 0; i < questions.size(); ++i) out["patterns"][questions[i].name] = counts[i];
    std::cout << out.dump(2) << '\n';
  }
  std::size_t width = 0;
  for (const Question& question : questions) width = std::max(width, question.name.size());
  std::string table;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    table += fmt::format("{:{}}", questions[i].name, width);
    for (std::size_t j = 0; j < options.files.size(); ++j) table += fmt::format("  {:>4}", counts[i][j]);
    table += '\n';
  }
  if (!options.json) {
    for (std::size_t j = 0; j < options.files.size(); ++j)
      std::cout << "# " << j + 1 << ": " << options.files[j] << '\n';
    std::cout << table;
    for (std::size_t i = 0; i < questions.size(); ++i) {
      if (!misses[i].empty()) std::cout << "\n[" << questions[i].name << "]\n" << misses[i];
    }
  }
  if (options.expect.empty()) return kDone;
  return compare_tables(options.expect, table);
}

}  // namespace

int match(const MatchOptions& options, Backend* backend) {
  if (options.pattern.empty() == options.patterns.empty())
    throw MissingOption("say what to look for: --pattern P, or --patterns FILE with several");
  if (!options.patterns.empty()) return match_table(options, backend);
  if (options.files.size() > 1)
    throw MissingOption("--pattern looks into one file; for several, write --patterns FILE");
  const Pattern pattern = prepared(read_pattern(options.pattern), options);
  const std::string& file = options.files.at(0);
  const auto model = load_model(file, backend, options.inputs);
  const std::optional<std::size_t> expected = expected_number(options.expect);
  const ModelFacts facts(*model, file, options.inputs);
  const Answer found = answer(*model, facts, pattern, options, options.explain || expected);
  const bool is_as_expected = !expected || found.matches.size() == *expected;
  const bool explains = options.explain || !is_as_expected;
  if (options.json) {
    nlohmann::ordered_json out = {
        {"pattern", pattern.str()}, {"stop", to_string(found.stats.stop)}, {"matches", nlohmann::json::array()}};
    for (const Match& one : found.matches) out["matches"].push_back(to_json(one));
    if (explains) out["near_misses"] = found.misses;
    std::cout << out.dump(2) << '\n';
  } else {
    for (const Match& one : found.matches) std::cout << one << '\n';
    std::cout << fmt::format("{} match{} in {} nodes\n", found.matches.size(), found.matches.size() == 1 ? "" : "es",
                             model->graph().size());
    if (found.stats.stop != SearchStop::complete)
      std::cout << fmt::format("the search stopped early ({}): there may be more\n", to_string(found.stats.stop));
    if (explains && !found.misses.empty())
      std::cout << "\nwhere it does not fit\n" << found.misses << (found.misses.ends_with('\n') ? "" : "\n");
  }
  if (is_as_expected) return kDone;
  throw Error(ErrorKind::mismatch,
              fmt::format("{}: {} match{}, and {} {} expected", file, found.matches.size(),
                          found.matches.size() == 1 ? "" : "es", *expected, *expected == 1 ? "is" : "are"));
}

}  // namespace fx::cli
