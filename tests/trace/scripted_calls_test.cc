// Scripted modules and functions that a traced program calls: they run as they are written, and their operators are
// recorded like the program's own.
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/script.h>

#include <functional>

#include "tests/trace/trace_testing.h"

namespace fx::scripted_calls_test {

using testing::error_of;
using ::testing::HasSubstr;
using torch::Tensor;
using Call = std::function<Tensor(torch::jit::Module&, const Tensor&)>;

Tensor forward(torch::jit::Module& module, const Tensor& x) { return module.forward({x}).toTensor(); }

struct Case {
  const char* name;
  const char* text;
  std::size_t taken;  ///< of the six inputs
  Call call = forward;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

torch::jit::Module module_of(const char* text) {
  torch::jit::Module module("Scripted");
  module.register_parameter("scale", torch::full({1}, 2.0f), /*is_buffer=*/false);
  module.register_buffer("calls", torch::zeros({1}));
  module.define(text);
  return module;
}

const Case kCases[] = {
    {"Loop", "def forward(self, x):\n  for i in range(x.size(0)):\n    x = x + float(i)\n  return x * self.scale\n", 3},
    {"While", "def forward(self, x):\n  n = x.size(0)\n  while n > 1:\n    x = x * 2\n    n = n // 2\n  return x\n", 3},
    {"Rank", "def forward(self, x):\n  if x.dim() == 2:\n    return x.sum(1)\n  return x.sum(0)\n", 6},
    {"EarlyReturn", "def forward(self, x):\n  if x.size(1) % 2 == 0:\n    return x[:, ::2]\n  return x[:, 1:]\n", 4},
    {"ListThatGrows",
     "def forward(self, x):\n  l = []\n  for i in range(x.size(0)):\n    l.append(x[i] * i)\n  return torch.stack(l)\n",
     3},
    {"Chunks", "def forward(self, x):\n  a, b = x.chunk(2, 1)\n  return torch.cat([b, a], 1)\n", 5},
    {"InPlace", "def forward(self, x):\n  y = x.clone()\n  y.add_(1)\n  y[0] = 5.\n  return y.relu_()\n", 6},
    {"Assert", "def forward(self, x):\n  assert x.size(0) > 2, 'too small'\n  return x\n", 5},
    {"Pad",
     "def forward(self, x):\n  p = (4 - x.size(1) % 4) % 4\n  if p > 0:\n    x = torch.constant_pad_nd(x, [0, p])\n"
     "  return x.view([x.size(0), -1, 4]).sum(2)\n",
     6},
    {"State", "def forward(self, x):\n  self.calls.add_(1)\n  return x * self.calls\n", 6},
    {"Optional", "def forward(self, x, b: Optional[Tensor]):\n  if b is not None:\n    x = x + b\n  return x\n", 6,
     [](torch::jit::Module& m, const Tensor& x) {
       return m.forward({x, c10::IValue()}).toTensor() + m.forward({x, x}).toTensor();
     }},
    {"ListOfTensors", "def forward(self, l: List[Tensor]):\n  return torch.cat(l, 1)\n", 6,
     [](torch::jit::Module& m, const Tensor& x) {
       return m.forward({std::vector<Tensor>{x, x * 2}}).toTensor();
     }},
    {"DictOfTensors",
     "def forward(self, d: Dict[str, Tensor]):\n  r = d['a']\n  for k in d:\n    r = r + d[k]\n  return r\n", 6,
     [](torch::jit::Module& m, const Tensor& x) {
       c10::Dict<std::string, Tensor> d;
       d.insert("a", x);
       d.insert("b", x * 3);
       return m.forward({d}).toTensor();
     }},
    {"TupleOut", "def forward(self, x):\n  return x.max(1)\n", 6,
     [](torch::jit::Module& m, const Tensor& x) {
       const auto both = m.forward({x}).toTuple();
       return both->elements()[0].toTensor() + both->elements()[1].toTensor();
     }},
    {"OtherMethod", "def twice(self, x):\n  return x * 2 * self.scale\n", 6,
     [](torch::jit::Module& m, const Tensor& x) { return m.get_method("twice")({x}).toTensor(); }},
};

class ScriptedCalls : public ::testing::TestWithParam<Case> {};

TEST_P(ScriptedCalls, AreRecordedAsTheyAreWritten) {
  const Case& c = GetParam();
  torch::jit::Module traced = module_of(c.text), twin = module_of(c.text);
  const auto program = [&](const Tensor& x) { return c.call(traced, x) + 1; };
  const auto gm = symbolic_trace(program, {torch::rand({4, 6})});
  traced.attr("calls").toTensor().zero_();
  std::size_t taken = 0;
  for (const auto& sizes : std::vector<std::vector<std::int64_t>>{{4, 6}, {4, 6}, {4, 8}, {3, 8}, {5, 7}, {1, 1}}) {
    const Tensor x = torch::randn(sizes);
    Tensor expected;
    bool throws = false;
    try {
      expected = c.call(twin, x) + 1;
    } catch (const std::exception&) {
      throws = true;
    }
    Tensor found;
    const std::string refused = error_of([&] { found = gm->run({x}).toTensor(); });
    if (refused != "no error") {
      EXPECT_THAT(refused, HasSubstr("x["));
      twin.attr("calls").toTensor().copy_(traced.attr("calls").toTensor());
      continue;
    }
    ++taken;
    EXPECT_FALSE(throws) << x.sizes();
    EXPECT_TRUE(!throws && testing::same_value(found, expected)) << x.sizes();
  }
  EXPECT_GE(taken, c.taken);
  EXPECT_TRUE(torch::jit::getGraphExecutorOptimize());
}

INSTANTIATE_TEST_SUITE_P(All, ScriptedCalls, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ScriptedQuestions, AreRefusedLikeTheProgramsOwn) {
  const auto refusal = [](const char* text) {
    torch::jit::Module module = module_of(text);
    return error_of([&] {
      symbolic_trace([&](const Tensor& x) { return forward(module, x); }, {torch::rand({4, 6})});
    });
  };
  EXPECT_THAT(refusal("def forward(self, x):\n  if bool(x.sum() > 0):\n    return x\n  return -x\n"),
              HasSubstr("%gt: item() asks for data, and a traced tensor has none"));
  EXPECT_THAT(refusal("def forward(self, x):\n  if x.requires_grad:\n    return x * 2\n  return x\n"),
              HasSubstr("requires_grad() is the caller's to say"));
}

}  // namespace fx::scripted_calls_test
