// The process-wide table of schemas, and what is remembered of each target.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <fxgraph/ops/node_effects.h>
#include <fxgraph/ops/schema.h>

namespace fx::internal {

using Overloads = std::vector<const OperatorSchema*>;
struct PythonTarget;

/// What calls of one target do, as far as the target says.
struct TargetEffects {
  enum class Known : std::uint8_t { nothing, each_call, call_decides };
  NodeEffects effects{};  ///< of each call; or all that some call does, and the call decides
  Known known = Known::nothing;
};

/// Remembers them; who asks at the same time on another thread stores the same.
class KnownTargetEffects {
 public:
  TargetEffects::Known known() const { return known_.load(std::memory_order_acquire); }
  NodeEffects effects() const { return effects_.load(std::memory_order_relaxed); }
  void store(const TargetEffects& found) {
    effects_.store(found.effects, std::memory_order_relaxed);
    known_.store(found.known, std::memory_order_release);
  }

 private:
  std::atomic<NodeEffects> effects_{};
  std::atomic<TargetEffects::Known> known_{};
};

/// An overload that differs from another in one argument: a number where that takes a tensor, or the other way.
struct Counterpart {
  const OperatorSchema* schema;
  Symbol name;  // as aliases agree on it
  std::uint16_t at;
};

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
  /// The target as LibTorch's aliases agree on it: what operator_name says of `schema`.
  Symbol name;
  /// `add.Scalar` for `add.Tensor`, and the other way.
  std::vector<Counterpart> counterparts;
  /// effects.cc's answers for call_function and call_method.
  mutable KnownTargetEffects function_effects;
  mutable KnownTargetEffects method_effects;
  /// python_target's answers for the same, null before the first question.
  mutable std::atomic<const PythonTarget*> of_function{nullptr};
  mutable std::atomic<const PythonTarget*> of_method{nullptr};
};

const TargetInfo& make_target_info(Symbol target);

inline const TargetInfo& target_info(Symbol target) {
  const void* cached = symbol_entry(target).schema.load(std::memory_order_acquire);
  return cached ? *static_cast<const TargetInfo*>(cached) : make_target_info(target);
}

/// The name on which LibTorch's aliases agree, of an operator with or without overload: `aten::mul_` for
/// `aten::multiply_`.
std::string agreed_name(std::string_view target);

/// The overloads of `packet`; the list lives as long as the process.
const Overloads& overload_list(Symbol packet);
/// Another number whenever schemas are registered: what was worked out from those before may be wrong. A load.
std::uint64_t schema_generation();
/// True when a source was set.
bool has_source();

}  // namespace fx::internal
