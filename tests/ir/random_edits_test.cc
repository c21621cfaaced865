// Thousands of random edits, checked after each against a model that is only vectors.
#include "tests/ir/edit_model.h"
#include "tests/support/random.h"

namespace fx::random_edits_test {

TEST(RandomEdits, AgreeWithTheModel) {
  for (std::uint64_t seed = 0; seed < 60 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    testing::EditModel(testing::Random(seed)).run(120);
  }
}

}  // namespace fx::random_edits_test
