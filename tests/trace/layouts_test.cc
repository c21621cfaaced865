// Programs that ask how their inputs lie in memory, or need them to lie so: run on inputs that lie otherwise, the graph
// does what the program does, writes and strides included, or refuses.
#include "tests/trace/sizes_testing.h"
#include "tests/trace/trace_testing.h"

namespace fx::layouts_test {

using testing::AtSizes;
using torch::Tensor;

/// One way in which the numbers of a tensor may lie.
struct Layout {
  const char* name;
  Tensor (*laid)(const Tensor&);
};

Tensor with_gaps(const Tensor& x) {
  std::vector<std::int64_t> sizes = x.sizes().vec();
  sizes.back() *= 2;
  return torch::empty(sizes).slice(-1, 0, c10::nullopt, 2).copy_(x);
}

const std::vector<Layout>& layouts() {
  static const auto& table = *new std::vector<Layout>{
      {"contiguous", [](const Tensor& x) { return x.clone(at::MemoryFormat::Contiguous); }},
      {"turned",
       [](const Tensor& x) { return x.dim() < 2 ? x.clone() : x.transpose(0, -1).contiguous().transpose(0, -1); }},
      {"with_gaps", with_gaps},
      {"channels_last",
       [](const Tensor& x) { return x.dim() == 4 ? x.contiguous(at::MemoryFormat::ChannelsLast) : x.clone(); }},
      {"turned_with_gaps",
       [](const Tensor& x) { return x.dim() < 2 ? with_gaps(x) : with_gaps(x.transpose(0, -1)).transpose(0, -1); }},
  };
  return table;
}

struct Case {
  const char* name;
  Tensor (*program)(Tensor);
  std::vector<std::int64_t> example, other;  // sizes
  bool takes_any = false;                    // layout, from an example of any
};
std::ostream& operator<<(std::ostream& out, const Case& each) { return out << each.name; }

class Layouts : public ::testing::TestWithParam<Case> {};

TEST_P(Layouts, AreFollowedOrAsserted) {
  const Case& c = GetParam();
  for (const Layout& of_example : layouts()) {
    std::shared_ptr<GraphModule> gm;
    try {
      gm = symbolic_trace(c.program, {of_example.laid(torch::rand(c.example))});
    } catch (const Error&) {
      ASSERT_FALSE(c.takes_any) << of_example.name;
      continue;  // the program refuses it, or the trace does
    }
    for (const Layout& layout : layouts()) {
      for (const auto& sizes : {c.example, c.other}) {
        const Tensor contents = torch::rand(sizes);
        const Tensor expected_input = layout.laid(contents), found_input = layout.laid(contents);
        Tensor expected, found;
        const AtSizes outcome = testing::at_sizes(
            *gm,
            [&]() -> c10::IValue {
              expected = c.program(expected_input);
              return expected.clone();
            },
            {found_input}, 0);
        const std::string which = std::string(of_example.name) + " example, input " + layout.name;
        EXPECT_NE(outcome, AtSizes::wrong) << which << gm->graph();
        if (c.takes_any || (&layout == &of_example && sizes == c.example)) {
          EXPECT_EQ(outcome, AtSizes::equal) << which << gm->graph();
        }
        if (outcome != AtSizes::equal || !expected.defined()) continue;
        EXPECT_TRUE(expected_input.equal(found_input)) << which << ": the input is written otherwise" << gm->graph();
        found = gm->run({layout.laid(contents)}).toTensor();
        EXPECT_EQ(found.is_contiguous(), expected.is_contiguous()) << which << gm->graph();
      }
    }
  }
}

const std::vector<Case>& cases() {
  static const auto& table = *new std::vector<Case>{
      {"writes_what_is_made_contiguous",
       [](Tensor x) {
         x.detach().contiguous().add_(1);
         return x * 2;
       },
       {3, 4},
       {5, 2},
       true},
      {"writes_what_contiguous_was_made_of",
       [](Tensor x) {
         const Tensor y = x.contiguous();
         x.add_(1);
         return y * 2;
       },
       {3, 4},
       {5, 2},
       true},
      {"returns_what_is_contiguous", [](Tensor x) { return x.contiguous(); }, {3, 4}, {5, 2}, true},
      {"views_what_is_contiguous", [](Tensor x) { return (x + 1).contiguous().view({-1}) * 2; }, {3, 4}, {5, 2}, true},
      {"contiguous_of_an_intermediate",
       [](Tensor x) {
         const Tensor y = x.relu();
         y.contiguous().mul_(3);
         return y + 0;
       },
       {3, 4, 2},
       {5, 2, 2},
       true},
      {"contiguous_where_it_is_not",
       [](Tensor x) { return (x.is_contiguous() ? x : x.contiguous()).view({-1}) * 2; },
       {3, 4},
       {5, 2}},
      {"does_more_where_it_is_not",
       [](Tensor x) {
         if (!x.is_contiguous()) x = x.contiguous() * 2;
         return x + 1;
       },
       {3, 4},
       {5, 2}},
      {"notes_that_it_was_made_contiguous",
       [](Tensor x) {
         bool is_copied = false;
         if (!x.is_contiguous()) x = x.contiguous(), is_copied = true;
         return is_copied ? x * 2 : x + 1;
       },
       {3, 4},
       {5, 2}},
      {"contiguous_at_one_channel",
       [](Tensor x) {
         return x.permute({0, 2, 3, 1}).is_contiguous() ? x + 1 : x + 2;
       },
       {2, 3, 4, 5},
       {3, 1, 4, 5}},
      {"channels_last_at_one_channel",
       [](Tensor x) { return x.is_contiguous(at::MemoryFormat::ChannelsLast) ? x + 1 : x + 2; },
       {2, 3, 4, 5},
       {3, 1, 4, 5}},
      {"a_row",
       [](Tensor x) {
         return x.contiguous().view({-1, 1}) + 1;
       },
       {6},
       {4},
       true},
      {"by_layout", [](Tensor x) { return x.is_contiguous() ? x * 2 : x * 3; }, {3, 4}, {5, 2}},
      {"by_layout_of_an_intermediate",
       [](Tensor x) {
         const Tensor y = x.relu();
         return y.is_contiguous() ? y * 2 : y * 3;
       },
       {3, 4},
       {5, 2}},
      {"by_layout_behind_contiguous",
       [](Tensor x) {
         const Tensor y = x.contiguous() + 1;
         return x.is_contiguous() ? y * 2 : y * 3;
       },
       {3, 4},
       {5, 2}},
      {"by_layout_at_the_end",
       [](Tensor x) {
         const Tensor a = x * 2, b = x * 3;
         return x.is_contiguous() ? a : b;
       },
       {3, 4},
       {5, 2}},
      {"insists",
       [](Tensor x) {
         TORCH_CHECK(x.is_contiguous(), "must be contiguous");
         return x.view({-1}) * 2;
       },
       {3, 4},
       {5, 2}},
      {"stride_as_number", [](Tensor x) { return x * static_cast<double>(x.stride(0)); }, {3, 4}, {5, 2}},
      {"stride_of_a_function", [](Tensor x) { return x * static_cast<double>(at::stride(x, 0)); }, {3, 4}, {5, 2}},
      {"stride_behind_contiguous",
       [](Tensor x) { return x.contiguous() * static_cast<double>(x.stride(0)); },
       {3, 4},
       {5, 2}},
      {"stride_that_is_one", [](Tensor x) { return x * static_cast<double>(x.stride(1)); }, {3, 4}, {5, 2}},
      {"stride_of_a_row", [](Tensor x) { return x * static_cast<double>(x.stride(0)); }, {6}, {4}},
      {"stride_in_the_middle", [](Tensor x) { return x * static_cast<double>(x.stride(1)); }, {2, 3, 4}, {3, 2, 2}},
      {"as_strided", [](Tensor x) { return x.as_strided({x.size(0)}, {x.stride(0)}) * 2; }, {3, 4}, {5, 2}},
      {"size_of_one", [](Tensor x) { return x * static_cast<double>(x.stride(0)); }, {1, 4}, {1, 2}},
      {"format",
       [](Tensor x) { return torch::ones_like(x).contiguous(x.suggest_memory_format()) + x; },
       {2, 3, 4, 4},
       {1, 3, 2, 2}},
      {"by_format",
       [](Tensor x) { return x.suggest_memory_format() == at::MemoryFormat::ChannelsLast ? x * 2 : x * 3; },
       {2, 3, 4, 4},
       {1, 3, 2, 2}},
      {"by_contiguity_in_a_format",
       [](Tensor x) { return x.is_contiguous(at::MemoryFormat::ChannelsLast) ? x * 2 : x * 3; },
       {2, 3, 4, 4},
       {1, 3, 2, 2}},
      {"by_the_stride_of_channels",
       [](Tensor x) { return x.stride(1) == 1 ? x * 2 : x * 3; },
       {2, 3, 4, 4},
       {3, 3, 2, 2}},
  };
  return table;
}

// Who asks first holds for what lies as the example; contiguous() alone takes any.
TEST(LayoutsOfInputs, AreAskedFor) {
  const auto program = [](Tensor x) {
    if (!x.is_contiguous()) x = x.contiguous();
    return x.view({-1}) * 2;
  };
  const auto gm = symbolic_trace(program, {torch::rand({3, 4})});
  const Tensor x = torch::rand({5, 2});
  EXPECT_TRUE(gm->run({x}).toTensor().equal(program(x))) << gm->graph();
  EXPECT_FX_ERROR(gm->run({torch::rand({2, 5}).t()}), execution,
                  ::testing::HasSubstr("x must be contiguous: the program asks how values lie in memory"));
}

INSTANTIATE_TEST_SUITE_P(Trace, Layouts, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace fx::layouts_test
