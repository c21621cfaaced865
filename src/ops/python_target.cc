#include <fxgraph/ops/python_target.h>

#include <algorithm>
#include <deque>
#include <mutex>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/argument_type.h>
#include <fxgraph/ops/call.h>

namespace fx::internal {

namespace {

const OperatorRow* find_operator(std::string_view name) {
  const auto rows = python_operators();
  const auto row = std::ranges::lower_bound(rows, name, {}, &OperatorRow::name);
  return row != rows.end() && row->name == name ? &*row : nullptr;
}

// The overloads that compute with tensors: those that Python's operators on tensors call.
Overloads of_tensors(std::string_view packet) {
  Overloads kept;
  std::ranges::copy_if(overload_list(Symbol(packet)), std::back_inserter(kept), [](const OperatorSchema* schema) {
    const std::span operands(schema->arguments.data(), std::min<std::size_t>(schema->arguments.size(), 2));
    return std::ranges::any_of(operands, [](const SchemaArgument& argument) { return argument.type.is_tensor(); });
  });
  return kept;
}

// Those that functions of torch and methods reach: TorchScript's, on plain numbers, strings and lists, are none of
// torch, and numbers have no methods. All, where that leaves none.
Overloads reached(Op op, std::string_view packet) {
  const auto is_reached = [&](const OperatorSchema* schema) {
    const auto is_of_torch = [](const auto& each) {
      return each.type.is_tensor() || each.type.base == SchemaType::Base::dtype;
    };
    if (std::ranges::any_of(schema->arguments, is_of_torch) || std::ranges::any_of(schema->returns, is_of_torch))
      return true;
    return op == Op::call_method && !schema->arguments.empty() &&
           !is_number_type({schema->arguments[0].type.base, schema->arguments[0].type.list});
  };
  const Overloads& all = overload_list(Symbol(packet));
  Overloads kept;
  std::ranges::copy_if(all, std::back_inserter(kept), is_reached);
  return kept.empty() ? all : kept;
}

bool is_like_operator(std::string_view name) {
  return std::ranges::find(like_operators(), name, &LikeRow::name) != like_operators().end();
}

// The operator that has the function's name, `aten::relu` for `torch.relu`; empty when the name is in no module of
// operators.
std::string packet_by_name(std::string_view name) {
  if (name.starts_with('.')) return "aten::" + std::string(name.substr(1));
  for (const PrefixRow& row : operator_modules()) {
    if (!name.starts_with(row.prefix)) continue;
    const std::string_view rest = name.substr(row.prefix.size());
    if (rest.find('.') == std::string_view::npos) return std::string(row.packet_prefix) + std::string(rest);
  }
  return {};
}

// Of names that the LibTorch at hand lacks, that on which its aliases agree: `aten::cat` for `aten::concatenate`.
std::string agreed_packet(std::string packet) {
  return packet.empty() || !overload_list(Symbol(packet)).empty() ? packet : agreed_name(packet);
}

const SchemaType* common_result(const Overloads& candidates) {
  const SchemaType* common = nullptr;
  for (const OperatorSchema* schema : candidates) {
    if (schema->returns.size() != 1) return nullptr;
    const SchemaType& type = schema->returns[0].type;
    if (common && (type.base != common->base || type.list != common->list || type.optional != common->optional))
      return nullptr;
    common = &type;
  }
  return common;
}

PythonTarget look_up(Op op, Symbol target, const TargetInfo& info) {
  PythonTarget found;
  if (op == Op::call_function && !info.overloads->empty()) {
    found.packets = {Symbol(packet_of(info.name.view()))};
    if (!info.exact) found.candidates = *info.overloads;
    found.result = common_result(found.candidates);
    return found;
  }
  const std::string name = python_name(op, target);
  found.op = find_operator(name);
  found.rows = python_rows(name);
  found.effect = known_effect(name);
  if (found.op) {
    found.of_tensors = of_tensors(found.op->packet);
    found.of_mirrored = of_tensors(found.op->mirrored);
    found.of_numbers = overload_list(Symbol(found.op->numbers.empty() ? found.op->packet : found.op->numbers));
  } else if (found.rows.empty() && !is_like_operator(name) && !found.effect) {
    found.packet = Symbol(agreed_packet(packet_by_name(name)));
    found.of_packet = reached(op, found.packet.view());
  }
  for (const PythonRow& row : found.rows) found.of_rows.push_back(reached(op, row.target.view()));
  const auto add = [&](std::string_view packet, const Overloads& list) {
    if (std::ranges::find(found.packets, Symbol(packet)) != found.packets.end()) return;
    if (!list.empty()) found.packets.push_back(Symbol(packet));
    found.candidates.insert(found.candidates.end(), list.begin(), list.end());
  };
  if (found.op) {
    for (const std::string_view packet : {found.op->packet, found.op->numbers, found.op->mirrored})
      add(packet, overload_list(Symbol(packet)));
  } else {
    for (const PythonRow& row : found.rows) {
      const std::string packet(packet_of(row.target.view()));
      add(packet, reached(op, packet));
      if (row.inplace != PythonItem::kLiteral) add(packet + "_", reached(op, packet + "_"));
    }
    for (const LikeRow& row : like_operators()) {
      if (row.name == name) add(row.packet, reached(op, row.packet));
    }
    add(found.packet.view(), found.of_packet);
  }
  found.result = common_result(found.candidates);
  return found;
}

// Never destroyed, and never taken away when schemas are registered: readers may hold them.
const PythonTarget& keep(PythonTarget target) {
  static std::mutex* const mutex = new std::mutex;
  static std::deque<PythonTarget>* const kept = new std::deque<PythonTarget>;
  const std::lock_guard lock(*mutex);
  return kept->emplace_back(std::move(target));
}

}  // namespace

const PythonTarget& python_target(Op op, Symbol target) {
  const TargetInfo& info = target_info(target);
  std::atomic<const PythonTarget*>& known = op == Op::call_function ? info.of_function : info.of_method;
  const PythonTarget* found = known.load(std::memory_order_acquire);
  if (!found) {
    found = &keep(look_up(op, target, info));
    known.store(found, std::memory_order_release);
  }
  return *found;
}

const Overloads& candidate_overloads(Op op, Symbol target) {
  static const Overloads kNone;
  if (op != Op::call_function && op != Op::call_method) return kNone;
  return python_target(op, target).candidates;
}

std::string python_name(Op op, Symbol target) {
  if (op == Op::call_method) return "." + target.str();
  constexpr std::string_view kFunctional = "torch.functional.";
  const std::string_view name = canonical_target(target).view();
  if (name.starts_with(kFunctional)) return "torch." + std::string(name.substr(kFunctional.size()));
  return std::string(name);
}

}  // namespace fx::internal
