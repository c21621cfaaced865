// Operands, steps, and the assignment of slots.
#include <algorithm>
#include <utility>

#include <fxgraph/run/plan_compile.h>
#include <fxgraph/run/value.h>

namespace fx {

using internal::Operand;
using internal::Step;

namespace {

c10::TypePtr list_element(const c10::TypePtr& type) {
  if (!type) return nullptr;
  if (const auto* optional = type->castRaw<c10::OptionalType>()) return list_element(optional->getElementType());
  const auto* list = type->castRaw<c10::ListType>();
  return list && list->getElementType()->kind() != c10::TypeKind::VarType ? list->getElementType() : nullptr;
}

/// Whoever is given a list or dictionary may change it.
bool may_be_changed(const Argument& argument) {
  const bool own = argument.kind() == ArgumentKind::list || argument.kind() == ArgumentKind::dict;
  return own || (argument.is_container() && std::ranges::any_of(argument.elements(), may_be_changed));
}

/// Visits the slots that an operand reads, in order of evaluation or backwards.
template <typename Operand, typename Aggregates, typename Visit>
void for_each_slot(Operand& operand, Aggregates& aggregates, bool backwards, const Visit& visit) {
  if (operand.kind == internal::Operand::Kind::slot) visit(operand);
  if (operand.kind != internal::Operand::Kind::aggregate) return;
  auto& elements = aggregates[operand.index].elements;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    for_each_slot(elements[backwards ? elements.size() - 1 - i : i], aggregates, backwards, visit);
  }
}

}  // namespace

PlanCompiler::Value PlanCompiler::constant(c10::IValue value, c10::TypePtr type) {
  Value made;
  made.index = static_cast<std::uint32_t>(program_->constants.size());
  made.type = type ? std::move(type) : value.isTensor() ? c10::TypePtr(c10::TensorType::get()) : value.type();
  program_->constants.push_back(std::move(value));
  return made;
}

PlanCompiler::Value PlanCompiler::literal(const Argument& argument, const c10::TypePtr& type) {
  return constant(to_ivalue(argument, type));
}

PlanCompiler::Value PlanCompiler::fresh_slot(c10::TypePtr type) {
  Value made;
  made.kind = Value::Kind::slot;
  made.index = program_->num_slots++;
  made.type = std::move(type);
  return made;
}

// Tuples stay apart, so that taking an element of one costs nothing. Lists and dictionaries are made for each run.
PlanCompiler::Value PlanCompiler::to_value(Scope& scope, const Argument& argument) {
  if (const Node* node = argument.node_or_null()) return scope.values[*node];
  const bool literal_only = !names_nodes(argument);
  if (literal_only && !may_be_changed(argument)) return literal(argument, nullptr);
  Value bundle;
  if (argument.is_tuple()) {
    bundle.kind = Value::Kind::bundle;
    for (const Argument& element : argument.elements()) bundle.elements.push_back(to_value(scope, element));
    return bundle;
  }
  const Operand built = literal_only ? Operand() : aggregate(scope, argument, nullptr);
  bundle = fresh_slot(nullptr);
  Step made;
  made.kind = Step::Kind::function;
  made.first_operand = static_cast<std::uint32_t>(program_->operands.size());
  made.num_operands = literal_only ? 0 : 1;
  made.first_result = static_cast<std::uint32_t>(program_->result_slots.size());
  made.num_results = 1;
  made.function = static_cast<std::uint32_t>(program_->functions.size());
  made.origin = static_cast<std::uint32_t>(program_->origins.size());
  program_->origins.push_back({scope.outer_node, 0, nullptr});
  if (literal_only) {
    program_->functions.push_back(
        [value = to_ivalue(argument)](torch::jit::Stack& stack) { stack.push_back(value.deepcopy()); });
  } else {
    program_->operands.push_back(built);
    program_->functions.push_back([](torch::jit::Stack&) {});
  }
  program_->result_slots.push_back(bundle.index);
  program_->steps.push_back(std::move(made));
  return bundle;
}

std::uint32_t PlanCompiler::coercion(const Value& value, const c10::TypePtr& type, int repeat) {
  if (!type || value.kind == Value::Kind::bundle || (value.type && fits_without_coercion(*value.type, *type))) return 0;
  program_->coercions.push_back({type, repeat});
  return static_cast<std::uint32_t>(program_->coercions.size());
}

Operand PlanCompiler::operand_of(const Value& value, const c10::TypePtr& type, int repeat) {
  Operand made;
  made.index = value.index;
  if (value.kind == Value::Kind::constant) {
    // The numbers of an attribute are those that it has when the call is made.
    if (program_->constants[value.index].isTensor()) {
      made.coercion = coercion(value, type, repeat);
    } else if (type && !(value.type && fits_without_coercion(*value.type, *type))) {
      c10::IValue converted = program_->constants[value.index];
      coerce(converted, *type, repeat);
      made.index = constant(std::move(converted)).index;
    }
    return made;
  }
  if (value.kind == Value::Kind::slot) {
    made.kind = Operand::Kind::slot;
    made.coercion = coercion(value, type, repeat);
    return made;
  }
  internal::Aggregate whole;
  whole.element_type = list_element(type);
  whole.kind = whole.element_type ? ArgumentKind::list : ArgumentKind::tuple;
  for (const Value& element : value.elements) whole.elements.push_back(operand_of(element, whole.element_type));
  made.kind = Operand::Kind::aggregate;
  made.index = static_cast<std::uint32_t>(program_->aggregates.size());
  program_->aggregates.push_back(std::move(whole));
  return made;
}

Operand PlanCompiler::aggregate(Scope& scope, const Argument& argument, const c10::TypePtr& type) {
  internal::Aggregate made;
  made.element_type = argument.is_sequence() ? list_element(type) : nullptr;
  made.kind = made.element_type ? ArgumentKind::list : argument.kind();
  for (const Argument& element : argument.elements()) {
    const bool is_own = !made.element_type && may_be_changed(element);
    made.elements.push_back(is_own ? operand_of(to_value(scope, element)) : operand(scope, element, made.element_type));
  }
  Operand whole;
  whole.kind = Operand::Kind::aggregate;
  whole.index = static_cast<std::uint32_t>(program_->aggregates.size());
  program_->aggregates.push_back(std::move(made));
  return whole;
}

Operand PlanCompiler::operand(Scope& scope, const Argument& argument, const c10::TypePtr& type, int repeat) {
  if (const Node* node = argument.node_or_null()) return operand_of(scope.values[*node], type, repeat);
  if (names_nodes(argument)) return aggregate(scope, argument, type);
  if (type && has_type_variables(*type) && may_be_changed(argument)) return operand_of(to_value(scope, argument));
  return operand_of(constant(to_ivalue(argument, type, {}, repeat)));
}

Step& PlanCompiler::step(Scope& scope, const Node& node, Step::Kind kind, const std::vector<Operand>& operands,
                         std::size_t num_results) {
  Step made;
  made.kind = kind;
  made.first_operand = static_cast<std::uint32_t>(program_->operands.size());
  made.num_operands = static_cast<std::uint32_t>(operands.size());
  made.first_result = static_cast<std::uint32_t>(program_->result_slots.size());
  made.num_results = static_cast<std::uint32_t>(num_results);
  made.origin = static_cast<std::uint32_t>(program_->origins.size());
  program_->operands.insert(program_->operands.end(), operands.begin(), operands.end());
  program_->origins.push_back({scope.node_of(node), node.id(), scope.is_body ? &scope.graph : nullptr});
  program_->steps.push_back(std::move(made));
  return program_->steps.back();
}

PlanCompiler::Value PlanCompiler::call_function(Scope& scope, const Node& node, const std::vector<Operand>& operands,
                                                internal::StackFunction function, c10::TypePtr type) {
  Step& made = step(scope, node, Step::Kind::function, operands, 1);
  made.function = static_cast<std::uint32_t>(program_->functions.size());
  program_->functions.push_back(std::move(function));
  Value result = fresh_slot(std::move(type));
  program_->result_slots.push_back(result.index);
  return result;
}

// Walking backwards, the first time that a slot is met is its last use.
void PlanCompiler::mark_last_uses(const Value& result) {
  program_->result = operand_of(result);
  std::vector<bool> met(program_->num_slots);
  const auto meet = [&](Operand& operand) {
    operand.last_use = !met[operand.index];
    met[operand.index] = true;
  };
  for_each_slot(program_->result, program_->aggregates, /*backwards=*/true, meet);
  for (auto step = program_->steps.rbegin(); step != program_->steps.rend(); ++step) {
    for (std::uint32_t i = step->num_operands; i-- > 0;) {
      for_each_slot(program_->operands[step->first_operand + i], program_->aggregates, /*backwards=*/true, meet);
    }
  }
  for (std::uint32_t& slot : program_->result_slots) {
    if (!met[slot]) slot = internal::kNoSlot;
  }
  for (Plan::Code::Input& input : program_->inputs) {
    if (!met[input.slot]) input.slot = internal::kNoSlot;
  }
}

// Numbers without reuse become slots with reuse: a slot is free again after the step that moves its value out.
void PlanCompiler::assign_slots() {
  std::vector<std::uint32_t> slot_of(program_->num_slots, internal::kNoSlot);
  std::vector<std::uint32_t> free;
  std::uint32_t count = 0;
  const auto assign = [&](std::uint32_t& number) {
    if (number == internal::kNoSlot) return;
    std::uint32_t slot = count;
    if (free.empty()) {
      ++count;
    } else {
      slot = free.back();
      free.pop_back();
    }
    number = slot_of[number] = slot;
  };
  std::vector<std::uint32_t> released;
  const auto read = [&](Operand& operand) {
    operand.index = slot_of[operand.index];
    if (operand.last_use) released.push_back(operand.index);
  };
  for (Plan::Code::Input& input : program_->inputs) assign(input.slot);
  for (const Step& step : program_->steps) {
    for (std::uint32_t i = 0; i < step.num_operands; ++i) {
      for_each_slot(program_->operands[step.first_operand + i], program_->aggregates, /*backwards=*/false, read);
    }
    free.insert(free.end(), released.begin(), released.end());
    released.clear();
    for (std::uint32_t i = 0; i < step.num_results; ++i) assign(program_->result_slots[step.first_result + i]);
  }
  for_each_slot(program_->result, program_->aggregates, /*backwards=*/false, read);
  program_->num_slots = count;
}

}  // namespace fx
