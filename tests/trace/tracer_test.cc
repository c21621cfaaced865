// What is recorded: operators, arguments, results, constants, in-place writes.
#include <fxgraph/trace/tracer.h>

#include <torch/library.h>

#include "tests/trace/trace_testing.h"

namespace fx::tracer_test {

using testing::calls;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::output_text;
using ::testing::SizeIs;
using testing::traced_calls;
using torch::Tensor;

TEST(Trace, RecordsOperatorsWhole) {
  EXPECT_THAT(traced_calls([](Tensor x, Tensor w) { return torch::conv2d(x, w, {}, 2); }),
              ElementsAre("aten::conv2d(x, y, None, [2, 2])"));
  EXPECT_THAT(traced_calls([](Tensor x) { return torch::dropout(x, 0.5, true); }),
              ElementsAre("aten::dropout(x, 0.5, True)"));
  EXPECT_THAT(traced_calls([](Tensor x) { return torch::batch_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5, false); }),
              ElementsAre("aten::batch_norm(x, None, None, None, None, True, 0.1, 1e-05, False)"));
}

TEST(Trace, ExampleOfTheSeeds) {
  EXPECT_THAT(traced_calls([](Tensor x) { return (x > 0) * x; }),
              ElementsAre("aten::gt.Scalar(x, 0)", "aten::mul.Tensor(gt, x)"));
}

TEST(Trace, GenericLambdasTakeTensors) {
  EXPECT_THAT(traced_calls([](auto x, auto y) { return x - y; }), ElementsAre("aten::sub.Tensor(x, y)"));
}

TEST(Trace, FunctionPointersAndStdFunctions) {
  Tensor (*pointer)(const Tensor&) = torch::relu;
  EXPECT_THAT(traced_calls(pointer), ElementsAre("aten::relu(x)"));
  EXPECT_THAT(traced_calls(std::function<Tensor(Tensor)>(pointer)), ElementsAre("aten::relu(x)"));
}

TEST(Trace, ArithmeticAndBits) {
  EXPECT_THAT(traced_calls([](Tensor x, Tensor y) { return (x & y) | x; }),
              ElementsAre("aten::bitwise_and.Tensor(x, y)", "aten::bitwise_or.Tensor(bitwise_and, x)"));
  EXPECT_THAT(traced_calls([](Tensor x) { return torch::bitwise_left_shift(x, 2); }), SizeIs(1));
  EXPECT_THAT(traced_calls([](Tensor x) { return 2 - x; }),
              ElementsAre("aten::empty_like(x, memory_format=torch.preserve_format)",
                          "aten::fill_.Scalar(empty_like, 2)", "aten::sub_.Tensor(fill_, x)"));
}

TEST(Trace, DefaultsAreLeftOut) {
  EXPECT_THAT(traced_calls([](Tensor x, Tensor y) { return torch::add(x, y); }), ElementsAre("aten::add.Tensor(x, y)"));
  EXPECT_THAT(traced_calls([](Tensor x, Tensor y) { return torch::add(x, y, 2); }),
              ElementsAre("aten::add.Tensor(x, y, alpha=2)"));
  EXPECT_THAT(traced_calls([](Tensor x) { return x.sum(0, true); }),
              ElementsAre("aten::sum.dim_IntList(x, [0], True)"));
  EXPECT_THAT(traced_calls([](Tensor x) { return x.sum(0); }), ElementsAre("aten::sum.dim_IntList(x, [0])"));
  EXPECT_THAT(traced_calls([](Tensor x) { return x.sum(0, false, torch::kFloat64); }),
              ElementsAre("aten::sum.dim_IntList(x, [0], dtype=torch.float64)"));
}

TEST(Trace, OptionsAreArguments) {
  EXPECT_THAT(traced_calls([](Tensor x) { return x.to(torch::kFloat64); }),
              ElementsAre("aten::to.dtype(x, torch.float64)"));
  // contiguous() asks for strides first: it is recorded where it may do something.
  EXPECT_THAT(traced_calls([](Tensor x) { return x.contiguous(); }), ElementsAre("aten::contiguous(x)"));
  EXPECT_THAT(traced_calls([](Tensor x) { return x.contiguous(torch::MemoryFormat::ChannelsLast); }),
              ElementsAre("aten::contiguous(x, memory_format=torch.channels_last)"));
  EXPECT_THAT(traced_calls([](Tensor x) { return torch::gelu(x, "tanh"); }),
              ElementsAre("aten::gelu(x, approximate='tanh')"));
  EXPECT_THAT(traced_calls([](Tensor x) { return torch::clamp(x, 0.0, c10::nullopt); }),
              ElementsAre("aten::clamp(x, 0.0)"));
  EXPECT_THAT(traced_calls([](Tensor) { return torch::zeros({2}, torch::dtype(torch::kInt64).device(torch::kCPU)); }),
              ElementsAre("aten::zeros([2], dtype=torch.int64, device=device(type='cpu'))"));
}

TEST(Trace, InfinitiesAndNan) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_THAT(traced_calls([&](Tensor x) { return x.masked_fill(x > 0, -inf); }),
              ElementsAre("aten::gt.Scalar(x, 0)", "aten::masked_fill.Scalar(x, gt, -inf)"));
  EXPECT_THAT(traced_calls([&](Tensor x) { return x + std::nan(""); }), ElementsAre("aten::add.Scalar(x, nan)"));
}

TEST(Trace, TensorLists) {
  EXPECT_THAT(traced_calls([](Tensor x, Tensor y) {
                return torch::cat({x, y, x}, 1);
              }),
              ElementsAre("aten::cat([x, y, x], 1)"));
  EXPECT_THAT(traced_calls([](Tensor x, Tensor i) { return x.index({i}); },
                           {torch::rand({3}), torch::zeros({2}, torch::kInt64)}),
              ElementsAre("aten::index.Tensor(x, [y])"));
}

TEST(Trace, SeveralResultsAreTakenByGetitem) {
  Tracer tracer;
  const Trace trace = tracer.trace([](Tensor x) {
    auto [values, indices] = x.topk(3);
    return std::make_tuple(indices, values);
  });
  EXPECT_THAT(calls(trace.graph),
              ElementsAre("aten::topk(x, 3)", "operator.getitem(topk, 0)", "operator.getitem(topk, 1)"));
  EXPECT_EQ(output_text(trace.graph), "(getitem_1, getitem)");
}

TEST(Trace, UnusedResultsLeaveNothing) {
  EXPECT_THAT(traced_calls([](Tensor x) { return std::get<1>(x.max(0)); }),
              ElementsAre("aten::max.dim(x, 0)", "operator.getitem(max_1, 1)"));
}

TEST(Trace, ListResults) {
  EXPECT_THAT(
      traced_calls([](Tensor x) {
        const std::vector<Tensor> parts = x.chunk(3);
        return parts[0] + parts[2];
      }),
      ElementsAre("aten::chunk(x, 3)", "builtins.len(chunk)", "operator.eq(len_1, 3)", HasSubstr("of 3 parts"),
                  "operator.getitem(chunk, 0)", "operator.getitem(chunk, 2)", "aten::add.Tensor(getitem, getitem_2)"));
  EXPECT_THAT(traced_calls([](Tensor x) { return x.split_with_sizes({1, 2}); }), SizeIs(3));
  EXPECT_THAT(traced_calls([](Tensor x) { return x.unbind(); }, {torch::rand({4})}), SizeIs(5));
  EXPECT_FX_ERROR(traced_calls([](Tensor x) { return x.unbind(); }), trace, HasSubstr("%x"), HasSubstr("unbind()"));
}

TEST(Trace, ViewsAreRecorded) {
  EXPECT_THAT(traced_calls([](Tensor x) {
                return x.view({-1}).t().select(0, 1).slice(0, 1, 5, 2).unsqueeze(0).expand({2, 2});
              }),
              ElementsAre("aten::view(x, [-1])", "aten::t(view)", "aten::select.int(t, 0, 1)",
                          "aten::slice.Tensor(select, 0, 1, 5, 2)", "aten::unsqueeze(slice_1, 0)",
                          "aten::expand(unsqueeze, [2, 2])"));
}

TEST(Trace, IndexingWithSlicesAndEllipsis) {
  using namespace torch::indexing;
  EXPECT_THAT(traced_calls(
                  [](Tensor x) {
                    return x.index({Ellipsis, Slice(1, None, 2), 0});
                  },
                  {torch::rand({2, 4, 3})}),
              ElementsAre("aten::slice.Tensor(x, 1, 1, 9223372036854775807, 2)", "aten::select.int(slice_1, 2, 0)"));
}

// ── In-place
// ───────────────────────────────────────────────────────────────────────────────────────────────────────────

TEST(Trace, InPlaceResultsStandForTheirTensor) {
  EXPECT_THAT(traced_calls([](Tensor x) {
                Tensor y = x * 2;
                Tensor alias = y;
                y.add_(1);
                return alias.relu_() + y;
              }),
              ElementsAre("aten::mul.Scalar(x, 2)", "aten::add_.Scalar(mul, 1)", "aten::relu_(add_)",
                          "aten::add.Tensor(relu_, relu_)"));
}

TEST(Trace, OutArguments) {
  EXPECT_THAT(traced_calls([](Tensor x) {
                Tensor out = torch::empty({2});
                torch::add_out(out, x, x);
                return out;
              }),
              ElementsAre("aten::empty.memory_format([2])", "aten::add.out(x, x, out=empty)"));
}

TEST(Trace, CopyThroughAView) {
  EXPECT_THAT(traced_calls([](Tensor x) {
                Tensor y = x.clone();
                y.select(0, 0).copy_(x.select(0, 1));
                return y;
              }),
              ElementsAre("aten::clone(x)", "aten::select.int(clone, 0, 0)", "aten::select.int(x, 0, 1)",
                          "aten::copy_(select, select_1)"));
}

// ── Constants and factories
// ────────────────────────────────────────────────────────────────────────────────────────────

TEST(Trace, FactoriesAreRecordedNotBaked) {
  EXPECT_THAT(traced_calls([](Tensor x) {
                x = x.add(torch::rand({2}));
                x = x.add(torch::ones_like(x));
                return x.add(torch::arange(3));
              }),
              ElementsAre("aten::rand([2])", "aten::add.Tensor(x, rand)", "aten::ones_like(add)",
                          "aten::add.Tensor(add, ones_like)", "aten::arange(3)", "aten::add.Tensor(add_1, arange)"));
}

TEST(Trace, TensorLiteralsBecomeConstants) {
  Tracer tracer;
  const Trace trace = tracer.trace([](Tensor x) {
    return x + torch::tensor({{1.0, 2.0}, {3.0, 4.0}}) + torch::tensor(std::vector<float>{5, 6});
  });
  EXPECT_THAT(calls(trace.graph),
              ElementsAre("aten::add.Tensor(x, _tensor_constant0)", "aten::add.Tensor(add, _tensor_constant1)"));
  ASSERT_THAT(trace.attributes, SizeIs(2));
  EXPECT_FALSE(is_proxy(trace.attributes[0].tensor));
  EXPECT_TRUE(trace.attributes[0].tensor.equal(torch::tensor({{1.0, 2.0}, {3.0, 4.0}})));
  EXPECT_TRUE(trace.attributes[1].tensor.equal(torch::tensor({5.0F, 6.0F})));
}

TEST(Trace, ScalarTensorLiteralsAreFactories) {
  EXPECT_THAT(traced_calls([](Tensor x) { return x + torch::tensor(2.5); }),
              ElementsAre("aten::scalar_tensor(2.5, dtype=torch.float32)", "aten::add.Tensor(x, scalar_tensor)"));
}

TEST(Trace, WrittenLiteralsAreMadeAnew) {
  EXPECT_THAT(traced_calls([](Tensor x) {
                Tensor sum = torch::tensor({1.0F, 2.0F});
                sum.add_(x);
                return sum;
              }),
              ElementsAre("aten::clone(_tensor_constant0)", "aten::add_.Tensor(clone, x)"));
}

TEST(Trace, CapturedTensorsAreOneAttributeEach) {
  const Tensor a = torch::rand({2}), b = torch::rand({2});
  Tracer tracer;
  const Trace trace = tracer.trace([&](Tensor x) {
    x = x * a;
    return x + b + a;
  });
  ASSERT_THAT(trace.attributes, SizeIs(2));
  EXPECT_EQ(trace.attributes[0].path, "_tensor_constant0");
  EXPECT_TRUE(trace.attributes[0].tensor.is_same(a));
  EXPECT_TRUE(trace.attributes[1].tensor.is_same(b));
}

TEST(Trace, CapturedTensorsAreNotWritten) {
  Tensor state = torch::zeros({2});
  EXPECT_THAT(traced_calls([&](Tensor x) {
                state.add_(x);
                return state * 2;
              }),
              ElementsAre("aten::add_.Tensor(_tensor_constant0, x)", "aten::mul.Scalar(add_, 2)"));
  EXPECT_TRUE(state.equal(torch::zeros({2})));
}

TEST(Trace, MatmulWithACapturedTensorOnEitherSide) {
  const Tensor w = torch::rand({3, 3});
  EXPECT_THAT(traced_calls([&](Tensor x) { return torch::matmul(w, x); }),
              ElementsAre("aten::matmul(_tensor_constant0, x)"));
  EXPECT_THAT(traced_calls([&](Tensor x) { return torch::matmul(x, w); }),
              ElementsAre("aten::matmul(x, _tensor_constant0)"));
}

TEST(Trace, NumbersMayBeReturned) {
  Tracer tracer;
  EXPECT_EQ(output_text(tracer.trace([](Tensor) { return std::string("foo"); }).graph), "'foo'");
  EXPECT_EQ(output_text(tracer.trace([](Tensor) { return 3; }).graph), "3");
  EXPECT_EQ(output_text(tracer.trace([](Tensor) {}).graph), "None");
}

// ── Operators of the user
// ──────────────────────────────────────────────────────────────────────────────────────────────

Tensor shifted(const Tensor& x, std::int64_t by) { return x + by; }

TORCH_LIBRARY(fx_trace_test, library) { library.def("shifted(Tensor x, int by) -> Tensor", shifted); }

TEST(Trace, OwnOperatorsAreRecordedWhole) {
  const auto op = c10::Dispatcher::singleton()
                      .findSchemaOrThrow("fx_trace_test::shifted", "")
                      .typed<Tensor(const Tensor&, std::int64_t)>();
  EXPECT_THAT(traced_calls([&](Tensor x) { return op.call(x, 3); }), ElementsAre("fx_trace_test::shifted(x, 3)"));
}

// ── Extension points
// ───────────────────────────────────────────────────────────────────────────────────────────────────

TEST(Trace, TracersMayRefuseOperators) {
  struct NoInPlace : Tracer {
    Node& create_node(Op op, Symbol target, ArgumentSpan args, KwargSpan kwargs, std::string_view name) override {
      if (target.view().ends_with('_')) throw Error(ErrorKind::unsupported, "in-place operator " + target.str());
      return Tracer::create_node(op, target, args, kwargs, name);
    }
  } tracer;
  EXPECT_FX_ERROR(tracer.trace([](Tensor x) { return x.relu_(); }), unsupported, HasSubstr("aten::relu_"));
  EXPECT_THAT(calls(tracer.trace([](Tensor x) { return x.relu(); }).graph), ElementsAre("aten::relu(x)"));
}

TEST(Trace, MutableOperationsAreRefusedOnRequest) {
  TraceOptions options;
  options.check_mutable_operations = true;
  Tracer tracer(options);
  EXPECT_FX_ERROR(tracer.trace([](Tensor x) { return x.exp().add_(1); }), trace, HasSubstr("aten.add_.Scalar"),
                  HasSubstr("%exp"), HasSubstr("check_mutable_operations"));
  EXPECT_FX_ERROR(tracer.trace([](Tensor x) {
    Tensor out = torch::empty({0});
    torch::mul_out(out, x, x);
    return out;
  }),
                  trace, HasSubstr("aten.mul.out"), HasSubstr("`out`"));
  EXPECT_THAT(calls(tracer.trace([](Tensor x) { return x + 1; }).graph), ElementsAre("aten::add.Scalar(x, 1)"));
  torch::nn::BatchNorm1d norm(3);
  norm->eval();
  EXPECT_NO_THROW(tracer.trace(norm, {torch::rand({2, 3})}));
}

TEST(Trace, TracersMayAnnotateNodes) {
  struct Tagging : Tracer {
    Node& create_node(Op op, Symbol target, ArgumentSpan args, KwargSpan kwargs, std::string_view name) override {
      Node& node = Tracer::create_node(op, target, args, kwargs, name);
      node.meta().set("tag", std::string("mine"));
      return node;
    }
  } tracer;
  const Trace trace = tracer.trace([](Tensor x) { return x + 1; });
  for (const Node& node : trace.graph.nodes()) EXPECT_EQ(*node.find_meta()->get<std::string>("tag"), "mine");
}

TEST(Trace, StackTracesOnRequest) {
  TraceOptions options;
  options.record_stack_traces = true;
  Tracer tracer(options);
  torch::nn::Sequential module{torch::nn::Sigmoid()};
  const Trace trace = tracer.trace(module);
  const Node& node = *trace.graph.find("sigmoid");
  const std::string* stack = node.find_meta()->get<std::string>(meta_key::kStackTrace);
  ASSERT_NE(stack, nullptr);
  // The most recent call is last, and the calls inside the operator are left out.
  const std::size_t container = stack->find("main"), inner = stack->find("torch::nn::SigmoidImpl::forward");
  ASSERT_NE(container, std::string::npos) << *stack;
  ASSERT_NE(inner, std::string::npos) << *stack;
  EXPECT_LT(container, inner);
  EXPECT_THAT(source_place(node), HasSubstr("torch::nn::SigmoidImpl::forward"));
  EXPECT_THAT(*stack, Not(HasSubstr("at::_ops::")));
}

TEST(Trace, NoNodeIsNamedAsAPythonBuiltin) {
  Tracer tracer;
  const Trace trace = tracer.trace([](Tensor x) { return x.sum() + x.max() + x.abs(); });
  EXPECT_NE(trace.graph.find("sum_1"), nullptr);
  EXPECT_EQ(trace.graph.find("sum"), nullptr);
}

TEST(Trace, NamesOfInputs) {
  Tracer tracer(TraceOptions{{"query", "key"}, true, false});
  const Trace trace = tracer.trace([](Tensor q, Tensor k) { return torch::matmul(q, k.t()); });
  EXPECT_NE(trace.graph.find("query"), nullptr);
  EXPECT_NE(trace.graph.find("key"), nullptr);
}

}  // namespace fx::tracer_test
