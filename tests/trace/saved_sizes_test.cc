// C++ that makes sizes of sizes, traced and written: its sizes vary in the archive as they do in C++.
#include <cmath>
#include <functional>

#include <fxgraph/module/code.h>
#include <fxgraph/torchscript/import.h>
#include "tests/trace/saved_archive.h"
#include "tests/trace/sizes_testing.h"

namespace fx::saved_sizes_test {

namespace F = torch::nn::functional;
using testing::Inputs;
using torch::Tensor;
using torch::indexing::None;
using torch::indexing::Slice;

struct ProgramImpl : torch::nn::Module {
  explicit ProgramImpl(std::function<Tensor(const Tensor&)> run) : run(std::move(run)) {}
  Tensor forward(const Tensor& x) { return run(x); }
  std::function<Tensor(const Tensor&)> run;
};
TORCH_MODULE(Program);

Tensor diagonals(const Tensor& x) { return x.diagonal(1) * 2 + x.diagonal(-1).sum(); }

Tensor below_the_diagonal(const Tensor& x) {
  const auto n = x.size(0);
  const Tensor mask = torch::ones({n, n}).tril();
  return mask.matmul(x.slice(1, 0, n)) / mask.sum(1, true);
}

Tensor pairs_below(const Tensor& x) {
  const Tensor at = torch::tril_indices(x.size(0), x.size(0), -1);
  return (x.index_select(0, at[0]) - x.index_select(0, at[1])).abs();
}

Tensor windows(const Tensor& x) { return x.unfold(1, 3, 2).mean(-1); }

Tensor patches(const Tensor& x) {
  return F::unfold(x.unsqueeze(0).unsqueeze(0), F::UnfoldFuncOptions({2, 3}).stride({1, 2}).padding({1, 0}));
}

Tensor patches_and_back(const Tensor& x) {
  const Tensor parts = F::unfold(x.unsqueeze(0).unsqueeze(0), F::UnfoldFuncOptions({2, 2}));
  return F::fold(parts * 2, F::FoldFuncOptions({x.size(0), x.size(1)}, {2, 2})).squeeze();
}

Tensor steps(const Tensor& x) { return x.index({Slice(None, None, 2), Slice(1, None, 3)}); }

Tensor all_but_the_ends(const Tensor& x) { return x.index({Slice(1, -1), Slice(2, -2)}).contiguous(); }

Tensor scaled_by_a_root(const Tensor& x) {
  return torch::softmax(x.matmul(x.t()) / std::sqrt(static_cast<double>(x.size(1))), -1);
}

Tensor mean_by_hand(const Tensor& x) { return x.sum() / (x.size(0) * x.size(1)); }

Tensor padded_to_even(const Tensor& x) {
  return F::pad(x, F::PadFuncOptions({0, x.size(1) % 2})).reshape({x.size(0), -1, 2}).sum(-1);
}

Tensor half_and_half(const Tensor& x) {
  const auto half = x.size(1) / 2;
  return torch::cat({x.narrow(1, 0, half) * 2, x.slice(1, half)}, 1);
}

Tensor larger(const Tensor& x) {
  return F::interpolate(x.unsqueeze(0),
                        F::InterpolateFuncOptions().scale_factor(std::vector<double>{1.5}).mode(torch::kLinear));
}

Tensor positions(const Tensor& x) {
  return x + torch::arange(x.size(1), torch::kFloat) / static_cast<double>(x.size(1));
}

Tensor at_most_eight(const Tensor& x) { return x.slice(0, 0, std::min<std::int64_t>(x.size(0), 8)).sum(1); }

Tensor seven_tenths(const Tensor& x) {
  return x.slice(1, 0, static_cast<std::int64_t>(0.7 * static_cast<double>(x.size(1)))).sum(0);
}

Tensor rounded(const Tensor& x) { return x * std::lround(0.09 * static_cast<double>(x.size(1))); }

Tensor tenth_more(const Tensor& x) {
  return x * static_cast<std::int64_t>(std::ceil(1.1 * static_cast<double>(x.size(1))));
}

Tensor half_between(const Tensor& x) { return x * std::clamp<std::int64_t>(x.size(1) / 2, 3, 12); }

Tensor odd(const Tensor& x) { return x * (2 * (x.size(1) / 2) + 1); }

struct Case {
  const char* name;
  Tensor (*run)(const Tensor&);
};

const Case kCases[] = {
    {"diagonals", diagonals},
    {"below_the_diagonal", below_the_diagonal},
    {"pairs_below", pairs_below},
    {"windows", windows},
    {"patches", patches},
    {"patches_and_back", patches_and_back},
    {"steps", steps},
    {"all_but_the_ends", all_but_the_ends},
    {"scaled_by_a_root", scaled_by_a_root},
    {"mean_by_hand", mean_by_hand},
    {"padded_to_even", padded_to_even},
    {"half_and_half", half_and_half},
    {"positions", positions},
    {"at_most_eight", at_most_eight},
};
std::ostream& operator<<(std::ostream& out, const Case& each) { return out << each.name; }

class SavedArchiveOfSizes : public testing::SavedArchiveTest, public ::testing::WithParamInterface<Case> {};

TEST_P(SavedArchiveOfSizes, VaryAsInCpp) {
  const auto run = [](auto& program, const Inputs& inputs) -> c10::IValue {
    return program->forward(inputs[0].toTensor());
  };
  std::vector<Inputs> all;
  for (const auto& [rows, columns] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{5, 9}, {6, 20}, {7, 7}, {12, 43}, {4, 64}})
    all.push_back({torch::rand({rows, columns})});
  check(std::string("sizes_") + GetParam().name, Program(GetParam().run), run, all);
}

// torch.export says of every size that varies that it is two or more, and checks no such bound.
TEST(SavedBounds, AreKeptWhateverTheyAre) {
  const testing::ScratchFolder scratch;
  for (const std::int64_t least : {1, 2}) {
    for (const std::int64_t steps : {1}) {
      const auto run = [&](const Tensor& x) {
        const Tensor y = x.view({-1, steps, 3});
        return y.size(0) < least ? y * 2 : y - y.mean(0);
      };
      const auto traced = symbolic_trace(run, {torch::rand({6 * steps, 3})});
      for (const char* ending : {".pt", ".pt2"}) {
        const std::string path = (scratch / (std::string("bound") + ending)).string();
        traced->save(path);
        const auto loaded = load(path);
        loaded->save(path);
        for (const auto& module : {loaded, load(path)}) {
          for (std::int64_t n = 1; n < 8; ++n) {
            const Tensor x = torch::rand({n * steps, 3});
            // One is tried, and what lies between it and the smallest sample is not.
            const testing::AtSizes outcome = testing::at_sizes(*traced, [&]() -> c10::IValue { return run(x); }, {x});
            if (least == 1) {
              EXPECT_EQ(outcome, testing::AtSizes::equal);
            }
            if (n == 1 && least > 1 && steps == 1) {
              EXPECT_EQ(outcome, testing::AtSizes::refused);
            }
            EXPECT_EQ(testing::at_sizes(*module, [&]() -> c10::IValue { return run(x); }, {x}), outcome)
                << ending << ": " << n << " times " << steps << ", at least " << least << "\n"
                << module->graph();
          }
        }
      }
    }
  }
}

TEST(SavedBounds, OfNormsInTraining) {
  const testing::ScratchFolder scratch;
  struct Net : torch::nn::Module {
    torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(4));
    Tensor forward(const Tensor& x) { return norm(x) * 2; }
  };
  for (const std::vector<std::int64_t>& example : {std::vector<std::int64_t>{3, 4}, {3, 4, 5}}) {
    const auto net = std::make_shared<Net>();
    const auto traced = symbolic_trace(net, {torch::rand(example)});
    for (const char* ending : {".pt", ".pt2"}) {
      const std::string path = (scratch / (std::string("norm") + ending)).string();
      traced->save(path);
      const auto loaded = load(path);
      for (std::int64_t n = 1; n < 8; ++n) {
        std::vector<std::int64_t> sizes = example;
        sizes[0] = n;
        const Tensor x = torch::rand(sizes);
        const bool is_one = n == 1 && sizes.size() == 2;
        EXPECT_EQ(testing::at_sizes(*loaded, [&]() -> c10::IValue { return net->forward(x); }, {x}),
                  is_one ? testing::AtSizes::refused : testing::AtSizes::equal)
            << ending << " at " << x.sizes() << "\n"
            << loaded->graph();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(ForPython, SavedArchiveOfSizes, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace fx::saved_sizes_test
