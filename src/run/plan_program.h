// What a Plan consists of. Included by the plan's own files only.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/nn/module_watch.h>
#include <fxgraph/nn/owning_module.h>
#include <fxgraph/run/direct_call.h>
#include <fxgraph/run/input_kind.h>
#include <fxgraph/run/plan.h>

namespace fx {
namespace internal {

/// Where an argument of a step comes from.
struct Operand {
  enum class Kind : std::uint8_t {
    slot,       ///< slots[index]
    constant,   ///< constants[index]
    aggregate,  ///< a list, tuple, dict or slice built from other operands: aggregates[index]
  };
  Kind kind = Kind::constant;
  bool last_use = false;  ///< the slot's value is moved out
  std::uint32_t index = 0;
  std::uint32_t coercion = 0;  ///< 1 + index into coercions; 0: goes in as it is
};

/// A container whose elements are known only while running.
struct Aggregate {
  ArgumentKind kind = ArgumentKind::list;
  c10::TypePtr element_type;  ///< of lists, null: decided by the elements
  std::vector<Operand> elements;
};

/// What an operator wants where the value's type is not known to fit.
struct Coercion {
  c10::TypePtr type;
  int repeat = 1;
};

/// Which node a step belongs to: of the graph itself and, for inlined steps, of a body.
struct Origin {
  std::uint32_t node = 0;
  std::uint32_t inner_node = 0;
  const Graph* body = nullptr;
};

inline constexpr std::uint32_t kNoSlot = ~std::uint32_t{0};

/// One call. Operands go to the stack in order, results come from it.
struct Step {
  enum class Kind : std::uint8_t { dispatcher, function, observe };
  Kind kind = Kind::dispatcher;
  std::uint32_t first_operand = 0;
  std::uint32_t num_operands = 0;
  std::uint32_t first_result = 0;  ///< in result_slots
  std::uint32_t num_results = 0;
  std::uint32_t origin = 0;
  std::optional<c10::OperatorHandle> handle;
  std::shared_ptr<const DirectCall> direct;  ///< null: through the stack
  std::uint32_t function = 0;
};

using StackFunction = std::function<void(torch::jit::Stack&)>;

}  // namespace internal

struct Plan::Code {
  std::vector<internal::Step> steps;
  std::vector<internal::Operand> operands;
  std::vector<std::uint32_t> result_slots;  ///< kNoSlot: nobody wants it
  std::vector<internal::Aggregate> aggregates;
  std::vector<internal::Coercion> coercions;
  std::vector<internal::StackFunction> functions;
  std::vector<c10::IValue> constants;
  std::vector<internal::Origin> origins;
  internal::Operand result;
  std::uint32_t num_slots = 0;

  struct Input {
    std::string name;
    std::uint32_t slot = internal::kNoSlot;
    std::optional<c10::IValue> default_value;
    internal::InputKind kind = internal::InputKind::any;
  };
  std::vector<Input> inputs;

  /// The plan holds for this state only.
  std::uint64_t revision = 0;
  std::uint64_t generation = 0;
  const Node* output = nullptr;  ///< tells one graph from another that was assigned in its place
  ModuleWatch watch;
  struct Mode {
    std::shared_ptr<torch::nn::Module> module;
    bool training;
  };
  std::vector<Mode> modes;
  /// Nested GraphModules and their revision.
  struct Nested {
    std::shared_ptr<OwningModule> module;
    std::uint64_t revision;
    std::uint64_t generation;
    const Node* output;
  };
  std::vector<Nested> nested;
  std::vector<std::shared_ptr<const Graph>> bodies;  ///< kept for error messages
};

}  // namespace fx
