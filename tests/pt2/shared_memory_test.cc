// Tensors that share memory share it in what is written: what the program, or an optimiser, writes to one is seen in
// the other. FXGRAPH_TEST_PT2_KEEP=FOLDER leaves the archives there with recordings (tests/newest/check_traced.py).
#include <fxgraph/fx.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

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
       }},
      {"buffer_and_longer_view",  // which no registered tensor has all of
       [](ModelImpl& m) {
         m.b = torch::zeros({6});
         m.a = m.buffer("a", m.b.narrow(0, 2, 3));
       },
       [](const ModelImpl& m, const Tensor& x) {
         m.b.add_(1);
         return x + m.a;
       }},
      {"two_unregistered",
       [](ModelImpl& m) {
         const Tensor all = torch::zeros({9});
         m.a = all.narrow(0, 1, 4);
         m.b = all.narrow(0, 3, 3);
       },
       [](const ModelImpl& m, const Tensor& x) {
         m.a.add_(1);
         return x + m.b;
       }},
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
       [](const ModelImpl& m, const Tensor& x) { return x * m.a + m.b.sum(); }},
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
       [](const ModelImpl& m, const Tensor& x) { return x * m.a + m.b; }},
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
  std::string path() const {
    const char* keep = std::getenv("FXGRAPH_TEST_PT2_KEEP");
    return (keep ? std::filesystem::path(keep) : scratch_.path()) / (std::string("memory_") + GetParam().name + ".pt2");
  }
  testing::ScratchFolder scratch_;
};

TEST_P(SharedMemory, IsSharedInTheArchive) {
  Model model(GetParam().make, GetParam().run);
  const std::vector<Tensor> inputs = {torch::rand({2, 3}), torch::rand({2, 3}), torch::rand({2, 3})};
  const auto traced = symbolic_trace(model, {inputs[0]});
  traced->save(path());
  const auto again = load(path());
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor wanted = model->forward(inputs[i]).detach().clone();
    EXPECT_TRUE(at::allclose(again->forward(inputs[i]), wanted)) << "call " << i;
    if (!std::getenv("FXGRAPH_TEST_PT2_KEEP")) continue;
    const c10::IValue in = c10::ivalue::Tuple::create({inputs[i]});
    const auto bytes = torch::pickle_save(c10::ivalue::Tuple::create({in, wanted}));
    std::ofstream(path() + "." + std::to_string(i) + ".io", std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
}

// Twice, for the first step shows only in the second call.
TEST_P(SharedMemory, IsTrainedAsOne) {
  Model model(GetParam().make, GetParam().run);
  if (model->parameters().empty()) return;
  const Tensor x = torch::rand({2, 3});
  symbolic_trace(model, {x})->save(path());
  const auto again = load(path());
  torch::optim::SGD here(model->parameters(), 0.1), there(again->parameters(), 0.1);
  for (int step = 0; step < 3; ++step) {
    here.zero_grad();
    there.zero_grad();
    const Tensor loss = model->forward(x).sum(), other = again->forward(x).sum();
    EXPECT_TRUE(at::allclose(loss, other)) << "step " << step;
    loss.backward();
    other.backward();
    here.step();
    there.step();
  }
}

INSTANTIATE_TEST_SUITE_P(OfModels, SharedMemory, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

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
