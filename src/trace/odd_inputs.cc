#include <fxgraph/trace/empty_inputs.h>

#include <ATen/Parallel.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace fx::internal {
namespace {

constexpr unsigned kSeconds = 3;  // that a program may take

/// What a child process says of one run, in memory that it shares.
struct Verdict {
  enum Kind : char { untold, begun, does, differs };
  volatile Kind kind = untold;
  std::array<char, 300> why, where;
};

void tell(std::array<char, 300>& place, const std::string& text) {
  const std::size_t length = std::min(text.size(), place.size() - 1);
  std::memcpy(place.data(), text.data(), length);
  place[length] = 0;
}

class SharedVerdicts {
 public:
  explicit SharedVerdicts(std::size_t count) : bytes_(count * sizeof(Verdict)) {
    void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    verdicts_ = static_cast<Verdict*>(memory);
    for (std::size_t i = 0; i < count; ++i) new (verdicts_ + i) Verdict();
  }
  ~SharedVerdicts() {
    if (verdicts_) munmap(verdicts_, bytes_);
  }
  SharedVerdicts(const SharedVerdicts&) = delete;
  SharedVerdicts& operator=(const SharedVerdicts&) = delete;
  Verdict* get() const { return verdicts_; }

 private:
  std::size_t bytes_;
  Verdict* verdicts_ = nullptr;
};

// Nothing that the process has set up for its own end is to run when a child ends.
void prepare_child() {
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM, SIGTERM}) {
    signal(number, SIG_DFL);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  }
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  alarm(kSeconds);
  at::set_num_threads(1);  // the others are not there
}

class EmptyInputs {
 public:
  EmptyInputs(const SampledProgram& program, SizeGroups& groups, const std::function<bool(const Sample&)>& agrees)
      : program_(program), groups_(groups), agrees_(agrees) {
    for (const std::uint32_t group : groups.free()) {
      if (!groups.groups[group].one_or && groups.groups[group].below == 0) open_.push_back(group);
    }
  }

  void run() {
    if (open_.empty()) return;
    const SharedVerdicts shared(open_.size() + 1);  // the last is about all at once
    Verdict* const verdicts = shared.get();
    // A child that ends early leaves the rest to the next one.
    for (std::size_t i = 0; verdicts && i <= open_.size(); ++i) {
      if (!try_in_child(verdicts)) break;
      if (verdicts[open_.size()].kind == Verdict::does) return;
      if (std::none_of(verdicts, verdicts + open_.size(),
                       [](const Verdict& each) { return each.kind == Verdict::untold; }))
        break;
    }
    for (std::size_t i = 0; i < open_.size(); ++i) {
      if (!verdicts || verdicts[i].kind == Verdict::untold) {
        forbid(open_[i], "whether the program takes it could not be tried", "");
      } else if (verdicts[i].kind == Verdict::begun) {
        forbid(open_[i], "the program ends the process on it, or does not come to an end", "");
      } else if (verdicts[i].kind == Verdict::differs) {
        forbid(open_[i], verdicts[i].why.data(), verdicts[i].where.data());
      }
    }
  }

 private:
  bool try_in_child(Verdict* verdicts) {
    const pid_t child = fork();
    if (child < 0) return false;
    if (child == 0) {
      prepare_child();
      try {
        judge(verdicts);
      } catch (...) {
      }
      _exit(0);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return true;
  }

  void judge(Verdict* verdicts) {
    const auto open = [](const Verdict& verdict) { return verdict.kind == Verdict::untold; };
    Verdict& all = verdicts[open_.size()];
    if (open(all)) {
      GroupSizes sizes = groups_.examples();
      for (const std::uint32_t group : open_) sizes[group] = 0;
      if (judge(all, sizes, /*refused_is_fine=*/false); all.kind == Verdict::does) return;
    }
    for (std::size_t i = 0; i < open_.size(); ++i) {
      if (!open(verdicts[i])) continue;
      GroupSizes sizes = groups_.examples();
      sizes[open_[i]] = 0;
      judge(verdicts[i], sizes, /*refused_is_fine=*/true);
    }
  }

  // An operator that refuses does so in the graph, too; but with all at once it hides what comes behind.
  void judge(Verdict& verdict, GroupSizes sizes, bool refused_is_fine) {
    verdict.kind = Verdict::begun;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (groups_.groups[i].one_or) sizes[i] = sizes[*groups_.groups[i].one_or];
    }
    Sample sample(program_);
    const TraceLog& log = program_.log;
    if (!sample.run(groups_.stand_ins(sizes))) {
      const bool is_inside = sample.failed_at() < log.size() && log[sample.failed_at()].node->is_erased();
      if (refused_is_fine && (sample.operator_refused() || is_inside)) {
        verdict.kind = Verdict::does;
        return;
      }
      tell(verdict.why, log.describe(sample.failed_at()) + ": " + sample.why());
      tell(verdict.where, sample.where());
      verdict.kind = Verdict::differs;
    } else if (agrees_(sample)) {
      verdict.kind = Verdict::does;
    } else {
      tell(verdict.why, "a number that the program computes of it is another one");
      tell(verdict.where, "");
      verdict.kind = Verdict::differs;
    }
  }

  void forbid(std::uint32_t index, const std::string& why, const std::string& where) {
    SizeGroup& group = groups_.groups[index];
    group.below_said = false;
    group.lowest = 1;
    const std::string of_zero = "at size 0: " + why;
    group.why += group.why.empty() ? of_zero : "; " + of_zero;
    if (group.where.empty()) group.where = where;
  }

  const SampledProgram& program_;
  SizeGroups& groups_;
  const std::function<bool(const Sample&)>& agrees_;
  std::vector<std::uint32_t> open_;
};

}  // namespace

void try_empty_inputs(const SampledProgram& program, SizeGroups& groups,
                      const std::function<bool(const Sample&)>& agrees) {
  EmptyInputs(program, groups, agrees).run();
}

}  // namespace fx::internal
