// Edits of a graph, chosen by the bytes: after each the graph is what a model of vectors says.
#include <span>

#include "tests/fuzz/fuzz.h"
#include "tests/ir/edit_model.h"

namespace {

/// One byte a choice; 0 when there are no more.
class Bytes {
 public:
  explicit Bytes(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  std::size_t below(std::size_t bound) {
    if (bytes_.empty() || bound == 0) return 0;
    const std::size_t choice = bytes_.front() % bound;
    bytes_ = bytes_.subspan(1);
    return choice;
  }
  bool chance(unsigned percent) { return below(100) < percent; }

 private:
  std::span<const std::uint8_t> bytes_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  GTEST_FLAG_SET(throw_on_failure, true);
  // An edit takes three choices and more.
  fx::testing::EditModel(Bytes({data, size})).run(static_cast<int>(size < 600 ? size / 3 : 200));
  return 0;
}
