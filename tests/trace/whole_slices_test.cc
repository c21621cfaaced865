// Slices that are left out where they are the whole: `table.index({Slice(0, n)})` calls no operator at the last n. The
// trace holds there, too, and for every other size.
#include "tests/trace/sizes_testing.h"

namespace fx::whole_slices_test {

using testing::AtSizes;
using torch::Tensor;
using torch::indexing::None;
using torch::indexing::Slice;

constexpr std::int64_t kLongest = 12;

struct Tables : torch::nn::Module {
  Tensor rows = register_buffer("rows", torch::rand({kLongest, 4}));
  Tensor positions = register_buffer("positions", torch::arange(kLongest).unsqueeze(0));
  Tensor square = register_buffer("square", torch::rand({1, 1, kLongest, kLongest}));
  torch::nn::Embedding embedding = register_module("embedding", torch::nn::Embedding(kLongest, 4));
};

struct Sliced {
  const char* name;
  Tensor (*program)(Tables& tables, Tensor x);  // of (batch, length, 4)
};
std::ostream& operator<<(std::ostream& out, const Sliced& each) { return out << each.name; }

class WholeSlices : public ::testing::TestWithParam<Sliced> {};

TEST_P(WholeSlices, AreNoOtherProgram) {
  const auto tables = std::make_shared<Tables>();
  const auto program = [&](Tensor x) { return GetParam().program(*tables, x); };
  for (const std::int64_t length : {std::int64_t{5}, std::int64_t{8}, kLongest}) {
    const auto gm = symbolic_trace(tables, program, {torch::rand({2, length, 4})});
    for (const std::int64_t batch : {1, 2, 7}) {
      for (std::int64_t n = 1; n <= kLongest; ++n) {
        const Tensor x = torch::rand({batch, n, 4});
        EXPECT_EQ(testing::at_sizes(
                      *gm, [&]() -> c10::IValue { return program(x); }, {x}, 0),
                  AtSizes::equal)
            << batch << " x " << n << " from " << length << "\n"
            << gm->sizes() << gm->graph();
      }
    }
  }
}

const std::vector<Sliced>& cases() {
  static const auto& table = *new std::vector<Sliced>{
      {"rows", [](Tables& t, Tensor x) { return x + t.rows.index({Slice(None, x.size(1))}); }},
      {"rows_first",
       [](Tables& t, Tensor x) {
         const Tensor rows = t.rows.index({Slice(0, x.size(1))});
         return torch::relu(x * 2) + rows;
       }},
      {"embedded_positions",
       [](Tables& t, Tensor x) {
         const Tensor positions = t.positions.index({Slice(), Slice(0, x.size(1))});
         return torch::sigmoid(x) + t.embedding(positions);
       }},
      {"mask",
       [](Tables& t, Tensor x) {
         const std::int64_t n = x.size(1);
         const Tensor scores = torch::matmul(x, x.transpose(1, 2)).unsqueeze(1);
         const Tensor mask = t.square.index({Slice(), Slice(), Slice(None, n), Slice(None, n)});
         return torch::softmax(scores.masked_fill(mask < 0.5, -1e9), -1);
       }},
      {"causal",
       [](Tables& t, Tensor x) {
         const std::int64_t n = x.size(1);
         const Tensor scores = x.bmm(x.transpose(1, 2));
         const Tensor mask = t.square[0][0].index({Slice(None, n), Slice(None, n)}) < 0.5;
         return torch::softmax(scores.masked_fill(mask, -1e9), -1).bmm(x);
       }},
      {"twice",
       [](Tables& t, Tensor x) {
         return x + t.rows.index({Slice(0, x.size(1))}) * t.rows.index({Slice(0, x.size(1)), Slice(0, 4)});
       }},
      {"of_a_value",
       [](Tables& t, Tensor x) {
         const Tensor all = torch::cat({x, x * 2}, 1);
         return all.index({Slice(), Slice(0, x.size(1))}) + t.rows.slice(0, 0, x.size(1));
       }},
  };
  return table;
}

INSTANTIATE_TEST_SUITE_P(Programs, WholeSlices, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

struct Cropped {
  const char* name;
  Tensor (*program)(Tensor x);  // of images
};
std::ostream& operator<<(std::ostream& out, const Cropped& each) { return out << each.name; }

class CroppedBack : public ::testing::TestWithParam<Cropped> {};

std::int64_t missing(std::int64_t size) { return (8 - size % 8) % 8; }

// What an example of such a size leaves out is in the graph: it is traced at others.
TEST_P(CroppedBack, HoldsForExamplesThatNeedNoPadding) {
  const auto program = [&](Tensor x) { return GetParam().program(x); };
  for (const auto& [height, width] : std::vector<std::pair<std::int64_t, std::int64_t>>{{16, 24}, {16, 21}, {9, 13}}) {
    const Tensor example = torch::rand({2, 3, height, width}), before = example.clone();
    Trace trace = Tracer().trace(program, {example});
    const Node& x = *trace.graph.placeholders().front();
    EXPECT_THAT(trace.shapes[x].tensor()->sizes, ::testing::ElementsAre(2, 3, height, width));
    EXPECT_TRUE(torch::equal(example, before));
    const auto gm = to_graph_module(std::move(trace));
    for (const std::int64_t h : {1, 5, 8, 9, 16, 30}) {
      for (const std::int64_t w : {1, 7, 8, 16, 19}) {
        const Tensor image = torch::rand({3, 3, h, w});
        EXPECT_EQ(testing::at_sizes(
                      *gm, [&]() -> c10::IValue { return program(image); }, {image}, 0),
                  AtSizes::equal)
            << h << " x " << w << " from " << height << " x " << width << "\n"
            << gm->sizes() << gm->graph();
      }
    }
  }
}

const std::vector<Cropped>& croppings() {
  using torch::constant_pad_nd;
  static const auto& table = *new std::vector<Cropped>{
      {"one_side",
       [](Tensor x) {
         const Tensor y = constant_pad_nd(x, {0, 0, 0, missing(x.size(2))}).relu();
         return y.index({Slice(), Slice(), Slice(0, x.size(2))});
       }},
      {"two_sides",
       [](Tensor x) {
         const Tensor y = constant_pad_nd(x, {0, missing(x.size(3)), 0, missing(x.size(2))}).relu();
         return y.index({Slice(), Slice(), Slice(0, x.size(2)), Slice(None, x.size(3))}) + 1;
       }},
      {"centre",
       [](Tensor x) {
         const std::int64_t below = missing(x.size(2)), right = missing(x.size(3));
         const std::int64_t top = below / 2, left = right / 2;
         const Tensor y = constant_pad_nd(x, {left, right - left, top, below - top}).relu();
         const std::int64_t bottom = y.size(2) - (below - top), end = y.size(3) - (right - left);
         return y.index({torch::indexing::Ellipsis, Slice(top, bottom), Slice(left, end)});
       }},
      {"rows_written_into",
       [](Tensor x) {
         const Tensor rows = x.permute({2, 0, 1, 3});
         Tensor batch = torch::zeros({rows.size(0) + missing(rows.size(0)), rows.size(1), 3, rows.size(3)});
         batch.index_put_({Slice(None, rows.size(0))}, rows);
         return batch.index_put_({Slice(None, rows.size(0))}, rows.relu()) * 2 + batch;
       }},
      {"written_into",
       [](Tensor x) {
         const std::int64_t h = x.size(2) + missing(x.size(2)), w = x.size(3) + missing(x.size(3));
         Tensor batch = torch::zeros({x.size(0), 3, h, w});
         batch.index_put_({Slice(), Slice(), Slice(None, x.size(2)), Slice(None, x.size(3))}, x);
         return batch * 2;
       }},
  };
  return table;
}

INSTANTIATE_TEST_SUITE_P(Programs, CroppedBack, ::testing::ValuesIn(croppings()),
                         [](const auto& info) { return std::string(info.param.name); });

// What a number cuts is whole where there is no more.
TEST(WholeSlicesOfInputs, ByANumber) {
  const auto program = [](Tensor x) { return x.index({Slice(), Slice(0, 6)}) * 2; };
  const auto gm = symbolic_trace(program, {torch::rand({3, 9})});
  for (const std::int64_t n : {6, 7, 9, 30}) {
    const Tensor x = torch::rand({5, n});
    EXPECT_NE(testing::at_sizes(
                  *gm, [&]() -> c10::IValue { return program(x); }, {x}, 0),
              AtSizes::wrong)
        << n << gm->graph();
  }
}

// Masks only from two on.
TEST(LowerBounds, AreWhereTheProgramGoesAnotherWay) {
  for (const std::int64_t least : {2, 4}) {
    for (const std::int64_t length : {6, 20}) {
      const auto program = [&](Tensor x) { return x.size(1) >= least ? x * 2 + torch::ones({x.size(1)}) : x * 2; };
      const auto gm = symbolic_trace(program, {torch::rand({2, length})});
      for (std::int64_t n = 1; n < 9; ++n) {
        const Tensor x = torch::rand({3, n});
        const AtSizes outcome = testing::at_sizes(
            *gm, [&]() -> c10::IValue { return program(x); }, {x}, 0);
        if (n < least) {
          EXPECT_EQ(outcome, AtSizes::refused) << n << " from " << length << "\n" << gm->sizes();
        }
        EXPECT_NE(outcome, AtSizes::wrong) << n << " from " << length << "\n" << gm->sizes();
      }
    }
  }
}

}  // namespace fx::whole_slices_test
