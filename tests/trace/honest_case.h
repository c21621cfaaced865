// One row of the tables of programs that tracers get wrong, and what becomes of its trace.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "tests/trace/bag_module.h"
#include "tests/trace/honesty.h"

namespace fx::testing {

struct HonestCase {
  const char* name;
  const char* want;  ///< how the verdict begins; empty: right or refused
  Bag::Step step;
  bool training = false;
};
inline std::ostream& operator<<(std::ostream& out, const HonestCase& c) { return out << c.name; }

/// Traces a Bag that does the row's step, on the first of the inputs, and compares on all.
inline void expect_honest(const HonestCase& c, const std::vector<Inputs>& inputs) {
  expect_honest(
      c.want,
      [&] {
        auto module = std::make_shared<Bag>(c.step);
        module->train(c.training);
        return module;
      },
      [](Bag& module, Inputs& in) -> c10::IValue { return module.forward(in[0].toTensor()); }, inputs);
}

/// Two of the size of the example, one with negative numbers.
inline std::vector<Inputs> two_inputs() { return {{torch::rand({2, 3})}, {torch::rand({2, 3}) - 0.5}}; }

}  // namespace fx::testing
