// Tensors that share memory share it in what is written: what the program, or an optimiser, writes to one is seen in
// the other; here, and where Python reads it (tests/newest/check_written.py).
#include <fxgraph/fx.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <functional>
#include <set>

#include "tests/pt2/kept_archive.h"
#include "tests/support/error_of.h"
#include "tests/support/scratch_folder.h"

namespace fx::shared_memory_test {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using torch::Tensor;

/// A module whose members are what `make` says, registered or not.
struct ModelImpl : torch::nn::Module {
  using Make = std::function<void(ModelImpl&)>;
  using Run = std::function<Tensor(const ModelImpl&, const Tensor&)>;
  ModelImpl(const Make& make, Run run) : run(std::move(run)) { make(*this); }
  Tensor forward(const Tensor& x) { return run(*this, x); }
  Tensor buffer(const char* name, const Tensor& tensor) { return register_buffer(name, tensor); }
  Tensor parameter(const char* name, const Tensor& tensor) { return register_parameter(name, tensor); }
  Tensor a, b, c;
  Run run;
};
TORCH_MODULE(Model);

struct Case {
  const char* name;
  ModelImpl::Make make;
  ModelImpl::Run run;
  std::vector<std::string> shared = {};  ///< names whose tensors lie in one memory
  bool is_written_as_several = false;    ///< run_decompositions(), which makes writes functional, refuses it
};
std::ostream& operator<<(std::ostream& out, const Case& each) { return out << each.name; }

const std::vector<Case>& cases() {
  static const auto& table = *new std::vector<Case>{
      {"view_is_written",
       [](ModelImpl& m) {
         m.a = m.buffer("a", torch::zeros({2, 3}));
         m.b = m.a[1];
       },
       [](const ModelImpl& m, const Tensor& x) {
         m.b.add_(1);
         return x + m.a;
       }},
      {"buffer_is_written",
       [](ModelImpl& m) {
         m.a = m.buffer("a", torch::zeros({2, 3}));
         m.b = m.a.t();
       },
       [](const ModelImpl& m, const Tensor& x) {
         m.a.add_(x.sum());
         return torch::mm(x, m.b.slice(0, 0, 3)) * 0 + m.b[0];
       }},
      {"rows_of_a_cache",
       [](ModelImpl& m) {
         m.a = m.buffer("a", torch::zeros({4, 3}));
         m.b = m.a[1];
         m.c = m.a[3];
       },
       [](const ModelImpl& m, const Tensor& x) {
         m.b.copy_(x[0]);
         m.c.add_(m.b);
         return x + m.a.sum(0);
       }},
      {"two_buffers",
       [](ModelImpl& m) {
         const Tensor all = torch::zeros({9});
         m.a = m.buffer("a", all.narrow(0, 1, 4));
         m.b = m.buffer("b", all.narrow(0, 3, 3));
       },
       [](const ModelImpl& m, const Tensor& x) {
         m.a.add_(1);
         return x + m.b;
       },
       {"a", "b"},
       true},
      {"buffer_and_longer_view",  // which no registered tensor has all of
       [](ModelImpl& m) {
         m.b = torch::zeros({6});
         m.a = m.buffer("a", m.b.narrow(0, 2, 3));
       },
       [](const ModelImpl& m, const Tensor& x) {
         m.b.add_(1);
         return x + m.a;
       },
       {},
       true},
      {"two_unregistered",
       [](ModelImpl& m) {
         const Tensor all = torch::zeros({9});
         m.a = all.narrow(0, 1, 4);
         m.b = all.narrow(0, 3, 3);
       },
       [](const ModelImpl& m, const Tensor& x) {
         m.a.add_(1);
         return x + m.b;
       },
       {},
       true},
      {"unregistered_is_written", [](ModelImpl& m) { m.a = torch::zeros({3}); },
       [](const ModelImpl& m, const Tensor& x) {
         m.a.add_(1);
         return x + m.a;
       }},
      {"parameter_and_view",
       [](ModelImpl& m) {
         m.a = m.parameter("a", torch::rand({2, 3}));
         m.b = m.a.detach()[1];
       },
       [](const ModelImpl& m, const Tensor& x) { return x * m.a + m.b * m.b; }},
      {"parameter_and_buffer",
       [](ModelImpl& m) {
         m.a = m.parameter("z", torch::rand({2, 3}));
         m.b = m.buffer("b", m.a.detach().t());
       },
       [](const ModelImpl& m, const Tensor& x) { return x * m.a + m.b.sum(); },
       {"z", "b"}},
      {"parameter_and_row_with_gradient",
       [](ModelImpl& m) {
         m.a = m.parameter("a", torch::rand({2, 3}));
         m.b = m.a[1];
       },
       [](const ModelImpl& m, const Tensor& x) { return x * m.a + m.b; }},
      {"flat_parameters",
       [](ModelImpl& m) {
         const Tensor all = torch::rand({12});
         m.a = m.parameter("a", all.narrow(0, 0, 6).view({2, 3}));
         m.b = m.parameter("b", all.narrow(0, 3, 6).view({2, 3}));
       },
       [](const ModelImpl& m, const Tensor& x) { return x * m.a + m.b; },
       {"a", "b"}},
      {"tied",
       [](ModelImpl& m) {
         m.a = m.parameter("a", torch::rand({2, 3}));
         m.b = m.parameter("b", m.a);
       },
       [](const ModelImpl& m, const Tensor& x) { return x * m.a + m.b; },
       {"a", "b"}},
      {"tied_buffers",
       [](ModelImpl& m) {
         m.a = m.buffer("a", torch::zeros({2, 3}));
         m.b = m.buffer("b", m.a);
       },
       [](const ModelImpl& m, const Tensor& x) {
         m.a.add_(1);
         return x + m.b;
       },
       {"a", "b"},
       true},
      {"of_every_second",  // alone, with gaps in its memory
       [](ModelImpl& m) {
         m.a = m.buffer("a", torch::rand({3, 8}).slice(1, 1, 7, 2).slice(0, 1));
       },
       [](const ModelImpl& m, const Tensor& x) { return x + m.a; }},
      {"expanded",
       [](ModelImpl& m) {
         m.a = m.buffer("a", torch::rand({3}).expand({2, 3}));
       },
       [](const ModelImpl& m, const Tensor& x) { return x + m.a; }},
      {"conjugate",
       [](ModelImpl& m) {
         m.a = m.buffer("a", torch::full({3}, c10::complex<float>(1, 2), torch::kComplexFloat).conj());
         m.b = m.buffer("b", torch::imag(torch::full({3}, c10::complex<float>(1, 2), torch::kComplexFloat).conj()));
       },
       [](const ModelImpl& m, const Tensor& x) { return x + at::imag(m.a) + m.b; }},
      {"two_types_nobody_writes",
       [](ModelImpl& m) {
         m.a = m.buffer("a", torch::rand({3, 2}));
         m.b = m.buffer("b", torch::view_as_complex(m.a));
       },
       [](const ModelImpl& m, const Tensor& x) { return x + at::imag(m.b) + m.a.sum(); }},
  };
  return table;
}

class SharedMemory : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override { torch::manual_seed(3); }
  static std::string name() { return GetParam().name; }
};

TEST_P(SharedMemory, IsSharedInTheArchive) {
  Model model(GetParam().make, GetParam().run);
  testing::KeptArchive archive("memory_" + name());
  const std::vector<Tensor> inputs = {torch::rand({2, 3}), torch::rand({2, 3}), torch::rand({2, 3})};
  symbolic_trace(model, {inputs[0]})->save(archive.path());
  const auto again = load(archive.path());
  if (!GetParam().shared.empty()) archive.shares(GetParam().shared);
  if (GetParam().is_written_as_several) archive.cannot_be_decomposed();
  for (const std::string& one : GetParam().shared) {
    const Tensor first = again->attribute(GetParam().shared[0]);
    EXPECT_TRUE(again->attribute(one).storage().is_alias_of(first.storage())) << one;
  }
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor wanted = model->forward(inputs[i]).detach().clone();
    EXPECT_TRUE(at::allclose(again->forward(inputs[i]), wanted)) << "call " << i;
    archive.gives({inputs[i]}, wanted);
  }
}

std::vector<Tensor> each_once(std::vector<Tensor> tensors) {
  std::set<const void*> known;
  std::erase_if(tensors, [&](const Tensor& tensor) { return !known.insert(tensor.unsafeGetTensorImpl()).second; });
  return tensors;
}

// Several times, for the first step shows only in the second call.
TEST_P(SharedMemory, IsTrainedAsOne) {
  Model model(GetParam().make, GetParam().run);
  if (model->parameters().empty()) return;
  testing::KeptArchive archive("memory_trained_" + name());
  const Tensor x = torch::rand({2, 3});
  symbolic_trace(model, {x})->save(archive.path());
  const auto again = load(archive.path());
  constexpr double kRate = 0.1;
  torch::optim::SGD here(each_once(model->parameters()), kRate), there(each_once(again->parameters()), kRate);
  std::vector<double> losses;
  for (int step = 0; step < 3; ++step) {
    here.zero_grad();
    there.zero_grad();
    const Tensor loss = model->forward(x).sum(), other = again->forward(x).sum();
    EXPECT_TRUE(at::allclose(loss, other)) << "step " << step;
    losses.push_back(loss.item<double>());
    loss.backward();
    other.backward();
    here.step();
    there.step();
  }
  archive.trains({x}, kRate, losses);
}

INSTANTIATE_TEST_SUITE_P(ForPython, SharedMemory, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

// What a run wrote has that run's gradient, which is nothing of the program's.
TEST(StateThatWasWritten, IsSavedAsItIs) {
  Model model(
      [](ModelImpl& m) {
        m.a = m.buffer("a", torch::zeros({2, 3}));
        m.b = m.parameter("b", torch::ones({2, 3}));
      },
      [](const ModelImpl& m, const Tensor& x) {
        m.a.copy_(x * m.b);
        return m.a + 1;
      });
  const testing::ScratchFolder scratch;
  const std::string first = scratch / "first.pt2", second = scratch / "second.pt2";
  const Tensor x = torch::rand({2, 3});
  symbolic_trace(model, {x})->save(first);
  const auto loaded = load(first);
  loaded->forward(x);
  loaded->save(second);
  const Tensor saved = load(second)->attribute("a");
  EXPECT_TRUE(at::equal(saved, x));
  EXPECT_FALSE(saved.requires_grad());
}

std::string refusal(const ModelImpl::Make& make, const ModelImpl::Run& run) {
  const testing::ScratchFolder scratch;
  const std::string path = scratch / "refused.pt2";
  Model model(make, run);
  const auto traced = symbolic_trace(model, {torch::rand({2, 3})});
  const std::string message = error_of([&] { traced->save(path); });
  EXPECT_FALSE(std::filesystem::exists(path));
  return message;
}

TEST(SharedMemoryRefused, ReadAsTwoTypesAndWritten) {
  const std::string message = refusal(
      [](ModelImpl& m) {
        m.a = m.buffer("a", torch::zeros({3}, torch::kComplexFloat));
        m.b = m.buffer("b", torch::view_as_real(m.a));
      },
      [](const ModelImpl& m, const Tensor& x) {
        m.b.add_(1);
        return x + at::real(m.a);
      });
  EXPECT_THAT(message,
              AllOf(HasSubstr("'a'"), HasSubstr("'b'"), HasSubstr("share memory and read it as different types")));
}

TEST(SharedMemoryRefused, ReadBeyondItsElementsAndNegated) {
  const std::string message =
      refusal([](ModelImpl& m) { m.a = m.buffer("a", torch::imag(torch::rand({3}, torch::kComplexFloat).conj())); },
              [](const ModelImpl& m, const Tensor& x) { return x + m.a.as_strided({3}, {1}); });
  EXPECT_THAT(message, HasSubstr("the tensor 'a' is read beyond its elements"));
}

TEST(SharedMemoryRefused, ComputedOfAParameterBeforeTheProgramRuns) {
  const std::string message = refusal(
      [](ModelImpl& m) {
        m.a = m.parameter("a", torch::rand({3}));
        m.b = m.a * 2;
      },
      [](const ModelImpl& m, const Tensor& x) { return x + m.a * m.b; });
  EXPECT_THAT(message, AllOf(HasSubstr("'_tensor_constant0'"), HasSubstr("detach() it")));
}

}  // namespace fx::shared_memory_test
