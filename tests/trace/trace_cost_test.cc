// What a trace that holds for every size costs beside one for the sizes of its examples, in processor time. To make a
// child process takes as long as the process is large, here larger than what is measured: none is made.
#include <dlfcn.h>
#include <unistd.h>

#include <ctime>

#include <algorithm>

#include "tests/trace/cost_models.h"
#include "tests/trace/size_models.h"
#include "tests/trace/torch_models.h"
#include "tests/trace/trace_testing.h"

namespace fx::trace_cost_test {

bool may_fork = true;

struct WithoutChildren {
  WithoutChildren() { may_fork = false; }
  ~WithoutChildren() { may_fork = true; }
  WithoutChildren(const WithoutChildren&) = delete;
  WithoutChildren& operator=(const WithoutChildren&) = delete;
};

// In the place of the C library's.
extern "C" pid_t fork() {
  static const auto theirs = reinterpret_cast<pid_t (*)()>(dlsym(RTLD_NEXT, "fork"));
  return may_fork ? theirs() : -1;
}

using torch::Tensor;

double seconds_of(const std::function<void()>& work) {
  const std::clock_t begin = std::clock();
  work();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

// The least of several, taken turn by turn: what else runs on the machine makes both slower.
double ratio(const std::function<void()>& work, const std::function<void()>& beside) {
  const WithoutChildren none;
  double mine = 1e9, other = 1e9;
  for (int i = 0; i < 7; ++i) {
    other = std::min(other, seconds_of(beside));
    mine = std::min(mine, seconds_of(work));
  }
  return mine / other;
}

TraceOptions plain() {
  TraceOptions options;
  options.sizes = Sizes::fixed;
  return options;
}

TEST(TraceCostSlow, IsLinear) {
  const auto nodes = [](int count) {
    return [count](Tensor x) {
      for (int i = 0; i < count; ++i) x = (x * 2).view({x.size(1), -1}) + x.size(0);
      return x;
    };
  };
  const Tensor example = torch::rand({4, 4});
  const double found = ratio([&] { symbolic_trace(nodes(8000), {example}); },
                             [&] {
                               for (int i = 0; i < 8; ++i) symbolic_trace(nodes(1000), {example});
                             });
  std::cout << "8000 over 8 times 1000: " << found << "\n";
  EXPECT_LE(found, 1.5);
}

// What BM_TraceSizes and BM_TraceShapes measure: four dimensions that are tied in two pairs.
TEST(TraceCostSlow, OfAChain) {
  const std::vector<c10::IValue> examples = {torch::rand({2, 3}), torch::rand({2, 3})};
  for (const int blocks : {111, 1111, 3333}) {
    const auto chain = [blocks](Tensor x, Tensor y) {
      for (int i = 0; i < blocks; ++i) x = torch::mul(torch::relu(torch::add(x, y)), y);
      return x;
    };
    const double found =
        ratio([&] { Tracer().trace(chain, examples); }, [&] { Tracer(plain()).trace(chain, examples); });
    std::cout << "generic over plain, chain of " << 3 * blocks << ": " << found << "\n";
    EXPECT_LE(found, blocks > 1000 ? 4 : 6) << blocks;  // a millisecond is the same for all
  }
}

TEST(TraceCostSlow, OfAModule) {
  torch::nn::Sequential net;
  for (int i = 0; i < 300; ++i) {
    net->push_back(torch::nn::Linear(8, 8));
    net->push_back(torch::nn::ReLU());
  }
  const Tensor example = torch::rand({4, 8});
  const double found = ratio([&] { symbolic_trace(net, {example}); }, [&] { symbolic_trace(net, {example}, plain()); });
  std::cout << "generic over plain, module: " << found << "\n";
  EXPECT_LE(found, 4);
}

template <typename Net>
double ratio_of(const Net& net, const Tensor& example) {
  symbolic_trace(net, {example});  // what is asked once in the process is known afterwards
  return ratio([&] { symbolic_trace(net, {example}); }, [&] { symbolic_trace(net, {example}, plain()); });
}

template <typename Net>
void expect_cheap(const std::string& name, const Net& net, const Tensor& example) {
  const double found = ratio_of(net, example);
  std::cout << "generic over plain, " << name << ": " << found << "\n";
  EXPECT_LE(found, 5) << name;
}

TEST(TraceCostSlow, OfModelsThatPeopleHave) {
  expect_cheap("resnet18", testing::ResNet18(), torch::rand({2, 3, 64, 64}));
  expect_cheap("lstm", testing::LstmTagger(), torch::randint(1000, {4, 12}));
  expect_cheap("encoder", testing::TransformerClassifier(), torch::randint(1000, {12, 4}));
  expect_cheap("lstm over long texts", testing::LstmTagger(), torch::randint(1000, {8, 60}));
  expect_cheap("gpt", testing::Gpt(), torch::randint(10, {2, 8}));
}

}  // namespace fx::trace_cost_test
