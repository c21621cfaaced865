// Literals of a program: made anew in each call where the program writes them, through whatever view, or returns them.
#include <functional>
#include <string>

#include "tests/trace/trace_testing.h"

namespace fx::literals_test {

using torch::Tensor;

struct Maker {
  const char* name;
  std::function<Tensor()> make;
};
const Maker kMakers[] = {
    {"list",
     [] {
       return torch::tensor({1.0F, 2.0F, 3.0F, 4.0F});
     }},
    {"nested",
     [] {
       return torch::tensor({{1.0F, 2.0F}, {3.0F, 4.0F}}).view({4});
     }},
    {"vector",
     [] {
       return torch::tensor(std::vector<float>{1, 2, 3, 4});
     }},
    {"other_type",
     [] {
       return torch::tensor({1, 2, 3, 4}, torch::kFloat);
     }},
    {"range", [] { return torch::arange(4, torch::kFloat); }},
    {"zeros", [] { return torch::zeros({4}); }},
};

struct Writer {
  const char* name;
  std::function<Tensor(Tensor t, Tensor x)> run;  // of four elements and of two
};
const Writer kWriters[] = {
    {"element", [](Tensor t, Tensor x) { return t[0] = x.sum(), t * 1; }},
    {"element_added", [](Tensor t, Tensor x) { return t[1] += x.sum(), t * 1; }},
    {"detached", [](Tensor t, Tensor x) { return t.detach()[2] = x.sum(), t * 1; }},
    {"slice", [](Tensor t, Tensor x) { return t.slice(0, 1, 3).copy_(x), t * 1; }},
    {"chunk", [](Tensor t, Tensor x) { return t.chunk(2)[1].mul_(x), t * 1; }},
    {"view",
     [](Tensor t, Tensor x) {
       return t.view({2, 2}).add_(x), t * 1;
     }},
    {"transposed",
     [](Tensor t, Tensor x) {
       return t.view({2, 2}).t().add_(x), t * 1;
     }},
    {"one_after_the_other",
     [](Tensor t, Tensor x) {
       for (int i = 1; i < 4; ++i) t[i] = t[i - 1] * x.sum();
       return t * 1;
     }},
    {"whole", [](Tensor t, Tensor x) { return t.mul_(x.sum()) + 1; }},
    {"handle", [](Tensor t, Tensor x) { return Tensor(t).fill_(7), t * x.sum(); }},
    {"view_is_returned", [](Tensor t, Tensor x) { return t.add_(x.sum()).slice(0, 0, 2); }},
};

TEST(Literals, AreMadeAnewWhereTheyAreWritten) {
  for (const Maker& maker : kMakers) {
    for (const Writer& writer : kWriters) {
      const auto program = [&](Tensor x) { return writer.run(maker.make(), x); };
      for (const bool has_examples : {true, false}) {
        const auto gm = symbolic_trace(
            program, has_examples ? std::vector<c10::IValue>{torch::ones({2})} : std::vector<c10::IValue>{});
        for (const double factor : {1.0, 3.0, 1.0}) {
          const Tensor x = torch::ones({2}) * factor;
          const Tensor found = gm->forward(x);
          EXPECT_TRUE(testing::same_value(found, program(x))) << maker.name << " " << writer.name << gm->graph();
          found.fill_(9);  // it is the caller's
        }
      }
    }
  }
}

TEST(Literals, ThatAreReturnedAreTheCallersToWrite) {
  for (const Maker& maker : kMakers) {
    const auto gm = symbolic_trace(
        [&](Tensor x) {
          const Tensor t = maker.make();
          return std::make_tuple(x * t, t);
        },
        {torch::ones({4})});
    const auto second = [&] { return gm->run({torch::ones({4})}).toTupleRef().elements()[1].toTensor(); };
    second().fill_(9);
    EXPECT_TRUE(testing::same_value(second(), maker.make())) << maker.name << gm->graph();
  }
}

// The number asked for is not the number given.
TEST(Literals, ChunkWithoutExamplesIsChecked) {
  const auto gm = symbolic_trace([](Tensor x) {
    const std::vector<Tensor> parts = x.chunk(4, 1);
    return torch::cat({parts.front(), parts.back()}, 1);
  });
  EXPECT_EQ(gm->forward(torch::rand({2, 8})).size(1), 4);
  EXPECT_FX_ERROR(gm->forward(torch::rand({2, 9})), execution, ::testing::HasSubstr("must be of 4 parts"));
}

}  // namespace fx::literals_test
