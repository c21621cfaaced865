// What the tables of programs at other sizes share: a model is traced at one example and run beside a twin at other
// inputs, in both modes, with gradients, in other types, twice over.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/trace/trace_testing.h"

namespace fx::testing {

using Tensors = std::vector<torch::Tensor>;

/// A model of one to three tensors; models derive from it, so that one tracer serves all.
struct Model : torch::nn::Module {
  virtual torch::Tensor forward(torch::Tensor x) = 0;
};
struct Model2 : torch::nn::Module {
  virtual torch::Tensor forward(torch::Tensor x, torch::Tensor y) = 0;
};

struct ProgramCase {
  const char* name;
  std::function<std::shared_ptr<torch::nn::Module>()> make;
  std::vector<std::function<Tensors()>> inputs;  ///< the first is the example
  /// How many of the inputs the graph has to take; the others may be refused by name.
  std::size_t taken;
  /// Dimensions that are named to the trace, where it does not find by itself that they vary: `x[0]`. Without them it
  /// has to take the example only.
  std::vector<std::string> vary{};
};
inline std::ostream& operator<<(std::ostream& out, const ProgramCase& c) { return out << c.name; }

/// Fails the test where the program is wrong, or refused at more of its inputs than it may be.
void expect_holds_at_other_sizes(const ProgramCase& c);

/// `| Fpn | [2, 3, 32, 32] | 3 | 0 | 0 | 1 |`: how many dimensions of a program are free, tied, in steps, fixed.
std::string row_of_sizes(const ProgramCase& c);

const std::vector<ProgramCase>& vision_programs();
const std::vector<ProgramCase>& image_programs();
const std::vector<ProgramCase>& sequence_programs();

}  // namespace fx::testing
