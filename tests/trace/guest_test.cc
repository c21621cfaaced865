// A trace is a guest in its process: it touches nothing that it was not given, starts nothing, and costs a known
// multiple of the program.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstddef>

#include <fxgraph/text/print.h>
#include <fxgraph/trace/dispatch.h>
#include "tests/trace/larger_models.h"
#include "tests/trace/shared_module.h"
#include "tests/trace/trace_testing.h"

namespace fx::guest_test {

using testing::Shared;
using torch::Tensor;

// ── What it may not do
// ────────────────────────────────────────────────────────────────────────────────────────────────────

void kill_on_foreign_calls() {
#if defined(__x86_64__)
  constexpr std::uint32_t kThread = 0x10000;  // CLONE_THREAD
  const auto kills = [](std::uint32_t number, std::vector<sock_filter>& filter) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  };
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
  for (const std::uint32_t number : {SYS_fork, SYS_vfork, SYS_rt_sigaction, SYS_process_vm_readv})
    kills(number, filter);
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4));
  filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])));
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kThread, 1, 0));
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program = {static_cast<unsigned short>(filter.size()), filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    std::_Exit(3);
#endif
}

// In a process of its own, as gtest's death tests are: a filter stays.
TEST(GuestDeathTest, StartsNoProcessAndCatchesNoSignal) {
  const auto trace = [] {
    kill_on_foreign_calls();
    symbolic_trace(std::make_shared<Shared>(), {torch::rand({3, 4})});
    symbolic_trace([](Tensor x) { return x.view({x.size(0), 2, -1}).sum(1); }, {torch::rand({3, 8})});
    std::_Exit(0);
  };
  EXPECT_EXIT(trace(), ::testing::ExitedWithCode(0), "");
}

// ── What it costs, and that it is the same again
// ──────────────────────────────────────────────────────────────────────────

struct Program {
  const char* name;
  std::function<std::shared_ptr<GraphModule>(const TraceOptions&)> trace;
};

std::vector<Program> programs() {
  const auto shared = std::make_shared<Shared>();
  torch::nn::TransformerEncoder encoder(
      torch::nn::TransformerEncoderLayer(torch::nn::TransformerEncoderLayerOptions(8, 2)), 2);
  encoder->eval();
  const auto chain = [](Tensor x, Tensor y) {
    for (int i = 0; i < 100; ++i) x = (x * 2 + y).relu();
    return x;
  };
  const auto windows = [](Tensor x) {
    return x.view({x.size(0), x.size(1) / 7, 7, -1}).permute({0, 2, 1, 3}).flatten(0, 1).sum(1);
  };
  return {
      {"module",
       [=](const TraceOptions& options) {
         return symbolic_trace(shared, {torch::rand({3, 4})}, options);
       }},
      {"encoder",
       [=](const TraceOptions& options) {
         return symbolic_trace([encoder](Tensor x) mutable { return encoder(x); }, {torch::rand({5, 2, 8})}, options);
       }},
      {"chain",
       [=](const TraceOptions& options) {
         return symbolic_trace(chain, {torch::rand({4, 8}), torch::rand({4, 8})}, options);
       }},
      {"windows",
       [=](const TraceOptions& options) {
         return symbolic_trace(windows, {torch::rand({2, 14, 3})}, options);
       }},
  };
}

TEST(GuestCost, IsAtMostTwentyRecordings) {
  for (const Program& program : programs()) {
    const auto operators_of = [&](const TraceOptions& options) {
      const std::uint64_t before = internal::traced_operators();
      program.trace(options);
      return internal::traced_operators() - before;
    };
    const std::uint64_t one = operators_of({.second_call = false, .follow_mode = false, .sizes = Sizes::fixed}),
                        all = operators_of({});
    EXPECT_LE(all, 20 * one) << program.name << ": " << one << " operators in the recording, " << all << " in all";
  }
}

TEST(GuestText, IsTheSameAgain) {
  for (const Program& program : programs()) {
    const std::string first = print_graph(program.trace({})->graph());
    for (int i = 0; i < 3; ++i) EXPECT_EQ(print_graph(program.trace({})->graph()), first) << program.name;
  }
}

}  // namespace fx::guest_test
