#include <ATen/core/stack.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include <fxgraph/contract/contract.h>
#include <fxgraph/nn/owning_module.h>
#include <fxgraph/run/failure.h>
#include <fxgraph/run/grad_mode_on_failure.h>
#include <fxgraph/run/none_inputs.h>
#include <fxgraph/run/operators.h>
#include <fxgraph/run/plan.h>
#include <fxgraph/run/plan_program.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/print.h>

namespace fx {
namespace {

using c10::IValue;
using internal::Aggregate;
using internal::Operand;
using internal::Origin;
using internal::Step;

std::string call_text(const Node& node) {
  std::string text = "%" + node.name() + " = " + node.target().str() + "(";
  bool first = true;
  for (const Argument& arg : node.args()) {
    if (!std::exchange(first, false)) text += ", ";
    format(text, arg);
  }
  for (const auto& [name, value] : node.kwargs()) {
    if (!std::exchange(first, false)) text += ", ";
    text.append(name.view()).append("=");
    format(text, value);
  }
  return text + ")";
}

}  // namespace

/// One run: the slots and the stack.
class PlanRunner {
 public:
  PlanRunner(const Plan::Code& program, const OwningModule& module, const Plan::Observer& observer)
      : program_(program), module_(module), observer_(observer), slots_(program.num_slots) {
    stack_.reserve(16);
  }

  IValue run(std::vector<IValue> inputs) {
    bind_inputs(std::move(inputs));
    const Step* step = nullptr;
    const internal::GradModeOnFailure grad_mode;
    try {
      for (const Step& each : program_.steps) {
        step = &each;
        execute(each);
      }
      return take(program_.result);
    } catch (const Error& error) {
      if (!error.node().empty()) throw;
      fail(*step, error.message());
    } catch (const std::exception& error) {
      fail(*step, first_line(error));
    }
  }

 private:
  void bind_inputs(std::vector<IValue> inputs) {
    if (inputs.size() > program_.inputs.size()) {
      throw Error(ErrorKind::invalid_argument, "the graph takes " + std::to_string(program_.inputs.size()) +
                                                   " inputs, got " + std::to_string(inputs.size()));
    }
    for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
      const Plan::Code::Input& input = program_.inputs[i];
      if (i >= inputs.size() && !input.default_value) {
        throw Error(ErrorKind::invalid_argument,
                    "input '" + input.name + "' is missing: the graph takes " + std::to_string(program_.inputs.size()) +
                        " inputs, got " + std::to_string(inputs.size()),
                    input.name);
      }
      if (input.slot == internal::kNoSlot) continue;
      if (i < inputs.size()) internal::require_kind(input.name, inputs[i], input.kind);
      slots_[input.slot] = i < inputs.size() ? std::move(inputs[i]) : input.default_value->deepcopy();
      const IValue& bound = slots_[input.slot];
      if (!bound.isTensor() || !bound.toTensor().defined()) internal::add_none_inputs(none_inputs_, input.name, bound);
    }
  }

  // Values are read where they lie; those used for the last time go when the call is done, as from the stack.
  bool execute_directly(const Step& step) {
    const IValue* arguments[internal::DirectCall::kMaxArguments];
    const Operand* operands = program_.operands.data() + step.first_operand;
    for (std::uint32_t i = 0; i < step.num_operands; ++i) {
      const Operand& operand = operands[i];
      arguments[i] = operand.kind == Operand::Kind::slot ? &slots_[operand.index] : &program_.constants[operand.index];
    }
    if (!step.direct->takes(arguments)) return false;
    at::Tensor result = step.direct->call(arguments);
    for (std::uint32_t i = 0; i < step.num_operands; ++i) {
      if (operands[i].kind == Operand::Kind::slot && operands[i].last_use) slots_[operands[i].index] = IValue();
    }
    const std::uint32_t slot = program_.result_slots[step.first_result];
    if (slot != internal::kNoSlot) slots_[slot] = std::move(result);
    return true;
  }

  void execute(const Step& step) {
    if (step.direct && execute_directly(step)) return;
    for (std::uint32_t i = 0; i < step.num_operands; ++i) push(program_.operands[step.first_operand + i]);
    switch (step.kind) {
      case Step::Kind::dispatcher:
        // Only where there are several results does call_boxed do more.
        step.num_results > 1 ? call_boxed(*step.handle, stack_) : step.handle->callBoxed(&stack_);
        break;
      case Step::Kind::function: program_.functions[step.function](stack_); break;
      case Step::Kind::observe:
        if (observer_) observer_(*module_.graph().node_by_id(program_.origins[step.origin].node), stack_.back());
        break;
    }
    for (std::uint32_t i = 0; i < step.num_results; ++i) {
      const std::uint32_t slot = program_.result_slots[step.first_result + i];
      if (slot != internal::kNoSlot) slots_[slot] = std::move(stack_[i]);
    }
    stack_.clear();
  }

  void push(const Operand& operand) {
    if (operand.kind == Operand::Kind::slot) {
      IValue& slot = slots_[operand.index];
      operand.last_use ? stack_.push_back(std::move(slot)) : stack_.push_back(slot);
    } else if (operand.kind == Operand::Kind::constant) {
      stack_.push_back(program_.constants[operand.index]);
    } else {
      stack_.push_back(build(program_.aggregates[operand.index]));
    }
    if (operand.coercion) {
      const internal::Coercion& wanted = program_.coercions[operand.coercion - 1];
      coerce(stack_.back(), *wanted.type, wanted.repeat);
    }
  }

  IValue take(const Operand& operand) {
    switch (operand.kind) {
      case Operand::Kind::slot: {
        IValue& slot = slots_[operand.index];
        return operand.last_use ? std::move(slot) : slot;
      }
      case Operand::Kind::constant: return program_.constants[operand.index];
      default: return build(program_.aggregates[operand.index]);
    }
  }

  // Nesting is bounded by Argument::kMaxNesting.
  IValue build(const Aggregate& aggregate) {
    if (aggregate.kind == ArgumentKind::list && aggregate.element_type &&
        aggregate.element_type->kind() == c10::TypeKind::TensorType) {
      return build_tensors(aggregate);
    }
    std::vector<IValue> elements;
    elements.reserve(aggregate.elements.size());
    for (const Operand& element : aggregate.elements) elements.push_back(take(element));
    switch (aggregate.kind) {
      case ArgumentKind::list: return make_list(std::move(elements), aggregate.element_type);
      case ArgumentKind::dict: return make_dict(elements);
      case ArgumentKind::slice:
        return make_slice(std::move(elements[0]), std::move(elements[1]), std::move(elements[2]));
      default: return c10::ivalue::Tuple::create(std::move(elements));
    }
  }

  IValue build_tensors(const Aggregate& aggregate) {
    c10::List<at::Tensor> tensors;
    tensors.reserve(aggregate.elements.size());
    for (const Operand& operand : aggregate.elements) {
      IValue element = take(operand);
      coerce(element, *aggregate.element_type);
      tensors.push_back(std::move(element).toTensor());
    }
    return tensors;
  }

  /// What does not hold, with what the input has instead: `x[1] must be 3, but is 4: …`. Nothing when the condition is
  /// on something else, or the input has been used up.
  std::optional<std::string> with_actual(const Node& assertion, const InputNames& names = &Node::name) const {
    const std::optional<Condition> condition = read_condition(assertion, names);
    if (!condition || !condition->left.is_symbol()) return std::nullopt;
    const auto measure = std::ranges::find(condition->measures, condition->left.name(), &Measure::name);
    const std::optional<std::int64_t> is = measure == condition->measures.end() ? std::nullopt : actual(*measure);
    if (!is) return std::nullopt;
    const std::string must = condition->str(),
                      but = measure->property == InputProperty::rank ? ", but is of " : ", but is ";
    return must + but + std::to_string(*is) + condition->message().substr(must.size());
  }

  std::optional<std::int64_t> actual(const Measure& measure) const {
    IValue value;
    for (const Plan::Code::Input& input : program_.inputs) {
      if (input.name == measure.input && input.slot != internal::kNoSlot) value = slots_[input.slot];
    }
    for (const std::int64_t part : measure.part) {
      if (!value.isTuple() && !value.isList()) return std::nullopt;
      const std::vector<IValue> parts = elements_of(value);
      if (part < 0 || static_cast<std::size_t>(part) >= parts.size()) return std::nullopt;
      value = parts[static_cast<std::size_t>(part)];
    }
    if (!value.isTensor() || !value.toTensor().defined()) return std::nullopt;
    const at::Tensor& tensor = value.toTensor();
    if (measure.property == InputProperty::rank) return tensor.dim();
    const bool is_there = measure.property == InputProperty::size && measure.dimension < tensor.dim() &&
                          measure.dimension >= -tensor.dim();
    return is_there ? std::optional(tensor.size(measure.dimension)) : std::nullopt;
  }

  [[noreturn]] void fail(const Step& step, const std::string& cause) const {
    const Origin& origin = program_.origins[step.origin];
    const Node* node = module_.graph().node_by_id(origin.node);
    std::string where = node ? call_text(*node) : "a node that is gone";
    if (const Node* inner = origin.body ? origin.body->node_by_id(origin.inner_node) : nullptr) {
      const bool says = node && internal::has_own_words(*inner);
      if (const auto said = says ? with_actual(*inner, names_in(*node, *origin.body)) : std::nullopt)
        throw Error(ErrorKind::execution, *said, node->name());
      where += " (inside: " + call_text(*inner) + ")";
    }
    if (!node) throw Error(ErrorKind::execution, "while running " + where + ": " + cause);
    if (const auto said = internal::has_own_words(*node) ? with_actual(*node) : std::nullopt)
      throw Error(ErrorKind::execution, *said, node->name());
    const std::string why = internal::cause_of_failure(*node, none_inputs_, cause);
    throw Error(ErrorKind::execution, internal::failure_text(*node, where, why), node->name());
  }

  const Plan::Code& program_;
  const OwningModule& module_;
  const Plan::Observer& observer_;
  std::vector<IValue> slots_;
  torch::jit::Stack stack_;
  std::vector<std::string> none_inputs_;
};

Plan::Plan(std::unique_ptr<const Code> program) : program_(std::move(program)) {}
Plan::~Plan() = default;

IValue Plan::run(const OwningModule& module, std::vector<IValue> inputs, const Observer& observer) const {
  return PlanRunner(*program_, module, observer).run(std::move(inputs));
}

bool Plan::is_current(const OwningModule& module) const {
  const auto same_graph = [](const OwningModule& owner, const auto& then) {
    return owner.graph().revision() == then.revision && owner.graph_generation() == then.generation &&
           owner.graph().output_node() == then.output;
  };
  if (!same_graph(module, *program_)) return false;
  for (const Code::Mode& mode : program_->modes) {
    if (mode.module->is_training() != mode.training) return false;
  }
  for (const Code::Nested& nested : program_->nested) {
    if (!same_graph(*nested.module, nested)) return false;
  }
  return program_->watch.unchanged();
}

std::size_t Plan::num_steps() const { return program_->steps.size(); }
std::size_t Plan::num_slots() const { return program_->num_slots; }

}  // namespace fx
