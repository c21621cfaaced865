// What an operator makes of sizes, element types and strides, and under which conditions, without LibTorch.
//
//   fx::InferredCall made = fx::infer(schema, {x, weight}, facts);
//   made.results[0].tensor()->sizes      // [2*batch, 64]
//   made.conditions                      // x[1] must be 512
//
// Each operator has one row, which numbers and expressions go through alike: what is required of numbers is checked,
// of expressions it is proved or becomes a condition. Where two sizes broadcast that nothing decides, nothing is
// assumed: the result has a size of its own, a new symbol.
//
// Thread-safety: reads tables only. Cost: linear in the arguments.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/ops/records/abstract_value.h>
#include <fxgraph/ops/schema.h>
#include <fxgraph/symbolic/size_facts.h>

namespace fx {

/// What is known of a call.
struct InferredCall {
  /// What came of it.
  enum class Outcome : std::uint8_t {
    known,    ///< the results are, under the conditions
    unknown,  ///< the operator has no row, or too little is known of the arguments
    refused,  ///< the operator takes no such arguments
  };
  Outcome outcome = Outcome::unknown;       ///< what came of it
  std::vector<AbstractValue> results{};     ///< as many as the operator has, when `known`
  std::vector<SizeCondition> conditions{};  ///< what must hold of symbols, else the operator refuses
  bool of_rank = false;                     ///< unknown because sizes decide how many dimensions there are
  std::string why{};                        ///< of `unknown` and `refused`
  bool of_types = false;                    ///< refused for element types, whatever the sizes are
  std::string unsaid{};                     ///< of `known`: what else the operator asks, which is no condition of sizes
};

/// New symbols for sizes that only data or other runs tell.
class FreshSymbols {
 public:
  /// They are called u0, u1, …
  SizeExpr next(SizeFacts& facts, SizeRange range);
  bool empty() const { return count_ == 0; }  ///< true when there were none

 private:
  std::int64_t count_ = 0;
};

/// What the call of an operator with these arguments, one for each of schema.arguments, gives. In-place operators give
/// what they write.
InferredCall infer(const OperatorSchema& schema, std::span<const AbstractValue> arguments, SizeFacts& facts,
                   FreshSymbols& fresh);

/// True when the operator has a row.
bool has_size_row(const OperatorSchema& schema);

}  // namespace fx
