// Programs that put new tensors in the place of registered buffers, statistics first of all: what each call finds in
// them, in both modes, is what the program's own calls find.
#include <functional>
#include <memory>
#include <string>

#include <fxgraph/torchscript/export.h>
#include <fxgraph/torchscript/import.h>
#include "tests/support/scratch_folder.h"
#include "tests/trace/trace_testing.h"

namespace fx::replaced_buffers_test {

using torch::Tensor;

struct Statistics : torch::nn::Module {
  using Step = std::function<Tensor(Statistics&, Tensor)>;
  explicit Statistics(Step given) : step(std::move(given)) {}
  Tensor forward(Tensor x) { return step(*this, std::move(x)); }

  Step step;
  Tensor a = register_buffer("a", torch::zeros({3}));
  Tensor b = register_buffer("b", torch::ones({3}));
  Tensor n = register_buffer("n", torch::zeros({}, torch::kLong));
};

struct Row {
  const char* name;
  const char* in_the_other_mode;  ///< `follows` or `refused`
  Statistics::Step step;
  bool is_read = true;  ///< by a later call: only then the graph writes what the program keeps
};
std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = {
      {"is_not_read", "follows",
       [](Statistics& m, Tensor x) {
         m.a = x.detach().mean(0);
         return x * 2;
       },
       false},
      {"is_read_by_its_update_alone", "follows",
       [](Statistics& m, Tensor x) {
         m.a = m.a * 0.9 + x.detach().mean(0) * 0.1;
         return x * 2;
       }},
      {"without_gradients", "follows",
       [](Statistics& m, Tensor x) {
         const torch::NoGradGuard guard;
         m.n = m.n + 1;
         m.a = m.a + (x.mean(0) - m.a) / m.n;
         return x * 2;
       }},
      {"by_another_buffer_s_new_value", "follows",
       [](Statistics& m, Tensor x) {
         const Tensor y = x + m.b;
         m.a = m.a * 0.9 + x.detach().mean(0);
         m.b = m.b * 0.9 + m.a;
         return y;
       }},
      {"by_another_buffer_s_old_value", "follows",
       [](Statistics& m, Tensor x) {
         m.b = m.a * 1;
         m.a = x.detach().mean(0);
         return x + m.b;
       }},
      {"by_a_view_of_another_buffer", "follows",
       [](Statistics& m, Tensor x) {
         m.b = m.a.view({3});
         m.a = x.detach().mean(0);
         return x + m.b;
       }},
      {"after_it_was_written", "follows",
       [](Statistics& m, Tensor x) {
         m.a.add_(1);
         m.a = m.a * x.detach().mean(0);
         return x * 2;
       }},
      {"with_gradients_that_are_cut_where_it_is_read", "follows",
       [](Statistics& m, Tensor x) {
         const Tensor y = x + m.a.detach();
         m.a = x.detach().mean(0) * 2;
         return y;
       }},
      {"like_a_code_book", "refused",
       [](Statistics& m, Tensor x) {
         const Tensor y = x + m.b.detach();
         if (m.is_training()) {
           const torch::NoGradGuard guard;
           m.n = m.n + x.size(0);
           m.a = m.a * 0.9 + x.sum(0) * 0.1;
           m.b = m.a / m.n;
         }
         return y;
       }},
      {"in_training_after_it_was_read", "refused",
       [](Statistics& m, Tensor x) {
         const Tensor y = x - m.a;
         if (m.is_training()) m.a = m.a * 0.9 + x.detach().mean(0) * 0.1;
         return y;
       }},
      {"in_training_alone", "refused",
       [](Statistics& m, Tensor x) {
         if (m.is_training()) {
           const Tensor mean = x.mean(0);
           m.a = 0.9 * m.a + 0.1 * mean.detach();
           return x - mean;
         }
         return x - m.a;
       }},
      {"in_each_mode_otherwise", "refused",
       [](Statistics& m, Tensor x) {
         const Tensor y = x + m.a;
         m.a = m.is_training() ? x.detach().mean(0) : x.detach().sum(0);
         return y;
       }},
      {"each_mode_another", "refused",
       [](Statistics& m, Tensor x) {
         const Tensor y = x + m.a + m.b;
         (m.is_training() ? m.a : m.b) = x.detach().mean(0);
         return y;
       }},
  };
  return kRows;
}

Tensor draw() { return torch::rand({2, 3}) + 0.5; }

std::shared_ptr<Statistics> statistics(const Row& row, bool training) {
  auto module = std::make_shared<Statistics>(row.step);
  module->train(training);
  return module;
}

template <typename Run>
void expect_like(const Row& row, Statistics& program, const Run& run, const torch::nn::Module& traced) {
  for (int i = 0; i < 3; ++i) {
    const Tensor x = draw();
    EXPECT_TRUE(testing::same_value(run(x), program.forward(x), 1e-6)) << "call " << i;
  }
  if (!row.is_read) return;
  for (const auto& [name, member] : {std::pair{"a", &program.a}, std::pair{"b", &program.b}}) {
    const auto buffers = traced.named_buffers();
    if (const Tensor* held = buffers.find(name)) {
      EXPECT_TRUE(testing::same_value(*held, *member, 1e-6)) << name;
    }
  }
}

class ReplacedBuffers : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  const Row& row() const { return rows()[static_cast<std::size_t>(std::get<0>(GetParam()))]; }
  bool training() const { return std::get<1>(GetParam()); }
};

TEST_P(ReplacedBuffers, AreWrittenByTheGraph) {
  const auto program = statistics(row(), training());
  const auto gm = symbolic_trace(statistics(row(), training()), {draw()});
  expect_like(
      row(), *program, [&](const Tensor& x) { return gm->forward(x); }, *gm);
}

TEST_P(ReplacedBuffers, AreWrittenByWhatIsSaved) {
  const testing::ScratchFolder folder;
  const std::string file = (folder / "saved.pt").string();
  const auto program = statistics(row(), training());
  symbolic_trace(statistics(row(), training()), {draw()})->save(file);
  const auto loaded = load(file);
  expect_like(
      row(), *program, [&](const Tensor& x) { return loaded->forward(x); }, *loaded);
}

TEST_P(ReplacedBuffers, InTheOtherModeAreFollowedOrItIsRefused) {
  const auto program = statistics(row(), training());
  const auto gm = symbolic_trace(statistics(row(), training()), {draw()});
  program->train(!training());
  if (std::string(row().in_the_other_mode) == "refused") {
    EXPECT_FX_ERROR(gm->train(!training()), unsupported, ::testing::HasSubstr("the graph does not follow"));
  } else {
    gm->train(!training());
    expect_like(
        row(), *program, [&](const Tensor& x) { return gm->forward(x); }, *gm);
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, ReplacedBuffers,
                         ::testing::Combine(::testing::Range(0, static_cast<int>(rows().size())), ::testing::Bool()),
                         [](const auto& info) {
                           return std::string(rows()[static_cast<std::size_t>(std::get<0>(info.param))].name) +
                                  (std::get<1>(info.param) ? "_train" : "_eval");
                         });

// The buffer of the graph keeps its size.
TEST(ReplacedBuffersOfOtherSizes, FixTheSize) {
  struct Last : torch::nn::Module {
    Tensor forward(Tensor x) {
      const Tensor y = x + last;
      last = x.detach() * 2;
      return y;
    }
    Tensor last = register_buffer("last", torch::zeros({2, 3}));
  };
  const auto gm = symbolic_trace(std::make_shared<Last>(), {draw()});
  EXPECT_EQ(gm->forward(draw()).sizes(), (std::vector<std::int64_t>{2, 3}));
  EXPECT_FX_ERROR(gm->forward(torch::rand({5, 3})), execution, ::testing::HasSubstr("x[0] must be 2"));
  EXPECT_FX_ERROR(gm->forward(torch::rand({1, 3})), execution, ::testing::HasSubstr("x[0] must be 2"));
}

TEST(ReplacedBuffersByThemselves, ThatTradePlacesAreRefused) {
  struct Shift : torch::nn::Module {
    Tensor forward(Tensor x) {
      const Tensor y = x + older;
      older = old;
      old = x.detach().mean(0);
      return y;
    }
    Tensor old = register_buffer("old", torch::zeros({3}));
    Tensor older = register_buffer("older", torch::zeros({3}));
  };
  EXPECT_FX_ERROR(symbolic_trace(std::make_shared<Shift>(), {draw()}), trace, ::testing::HasSubstr("older"));
}

}  // namespace fx::replaced_buffers_test
