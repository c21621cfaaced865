// Archives changed at random, several changes at a time, in the JSON, the records and the zip: each loads and runs, or
// is refused with an Error of one line that names the file; it never takes memory that the file has no bytes for.
// FXGRAPH_FUZZ_TRIES=N and FXGRAPH_FUZZ_SEED=S try more of each archive, and others.
#include <cstdlib>

#include "tests/pt2/attempt.h"
#include "tests/pt2/mutator.h"
#include "tests/support/night.h"

namespace fx::fuzz_test {

using namespace fx::testing;

int number_of(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : otherwise;
}

class FuzzedArchive : public ::testing::TestWithParam<std::string> {
 protected:
  // `changed(mutator)` makes an archive of each seed.
  template <typename Changed>
  static void try_all(const Changed& changed) {
    const int first = number_of("FXGRAPH_FUZZ_SEED", 1),
              tries = number_of("FXGRAPH_FUZZ_TRIES", static_cast<int>(by_night(8)));
    for (int seed = first; seed < first + tries; ++seed) {
      Mutator mutator(static_cast<unsigned>(seed));
      const std::string bytes = changed(mutator);
      const Attempt attempt = attempted(bytes, GetParam());
      EXPECT_EQ(attempt.fault, "") << "FXGRAPH_FUZZ_SEED=" << seed << " FXGRAPH_FUZZ_TRIES=1";
    }
  }
};

TEST_P(FuzzedArchive, Json) {
  const Records whole = records_of(GetParam());
  std::vector<std::size_t> documents;  // the program stands in it often: there is most to change in it
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (whole[i].first.ends_with(".json")) documents.insert(documents.end(), whole[i].second.size() > 1000 ? 4 : 1, i);
  }
  try_all([&](Mutator& mutator) {
    Records records = whole;
    std::string& record = records[mutator.one_of(documents)].second;
    Json document = Json::parse(record);
    try {
      for (std::size_t i = mutator.below(3); i < 3; ++i) mutator.change(document);
    } catch (const Json::exception&) {  // a change made another impossible
    }
    record = document.dump();
    return zip_of(records);
  });
}

TEST_P(FuzzedArchive, Records) {
  const testing::Records whole = records_of(GetParam());
  try_all([&](Mutator& mutator) {
    testing::Records records = whole;
    for (std::size_t i = mutator.below(3); i < 3; ++i) mutator.change(records);
    return zip_of(records);
  });
}

TEST_P(FuzzedArchive, Bytes) {
  const std::string whole = file_text(archive_of(GetParam()));
  try_all([&](Mutator& mutator) {
    std::string bytes = whole;
    for (std::size_t i = mutator.below(4); i < 4; ++i) mutator.damage(bytes);
    return bytes;
  });
}

INSTANTIATE_TEST_SUITE_P(Corpus, FuzzedArchive, ::testing::ValuesIn(archives()), archive_test_name);

}  // namespace fx::fuzz_test
