// FixedRuns: which GraphModules whose mode is fixed have run: whatever is traced meanwhile holds for that mode, too.
//
// Thread-safety: one thread's runs are seen by those that live in it.
#pragma once

#include <string>

namespace fx::internal {

class FixedRuns {
 public:
  FixedRuns();
  ~FixedRuns();
  FixedRuns(const FixedRuns&) = delete;
  FixedRuns& operator=(const FixedRuns&) = delete;

  /// Why the first of them is fixed; empty when none has run.
  const std::string& reason() const { return reason_; }
  /// The mode that it was in.
  bool training() const { return training_; }

  /// One runs.
  static void note(const std::string& reason, bool training);

 private:
  FixedRuns* outer_;
  std::string reason_;
  bool training_ = false;
};

}  // namespace fx::internal
