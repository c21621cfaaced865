// Members that are named in TraceOptions::state: put back after each run, and written by the graph where they are
// tensors.
#include "tests/trace/bag_module.h"
#include "tests/trace/trace_testing.h"

namespace fx::state_members_test {

using testing::Bag;
using torch::Tensor;

TEST(StateMembers, NamedMembersAreBuffersThatTheGraphWrites) {
  const auto step = [](Bag& m, Tensor x) {
    m.table = m.table * 0.5 + x.detach().mean(0, true);
    return x - m.table;
  };
  torch::manual_seed(0);
  const auto net = std::make_shared<Bag>(step);
  torch::manual_seed(0);
  const auto twin = std::make_shared<Bag>(step);
  TraceOptions options;
  options.state = {{"table", &net->table}};
  const Tensor before = net->table;
  const auto gm = symbolic_trace(net, {torch::rand({2, 3})}, options);
  EXPECT_TRUE(net->table.is_same(before));
  EXPECT_TRUE(gm->find_attribute("table").defined());
  for (int i = 0; i < 3; ++i) {
    const Tensor x = torch::rand({2, 3});
    EXPECT_TRUE(testing::same_value(gm->forward(x), twin->forward(x), 1e-6)) << i;
  }
  EXPECT_FX_ERROR(symbolic_trace(net, {torch::rand({2, 3})}), trace, ::testing::HasSubstr("TraceOptions::state"));
}

// Each kind of member, and each of them put back.
TEST(StateMembers, MembersOfAllKindsArePutBack) {
  struct Cache : torch::nn::Module {
    Tensor mask;
    c10::optional<Tensor> last;
    std::vector<Tensor> states = {torch::ones({3}), torch::zeros({3})};
    std::int64_t length = 0;
    double scale = 1;
    bool is_filled = false;
    Tensor forward(Tensor x) {
      if (length != x.size(0)) {
        length = x.size(0);
        mask = torch::ones({length, 1});
      }
      is_filled = true;
      last = x * 2;
      const Tensor y = x * mask + states[0] + states[1];
      states[0] = y.sum(0).detach();
      return y;
    }
  };
  const auto net = std::make_shared<Cache>(), twin = std::make_shared<Cache>();
  TraceOptions options;
  options.state = {{"mask", &net->mask},     {"last", &net->last},   {"states", &net->states},
                   {"length", &net->length}, {"scale", &net->scale}, {"is_filled", &net->is_filled}};
  const std::vector<Tensor> before = net->states;
  const auto gm = symbolic_trace(net, {torch::rand({2, 3})}, options);
  EXPECT_FALSE(net->mask.defined() || net->last || net->is_filled || net->length != 0);
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(net->states[i].is_same(before[i])) << i;
  for (const std::int64_t rows : {2, 5, 3}) {
    const Tensor x = torch::rand({rows, 3});
    EXPECT_TRUE(testing::same_value(gm->forward(x), twin->forward(x), 1e-6)) << rows;
  }
}

// A number that later calls read changed is no state of a graph.
TEST(StateMembers, NumbersThatAreReadAreRefused) {
  struct Slots : torch::nn::Module {
    std::int64_t next = 0;
    Tensor slots = register_buffer("slots", torch::zeros({4, 3}));
    Tensor forward(Tensor x) {
      slots.select(0, next++ % 4).copy_(x);
      return slots.sum(0);
    }
  };
  const auto net = std::make_shared<Slots>();
  TraceOptions options;
  options.state = {{"next", &net->next}};
  EXPECT_FX_ERROR(symbolic_trace(net, {torch::rand({3})}, options), trace, ::testing::HasSubstr("second call"));
  EXPECT_EQ(net->next, 0);
}

}  // namespace fx::state_members_test
