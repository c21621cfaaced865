// One call in another spelling: ATen, torch.*, operator.*, methods, keywords, defaults written out.
// Internal to this library and the tests.
#pragma once

#include <string>
#include <vector>

#include <fxgraph/ops/schema.h>
#include <fxgraph/support/random.h>

namespace fx::hostile {

using internal::Random;

struct Spelling {
  Op op = Op::call_function;
  std::string target;
  std::vector<Argument> args;
  std::vector<NamedArgument> kwargs;
};

/// Spells the call of `schema` in another way, of which most do the same: what it means is what running it does.
Spelling respell(Random& random, const OperatorSchema& schema, Spelling call);

}  // namespace fx::hostile
