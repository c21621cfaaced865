// The commands that work on graphs alone. Each takes its options, writes its result and returns the exit code.
#pragma once

#include <string>
#include <vector>

#include <fxgraph/cli/model.h>
#include <fxgraph/matchers/matcher.h>

namespace fx::cli {

struct ShowOptions {
  std::string file;
  std::string format = "table";
  InputOptions inputs{};
};
int show(const ShowOptions& options, Backend* backend);
/// The values of --format, in the order of the help text.
std::vector<std::string> show_formats();

struct LintOptions {
  std::string file;
  InputOptions inputs{};
  std::vector<std::string> allowed;
  bool json = false;
};
int lint(const LintOptions& options, Backend* backend);

struct ReportOptions {
  std::string file;
  bool dead_code = false;
  bool liveness = false;
  bool uses = false;
  bool dominance = false;
  bool cost = false;
  bool formulas = false;  ///< what follows from the sizes that vary
  bool measure = false;   ///< beside the estimated cost, the time that each node takes
  int threads = 0;        ///< 0: as LibTorch has it
  InputOptions inputs;
  std::string format = "text";
  std::string output;
  std::string baseline;      ///< a report in JSON to compare with
  std::string limit = "0%";  ///< how much worse than it is allowed
};
int report(const ReportOptions& options, Backend* backend);

struct MatchOptions {
  std::vector<std::string> files;
  std::string pattern;
  std::string patterns;  ///< a file with several, each under a line `[name]`
  InputOptions inputs;
  std::vector<std::string> allowed;
  std::string expect;  ///< how many matches there are; of several patterns a file with the table
  bool leaves = false;
  bool definitions = false;
  bool see_through = false;
  bool explain = false;
  bool json = false;
};
int match(const MatchOptions& options, Backend* backend);

struct RewriteOptions {
  std::string file;
  std::string pattern;
  std::string replacement;
  std::string output;
  InputOptions inputs;
  std::vector<std::string> allowed;
  bool leaves = false;
  bool definitions = false;
  bool verify = false;
  bool allow_output_aliases = false;
  bool json = false;
};
int rewrite(const RewriteOptions& options, Backend* backend);

struct DiffOptions {
  std::string before;
  std::string after;
  InputOptions inputs{};
  bool json = false;
};
int diff(const DiffOptions& options, Backend* backend);

struct DrawOptions {
  std::string file;
  std::string output;
  InputOptions inputs{};
};
int draw(const DrawOptions& options, Backend* backend);

/// What is known of a program for all patterns that are looked for in it.
class ModelFacts {
 public:
  /// Works out shapes where there are inputs.
  ModelFacts(Model& model, const std::string& file, const InputOptions& inputs);
  ModelFacts(const ModelFacts&) = delete;

  /// For a search of this pattern; lives as long as these. Throws Error(invalid_argument) when it asks for what is not
  /// known.
  FindOptions options_for(const Pattern& pattern) const;

 private:
  std::string file_;
  Shapes shapes_;
  FindOptions find_;
};

/// The text of a pattern or replacement: the contents of the file of that name if there is one, else `pattern` itself.
std::string read_pattern(const std::string& pattern);

}  // namespace fx::cli
