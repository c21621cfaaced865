// --target cpu is undone where the whole program does not gain by it.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>

namespace fx::lowering_whole_test {

const std::vector<TensorInfo> kInputs = {TensorInfo{.dtype = DType::float32, .sizes = {1, 32, 48, 48}}};

// Three convolutions that packed calls make faster everywhere, and a buffer that each run changes.
std::shared_ptr<GraphModule> program() {
  at::manual_seed(1);
  const GraphModule::Attributes attributes = {{"a", at::randn({32, 32, 3, 3}) / 16},
                                              {"b", at::randn({32, 32, 3, 3}) / 16},
                                              {"c", at::randn({32, 32, 3, 3}) / 16},
                                              {"count", at::zeros({1})}};
  return std::make_shared<GraphModule>(attributes, parse_graph(R"(graph():
    %x = placeholder[target=x]
    %a = get_attr[target=a]
    %b = get_attr[target=b]
    %c = get_attr[target=c]
    %count = get_attr[target=count]
    %add_ = call_function[target=torch.ops.aten.add_.Scalar](args = (%count, 1))
    %p = call_function[target=torch.ops.aten.conv2d.default](args = (%x, %a))
    %q = call_function[target=torch.ops.aten.relu.default](args = (%p,))
    %r = call_function[target=torch.ops.aten.conv2d.default](args = (%q, %b))
    %s = call_function[target=torch.ops.aten.relu.default](args = (%r,))
    %t = call_function[target=torch.ops.aten.conv2d.default](args = (%s, %c))
    %u = call_function[target=torch.ops.aten.relu.default](args = (%t,))
    return u
)"));
}

std::size_t places(const OptimizeReport& report, rules::Group group) {
  std::size_t sum = 0;
  for (const RuleOutcome& outcome : report.rules) {
    if (outcome.rule->group == group) sum += outcome.applied;
  }
  return sum;
}

std::vector<std::string> paths_of(const GraphModule& module) {
  std::vector<std::string> paths = module.named_parameters().keys();
  for (const std::string& path : module.named_buffers().keys()) paths.push_back(path);
  return paths;
}

TEST(LoweringOfTheWhole, StaysWhereItGains) {
  const at::NoGradGuard no_grad;
  const auto module = program();
  const OptimizeReport report = optimize(*module, {.inputs = kInputs, .target = "cpu", .max_slowdown = 1e6});
  EXPECT_GT(places(report, rules::Group::lowering), 0U) << print_graph(module->graph());
  EXPECT_FALSE(report.lowering_undone);
  EXPECT_EQ(module->attribute("count").item<float>(), 0);  // measuring has left no trace
}

TEST(LoweringOfTheWhole, IsUndoneWhereItDoesNot) {
  const at::NoGradGuard no_grad;
  const auto module = program(), plain = program();
  // No program takes no time: whatever was lowered costs too much.
  const OptimizeReport report = optimize(*module, {.inputs = kInputs, .target = "cpu", .max_slowdown = 0});
  EXPECT_EQ(places(report, rules::Group::lowering), 0U);
  ASSERT_TRUE(report.lowering_undone);
  EXPECT_GT(report.lowering_undone->undone, 0);
  optimize(*plain, {.rules = {"inference", "inline-modules"}, .inputs = kInputs});
  EXPECT_EQ(print_graph(module->graph()), print_graph(plain->graph()));
  EXPECT_EQ(paths_of(*module), paths_of(*plain));
  EXPECT_EQ(module->attribute("count").item<float>(), 0);
  const at::Tensor x = at::randn({2, 32, 48, 48});
  EXPECT_TRUE(module->forward(x).equal(plain->forward(x)));
}

TEST(LoweringOfTheWhole, IsNotMeasuredWhereThereIsNothingToUndo) {
  auto module = std::make_shared<GraphModule>(parse_graph(R"(graph():
    %x = placeholder[target=x]
    %y = call_function[target=torch.ops.aten.exp.default](args = (%x,))
    return y
)"));
  const OptimizeReport report = optimize(*module, {.inputs = kInputs, .target = "cpu", .max_slowdown = 0});
  EXPECT_FALSE(report.lowering_undone);
}

// ── bfloat16 ─────────────────────────────────────────────────────────────────────────────────────────────────────────

bool holds(const GraphModule& module, at::ScalarType type) {
  const auto is = [&](const at::Tensor& tensor) { return tensor.scalar_type() == type; };
  return std::ranges::any_of(module.parameters(), is) || std::ranges::any_of(module.buffers(), is);
}

// A processor that does not multiply bfloat16 finds nothing faster in it: then there is nothing to undo.
TEST(Bfloat16OfTheWhole, StaysWhereItGains) {
  const at::NoGradGuard no_grad;
  const auto module = program();
  const OptimizeReport report = optimize(
      *module, {.inputs = kInputs, .target = "cpu", .max_slowdown = 1e6, .dtype = DType::bfloat16, .max_rounded = 1e6});
  EXPECT_FALSE(report.rounding_undone);
  EXPECT_GT(places(report, rules::Group::lowering) + places(report, rules::Group::precision), 0U);
  EXPECT_EQ(module->graph().count(Op::call_function, "aten::_to_copy") > 0,
            places(report, rules::Group::precision) > 0);
  EXPECT_EQ(module->attribute("count").item<float>(), 0);
}

TEST(Bfloat16OfTheWhole, IsUndoneWhereItDoesNot) {
  const at::NoGradGuard no_grad;
  const auto module = program();
  const OptimizeReport report = optimize(
      *module, {.inputs = kInputs, .target = "cpu", .max_slowdown = 1e6, .dtype = DType::bfloat16, .max_rounded = 0});
  const auto measured = [&] {
    std::size_t faster = 0;
    for (const RuleOutcome& outcome : report.rules) {
      for (const rules::Choice& choice : outcome.choices)
        faster += outcome.rule->group == rules::Group::precision && choice.fastest > 0;
    }
    return faster;
  };
  EXPECT_EQ(report.rounding_undone.has_value(), measured() > 0);
  EXPECT_EQ(places(report, rules::Group::precision), 0U);
  EXPECT_GT(places(report, rules::Group::lowering), 0U);  // of float32
  EXPECT_EQ(module->graph().count(Op::call_function, "aten::_to_copy"), 0U) << print_graph(module->graph());
  EXPECT_FALSE(holds(*module, at::kBFloat16));
  const at::Tensor x = at::randn({2, 32, 48, 48});
  EXPECT_LE(relative_difference(program()->forward(x), module->forward(x)), 1e-4);
  EXPECT_EQ(module->attribute("count").item<float>(), 1);
}

}  // namespace fx::lowering_whole_test
