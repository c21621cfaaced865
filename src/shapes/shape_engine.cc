#include <fxgraph/shapes/shape_engine.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <sstream>
#include <unordered_set>

#include <fxgraph/run/keep_random_state.h>
#include <fxgraph/run/operators.h>
#include <fxgraph/shapes/brief_errors.h>
#include <fxgraph/shapes/row_shapes.h>
#include <fxgraph/shapes/written_shape.h>

namespace fx::internal {
namespace {

using c10::IValue;
using torch::jit::Stack;

at::Tensor zeros_like_meta(const at::Tensor& meta) { return fake_input(meta, 0); }
at::Tensor ones_like_meta(const at::Tensor& meta) { return fake_input(meta, 1); }

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
      if (is_number(tensor)) out << "number";
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

// What calls have in common that treat data alike: types and ranks of tensors, whether there are options at all.
void describe_kind(std::ostream& out, const IValue& value) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) out << value.toTensor().scalar_type() << value.toTensor().dim();
  } else if (value.isList()) {
    for (const IValue& element : value.toListRef()) describe_kind(out, element);
  } else if (value.isBool() || value.isString()) {
    out << value;
  } else if (value.isInt()) {
    out << (value.toInt() < 0 ? "<" : "n");  // num_classes = -1: as many as there are
  } else {
    out << value.tagKind();
  }
}

/// Whether describe() tells the value from all others at any time: an object (packed weights) is told by its address,
/// at which the next one may lie.
bool is_told(const IValue& value) {
  if (value.isList()) {
    const c10::List<IValue> list = value.toList();
    return std::all_of(list.begin(), list.end(), [](const IValue& element) { return is_told(element); });
  }
  return value.isTensor() || value.isNone() || value.isScalar() || value.isString() || value.isDevice();
}

/// The call as a key: its operator, and what `describe` writes of each argument.
std::string key_of(const OpRecord& record, const Stack& stack, void (*describe)(std::ostream&, const IValue&)) {
  std::ostringstream out;
  out << record.target.id();
  for (auto value = stack.end() - static_cast<std::ptrdiff_t>(record.arguments.size()); value != stack.end(); ++value) {
    out << ';';
    describe(out, *value);
  }
  return out.str();
}

bool is_on_meta(const IValue& value) {
  if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) {
      if (tensor.defined() && !to_meta(tensor).defined()) return false;
    }
    return true;
  }
  return !value.isTensor() || !value.toTensor().defined() || to_meta(value.toTensor()).defined();
}

bool same_shapes(const IValue& a, const IValue& b) {
  if (a.isTensor() && b.isTensor()) {
    const at::Tensor &x = a.toTensor(), &y = b.toTensor();
    return x.defined() == y.defined() && (!x.defined() || (x.layout() == y.layout() && x.sizes() == y.sizes()));
  }
  if (!a.isTensorList() || !b.isTensorList()) return true;
  const auto x = a.toTensorVector(), y = b.toTensorVector();
  return x.size() == y.size() &&
         std::equal(x.begin(), x.end(), y.begin(), [](const at::Tensor& p, const at::Tensor& q) {
           return p.defined() == q.defined() && (!p.defined() || p.sizes() == q.sizes());
         });
}

// Nothing in it tells zeros from ones.
bool is_empty(const IValue& value) {
  if (value.isTensor()) return value.toTensor().defined() && value.toTensor().numel() == 0;
  if (!value.isList()) return false;
  const c10::List<IValue> list = value.toList();
  return std::any_of(list.begin(), list.end(), [](const IValue& element) { return is_empty(element); });
}

// Kinds of calls whose shapes were seen not to depend on data. Shared by all traces of the process.
bool is_known_kind(const std::string& kind, bool add) {
  static std::mutex mutex;
  static auto& kinds = *new std::unordered_set<std::string>;
  const std::lock_guard<std::mutex> lock(mutex);
  return add ? kinds.insert(kind).second : kinds.contains(kind);
}

// Operators that have no kernel for shapes alone. LibTorch takes milliseconds to say so, and it is so for ever.
bool has_no_meta_kernel(Symbol target, bool add) {
  static std::mutex mutex;
  static auto& targets = *new std::unordered_set<Symbol>;
  const std::lock_guard<std::mutex> lock(mutex);
  return add ? targets.insert(target).second : targets.contains(target);
}

void replace_device(const OpRecord& record, Stack& stack, c10::DeviceType type) {
  IValue* arguments = &*(stack.end() - static_cast<std::ptrdiff_t>(record.arguments.size()));
  for (std::size_t i = 0; i < record.arguments.size(); ++i) {
    if (record.arguments[i].kind != OperandKind::device) continue;
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

bool ShapeEngine::run(const c10::OperatorHandle& op, OpRecord& record, Stack& stack) {
  const BriefErrors brief;
  drop_pinning(record, stack);
  if (record.schema) {
    const std::size_t count = record.arguments.size();
    if (std::optional<Stack> shapes = shapes_by_row(*record.schema, {stack.data() + (stack.size() - count), count})) {
      torch::jit::drop(stack, count);
      std::ranges::move(*shapes, std::back_inserter(stack));
      return true;
    }
  }
  if (!record.meta_works && !record.meta_fails) record.meta_fails = has_no_meta_kernel(record.target, false);
  if (record.meta_fails) return run_on_zeros(op, record, stack);
  Stack attempt(stack.end() - static_cast<std::ptrdiff_t>(record.arguments.size()), stack.end());
  replace_device(record, attempt, c10::DeviceType::Meta);
  try {
    call_boxed(op, attempt);
  } catch (const c10::Error& error) {
    // Either there is no meta kernel for this case or the shapes do not fit: zeros tell which. What has answered before
    // has a kernel, which is to be believed, and so has what rows answer for otherwise.
    const bool no_kernel = dynamic_cast<const c10::NotImplementedError*>(&error) != nullptr;
    const bool has_kernel = record.meta_works || (record.schema && op.hasKernelForDispatchKey(c10::DispatchKey::Meta));
    if (!record.all_results_are_tensors || (has_kernel && !no_kernel)) throw;
    const bool known = run_on_zeros(op, record, stack);
    record.meta_fails = !record.meta_works;
    if (record.meta_fails && no_kernel) has_no_meta_kernel(record.target, true);
    return known;
  }
  record.meta_works = true;
  if (!std::all_of(attempt.begin(), attempt.end(), is_on_meta)) return false;
  torch::jit::drop(stack, record.arguments.size());
  for (IValue& value : attempt) stack.push_back(std::move(value));
  return true;
}

namespace {

using Fill = at::Tensor (*)(const at::Tensor&);

Stack run_filled(const c10::OperatorHandle& op, const OpRecord& record, const Stack& stack, std::size_t below,
                 Fill fill) {
  Stack filled;
  for (std::size_t i = below; i < stack.size(); ++i) filled.push_back(map_tensors(stack[i], fill));
  replace_device(record, filled, c10::DeviceType::CPU);
  call_boxed(op, filled);
  return filled;
}

// The results on zeros; on ones where zeros are refused (lengths, probabilities). Nothing where the shapes differ.
std::optional<Stack> run_on_data(const c10::OperatorHandle& op, const OpRecord& record, const Stack& stack,
                                 std::size_t below) {
  std::optional<KeepRandomState> keep;
  if (record.draws_random_numbers) keep.emplace();
  Stack zeros;
  try {
    zeros = run_filled(op, record, stack, below, zeros_like_meta);
  } catch (const c10::Error& why) {
    try {
      run_filled(op, record, stack, below, ones_like_meta);
    } catch (const c10::Error&) {
      throw c10::Error(why);
    }
    return std::nullopt;
  }
  const std::string kind = key_of(record, stack, describe_kind);
  if (is_known_kind(kind, false)) return zeros;
  try {
    const Stack ones = run_filled(op, record, stack, below, ones_like_meta);
    if (!std::equal(zeros.begin(), zeros.end(), ones.begin(), ones.end(), same_shapes)) return std::nullopt;
  } catch (const c10::Error&) {
    return zeros;  // an index that is out of range: nothing learnt
  }
  if (std::none_of(stack.begin() + static_cast<std::ptrdiff_t>(below), stack.end(), is_empty))
    is_known_kind(kind, true);
  return zeros;
}

// Nobody runs programs on inputs of a gigabyte to learn of shapes.
bool is_too_large(const OpRecord& record, const Stack& stack) {
  constexpr double kMostElements = 1 << 28;
  double elements = 0;
  for (std::size_t i = stack.size() - record.arguments.size(); i < stack.size(); ++i) {
    if (stack[i].isTensor() && stack[i].toTensor().defined())
      elements += static_cast<double>(stack[i].toTensor().numel());
    if (!stack[i].isTensorList()) continue;
    for (const at::Tensor& tensor : stack[i].toTensorVector())
      elements += tensor.defined() ? static_cast<double>(tensor.numel()) : 0;
  }
  return elements > kMostElements;
}

}  // namespace

bool ShapeEngine::run_on_zeros(const c10::OperatorHandle& op, const OpRecord& record, Stack& stack) {
  constexpr std::size_t kMostAnswers = 1 << 14;
  if (!may_run_on_data_ || is_too_large(record, stack)) return false;
  has_run_on_data_ = true;
  if (answers_.size() > kMostAnswers) answers_.clear();
  const std::size_t below = stack.size() - record.arguments.size();
  const bool is_remembered = std::all_of(stack.begin() + static_cast<std::ptrdiff_t>(below), stack.end(), is_told);
  const std::string key = is_remembered ? key_of(record, stack, describe) : std::string();
  const auto known = is_remembered ? answers_.find(key) : answers_.end();
  std::optional<Stack> answer;
  if (known != answers_.end()) {
    answer = known->second;
  } else {
    std::optional<Stack> made = run_on_data(op, record, stack, below);
    if (made && std::all_of(made->begin(), made->end(), is_on_meta)) {
      answer.emplace();
      for (const IValue& value : *made) answer->push_back(map_tensors(value, to_meta));
    }
    if (is_remembered) answers_.emplace(key, answer);
  }
  if (!answer) return false;
  Stack results;
  for (std::size_t i = 0; i < answer->size(); ++i) {
    const int written = record.results[i].written_argument;
    if (written < 0) {
      results.push_back(map_tensors((*answer)[i], to_meta));
      continue;
    }
    results.push_back(stack[below + static_cast<std::size_t>(written)]);
    if (results.back().isTensor()) take_shape(results.back().toTensor(), (*answer)[i].toTensor());
  }
  stack.resize(below);
  for (IValue& value : results) stack.push_back(std::move(value));
  return true;
}

}  // namespace fx::internal
