// Pickles of values, beside a record of memory that they may refer to: a value whose tensors lie inside of their
// memory, or one line that says why not.
#include <fxgraph/run/stored_values.h>

#include <ATen/ATen.h>

#include <utility>
#include <vector>

#include "tests/fuzz/fuzz.h"
#include "tests/support/allocations.h"
#include "tests/support/zip_of.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fx::testing::limit_allocations(std::size_t{1} << 31);
  const std::string pickle(fx::fuzz::text_of(data, size)), memory(96, '\1');
  const auto value = fx::fuzz::made_or_refused([&] {
    fx::ArchiveReader archive(
        "values.pt",
        fx::testing::zip_of({{"data.pkl", pickle}, {"data/0", memory}, {"data/1", memory}, {"version", "3\n"}}));
    return fx::stored_value(archive);
  });
  if (!value) return 0;
  std::vector<c10::IValue> parts = {*value};
  while (!parts.empty()) {
    const c10::IValue part = std::move(parts.back());
    parts.pop_back();
    if (part.isList()) {
      for (const c10::IValue& each : part.toListRef()) parts.push_back(each);
    } else if (part.isTuple()) {
      for (const c10::IValue& each : part.toTupleRef().elements()) parts.push_back(each);
    } else if (part.isGenericDict()) {
      for (const auto& each : part.toGenericDict()) parts.push_back(each.value());
    }
    if (!part.isTensor() || !part.toTensor().defined() || part.toTensor().layout() != at::kStrided) continue;
    const at::Tensor& tensor = part.toTensor();
    std::int64_t last = tensor.storage_offset();
    for (std::int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
    fx::fuzz::expect(
        tensor.numel() == 0 || static_cast<std::size_t>(last + 1) * tensor.itemsize() <= tensor.storage().nbytes(),
        "a tensor lies inside of its memory");
    fx::fuzz::expect(tensor.storage().nbytes() <= memory.size(), "memory is as large as its record");
  }
  return 0;
}
