// A trace is a guest in its process: it touches nothing that it was not given, starts nothing, and costs a known
// multiple of the program.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>

#include <fxgraph/text/print.h>
#include <fxgraph/trace/dispatch.h>
#include "tests/trace/larger_models.h"
#include "tests/trace/trace_testing.h"

namespace fx::guest_test {

using torch::Tensor;

// ── What nobody may touch
// ─────────────────────────────────────────────────────────────────────────────────────────────────

// A map of sizes with open addressing: entries and their count belong together.
class SizeMap {
 public:
  void count(std::int64_t size) {
    std::size_t at = static_cast<std::size_t>(size) % slots_.size();
    while (slots_[at].size != 0 && slots_[at].size != size) at = (at + 1) % slots_.size();
    if (slots_[at].size == 0) ++used_;
    slots_[at].size = size;
    ++slots_[at].times;
  }
  bool is_whole() const {
    std::size_t used = 0;
    for (const Slot& slot : slots_) {
      used += slot.size != 0;
      if ((slot.size != 0) != (slot.times != 0)) return false;
    }
    return used == used_;
  }
  std::int64_t times() const {
    std::int64_t all = 0;
    for (const Slot& slot : slots_) all += slot.times;
    return all;
  }

 private:
  struct Slot {
    std::int64_t size = 0, times = 0;
  };
  std::array<Slot, 4096> slots_ = {};
  std::size_t used_ = 0;
};

struct Shared : torch::nn::Module {
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(4, 4));
  SizeMap sizes;
  std::int64_t calls = 0;
  std::atomic<std::int64_t> raised{0};
  std::mutex mutex;
  std::condition_variable wakes;
  bool is_done = false;
  Tensor forward(Tensor x) {
    ++calls;
    sizes.count(x.size(0));
    return linear(x).relu() * static_cast<double>(x.size(0));
  }
};

TEST(Guest, LeavesAloneWhatItWasNotGiven) {
  const auto net = std::make_shared<Shared>();
  std::atomic<bool> stops{false}, has_fallen{false};
  std::int64_t raised = 0;
  std::thread raises([&] {
    while (!stops) {
      if (net->raised.load() != raised) has_fallen = true;
      net->raised = ++raised;
    }
  });
  std::thread waits([&] {
    std::unique_lock<std::mutex> lock(net->mutex);
    net->wakes.wait(lock, [&] { return net->is_done; });
  });
  const Tensor x = torch::rand({3, 4});
  for (int i = 0; i < 30; ++i) {
    const auto gm = symbolic_trace(net, {x});
    EXPECT_TRUE(testing::same_value(gm->forward(x), net->forward(x), 1e-6));
  }
  {
    const std::lock_guard<std::mutex> lock(net->mutex);
    net->is_done = true;
  }
  net->wakes.notify_all();
  waits.join();
  stops = true;
  raises.join();
  EXPECT_FALSE(has_fallen);
  EXPECT_TRUE(net->sizes.is_whole());
  EXPECT_EQ(net->sizes.times(), net->calls);
}

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
