// Archives changed at random, in the zip and in the JSON, several changes at a time: each loads, or is refused with an
// Error of one line that names the file; nothing larger than the file is allocated.
// FXGRAPH_FUZZ_TRIES=N and FXGRAPH_FUZZ_SEED=S try more and others.
#include <sys/resource.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "tests/pt2/damaged.h"

namespace fx::fuzz_test {

using namespace fx::testing;
using ::testing::HasSubstr;
using ::testing::Not;

int number_of(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : otherwise;
}

// What is allocated beyond this fails, and shows in the message.
class MemoryLimit {
 public:
  MemoryLimit() {
    getrlimit(RLIMIT_AS, &before_);
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit = before_;
    limit.rlim_cur = pages * 4096 + (rlim_t{512} << 20);
    setrlimit(RLIMIT_AS, &limit);
  }
  ~MemoryLimit() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  std::size_t below(std::size_t limit) { return random_() % limit; }

  void change(Json& document) {
    const Json flat = document.flatten();
    std::vector<std::string> paths;
    for (const auto& [path, value] : flat.items()) {
      if (path.find("/metadata/") == std::string::npos) paths.push_back(path);
    }
    Json::json_pointer at(paths[below(paths.size())]);
    for (std::size_t up = below(4); up > 0 && !at.parent_pointer().empty(); --up) at = at.parent_pointer();
    Json& parent = document[at.parent_pointer()];
    switch (below(6)) {
      case 0: document[at] = flat.at(paths[below(paths.size())]); break;
      case 1: document[at] = document[Json::json_pointer(paths[below(paths.size())]).parent_pointer()]; break;
      case 2: document[at] = odd_value(); break;
      case 3:
        if (parent.is_object()) parent.erase(at.back());
        if (parent.is_array()) parent.erase(std::stoul(at.back()));
        break;
      case 4:
        if (parent.is_array()) parent.push_back(Json(document[at]));
        if (parent.is_object()) parent[at.back() + "_again"] = Json(document[at]);
        break;
      default:
        if (parent.is_array() && parent.size() > 1)
          std::swap(parent[below(parent.size())], parent[below(parent.size())]);
    }
  }

  void damage(std::string& bytes) {
    const std::size_t at =
        below(3) == 0 ? below(bytes.size()) : bytes.size() - 1 - below(std::min<std::size_t>(bytes.size(), 2000));
    switch (below(4)) {
      case 0: bytes[at] ^= static_cast<char>(1 << below(8)); break;
      case 1: bytes[at] = static_cast<char>(random_()); break;
      case 2: bytes.erase(at, below(40)); break;
      default: bytes.insert(at, std::string(1 + below(40), static_cast<char>(random_())));
    }
  }

 private:
  Json odd_value() {
    const Json values[] = {nullptr,
                           -1,
                           0,
                           INT64_MAX,
                           INT64_MIN,
                           1e308,
                           "",
                           "..",
                           "../../etc/passwd",
                           "a\nb",
                           std::string(300, 'x'),
                           Json::array(),
                           Json::object(),
                           true,
                           Json::array({1, "a"})};
    return values[below(std::size(values))];
  }

  std::mt19937 random_;
};

void expect_plain(const std::string& message, int seed) {
  EXPECT_THAT(message, Not(HasSubstr("alloc"))) << seed;
  EXPECT_EQ(message.find('\n'), std::string::npos) << seed << ": " << message;
}

TEST(FuzzedArchive, Json) {
  const MemoryLimit limit;
  const int first = number_of("FXGRAPH_FUZZ_SEED", 1), tries = number_of("FXGRAPH_FUZZ_TRIES", 150);
  const char* const names[] = {"mlp",  "mlp.core", "pytree",         "cond",
                               "tied", "lstm",     "input_mutation", "buffer_mutation"};
  const char* const records[] = {"models/model.json", "models/model.json", "models/model.json",
                                 "data/weights/model_weights_config.json"};
  for (int seed = first; seed < first + tries; ++seed) {
    Mutator mutator(static_cast<unsigned>(seed));
    const std::string name = names[mutator.below(std::size(names))];
    const std::string record = records[mutator.below(std::size(records))];
    Json document = Json::parse(record_of(name, record));
    try {
      for (std::size_t i = mutator.below(3); i < 3; ++i) mutator.change(document);
    } catch (const Json::exception&) {  // a change made another impossible
    }
    expect_plain(outcome(rewritten(name, {{record, document.dump()}})), seed);
  }
}

TEST(FuzzedArchive, Bytes) {
  const MemoryLimit limit;
  const int first = number_of("FXGRAPH_FUZZ_SEED", 1), tries = number_of("FXGRAPH_FUZZ_TRIES", 150);
  const std::string whole[] = {read_file(archive_of("mlp")), read_file(archive_of("tied")),
                               read_file(archive_of("cond"))};
  for (int seed = first; seed < first + tries; ++seed) {
    Mutator mutator(static_cast<unsigned>(seed));
    std::string bytes = whole[mutator.below(std::size(whole))];
    for (std::size_t i = mutator.below(4); i < 4; ++i) mutator.damage(bytes);
    expect_plain(outcome(bytes), seed);
  }
}

}  // namespace fx::fuzz_test
