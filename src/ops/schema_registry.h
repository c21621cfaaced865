// The process-wide table of schemas, and what is remembered of each target.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include <fxgraph/ops/schema.h>

namespace fx::internal {

using Overloads = std::vector<const OperatorSchema*>;

/// What is known of one target. Reached from its symbol by one load, made on the first question, made anew when schemas
/// are registered; never freed, so that a reader on another thread is safe.
struct TargetInfo {
  /// The schema of exactly this target, or null.
  const OperatorSchema* schema = nullptr;
  /// The overloads of the operator that the target names, of all of them when it names one; never null.
  const Overloads* overloads = nullptr;
  /// True when a call of this target is a call of `schema`, whatever its arguments: the overload is spelt out, or is
  /// the only one.
  bool exact = false;
  /// effects.cc's answers for call_function and call_method; zero means "not asked yet".
  mutable std::atomic<std::uint16_t> function_effects{0};
  mutable std::atomic<std::uint16_t> method_effects{0};
};

const TargetInfo& make_target_info(Symbol target);

inline const TargetInfo& target_info(Symbol target) {
  const void* cached = symbol_entry(target).schema.load(std::memory_order_acquire);
  return cached ? *static_cast<const TargetInfo*>(cached) : make_target_info(target);
}

/// The overloads of `packet`; the list lives as long as the process.
const Overloads& overload_list(Symbol packet);

}  // namespace fx::internal
