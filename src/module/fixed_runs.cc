#include <fxgraph/module/fixed_runs.h>

namespace fx::internal {
namespace {

thread_local FixedRuns* innermost = nullptr;

}  // namespace

FixedRuns::FixedRuns() : outer_(innermost) { innermost = this; }
FixedRuns::~FixedRuns() { innermost = outer_; }

void FixedRuns::note(const std::string& reason, bool training) {
  if (!innermost || !innermost->reason_.empty()) return;
  innermost->reason_ = reason;
  innermost->training_ = training;
}

}  // namespace fx::internal
