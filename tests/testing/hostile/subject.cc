#include <fxgraph/testing/hostile/subject.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include <fxgraph/run/value.h>

namespace fx::hostile {

const void* storage_of(const at::Tensor& tensor) {
  // Of a tensor without elements nobody can tell.
  return tensor.defined() && tensor.has_storage() && tensor.numel() > 0 ? tensor.storage().unsafeGetStorageImpl()
                                                                        : nullptr;
}

void take_apart(const c10::IValue& value, Tensors& tensors, std::string& structure) {
  if (value.isTensor()) {
    structure += "t";
    tensors.push_back(value.toTensor());
  } else if (value.isTuple() || value.isList()) {
    structure += value.isTuple() ? "(" : "[";
    if (value.isTuple()) {
      for (const c10::IValue& element : value.toTupleRef().elements()) take_apart(element, tensors, structure);
    } else {
      for (const c10::IValue& element : value.toListRef()) take_apart(element, tensors, structure);
    }
    structure += value.isTuple() ? ")" : "]";
  } else if (value.isGenericDict()) {
    structure += "{";
    for (const auto& entry : value.toGenericDict()) {
      take_apart(entry.key(), tensors, structure);
      take_apart(entry.value(), tensors, structure);
    }
    structure += "}";
  } else if (value.isDouble()) {
    structure += "f";
    tensors.push_back(at::scalar_tensor(value.toDouble(), at::kDouble));
  } else if (value.isInt()) {
    structure += "i" + std::to_string(value.toInt());
  } else if (value.isBool()) {
    structure += value.toBool() ? "T" : "F";
  } else if (value.isString()) {
    structure += value.toStringRef();
  } else {
    structure += value.tagKind();
  }
}

std::optional<std::string> tensors_differ(const at::Tensor& a, const at::Tensor& b, const Tolerance& tolerance) {
  if (a.defined() != b.defined()) return "one is None";
  if (!a.defined()) return {};
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return "other type or sizes";
  const std::vector<double> x = elements_of(a), y = elements_of(b);
  double scale = tolerance.least_scale, worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) && std::isnan(y[i])) continue;
    if (!std::isfinite(x[i]) || !std::isfinite(y[i])) {
      if (x[i] != y[i])
        return std::isinf(x[i]) || std::isinf(y[i]) ? "other numbers that are not finite"
                                                    : "other numbers that are not finite: NaN";
      continue;
    }
    scale = std::max(scale, std::abs(x[i]));
    worst = std::max(worst, std::abs(x[i] - y[i]));
  }
  if (worst > tolerance.relative * scale) return "other numbers";
  for (std::size_t i = 0; i < x.size() && tolerance.relative == 0; ++i) {
    if (!std::isnan(x[i]) && std::signbit(x[i]) != std::signbit(y[i])) return "other signs of zeros";
  }
  return {};
}

Subject::Subject(Callable program) : program_(std::move(program)) {
  for (auto& [path, tensor] : program_.state) state_.push_back({path, tensor, copy_of(tensor)});
}

void Subject::reset() {
  for (State& state : state_) {
    if (state.tensor.storage().nbytes() != state.initial.storage().nbytes()) continue;
    if (state.initial.storage().nbytes() > 0)
      std::memcpy(state.tensor.storage().data_ptr().get(), state.initial.storage().data(),
                  state.initial.storage().nbytes());
    state.tensor.unsafeGetTensorImpl()->set_storage_offset(state.initial.storage_offset());
    state.tensor.unsafeGetTensorImpl()->set_sizes_and_strides(state.initial.sizes(), state.initial.strides());
    if (!state.tensor.is_inference()) state.tensor.unsafeGetTensorImpl()->bump_version();
  }
}

Subject::Call Subject::call(const Tensors& inputs, std::uint64_t seed) {
  Call done;
  std::vector<c10::IValue> values;
  for (const at::Tensor& input : inputs) values.emplace_back(done.inputs.emplace_back(copy_of(input)));
  at::manual_seed(seed);
  try {
    take_apart(program_.run(std::move(values)), done.results, done.structure);
  } catch (const std::exception& error) {
    done.error = first_line(error);
    return done;
  }
  note_sharing(done);
  return done;
}

const Subject::State* Subject::find(const std::string& path) const {
  for (const State& state : state_) {
    if (state.path == path) return &state;
  }
  return nullptr;
}

void Subject::note_sharing(Call& done) const {
  std::map<const void*, std::size_t> first;
  for (std::size_t i = 0; i < done.inputs.size(); ++i) first.emplace(storage_of(done.inputs[i]), i);
  for (std::size_t i = 0; i < done.results.size(); ++i) {
    const void* storage = storage_of(done.results[i]);
    done.shares.push_back(storage ? first.emplace(storage, done.inputs.size() + i).first->second : kFresh);
    bool with_state = false;
    for (const State& state : state_) with_state |= storage && storage_of(state.tensor) == storage;
    done.shares_state.push_back(with_state);
  }
}

}  // namespace fx::hostile
