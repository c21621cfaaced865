// What a trace holds for, and what it computes of sizes, is the same in generated C++ and TorchScript, in text and in
// files.
#include <cmath>
#include <functional>

#include "tests/trace/generated_cpp.h"
#include "tests/trace/round_trips.h"
#include "tests/trace/shaped_programs.h"
#include "tests/trace/tied_programs.h"

namespace fx::generated_sizes_test {

using testing::Inputs;
using testing::inputs_of;
using testing::program;
using testing::ShapedProgram;
using testing::Shapes;
using torch::Tensor;

// ── Ties ──────────────────────────────────────────────────────────────────────────────────────────────────────────

Tensor flattened(Tensor x, Tensor y) { return x.reshape({-1, x.size(2)}) * y.unsqueeze(1); }

// ── Rules ─────────────────────────────────────────────────────────────────────────────────────────────────────────

// So that ceil(n / 2) is left of what a kernel of 3 goes over in steps of 2.
Tensor same_padding(Tensor x) {
  const std::int64_t n = x.size(2), all = std::max<std::int64_t>(((n + 1) / 2 - 1) * 2 + 3 - n, 0);
  return torch::constant_pad_nd(x, {0, 0, all / 2, all - all / 2}).unfold(2, 3, 2).mean(4);
}
Tensor next_multiple(Tensor x) {
  return torch::constant_pad_nd(x, {0, (8 - x.size(1) % 8) % 8}).view({x.size(0), -1, 8}).sum(1);
}
Tensor sums_and_products(Tensor x) {
  const std::int64_t a = x.size(0), b = x.size(1), c = x.size(2);
  return x.reshape({a * b * c}) * (b + c) + (a * b + c) + a * (b + 1) * c;
}
Tensor real_numbers(Tensor x) {
  const auto m = static_cast<double>(x.size(0)), n = static_cast<double>(x.size(1));
  return x / std::sqrt(n) * (n / m) + std::min<std::int64_t>(x.size(1), 12) +
         static_cast<std::int64_t>(std::ceil(n * 0.1));
}
Tensor at_least_eight(Tensor x) { return x * std::max<std::int64_t>(x.size(1), 8); }
Tensor up_to_eight(Tensor x) { return x.split(8, 1)[0] * x.size(1); }

std::vector<ShapedProgram> programs() {
  return {
      program("Twice", testing::tied::twice, {{4}, {8}}, {"y[0] = 2*x[0]"}, {{{1}, {2}}, {{7}, {14}}},
              {{{7}, {15}}, {{4}, {9}}}),
      program("RelativePositions", testing::tied::relative_positions, {{5, 5}, {9}}, {"y[0] = 2*x[0] - 1"},
              {{{3, 3}, {5}}, {{12, 12}, {23}}}, {{{5, 5}, {10}}}),
      program("Flattened", flattened, {{2, 5, 4}, {10}}, {"y[0] = x[0]*x[1]"}, {{{3, 7, 4}, {21}}, {{4, 1, 3}, {4}}},
              {{{3, 7, 4}, {20}}}),
      program("Patches", testing::tied::patches, {{2, 3, 16, 24}, {25, 3}}, {"y[0] = (x[2]//4)*(x[3]//4) + 1"},
              {{{1, 3, 8, 8}, {5, 3}}, {{2, 3, 19, 21}, {21, 3}}}, {{{2, 3, 16, 24}, {24, 3}}}),
      program("Cached", testing::tied::cached, {{2, 3, 4}, {2, 5, 4}, {3, 8}}, {"z[1] = x[1] + y[1]"},
              {{{2, 1, 4}, {2, 9, 4}, {1, 10}}, {{3, 12, 8}, {3, 30, 8}, {12, 42}}},
              {{{2, 3, 4}, {2, 5, 4}, {3, 9}}, {{2, 4, 4}, {2, 5, 4}, {4, 8}}}),
      program("Frames", testing::tied::frames, {{2, 100}, {2, 11}}, {"y[1] = (x[1] + 10)//10"},
              {{{2, 109}, {2, 11}}, {{3, 37}, {3, 4}}}, {{{2, 110}, {2, 11}}}),
      program("SamePadding", same_padding, {{1, 2, 16, 24}}, {},
              {{{2, 1, 9, 33}}, {{1, 2, 12, 10}}, {{1, 2, 31, 29}}, {{1, 2, 100, 6}}}, {}),
      program("NextMultiple", next_multiple, {{2, 6}}, {}, {{{1, 1}}, {{3, 4}}, {{2, 5}}, {{2, 12}}, {{2, 50}}}, {}),
      program("SumsAndProducts", sums_and_products, {{2, 6, 8}}, {}, {{{3, 4, 5}}, {{7, 1, 2}}, {{1, 30, 9}}}, {}),
      program("RealNumbers", real_numbers, {{2, 6}}, {}, {{{1, 1}}, {{3, 7}}, {{2, 8}}, {{2, 33}}, {{2, 90}}}, {}),
      program("AtLeastEight", at_least_eight, {{2, 6}}, {}, {{{1, 1}}, {{3, 7}}, {{2, 8}}, {{2, 33}}}, {}),
      program("UpToEight", up_to_eight, {{2, 6}}, {}, {{{1, 1}}, {{3, 7}}, {{2, 8}}}, {{{2, 9}}, {{2, 40}}}),
  };
}

// ── Forms ─────────────────────────────────────────────────────────────────────────────────────────────────────────

using Form = std::function<c10::IValue(const Inputs&)>;

void expect_at(const ShapedProgram& program, const std::string& form, const Form& run) {
  std::vector<Shapes> equal = program.equal;
  equal.push_back(program.example);
  for (const Shapes& shapes : equal) {
    const Inputs inputs = inputs_of(shapes);
    EXPECT_TRUE(testing::same_value(run(inputs), program.eager(inputs), 1e-5))
        << program.name << form << ::testing::PrintToString(shapes);
  }
  for (const Shapes& shapes : program.refused)
    EXPECT_ANY_THROW(run(inputs_of(shapes))) << program.name << form << ::testing::PrintToString(shapes);
}

TEST(GeneratedSizesNight, AreTheSameInEveryForm) {
  torch::manual_seed(5);
  const std::vector<ShapedProgram> all = programs();
  std::vector<testing::GeneratedCase> cases;
  for (const ShapedProgram& each : all) {
    const Inputs example = inputs_of(each.example);
    cases.push_back({each.name, each.trace(example), example});
  }
  const testing::Compiled compiled(cases);
  ASSERT_TRUE(compiled.ok());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const GraphModule& gm = *cases[i].module;
    expect_at(all[i], " in C++ ", [&](const Inputs& inputs) { return compiled.run(cases[i], inputs); });
    if (!all[i].refused.empty()) {
      EXPECT_THAT(code(gm, Language::python), ::testing::HasSubstr(" must be ")) << all[i].name;
    }
    torch::jit::Module script("Script");
    script.define(code(gm, Language::torchscript));
    expect_at(all[i], " in TorchScript ", [&](const Inputs& inputs) { return script.forward(inputs); });
    torch::jit::Module loaded = testing::saved_and_loaded(gm);
    expect_at(all[i], " in a file ", [&](const Inputs& inputs) { return loaded.forward(inputs); });
    const auto read = from_torchscript(loaded);
    expect_at(all[i], " read from a file ", [&](const Inputs& inputs) { return read->run(inputs); });
    GraphModule parsed(testing::attributes_of(gm), parse_graph(print_graph(gm.graph())));
    expect_at(all[i], " in text ", [&](const Inputs& inputs) { return parsed.run(inputs); });
  }
}

}  // namespace fx::generated_sizes_test
