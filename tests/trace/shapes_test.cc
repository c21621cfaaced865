// Shapes while tracing: what programs may ask, and what they are told when they may not.
#include "tests/trace/trace_testing.h"

namespace fx::shapes_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::traced_calls;
using torch::Tensor;

TEST(TraceShapes, ProgramsMayAskForShapesOfExamples) {
  EXPECT_THAT(traced_calls(
                  [](Tensor x) {
                    const Tensor y = x.transpose(0, 1);
                    EXPECT_EQ(y.dim(), 3);
                    EXPECT_EQ(y.sizes(), (std::vector<std::int64_t>{3, 2, 4}));
                    EXPECT_EQ(y.strides(), (std::vector<std::int64_t>{4, 12, 1}));
                    EXPECT_EQ(y.size(-1), 4);
                    EXPECT_EQ(y.numel(), 24);
                    EXPECT_FALSE(y.is_contiguous());
                    EXPECT_EQ(y.scalar_type(), torch::kFloat64);
                    EXPECT_TRUE(y.is_floating_point());
                    EXPECT_EQ(y.device(), torch::Device(torch::kCPU));
                    EXPECT_EQ(y.layout(), torch::kStrided);
                    EXPECT_EQ(y.gt(0).scalar_type(), torch::kBool);
                    return y.reshape({y.size(0), -1});
                  },
                  {torch::rand({2, 3, 4}, torch::kFloat64)}),
              ElementsAre("aten::transpose.int(x, 0, 1)", "aten::gt.Scalar(transpose, 0)",
                          "aten::reshape(transpose, [3, -1])"));
}

TEST(TraceShapes, OperatorsWithoutMetaKernelsHaveShapesToo) {
  traced_calls(
      [](Tensor x, Tensor w) {
        const Tensor y = torch::conv2d(x, w, {}, 2);
        EXPECT_EQ(y.sizes(), (std::vector<std::int64_t>{1, 4, 3, 3}));
        const Tensor z = torch::batch_norm(y, {}, {}, {}, {}, true, 0.1, 1e-5, false);
        EXPECT_EQ(z.sizes(), y.sizes());
        EXPECT_EQ(at::linalg_cholesky(torch::matmul(z, z.transpose(2, 3))).size(3), 3);
        return z;
      },
      {torch::rand({1, 3, 8, 8}), torch::rand({4, 3, 3, 3})});
}

TEST(TraceShapes, InPlaceOperatorsChangeShapes) {
  traced_calls(
      [](Tensor x) {
        Tensor y = x.clone();
        y.unsqueeze_(0);
        EXPECT_EQ(y.dim(), 2);
        y.t_();
        EXPECT_EQ(y.size(0), 5);
        return y;
      },
      {torch::rand({5})});
}

TEST(TraceShapes, InPlaceOperatorsLeaveEarlierShapes) {
  Tracer tracer({.sizes = Sizes::fixed});
  const Trace trace = tracer.trace(
      [](Tensor x) {
        Tensor y = torch::tensor({1.0F, 2.0F}).unsqueeze_(0);
        EXPECT_EQ(y.dim(), 2);
        return x.clone().unsqueeze_(0).t_() + torch::add_out(y, y, y);
      },
      {torch::rand({5})});
  const auto sizes = [&](const char* name) { return trace.shapes[*trace.graph.find(name)].tensor()->sizes; };
  EXPECT_THAT(sizes("clone"), ElementsAre(5));
  EXPECT_THAT(sizes("clone_1"), ElementsAre(2));
  EXPECT_THAT(sizes("unsqueeze__1"), ElementsAre(1, 5));
  EXPECT_THAT(sizes("t_"), ElementsAre(5, 1));
  ASSERT_EQ(trace.attributes.size(), 1U);
  EXPECT_EQ(trace.attributes[0].tensor.dim(), 1);
}

TEST(TraceShapes, FactoriesAndParametersHaveShapesWithoutExamples) {
  traced_calls([](Tensor x) {
    EXPECT_EQ(torch::ones({2, 3}).size(1), 3);
    return x;
  });
}

TEST(TraceShapes, AreReported) {
  Tracer tracer({.sizes = Sizes::fixed});
  const Trace trace = tracer.trace([](Tensor x) { return std::get<0>((x + 1).topk(2)); }, {torch::rand({3, 4})});
  const auto sizes = [&](const char* name) { return trace.shapes[*trace.graph.find(name)].tensor()->sizes; };
  EXPECT_THAT(sizes("x"), ElementsAre(3, 4));
  EXPECT_THAT(sizes("add"), ElementsAre(3, 4));
  EXPECT_THAT(sizes("getitem"), ElementsAre(3, 2));
  const ValueInfo& topk = trace.shapes[*trace.graph.find("topk")];
  ASSERT_EQ(topk.tensors.size(), 2U);
  EXPECT_EQ(topk.tensors[1].dtype, DType::int64);
}

TEST(TraceShapes, TheRandomGeneratorIsLeftAlone) {
  torch::manual_seed(7);
  const Tensor expected = torch::rand({4});
  torch::manual_seed(7);
  traced_calls([](Tensor x, Tensor w) { return torch::dropout(torch::conv2d(torch::rand_like(x), w), 0.5, true); },
               {torch::rand({1, 1, 4, 4}).zero_(), torch::zeros({1, 1, 2, 2})});
  torch::manual_seed(7);
  traced_calls([](Tensor x) { return torch::bernoulli(x) + torch::rrelu(x, 0.1, 0.2, true); }, {torch::zeros({4})});
  EXPECT_TRUE(torch::rand({4}).equal(expected));
}

TEST(TraceShapes, DataDependentShapesAreUnknown) {
  EXPECT_THAT(traced_calls([](Tensor x) { return x.masked_select(x > 0).sum(); }, {torch::rand({3})}),
              ElementsAre("aten::gt.Scalar(x, 0)", "aten::masked_select(x, gt)", "aten::sum(masked_select)"));
  EXPECT_FX_ERROR(traced_calls([](Tensor x) { return x.view({x.nonzero().size(0)}); }, {torch::rand({3})}), trace,
                  HasSubstr("%nonzero"), HasSubstr("size()"));
}

TEST(TraceShapes, WrongShapesAreErrorsOfTheTrace) {
  EXPECT_FX_ERROR(
      traced_calls([](Tensor x, Tensor y) { return torch::mm(x, y); }, {torch::rand({2, 3}), torch::rand({2, 3})}),
      trace, HasSubstr("%x"), HasSubstr("mm()"), HasSubstr("shapes"));
  EXPECT_FX_ERROR(traced_calls([](Tensor x, Tensor w) { return torch::conv2d(x, w); },
                               {torch::rand({1, 3, 8, 8}), torch::rand({4, 2, 3, 3})}),
                  trace, HasSubstr("conv2d()"));
}

// ── Questions that cannot be answered
// ──────────────────────────────────────────────────────────────────────────────────

struct Question {
  const char* call;
  std::function<Tensor(Tensor)> program;
};

class ShapeQuestions : public ::testing::TestWithParam<Question> {};

TEST_P(ShapeQuestions, NeedExamples) {
  EXPECT_FX_ERROR(traced_calls(GetParam().program), trace, HasSubstr("%relu"), HasSubstr(GetParam().call),
                  HasSubstr("symbolic_trace(f, {"));
  EXPECT_NO_THROW(traced_calls(GetParam().program, {torch::rand({2, 3})}));
}

INSTANTIATE_TEST_SUITE_P(All, ShapeQuestions,
                         ::testing::Values(Question{"size()", [](Tensor x) { return x + x.relu().size(0); }},
                                           Question{"sizes()", [](Tensor x) { return x.expand(x.relu().sizes()); }},
                                           Question{"dim()", [](Tensor x) { return x + x.relu().dim(); }},
                                           Question{"numel()", [](Tensor x) { return x + x.relu().numel(); }},
                                           Question{"strides()", [](Tensor x) { return x + x.relu().strides()[0]; }},
                                           Question{"device()",
                                                    [](Tensor x) { return x.relu().device().is_cpu() ? x : x + 1; }}));

// A tensor answers for its dtype without asking its implementation: the question shows where the answer is used.
TEST(TraceShapes, UnknownDtypes) {
  const auto program = [](Tensor x) {
    const Tensor zeros = torch::zeros({3}, torch::dtype(x.relu().dtype()));
    return zeros + x;
  };
  EXPECT_FX_ERROR(traced_calls(program), trace, HasSubstr("dtype()"), HasSubstr("symbolic_trace(f, {"));
  EXPECT_THAT(traced_calls(program, {torch::rand({3})}), ::testing::SizeIs(3));
  EXPECT_FX_ERROR(traced_calls([](Tensor x) { return x + *x.relu().data_ptr<float>(); }), trace,
                  HasSubstr("data_ptr()"), HasSubstr("torch::where"));
}

// abs.out has no kernel for the meta device; what it writes to takes the shape of the result.
TEST(TraceShapes, OfWhatOperatorsWriteToAreThoseOfTheResult) {
  const auto program = [](Tensor x) {
    Tensor y = torch::empty({0});
    torch::abs_out(y, x);
    return y.view({y.size(1), -1}) * y.size(0);
  };
  const auto gm = symbolic_trace(program, {torch::rand({2, 3})});
  for (const Tensor& x : {torch::rand({2, 3}), -torch::rand({5, 4})})
    EXPECT_TRUE(gm->forward(x).equal(program(x))) << x.sizes();
}

class DataQuestions : public ::testing::TestWithParam<Question> {};

TEST_P(DataQuestions, HaveNoAnswer) {
  for (const std::vector<c10::IValue>& examples : {std::vector<c10::IValue>{}, {torch::rand({1})}}) {
    EXPECT_FX_ERROR(traced_calls(GetParam().program, examples), trace, HasSubstr("%relu"), HasSubstr(GetParam().call),
                    HasSubstr("torch::where"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, DataQuestions,
    ::testing::Values(Question{"item()", [](Tensor x) { return x * x.relu().item<double>(); }},
                      Question{"is_nonzero()", [](Tensor x) { return x.relu().is_nonzero() ? x : x + 1; }},
                      Question{"data_ptr()", [](Tensor x) { return x + *static_cast<float*>(x.relu().data_ptr()); }},
                      Question{"storage()", [](Tensor x) { return x + static_cast<int>(x.relu().storage().nbytes()); }},
                      Question{"equal()", [](Tensor x) { return x.relu().equal(x) ? x : x + 1; }},
                      Question{"allclose()", [](Tensor x) { return x.relu().allclose(x) ? x : x + 1; }}));

}  // namespace fx::shapes_test
