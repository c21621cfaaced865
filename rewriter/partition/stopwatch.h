// Times that are added to a total when a scope ends. Internal to rewriter/partition.
#pragma once

#include <chrono>
#include <ctime>

namespace fx {

/// Adds the processor time of this thread until its end to a total.
class ProcessorClock {
 public:
  explicit ProcessorClock(double& total) : total_(total), start_(now()) {}
  ~ProcessorClock() { total_ += now() - start_; }

 private:
  static double now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
  double& total_;
  double start_;
};

/// Adds the time until its end to a total.
class Stopwatch {
 public:
  explicit Stopwatch(double& total) : total_(total) {}
  ~Stopwatch() { total_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  double& total_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace fx
