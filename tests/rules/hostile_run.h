// Runs of hostile programs (testing/hostile): how many, and what is told of those that come out wrong.
//
//   FXGRAPH_HOSTILE_PROGRAMS=1000000 FXGRAPH_HOSTILE_SEED=1 build/dev/tests/fxgraph_rules_test
//   --gtest_filter='Hostile*'
//
// runs as many as one likes from that seed on; by default some seconds of it. FXGRAPH_HOSTILE_TRACE=1 names each seed
// before it is tried, for crashes.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include <fxgraph/matchers/pattern.h>
#include <fxgraph/testing/hostile/judge.h>
#include "tests/program/quiet.h"
#include "tests/support/night.h"

namespace fx::testing {

/// What one program is tried with: how it is rewritten, and how that is called.
struct Trial {
  hostile::HostileProgram program;
  hostile::Rewrite rewrite;
  std::string name;
  /// Makes the rewrite smaller for a program that it gets wrong; may be left out.
  std::function<void(Trial&)> simplify{};
};

/// What the rules of these names look for, and the programs that they are tested on. Lives for ever.
const std::vector<Pattern>& patterns_of(const std::vector<std::string>& names);

class HostileRun {
 public:
  /// `usual` programs, by day a tenth, unless the environment says otherwise: PREFIX_PROGRAMS, PREFIX_SEED.
  explicit HostileRun(std::uint64_t usual, const std::string& prefix = "FXGRAPH_HOSTILE");

  /// Tries `make(seed)` for all seeds. Prints how many there were, and how many the rewrite changed.
  void run(const std::function<Trial(std::uint64_t seed)>& make);

  std::uint64_t programs() const { return programs_; }
  std::uint64_t changed() const { return changed_; }
  std::uint64_t wrong() const { return wrong_; }
  /// Each kind of failure once, with its smallest program and seed.
  friend std::ostream& operator<<(std::ostream& out, const HostileRun& run);

 private:
  struct Kind {
    std::size_t count = 0, size = 0;
    std::string text;
  };
  void note(std::uint64_t seed, Trial trial, hostile::Verdict verdict);

  Quiet quiet_;
  std::uint64_t programs_, first_;
  std::uint64_t changed_ = 0, wrong_ = 0, unsteady_ = 0;
  std::map<std::string, Kind> kinds_;
};

}  // namespace fx::testing
