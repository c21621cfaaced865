// Hostile programs (rewriter/program/hostile/generator.h) through optimize and every rule alone: what callers can see
// stays as it was.
//
//   FXGRAPH_HOSTILE_PROGRAMS=1000000 FXGRAPH_HOSTILE_SEED=1 build/dev/tests/fxgraph_rules_test
//   --gtest_filter='HostilePrograms*'
//
// runs as many as one likes from that seed on. Failures are reduced, sorted by what is wrong, and printed with the
// seed.
#include <ATen/ATen.h>
#include <c10/util/Logging.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>

#include <fxgraph/rewriter/program/hostile/generator.h>
#include <fxgraph/rewriter/program/hostile/judge.h>
#include <fxgraph/rewriter/program/replace_pattern.h>
#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/run/value.h>
#include <fxgraph/text/print.h>

namespace fx {
namespace {

/// LibTorch warns of what hostile programs do on purpose.
struct Silence : c10::WarningHandler {
  void process(const c10::SourceLocation&, const std::string&, const bool) override {}
};

using hostile::Program;
using hostile::Rewritten;

std::uint64_t environment(const char* name, std::uint64_t usual) {
  const char* wanted = std::getenv(name);
  return wanted ? std::strtoull(wanted, nullptr, 10) : usual;
}

/// What a rule looks for, and the programs that it is tested on.
std::vector<Pattern> patterns_of(const rules::OptimizeRule& rule) {
  std::vector<Pattern> patterns;
  if (!rule.rewrites) return patterns;
  for (const Rule& rewrite : rule.rewrites()) {
    patterns.push_back(rewrite.pattern);
    for (const std::string& example : rewrite.examples) patterns.emplace_back(example);
  }
  return patterns;
}

const std::vector<Pattern>& patterns_of(const std::string& name) {
  static std::map<std::string, std::vector<Pattern>> known;
  const auto [at, is_new] = known.try_emplace(name);
  if (is_new) {
    for (const rules::OptimizeRule* rule :
         rules::select(name.empty() ? std::vector<std::string>() : std::vector{name})) {
      for (Pattern& pattern : patterns_of(*rule)) at->second.push_back(std::move(pattern));
    }
  }
  return at->second;
}

bool needs_finite(const OptimizeReport& report) {
  for (const RuleOutcome& outcome : report.rules) {
    if (outcome.applied == 0 || !outcome.rule->rewrites) continue;
    for (const Rule& rewrite : outcome.rule->rewrites()) {
      if (rewrite.needs.finite_inputs) return true;
    }
  }
  return false;
}

hostile::Rewrite optimizing(std::vector<std::string> names, bool with_shapes) {
  return [names = std::move(names), with_shapes](GraphModule& module, const Program& program) -> Rewritten {
    OptimizeOptions options{.rules = names};
    if (with_shapes) {
      for (const at::Tensor& input : program.inputs[0]) options.inputs.push_back(tensor_info(input));
    }
    const std::uint64_t revision = module.graph().revision();
    const OptimizeReport report = optimize(module, options);
    return {module.graph().revision() != revision, needs_finite(report)};
  };
}

/// The rules that it takes, by name, to get the program wrong.
std::vector<std::string> fewest_rules(const Program& program, const std::vector<std::string>& names, bool with_shapes) {
  std::vector<std::string> left;
  for (const rules::OptimizeRule* rule : rules::select(names)) left.emplace_back(rule->name);
  for (std::size_t i = left.size(); i-- > 0;) {
    std::vector<std::string> fewer = left;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (!fewer.empty() && !judge(program, optimizing(fewer, with_shapes)).wrong.empty()) left = fewer;
  }
  return left;
}

/// Failures by what is wrong.
class Failures {
 public:
  void add(std::uint64_t seed, const Program& program, std::vector<std::string> names, bool with_shapes) {
    ++count_;
    if (classes_.size() >= 40) return;
    names = fewest_rules(program, names, with_shapes);
    const hostile::Rewrite rewrite = optimizing(names, with_shapes);
    const hostile::Program small = hostile::reduce(program, rewrite);
    const hostile::Verdict verdict = judge(small, rewrite);
    std::string rules;
    for (const std::string& name : names) rules += (rules.empty() ? "" : ", ") + name;
    std::string kind = rules + ": " + verdict.wrong.substr(0, 25);
    Class& made = classes_[kind];
    ++made.count;
    if (made.text.empty() || small.graph.size() < made.size) {
      made.size = small.graph.size();
      made.text = "seed " + std::to_string(seed) + (with_shapes ? ", shapes known" : "") + "\n" + small.str() +
                  verdict.wrong + "\n" + verdict.after;
    }
  }

  std::size_t count() const { return count_; }
  friend std::ostream& operator<<(std::ostream& out, const Failures& failures) {
    for (const auto& [kind, found] : failures.classes_)
      out << "── " << found.count << " × " << kind << "\n" << found.text << "\n";
    return out;
  }

 private:
  struct Class {
    std::size_t count = 0, size = 0;
    std::string text;
  };
  std::size_t count_ = 0;
  std::map<std::string, Class> classes_;
};

TEST(HostileProgramsSlow, OptimizeKeepsWhatCallersSee) {
  at::set_num_threads(1);
  c10::SetStackTraceFetcher(
      [] { return std::string(); });  // what does not run throws, often; a trace costs more than all else
  Silence silence;
  const c10::Warning::WarningHandlerGuard silent(&silence);
  const std::uint64_t programs = environment("FXGRAPH_HOSTILE_PROGRAMS", 0);
  if (programs == 0) GTEST_SKIP() << "FXGRAPH_HOSTILE_PROGRAMS says how many";
  const std::uint64_t first = environment("FXGRAPH_HOSTILE_SEED", 1);
  std::cout << "seeds " << first << " to " << first + programs - 1 << "\n";
  std::vector<std::string> names;
  for (const rules::OptimizeRule* rule : rules::all_rules()) names.emplace_back(rule->name);
  Failures failures;
  std::size_t changed = 0, ran = 0;
  std::chrono::duration<double> drawing{}, judging{};
  const auto now = [] { return std::chrono::steady_clock::now(); };
  for (std::uint64_t seed = first; seed < first + programs; ++seed) {
    // Every other program through the default group, the others through one rule or several groups.
    std::vector<std::string> chosen;
    if (seed % 2) chosen = {names[seed / 2 % names.size()]};
    if (seed % 16 == 0) chosen = {"inference", "fusion", "simplify"};
    if (seed % 16 == 8) chosen = {"decomposition", "inference"};
    const bool with_shapes = seed % 5 < 3;
    if (std::getenv("FXGRAPH_HOSTILE_TRACE")) std::cerr << "seed " << seed << std::endl;
    const auto begun = now();
    const Program program = hostile::draw_program(seed, {.motifs = patterns_of(chosen.size() == 1 ? chosen[0] : "")});
    const auto drawn = now();
    const hostile::Verdict verdict = judge(program, optimizing(chosen, with_shapes));
    drawing += drawn - begun;
    judging += now() - drawn;
    ran += verdict.ran;
    changed += verdict.changed;
    if (!verdict.wrong.empty()) failures.add(seed, program, chosen, with_shapes);
  }
  std::cout << programs << " programs, " << changed << " changed, " << failures.count() << " wrong, "
            << static_cast<double>(programs) / (drawing + judging).count() << " a second (" << drawing.count()
            << " s drawing, " << judging.count() << " s judging)\n";
  EXPECT_EQ(failures.count(), 0u) << failures;
  EXPECT_GT(changed, programs / 4);
}

}  // namespace
}  // namespace fx
