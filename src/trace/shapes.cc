#include <fxgraph/trace/shapes.h>

#include <optional>
#include <sstream>

#include <fxgraph/trace/shape_formulas.h>

namespace fx::internal {
namespace {

using c10::IValue;
using torch::jit::Stack;

IValue map_tensors(const IValue& value, at::Tensor (*map)(const at::Tensor&)) {
  if (value.isTensor()) return map(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> result;
    for (const at::Tensor& tensor : value.toTensorVector()) result.push_back(map(tensor));
    return result;
  }
  if (value.isList() &&
      value.type()->castRaw<c10::ListType>()->getElementType()->kind() == c10::TypeKind::OptionalType) {
    c10::impl::GenericList result(value.type()->castRaw<c10::ListType>()->getElementType());
    for (const IValue& element : value.toListRef()) result.push_back(map_tensors(element, map));
    return result;
  }
  return value;
}

void describe(std::ostream& out, const IValue& value) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined()) {
      out << "undefined";
    } else {
      out << tensor.scalar_type() << tensor.sizes() << tensor.strides();
    }
  } else if (value.isList()) {
    out << '[';
    for (const IValue& element : value.toListRef()) {
      describe(out, element);
      out << ',';
    }
    out << ']';
  } else {
    out << value.tagKind() << value;
  }
}

std::string describe_call(const OpRecord& record, const Stack& stack) {
  std::ostringstream out;
  out << record.target.id();
  for (auto value = stack.end() - static_cast<std::ptrdiff_t>(record.arguments.size()); value != stack.end(); ++value) {
    out << ';';
    describe(out, *value);
  }
  return out.str();
}

void replace_device(const OpRecord& record, Stack& stack, c10::DeviceType type) {
  IValue* arguments = &*(stack.end() - static_cast<std::ptrdiff_t>(record.arguments.size()));
  for (std::size_t i = 0; i < record.arguments.size(); ++i) {
    if (record.arguments[i].kind != ValueKind::device) continue;
    if (!record.takes_tensors || arguments[i].isDevice()) arguments[i] = c10::Device(type);
  }
}

void drop_pinning(const OpRecord& record, Stack& stack) {
  static const Symbol kPinMemory("pin_memory");
  IValue* arguments = &*(stack.end() - static_cast<std::ptrdiff_t>(record.arguments.size()));
  for (std::size_t i = 0; i < record.arguments.size(); ++i) {
    if (record.arguments[i].name == kPinMemory && !arguments[i].isNone()) arguments[i] = false;
  }
}

}  // namespace

void ShapeOracle::run(const c10::OperatorHandle& op, OpRecord& record, Stack& stack) {
  drop_pinning(record, stack);
  if (!record.meta_works && record.takes_tensors) {
    if (const ShapeFormula formula = shape_formula(record.target)) {
      if (at::Tensor shape = formula(&*(stack.end() - static_cast<std::ptrdiff_t>(record.arguments.size())));
          shape.defined()) {
        torch::jit::drop(stack, record.arguments.size());
        stack.emplace_back(std::move(shape));
        return;
      }
    }
  }
  if (record.meta_fails) return run_on_zeros(op, record, stack);
  Stack attempt(stack.end() - static_cast<std::ptrdiff_t>(record.arguments.size()), stack.end());
  replace_device(record, attempt, c10::DeviceType::Meta);
  try {
    op.callBoxed(&attempt);
  } catch (const c10::Error&) {
    // Either there is no meta kernel for this case or the shapes do not fit: zeros tell which.
    if (!record.all_results_are_tensors) throw;
    run_on_zeros(op, record, stack);
    record.meta_fails = !record.meta_works;
    return;
  }
  record.meta_works = true;
  torch::jit::drop(stack, record.arguments.size());
  for (IValue& value : attempt) stack.push_back(std::move(value));
}

void ShapeOracle::run_on_zeros(const c10::OperatorHandle& op, const OpRecord& record, Stack& stack) {
  const std::size_t below = stack.size() - record.arguments.size();
  std::vector<IValue>& answer = answers_[describe_call(record, stack)];
  if (answer.empty()) {
    Stack zeros;
    for (std::size_t i = below; i < stack.size(); ++i) zeros.push_back(map_tensors(stack[i], stand_in));
    replace_device(record, zeros, c10::DeviceType::CPU);
    std::optional<KeepRandomState> keep;
    if (record.draws_random_numbers) keep.emplace();
    op.callBoxed(&zeros);
    for (const IValue& value : zeros) answer.push_back(map_tensors(value, to_meta));
  }
  Stack results;
  for (std::size_t i = 0; i < answer.size(); ++i) {
    const int written = record.results[i].written_argument;
    results.push_back(written >= 0 ? stack[below + static_cast<std::size_t>(written)]
                                   : map_tensors(answer[i], to_meta));
  }
  stack.resize(below);
  for (IValue& value : results) stack.push_back(std::move(value));
}

}  // namespace fx::internal
