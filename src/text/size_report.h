// SizeReport: for which sizes of its inputs a traced graph holds.
//
//   std::cout << gm->sizes();
//
//   x[0] free
//   x[1] = 3: conv1.weight (aten::conv2d): expected input to have 3 channels
//   x[2], x[3] free in steps of 32, probed at 32, 96 and 448: aten::cat: Sizes of tensors must match
//   y[0] = x[0] * x[2]: aten::add.Tensor: The size of tensor a (6) must match the size of tensor b (11)
//
// A trace notes it on the placeholders; for a graph that was read from a file it is what its assertions say. Cost:
// linear in the graph.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include <fxgraph/ir/graph.h>

namespace fx {

/// What is known of some dimensions, which are always equal.
struct SizeStatement {
  /// What is known.
  enum class Kind : std::uint8_t {
    any,    ///< every size that the operators take
    steps,  ///< multiples of `value`
    fixed,  ///< `value`
    tied,   ///< what `expression` is
    noted,  ///< what the message of an assertion says
  };
  Kind kind = Kind::any;   ///< which of the kinds above
  std::string dimensions;  ///< `x[0]`, `x[0] = y[0]`; of `noted`: the message
  std::int64_t value = 0;  ///< the size, or the step; 0 for the other kinds
  std::string expression;  ///< of the sizes of other dimensions: `2 * x[0] + 1`; empty for the other kinds
  std::string why;         ///< who decides that: `conv1.weight (aten::conv2d): …`; empty when nothing does
  /// Other sizes at which the program was run and did the same, ascending. Empty for a program that never asks for
  /// sizes: it holds by construction, wherever its operators do; and for the kinds that do not vary by themselves.
  std::vector<std::int64_t> probed{};

  /// One line: `x[1] = 3: conv1.weight …`, `x[0] free, probed at 1, 3 and 14`.
  std::string str() const;
};

/// The statements of one graph; see the top of this file.
class SizeReport {
 public:
  SizeReport() = default;
  /// Collects what `graph` says; the graph may go afterwards.
  explicit SizeReport(const Graph& graph);

  /// In the order of the inputs and their dimensions.
  const std::vector<SizeStatement>& statements() const { return statements_; }
  /// How many dimensions there are in statements of this kind.
  std::size_t count(SizeStatement::Kind kind) const;
  /// One statement a line.
  std::string str() const;

 private:
  std::vector<SizeStatement> statements_;
};

/// Prints str().
std::ostream& operator<<(std::ostream& out, const SizeReport& report);

namespace meta_key {
/// std::vector<SizeStatement>, on the placeholder whose dimension comes first.
inline constexpr const char* kSizes = "sizes";
}  // namespace meta_key

}  // namespace fx
