// Declarations of operators: read, or refused. What is printed reads back as it was printed.
#include <fxgraph/ops/schema.h>

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto schema = fx::fuzz::made_or_refused([&] { return fx::parse_schema(fx::fuzz::text_of(data, size)); });
  if (!schema) return 0;
  const std::string printed = schema->str();
  const auto again = fx::fuzz::made_or_refused([&] { return fx::parse_schema(printed); });
  fx::fuzz::expect(again && again->str() == printed, "a printed schema reads back", printed);
  return 0;
}
