// Inputs whose sizes are tied by more than equality: labels of b·t beside scores of (b, t, c), a mask over what is
// cached and what is new, features at a lower resolution.
#include <fxgraph/export/load.h>
#include <fxgraph/export/save.h>
#include "tests/support/night.h"
#include "tests/support/scratch_folder.h"
#include "tests/trace/round_trips.h"
#include "tests/trace/shaped_programs.h"
#include "tests/trace/tied_programs.h"

namespace fx::tied_sizes_test {

namespace F = torch::nn::functional;
using testing::Inputs;
using testing::inputs_of;
using testing::program;
using testing::ShapedProgram;
using testing::Shapes;
using torch::Tensor;
using torch::indexing::None;
using torch::indexing::Slice;

// ── Programs ──────────────────────────────────────────────────────────────────────────────────────────────────────

Tensor channels(Tensor x, Tensor y) { return y.view({-1, 2}).sum(1) + x; }
Tensor shifted(Tensor x, Tensor y) { return x + y.slice(1, 1); }
Tensor class_token(Tensor x, Tensor mask) {
  return torch::cat({torch::ones({x.size(0), 1, x.size(2)}), x}, 1) * mask.unsqueeze(-1);
}
Tensor begin_and_end(Tensor x, Tensor y) { return F::pad(x, F::PadFuncOptions({1, 1})) - y; }
Tensor windows_of_three(Tensor x, Tensor y) { return x.unfold(1, 3, 1).mean(-1) * y; }

Tensor labels(Tensor scores, Tensor y) {
  return torch::nll_loss(torch::log_softmax(scores.reshape({-1, scores.size(2)}), 1), y.to(torch::kLong));
}
Tensor positions(Tensor image, Tensor y) { return image.flatten(2).transpose(1, 2) + y; }
Tensor anchors(Tensor image, Tensor boxes) {
  return image.view({image.size(0), 3, -1, image.size(2), image.size(3)}).permute({0, 3, 4, 1, 2}).flatten(1, 3) *
         boxes;
}
Tensor pairs(Tensor x, Tensor bias) { return x.matmul(x.transpose(1, 2)).flatten(1) + bias; }

Tensor decoder(Tensor x, Tensor keys, Tensor values, Tensor mask) {
  const Tensor k = torch::cat({keys, x}, 1), v = torch::cat({values, x * 2}, 1);
  const Tensor scores = x.matmul(k.transpose(1, 2)) / std::sqrt(static_cast<double>(x.size(2)));
  return torch::softmax(scores + (mask.unsqueeze(1) - 1) * 100, -1).matmul(v);
}
Tensor joined(Tensor image, Tensor text, Tensor mask) {
  return torch::cat({image, torch::ones({image.size(0), 1, image.size(2)}), text}, 1) * mask.unsqueeze(-1);
}

Tensor lower(Tensor image, Tensor features) { return torch::max_pool2d(image, 2) + features; }
Tensor lower_by_ceil(Tensor image, Tensor features) {
  return torch::max_pool2d(image, 2, 2, 0, 1, /*ceil_mode=*/true) + features;
}
Tensor much_lower(Tensor image, Tensor features) {
  return torch::max_pool2d(torch::max_pool2d(image, 4), 4) + features;
}
Tensor strided(Tensor x, Tensor y) { return x.unfold(1, 4, 2).mean(-1) * y; }

Tensor free_of_each_other(Tensor x, Tensor y) { return x.sum() + y * 2; }
Tensor first_of(Tensor x, Tensor y) { return x * y.slice(0, 0, x.size(0)); }

const ShapedProgram kCases[] = {
    program("twice", testing::tied::twice, {{4}, {8}}, {"y[0] = 2*x[0]"}, {{{1}, {2}}, {{7}, {14}}, {{300}, {600}}},
            {{{7}, {15}}, {{4}, {9}}, {{5}, {8}}}),
    program("channels", channels, {{5}, {10}}, {"x[0] = y[0]//2", "y[0] free in steps of 2"}, {{{2}, {4}}, {{9}, {18}}},
            {{{9}, {16}}}),
    program("shifted", shifted, {{2, 5}, {2, 6}}, {"y[1] = x[1] + 1"},
            {{{3, 1}, {3, 2}}, {{2, 40}, {2, 41}}, {{7, 6}, {7, 7}}}, {{{2, 5}, {2, 7}}, {{2, 6}, {2, 6}}}),
    program("class_token", class_token, {{2, 5, 4}, {2, 6}}, {"y[1] = x[1] + 1"},
            {{{3, 9, 4}, {3, 10}}, {{1, 1, 2}, {1, 2}}, {{2, 50, 8}, {2, 51}}}, {{{2, 6, 4}, {2, 6}}}),
    program("begin_and_end", begin_and_end, {{3, 7}, {3, 9}}, {"y[1] = x[1] + 2"},
            {{{2, 3}, {2, 5}}, {{5, 30}, {5, 32}}}, {{{3, 7}, {3, 8}}}),
    program("windows_of_three", windows_of_three, {{2, 9}, {2, 7}}, {"x[1] = y[1] + 2"},
            {{{3, 4}, {3, 2}}, {{1, 3}, {1, 1}}, {{2, 64}, {2, 62}}}, {{{2, 9}, {2, 6}}}),
    program("relative_positions", testing::tied::relative_positions, {{5, 5}, {9}}, {"y[0] = 2*x[0] - 1"},
            {{{3, 3}, {5}}, {{12, 12}, {23}}, {{2, 2}, {3}}}, {{{5, 5}, {10}}, {{4, 4}, {9}}}),
    program("labels", labels, {{2, 5, 4}, {10}}, {"y[0] = x[0]*x[1]"},
            {{{3, 7, 4}, {21}}, {{1, 6, 9}, {6}}, {{4, 1, 3}, {4}}, {{8, 50, 2}, {400}}},
            {{{3, 7, 4}, {20}}, {{2, 5, 4}, {11}}}),
    program("labels_of_one", labels, {{1, 5, 4}, {5}}, {"y[0] = x[0]*x[1]"}, {{{3, 7, 4}, {21}}, {{1, 6, 9}, {6}}},
            {{{3, 7, 4}, {7}}}),
    program("positions", positions, {{2, 3, 4, 6}, {24, 3}}, {"y[0] = x[2]*x[3]"},
            {{{1, 3, 5, 5}, {25, 3}}, {{4, 3, 2, 9}, {18, 3}}, {{2, 8, 30, 20}, {600, 8}}}, {{{2, 3, 4, 6}, {25, 3}}}),
    program("anchors", anchors, {{2, 12, 4, 5}, {60, 4}}, {"y[0] = 3*x[2]*x[3]"},
            {{{1, 12, 3, 3}, {27, 4}}, {{2, 12, 16, 8}, {384, 4}}}, {{{2, 12, 4, 5}, {61, 4}}}),
    program("pairs", pairs, {{2, 5, 3}, {25}}, {"y[0] = x[1]*x[1]"},
            {{{3, 4, 3}, {16}}, {{1, 12, 7}, {144}}, {{2, 1, 3}, {1}}}, {{{2, 5, 3}, {20}}}),
    program("patches", testing::tied::patches, {{2, 3, 16, 24}, {25, 3}}, {"y[0] = (x[2]//4)*(x[3]//4) + 1"},
            {{{1, 3, 8, 8}, {5, 3}}, {{2, 3, 19, 21}, {21, 3}}, {{2, 3, 64, 32}, {129, 3}}},
            {{{2, 3, 16, 24}, {24, 3}}, {{2, 3, 20, 24}, {25, 3}}}),
    program("cached", testing::tied::cached, {{2, 3, 4}, {2, 5, 4}, {3, 8}}, {"z[1] = x[1] + y[1]", "x[1] = z[0]"},
            {{{2, 1, 4}, {2, 9, 4}, {1, 10}}, {{1, 6, 4}, {1, 2, 4}, {6, 8}}, {{3, 12, 8}, {3, 30, 8}, {12, 42}}},
            {{{2, 3, 4}, {2, 5, 4}, {3, 9}}, {{2, 4, 4}, {2, 5, 4}, {3, 9}}, {{2, 4, 4}, {2, 5, 4}, {4, 8}}}),
    program("decoder", decoder, {{2, 3, 4}, {2, 5, 4}, {2, 5, 4}, {2, 8}},
            {"arg_3[1] = arg_0[1] + arg_1[1]", "arg_0[0] = arg_1[0] = arg_2[0] = arg_3[0] free"},
            {{{2, 1, 4}, {2, 9, 4}, {2, 9, 4}, {2, 10}}, {{5, 6, 4}, {5, 2, 4}, {5, 2, 4}, {5, 8}}},
            {{{2, 3, 4}, {2, 5, 4}, {2, 5, 4}, {2, 9}}, {{2, 3, 4}, {2, 5, 4}, {2, 6, 4}, {2, 8}}},
            {"arg_2[1] = arg_1[1]"}),
    program("joined", joined, {{2, 4, 3}, {2, 6, 3}, {2, 11}}, {"z[1] = x[1] + y[1] + 1"},
            {{{2, 1, 3}, {2, 2, 3}, {2, 4}}, {{3, 20, 5}, {3, 9, 5}, {3, 30}}}, {{{2, 4, 3}, {2, 6, 3}, {2, 10}}}),
    program("lower", lower, {{2, 3, 16, 12}, {2, 3, 8, 6}}, {"y[2] = x[2]//2", "y[3] = x[3]//2"},
            {{{1, 3, 9, 7}, {1, 3, 4, 3}}, {{2, 5, 40, 64}, {2, 5, 20, 32}}, {{2, 3, 17, 12}, {2, 3, 8, 6}}},
            {{{2, 3, 18, 12}, {2, 3, 8, 6}}, {{2, 3, 16, 12}, {2, 3, 9, 6}}}),
    program("lower_by_ceil", lower_by_ceil, {{2, 3, 16, 12}, {2, 3, 8, 6}},
            {"y[2] = (x[2] + 1)//2", "y[3] = (x[3] + 1)//2"},
            {{{1, 3, 9, 7}, {1, 3, 5, 4}}, {{2, 5, 40, 64}, {2, 5, 20, 32}}}, {{{2, 3, 17, 12}, {2, 3, 8, 6}}}),
    program("much_lower", much_lower, {{2, 3, 64, 96}, {2, 3, 4, 6}}, {"y[2] = x[2]//16", "y[3] = x[3]//16"},
            {{{1, 3, 32, 32}, {1, 3, 2, 2}}, {{2, 3, 100, 50}, {2, 3, 6, 3}}}, {{{2, 3, 80, 96}, {2, 3, 4, 6}}}),
    program("strided", strided, {{2, 10}, {2, 4}}, {"y[1] = (x[1] - 2)//2"},
            {{{3, 11}, {3, 4}}, {{2, 20}, {2, 9}}, {{1, 5}, {1, 1}}, {{2, 101}, {2, 49}}}, {{{2, 12}, {2, 4}}}),
    program("frames", testing::tied::frames, {{2, 100}, {2, 11}}, {"y[1] = (x[1] + 10)//10"},
            {{{2, 109}, {2, 11}}, {{1, 1000}, {1, 101}}, {{3, 37}, {3, 4}}}, {{{2, 110}, {2, 11}}}),
    program("free_of_each_other", free_of_each_other, {{2, 3}, {6}}, {"x[0] free", "x[1] free", "y[0] free"},
            {{{2, 3}, {5}}, {{4, 9}, {1}}}, {}),
    program("first_of", first_of, {{4}, {4}}, {}, {{{4}, {4}}}, {}),
};

class TiedSizes : public testing::ShapedProgramTest {};

TEST_P(TiedSizes, AreFollowed) {
  const auto gm = trace();
  gm->graph().lint();
  expect_says(*gm);
  expect_everywhere(*gm);
}

TEST_P(TiedSizes, AreFollowedFromAFile) {
  const auto gm = trace();
  expect_everywhere(*from_torchscript(testing::saved_and_loaded(*gm)));
  GraphModule again(testing::attributes_of(*gm), parse_graph(print_graph(gm->graph())));
  expect_everywhere(again);
}

TEST_P(TiedSizes, AreFollowedFromAnArchive) {
  const testing::ScratchFolder folder;
  const std::string path = (folder / "tied.pt2").string();
  trace()->save(path);
  expect_everywhere(*load_exported(path));
}

TEST_P(TiedSizes, HaveTheGradientsOfTheProgram) {
  const auto gm = trace();
  const auto loaded = from_torchscript(testing::saved_and_loaded(*gm));
  std::vector<Shapes> all = GetParam().equal;
  all.push_back(GetParam().example);
  for (const Shapes& shapes : all) {
    SCOPED_TRACE(::testing::PrintToString(shapes));
    const Inputs inputs = inputs_of(shapes);
    for (GraphModule* each : {gm.get(), loaded.get()}) testing::expect_same_gradients(*each, GetParam().eager, inputs);
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, TiedSizes, ::testing::ValuesIn(testing::some_by_day(kCases)),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace fx::tied_sizes_test
