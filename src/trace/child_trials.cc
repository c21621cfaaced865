#include <fxgraph/trace/child_trials.h>

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <type_traits>

#include <fxgraph/trace/dispatch.h>

namespace fx::internal {
namespace {

// What a run may take of the processor, however busy the machine is. One that takes nothing of it for so long waits for
// what does not come: other threads are not there.
constexpr itimerval kTime = {{}, {3, 0}}, kTimeIfLarge = {{}, {0, 100'000}};
constexpr itimerval kPatience = {{3, 0}, {3, 0}}, kPatienceIfLarge = {{1, 0}, {1, 0}};

// What all spare ones may take: at least so much work, however slow the machine is, so that what is found of small
// programs is the same everywhere, and more of it while there is time.
constexpr std::uint64_t kSpareWork = 4'000;  // in operators; what a run takes besides is worth five
constexpr std::uint64_t kWorkOfRun = 5;
constexpr std::clock_t kSpareTime = CLOCKS_PER_SEC * 3 / 100;  // of the processor
constexpr std::clock_t kMostSpareTime = CLOCKS_PER_SEC / 5;

/// What a child process says of one run that does not agree, in memory that it shares.
struct Reason {
  bool has_other_numbers;
  std::array<char, 300> why;
  CallPlace place;
};

/// What they say of all runs so far.
struct Spent {
  volatile std::clock_t on_spare;
  volatile std::uint64_t work_on_spare;
  volatile bool large_take_long;  ///< one of the large ones has run out of time: so would others

  bool all_on_spare() const {
    return on_spare > kMostSpareTime || (on_spare > kSpareTime && work_on_spare > kSpareWork);
  }
};

void tell(std::array<char, 300>& place, const std::string& text) {
  const std::size_t length = std::min(text.size(), place.size() - 1);
  std::memcpy(place.data(), text.data(), length);
  place[length] = 0;
}

/// So many objects in memory that children write to; null when there is none. They are zero at first, and take no
/// memory until somebody writes to them.
template <typename T>
class Shared {
 public:
  explicit Shared(std::size_t count) : bytes_(count * sizeof(T)) {
    void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    objects_ = static_cast<T*>(memory);
  }
  ~Shared() {
    if (objects_) munmap(const_cast<std::remove_cv_t<T>*>(objects_), bytes_);
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T* get() const { return objects_; }

 private:
  std::size_t bytes_;
  T* objects_ = nullptr;
};

volatile std::clock_t taken = 0;  // of the processor, when it was last looked at

// Called from time to time.
void end_if_waiting(int) {
  const std::clock_t now = std::clock();
  if (now - taken < CLOCKS_PER_SEC / 1000) _exit(0);
  taken = now;
}

// The other threads are not there. LibTorch's own function sets XNNPACK's number too, for which it starts its threads,
// and they spin.
void use_one_thread() {
  using SetThreads = void (*)(int);
  if (const auto set = reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))) set(1);
  if (at::get_num_threads() != 1) at::set_num_threads(1);
}

// Nothing that the process has set up for its own end is to run when a child ends.
void prepare_child() {
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM, SIGPROF, SIGTERM}) {
    signal(number, SIG_DFL);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  }
  struct sigaction looking = {};
  looking.sa_handler = end_if_waiting;
  looking.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &looking, nullptr);
  // What the program prints there, or the runtime of what ends it, is nothing that anybody asked for.
  if (const int nowhere = open("/dev/null", O_WRONLY); nowhere >= 0) {
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
  }
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  use_one_thread();
}

class ChildTrials {
 public:
  ChildTrials(std::vector<ChildTrial>& trials, const JudgeTrial& judge)
      : trials_(trials), judge_(judge), results_(trials.size()), reasons_(trials.size()) {}

  void run() {
    if (!results_.get() || !reasons_.get() || !spent_.get()) return;
    // A child that ends early leaves the rest to the next one.
    for (std::size_t i = 0; i < trials_.size() && any_open(); ++i) {
      if (!try_in_child()) break;
    }
    for (std::size_t i = 0; i < trials_.size(); ++i) {
      ChildTrial& trial = trials_[i];
      trial.result = result(i);
      if (trial.result == TrialResult::ended) {
        if (trial.is_large) trial.result = TrialResult::untried;
        trial.why = "the program ends the process on it, or does not come to an end";
      } else if (trial.result != TrialResult::untried && trial.result != TrialResult::agrees) {
        trial.has_other_numbers = reasons_.get()[i].has_other_numbers;
        trial.why = reasons_.get()[i].why.data();
        trial.place = reasons_.get()[i].place;
      }
    }
  }

 private:
  volatile TrialResult& result(std::size_t i) const { return results_.get()[i]; }

  bool is_open(std::size_t i) const {
    if (result(i) != TrialResult::untried || trials_[i].is_beyond_us) return false;
    const ChildTrial& trial = trials_[i];
    const Spent& spent = *spent_.get();
    if (trial.is_spare ? spent.all_on_spare() : trial.is_large && spent.large_take_long) return false;
    const std::optional<std::size_t>& unless = trial.unless;
    const std::vector<std::size_t>& after = trial.only_after;
    const auto is_against = [&](std::size_t earlier) {
      const TrialResult found = result(earlier);
      return found == TrialResult::threw || found == TrialResult::differs || found == TrialResult::ended;
    };
    if (!after.empty() && std::none_of(after.begin(), after.end(), is_against)) return false;
    return !unless || result(*unless) != TrialResult::agrees;
  }

  bool any_open() const {
    for (std::size_t i = 0; i < trials_.size(); ++i) {
      if (is_open(i)) return true;
    }
    return false;
  }

  bool try_in_child() {
    const pid_t child = fork();
    if (child < 0) return false;
    if (child == 0) {
      prepare_child();
      try {
        for (std::size_t i = 0; i < trials_.size(); ++i) {
          if (!is_open(i)) continue;
          judge(i);
        }
      } catch (...) {
      }
      _exit(0);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return true;
  }

  void judge(std::size_t i) const {
    static_assert(TrialResult{} == TrialResult::untried);
    const ChildTrial& trial = trials_[i];
    result(i) = TrialResult::ended;
    Spent& spent = *spent_.get();
    const std::clock_t spent_on_spare = spent.on_spare;
    const bool large_take_long = spent.large_take_long;
    const std::uint64_t operators = traced_operators();
    const std::clock_t begin = std::clock();
    taken = begin;
    if (trial.is_spare) spent.on_spare = kMostSpareTime + 1;  // unless it comes back
    if (trial.is_large && !trial.is_spare) spent.large_take_long = true;
    setitimer(ITIMER_REAL, trial.is_large ? &kPatienceIfLarge : &kPatience, nullptr);
    setitimer(ITIMER_PROF, trial.is_large ? &kTimeIfLarge : &kTime, nullptr);
    const TrialFinding found = judge_(trial.stand_ins());
    if (found.result != TrialResult::agrees) {
      Reason& reason = reasons_.get()[i];
      tell(reason.why, found.why);
      reason.place = found.place;
      reason.has_other_numbers = found.has_other_numbers;
    }
    result(i) = found.result;
    spent.large_take_long = large_take_long;
    if (!trial.is_spare) return;
    spent.on_spare = spent_on_spare + (std::clock() - begin);
    spent.work_on_spare = spent.work_on_spare + kWorkOfRun + (traced_operators() - operators);
  }

  std::vector<ChildTrial>& trials_;
  const JudgeTrial& judge_;
  const Shared<volatile TrialResult> results_;
  const Shared<Reason> reasons_;
  const Shared<Spent> spent_{1};
};

TrialFinding judge_sample(const SampledProgram& program, const std::vector<at::Tensor>& stand_ins,
                          const std::function<bool(const Sample&)>& agrees) {
  Sample sample(program);
  const TraceLog& log = program.log;
  if (!sample.run(stand_ins)) {
    const bool is_inside = log.is_inside_leaf(sample.failed_at());
    const TrialResult result = sample.operator_refused() || is_inside ? TrialResult::refused
                               : sample.threw()                       ? TrialResult::threw
                                                                      : TrialResult::differs;
    return {result, false, log.describe(sample.failed_at()) + ": " + sample.why(), sample.place()};
  }
  if (agrees(sample)) return {TrialResult::agrees};
  return {TrialResult::differs, true, "a number that the program computes of it is another one"};
}

}  // namespace

void try_in_children(std::vector<ChildTrial>& trials, const JudgeTrial& judge) {
  if (!trials.empty()) ChildTrials(trials, judge).run();
}

void try_in_children(const SampledProgram& program, std::vector<ChildTrial>& trials,
                     const std::function<bool(const Sample&)>& agrees) {
  try_in_children(trials,
                  [&](const std::vector<at::Tensor>& stand_ins) { return judge_sample(program, stand_ins, agrees); });
}

}  // namespace fx::internal
