// Hostile programs (testing/hostile) one after the other, for tests that are no rewrite of a module in place.
// FXGRAPH_HOSTILE_PROGRAMS and FXGRAPH_HOSTILE_SEED ask for more, and others.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

#include <fxgraph/testing/hostile/behaviour.h>
#include <fxgraph/testing/hostile/generator.h>
#include "tests/program/quiet.h"
#include "tests/support/night.h"

namespace fx::testing {

/// Tries `action(program, seed)` on those of `usual` programs (by day of a tenth) that run; it returns what is wrong,
/// or nothing.
template <typename Action>
void on_hostile_programs(std::uint64_t usual, const hostile::DrawOptions& options, Action&& action) {
  const Quiet quiet;
  const std::uint64_t first = environment_number("FXGRAPH_HOSTILE_SEED", 0);
  const std::uint64_t count = environment_number("FXGRAPH_HOSTILE_PROGRAMS", by_night(usual));
  std::uint64_t ran = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const hostile::HostileProgram program = hostile::draw_program(seed, options);
    if (!hostile::runs(program)) continue;
    ++ran;
    std::optional<std::string> wrong;
    try {
      wrong = action(program, seed);
    } catch (const std::exception& error) {
      wrong = std::string("it throws: ") + error.what();
    }
    ASSERT_FALSE(wrong) << "seed " << seed << ": " << *wrong << "\n" << program.str();
  }
  EXPECT_GT(ran * 2, count);
}

}  // namespace fx::testing
