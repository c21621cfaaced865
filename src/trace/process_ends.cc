#include <fxgraph/trace/process_ends.h>

#include <csignal>
#include <mutex>
#include <stdexcept>

namespace fx::internal {
namespace {

constexpr int kSignals[] = {SIGFPE, SIGABRT};

thread_local bool is_watching = false;
thread_local sigjmp_buf* return_place = nullptr;
thread_local volatile std::sig_atomic_t ended_by = 0;

std::mutex installing;
int watchers = 0;
struct sigaction before[std::size(kSignals)];

// Of a thread that tries nothing.
void forward_signal(int number, siginfo_t* info, void* context) {
  const struct sigaction& theirs = before[number == SIGFPE ? 0 : 1];
  if (theirs.sa_flags & SA_SIGINFO) return theirs.sa_sigaction(number, info, context);
  if (theirs.sa_handler != SIG_DFL && theirs.sa_handler != SIG_IGN) return theirs.sa_handler(number);
  signal(number, SIG_DFL);
  raise(number);
}

void return_to_call(int number, siginfo_t* info, void* context) {
  if (!return_place) return forward_signal(number, info, context);
  ended_by = number;
  siglongjmp(*return_place, 1);
}

}  // namespace

ProcessEnds::ProcessEnds() : was_on_(is_watching) {
  is_watching = true;
  const std::lock_guard<std::mutex> lock(installing);
  if (watchers++ > 0) return;
  struct sigaction ours = {};
  ours.sa_sigaction = return_to_call;
  ours.sa_flags = SA_SIGINFO;
  sigemptyset(&ours.sa_mask);
  for (std::size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &ours, &before[i]);
}

ProcessEnds::~ProcessEnds() {
  is_watching = was_on_;
  const std::lock_guard<std::mutex> lock(installing);
  if (--watchers > 0) return;
  for (std::size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before[i], nullptr);
}

WatchedCall::WatchedCall() : outer_(return_place) {
  if (!is_watching) return;
  before_.emplace();
  return_place = &place_;
}

WatchedCall::~WatchedCall() { return_place = outer_; }

void WatchedCall::end() {
  return_place = outer_;
  at::ThreadLocalState::setThreadLocalState(*before_);
  throw std::runtime_error(ended_by == SIGFPE ? "the program divides a whole number by zero"
                                              : "the program ends the process, as assert() does");
}

}  // namespace fx::internal
