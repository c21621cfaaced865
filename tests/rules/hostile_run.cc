#include "tests/rules/hostile_run.h"

#include <cstdlib>
#include <iostream>

#include <fxgraph/rewriter/rules/rules.h>

namespace fx::testing {

namespace {

constexpr std::size_t kMostKinds = 40;

/// Two failures of one cause mostly agree in these words.
std::string kind_of(const std::string& name, const std::string& wrong) {
  std::string kind = name + ": " + wrong.substr(0, wrong.find(": ", 14));
  std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
  return kind;
}

}  // namespace

const std::vector<Pattern>& patterns_of(const std::vector<std::string>& names) {
  static std::map<std::vector<std::string>, std::vector<Pattern>> known;
  const auto [at, is_new] = known.try_emplace(names);
  if (!is_new) return at->second;
  for (const rules::OptimizeRule* rule : rules::select(names)) {
    for (const Rule& rewrite : rule->rules()) {
      at->second.push_back(rewrite.pattern);
      for (const std::string& example : rewrite.examples) at->second.emplace_back(example);
    }
  }
  return at->second;
}

HostileRun::HostileRun(std::uint64_t usual, const std::string& prefix)
    : programs_(environment_number((prefix + "_PROGRAMS").c_str(), by_night(usual))),
      first_(environment_number((prefix + "_SEED").c_str(), 1)) {}

void HostileRun::run(const std::function<Trial(std::uint64_t seed)>& make) {
  const bool trace = std::getenv("FXGRAPH_HOSTILE_TRACE") != nullptr;
  for (std::uint64_t seed = first_; seed < first_ + programs_; ++seed) {
    if (trace) std::cerr << "seed " << seed << std::endl;
    Trial trial;
    hostile::Verdict verdict;
    try {
      trial = make(seed);
      if (trace) std::cerr << trial.program.str() << std::endl;
      verdict = judge(trial.program, trial.rewrite);
    } catch (const std::exception& error) {  // a mistake of whoever draws or judges
      ++wrong_;
      kinds_[std::string("throws ") + error.what()].text = "seed " + std::to_string(seed);
      continue;
    }
    changed_ += verdict.changed;
    if (verdict.wrong.empty()) continue;
    // The same program, rewritten alike, is right the next times: a kernel of LibTorch's computes what it has not
    // written.
    constexpr int kTimes = 3;
    int right = 0;
    for (int i = 0; i < kTimes; ++i) right += judge(trial.program, trial.rewrite).wrong.empty();
    if (right == kTimes) {
      ++unsteady_;
      std::cout << "seed " << seed << ", not each time: " << verdict.wrong << "\n";
      continue;
    }
    ++wrong_;
    note(seed, std::move(trial), std::move(verdict));
  }
  std::cout << programs_ << " programs, seeds " << first_ << " to " << first_ + programs_ - 1 << ": " << changed_
            << " changed, " << wrong_ << " wrong"
            << (unsteady_ ? ", and not each time " + std::to_string(unsteady_) : "") << "\n";
}

void HostileRun::note(std::uint64_t seed, Trial trial, hostile::Verdict verdict) {
  if (kinds_.size() >= kMostKinds) return;
  if (trial.simplify) trial.simplify(trial);
  const hostile::HostileProgram small = hostile::reduce(trial.program, trial.rewrite);
  hostile::Verdict again = judge(small, trial.rewrite);
  if (again.wrong.empty()) {
    verdict.wrong += " (not each time)";
  } else {
    verdict = std::move(again);
  }
  Kind& kind = kinds_[kind_of(trial.name, verdict.wrong)];
  ++kind.count;
  if (!kind.text.empty() && small.graph.size() >= kind.size) return;
  kind.size = small.graph.size();
  kind.text = "seed " + std::to_string(seed) + "\n" + small.str() + verdict.wrong + "\n" + verdict.after;
}

std::ostream& operator<<(std::ostream& out, const HostileRun& run) {
  for (const auto& [name, kind] : run.kinds_) out << "── " << kind.count << " × " << name << "\n" << kind.text << "\n";
  return out;
}

}  // namespace fx::testing
