// What a trace asserts of its inputs beside their sizes is asserted by whatever the trace is written as: the
// GraphModule, its `.pt`, its `.pt2`, and the `.pt` that is written of that take what the example was, and refuse what
// differs. Python takes and refuses the same (tests/newest/check_written.py).
#include <fxgraph/fx.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>
#include <torch/torch.h>

#include <functional>
#include <map>

#include "tests/pt2/kept_archive.h"
#include "tests/support/error_of.h"
#include "tests/support/scratch_folder.h"

namespace fx::assertions_test {

using testing::ScratchFolder;
using torch::Tensor;
using Values = std::vector<c10::IValue>;

Tensor ones(at::IntArrayRef sizes) { return torch::ones(sizes); }

c10::IValue tuple(std::vector<c10::IValue> values) { return c10::ivalue::Tuple::create(std::move(values)); }

c10::IValue dict(const std::vector<std::string>& keys) {
  c10::Dict<std::string, Tensor> made;
  for (const std::string& key : keys) made.insert(key, ones({2, 3}));
  return made;
}

c10::IValue tensors(std::size_t count) { return std::vector<Tensor>(count, ones({2, 3})); }

struct Case {
  const char* name;
  std::function<std::shared_ptr<GraphModule>(const Values&)> trace;
  std::function<Values()> example;
  std::vector<std::function<Values()>> refused;
  bool python_takes_them = false;  ///< to which None is a value like any other
};
std::ostream& operator<<(std::ostream& out, const Case& each) { return out << each.name; }

template <typename Function>
auto traced(Function function) {
  return [function](const Values& example) { return symbolic_trace(function, example); };
}

struct Defaulted : torch::nn::Module {
  Tensor forward(Tensor x, double scale, bool twice) { return twice ? x * scale * 2 : x * scale; }
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(2.0)}, {2, torch::nn::AnyValue(false)})
};

const std::vector<Case>& cases() {
  static const auto& table = *new std::
                                 vector<Case>{
                                     {"number",
                                      traced([](Tensor x, double a) { return x * a; }),
                                      [] {
                                        return Values{ones({2, 3}), 2.5};
                                      },
                                      {[] {
                                        return Values{ones({2, 3}), 3.5};
                                      }}},
                                     {"int",
                                      traced([](Tensor x, std::int64_t n) { return x * n; }),
                                      [] {
                                        return Values{ones({2, 3}), 2};
                                      },
                                      {[] {
                                        return Values{ones({2, 3}), 3};
                                      }}},
                                     {"boolean",
                                      traced([](Tensor x, bool b) { return b ? x * 2 : x; }),
                                      [] {
                                        return Values{ones({2, 3}), true};
                                      },
                                      {[] {
                                        return Values{ones({2, 3}), false};
                                      }}},
                                     {"string",
                                      traced([](Tensor x, std::string s) { return s == "twice" ? x * 2 : x; }),
                                      [] {
                                        return Values{ones({2, 3}), "twice"};
                                      },
                                      {[] {
                                        return Values{ones({2, 3}), "once"};
                                      }}},
                                     {"ints",
                                      traced([](Tensor x, std::vector<std::int64_t> sizes) { return x.sum(sizes); }),
                                      [] {
                                        return Values{ones({2, 3}), std::vector<std::int64_t>{0}};
                                      },
                                      {[] {
                                         return Values{ones({2, 3}), std::vector<std::int64_t>{1}};
                                       },
                                       [] {
                                         return Values{ones({2, 3}), std::vector<std::int64_t>{0, 1}};
                                       }}},
                                     {"floats",
                                      traced([](Tensor x, std::vector<double> weights) {
                                        return x * weights[0] + weights[1];
                                      }),
                                      [] {
                                        return Values{ones({2, 3}), std::vector<double>{0.5, 1.5}};
                                      },
                                      {[] {
                                        return Values{ones({2, 3}), std::vector<double>{0.5, 2.5}};
                                      }}},
                                     {"elements_of_floats",
                                      traced([](Tensor x, std::vector<double> w) { return x * w[0] + w[1]; }),
                                      [] {
                                        return Values{ones({2, 3}), std::vector<double>{0.5, 1.5}};
                                      },
                                      {[] {
                                        return Values{ones({2, 3}), std::vector<double>{0.5, 2.5}};
                                      }}},
                                     {"length_of_list",
                                      traced([](std::vector<Tensor> xs) { return torch::stack(xs).sum(0); }),
                                      [] { return Values{tensors(2)}; },
                                      {[] { return Values{tensors(3)}; }, [] { return Values{tensors(1)}; }}},
                                     {"keys_of_dict",
                                      traced([](std::map<std::string, Tensor> d) {
                                        return d.begin()->second * double(d.size());
                                      }),
                                      [] {
                                        return Values{dict({"a", "b"})};
                                      },
                                      {[] {
                                         return Values{dict({"a", "b", "c"})};
                                       },
                                       [] {
                                         return Values{dict({"b", "c"})};
                                       }}},
                                     {"none",
                                      traced([](Tensor x, c10::optional<Tensor> bias) {
                                        return bias ? x + *bias : x * 2;
                                      }),
                                      [] {
                                        return Values{ones({2, 3}), c10::IValue()};
                                      },
                                      {[] {
                                        return Values{ones({2, 3}), ones({3})};
                                      }},
                                      true},
                                     {"given",
                                      traced([](Tensor x, c10::optional<Tensor> bias) { return bias ? x * 2 : x * 3; }),
                                      [] {
                                        return Values{ones({2, 3}), ones({3})};
                                      },
                                      {[] {
                                        return Values{ones({2, 3}), c10::IValue()};
                                      }},
                                      true},
                                     {"given_in_tuple",
                                      traced([](std::tuple<Tensor, c10::optional<Tensor>> pair) {
                                        return std::get<1>(pair) ? std::get<0>(pair) * 2 : std::get<0>(pair) * 3;
                                      }),
                                      [] {
                                        return Values{tuple({ones({2, 3}), ones({3})})};
                                      },
                                      {[] {
                                        return Values{tuple({ones({2, 3}), c10::IValue()})};
                                      }},
                                      true},
                                     {"none_in_tuple",
                                      traced([](std::tuple<Tensor, c10::optional<Tensor>> pair) {
                                        return std::get<1>(pair) ? std::get<0>(pair) * 2 : std::get<0>(pair) * 3;
                                      }),
                                      [] {
                                        return Values{tuple({ones({2, 3}), c10::IValue()})};
                                      },
                                      {[] {
                                        return Values{tuple({ones({2, 3}), ones({3})})};
                                      }},
                                      true},
                                     {"number_in_tuple",
                                      traced([](std::tuple<Tensor, double> pair) {
                                        return std::get<0>(pair) * std::get<1>(pair);
                                      }),
                                      [] {
                                        return Values{tuple({ones({2, 3}), 2.0})};
                                      },
                                      {[] {
                                        return Values{tuple({ones({2, 3}), 3.0})};
                                      }}},
                                     {"defaults",
                                      [](const Values& example) {
                                        return symbolic_trace(std::make_shared<Defaulted>(), example);
                                      },
                                      [] {
                                        return Values{ones({2, 3}), 0.5, true};
                                      },
                                      {[] {
                                         return Values{ones({2, 3}), 2.0, true};
                                       },
                                       [] {
                                         return Values{ones({2, 3}), 0.5, false};
                                       }}},
                                     {"element_type",
                                      traced([](Tensor x) { return x.scalar_type() == torch::kFloat ? x * 2 : x * 3; }),
                                      [] {
                                        return Values{ones({2, 3})};
                                      },
                                      {[] {
                                        return Values{ones({2, 3}).to(torch::kDouble)};
                                      }}},
                                     {"is_contiguous",
                                      traced([](Tensor x) { return x.is_contiguous() ? x * 2 : x * 3; }),
                                      [] {
                                        return Values{ones({2, 3})};
                                      },
                                      {[] {
                                        return Values{ones({3, 2}).t()};
                                      }}},
                                     {"is_turned",
                                      traced([](Tensor x) { return x.is_contiguous() ? x * 2 : x * 3; }),
                                      [] {
                                        return Values{ones({3, 2}).t()};
                                      },
                                      {[] {
                                        return Values{ones({2, 3})};
                                      }}},
                                     {"strides",
                                      traced([](Tensor x) { return x * x.stride(0); }),
                                      [] { return Values{ones({2, 6}).slice(1, 0, 6, 2)}; },
                                      {[] {
                                        return Values{ones({2, 3})};
                                      }}},
                                 };
  return table;
}

class Assertions : public ::testing::TestWithParam<Case> {};

TEST_P(Assertions, AreThoseOfTheTraceInWhateverItIsWrittenAs) {
  const Case& c = GetParam();
  const auto gm = c.trace(c.example());
  const c10::IValue expected = gm->run(c.example());
  const ScratchFolder folder;
  const auto written = [&](const GraphModule& from, const std::string& name) {
    from.save(folder / name);
    return load(folder / name);
  };
  const auto exported = [&](const GraphModule& from, const std::string& name) {
    save_exported(from, folder / name, {.inputs = c.example()});
    return load(folder / name);
  };
  std::vector<std::pair<const char*, std::shared_ptr<GraphModule>>> forms{{"trace", gm}};
  forms.emplace_back(".pt", written(*gm, "a.pt"));
  testing::KeptArchive archive(std::string("asserts_") + c.name);
  gm->save(archive.path());
  archive.gives(c.example(), expected);
  for (const auto& other : c.refused) {
    if (!c.python_takes_them) archive.refuses(other());
  }
  forms.emplace_back(".pt2", load(archive.path()));
  forms.emplace_back(".pt2, twice", written(*forms.back().second, "b.pt2"));
  forms.emplace_back(".pt of .pt2", written(*forms.back().second, "c.pt"));
  try {
    forms.emplace_back(".pt2 of .pt of .pt2", exported(*forms.back().second, "d.pt2"));
  } catch (const Error& error) {  // or it is refused
    EXPECT_EQ(error.kind(), ErrorKind::unsupported) << error.what();
  }
  for (const auto& [name, form] : forms) {
    EXPECT_TRUE(at::equal(form->run(c.example()).toTensor(), expected.toTensor())) << name;
    // Python has no comparison of two numbers in a program.
    EXPECT_TRUE(form->graph().find_nodes(Op::call_function, Symbol("aten::eq.Scalar")).empty()) << form->graph();
    for (std::size_t i = 0; i < c.refused.size(); ++i) {
      const std::string why = testing::error_of([&] { form->run(c.refused[i]()); });
      EXPECT_THAT(why, ::testing::AnyOf(::testing::HasSubstr("must "), ::testing::HasSubstr("has been specialized"),
                                        ::testing::HasSubstr("has no such key"), ::testing::HasSubstr(" None")))
          << name << ", input " << i << ": " << form->graph();
    }
  }
  // The library that reads `.pt` without fxgraph refuses it, too.
  auto script = torch::jit::load(folder / "c.pt");
  EXPECT_TRUE(at::equal(script.forward(c.example()).toTensor(), expected.toTensor()));
  for (const auto& other : c.refused) EXPECT_ANY_THROW(script.forward(other()));
}

INSTANTIATE_TEST_SUITE_P(ForPython, Assertions, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

// ── Of numbers in parameters ─────────────────────────────────────────────────────────────────────────────────────────

struct Asking : torch::nn::Module {
  explicit Asking(Tensor of) : number(register_parameter("number", std::move(of), false)) {}
  Tensor forward(Tensor x) {
    const bool positive = torch::sign(number).is_nonzero();
    return x * number.item().toDouble() + (positive ? 1 : 2) * number.sum();
  }
  Tensor number;
};

class AssertionsOfNumbers : public ::testing::TestWithParam<Tensor> {};

TEST_P(AssertionsOfNumbers, HoldForTheNumberAlone) {
  const auto gm = symbolic_trace(std::make_shared<Asking>(GetParam()), {ones({2, 3})});
  testing::KeptArchive archive("asserts_number_" + std::to_string(static_cast<int>(GetParam().scalar_type())) +
                               (GetParam().item().toDouble() == 0 ? "_zero" : ""));
  gm->save(archive.path());
  const auto again = load(archive.path());
  const c10::IValue wanted = gm->run({ones({2, 3})});
  EXPECT_TRUE(at::equal(again->run({ones({2, 3})}).toTensor(), wanted.toTensor()));
  archive.gives({ones({2, 3})}, wanted);
  again->attribute("number").fill_(GetParam().scalar_type() == at::kBool ? 1 : 9);
  EXPECT_THAT(testing::error_of([&] { again->run({ones({2, 3})}); }), ::testing::HasSubstr("when this was traced"));
}

INSTANTIATE_TEST_SUITE_P(ForPython, AssertionsOfNumbers,
                         ::testing::Values(torch::tensor({0.1f}), torch::tensor(2.5, torch::kDouble), torch::tensor(7),
                                           torch::zeros({1, 1}), torch::tensor(false)));

}  // namespace fx::assertions_test
