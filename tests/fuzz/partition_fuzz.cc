// What describes a message between the workers of a pipeline: sizes that some memory has, or one line that says why
// not.
#include <fxgraph/rewriter/partition/wire.h>

#include <cstring>

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::int64_t> words(size / sizeof(std::int64_t));
  if (words.empty()) return 0;
  std::memcpy(words.data(), data, words.size() * sizeof(std::int64_t));
  const auto described = fx::fuzz::made_or_refused([&] { return fx::read_description(words, 1); });
  if (!described) return 0;
  fx::fuzz::expect(described->values.size() + described->notes.size() <= words.size(),
                   "nothing comes that was not sent");
  for (const fx::DescribedValue& value : described->values) {
    std::int64_t last = 0, numel = 1;
    for (std::size_t i = 0; i < value.sizes.size(); ++i) {
      fx::fuzz::expect(value.sizes[i] >= 0 && value.strides.at(i) >= 0, "sizes and strides are not negative");
      fx::fuzz::expect(!__builtin_mul_overflow(numel, value.sizes[i] ? value.sizes[i] : 1, &numel),
                       "elements are a number");
      last += value.sizes[i] ? (value.sizes[i] - 1) * value.strides[i] : 0;
      fx::fuzz::expect(last >= 0 && last < (std::int64_t{1} << 46), "its memory is no larger than any");
    }
  }
  return 0;
}
