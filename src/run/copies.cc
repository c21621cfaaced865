#include <fxgraph/run/copies.h>

#include <ATen/ATen.h>

#include <functional>
#include <unordered_map>

namespace fx {

namespace {

at::Tensor copy_of_tensor(const at::Tensor& tensor) {  // conjugates and negatives that are only marked as such: in full
  return tensor.defined() ? tensor.clone().resolve_conj().resolve_neg() : tensor;
}

/// Copies of tensors that lie in one another's memory as the tensors do.
class SharedCopies {
 public:
  explicit SharedCopies(const std::vector<c10::IValue>& values) {
    for (const c10::IValue& value : values) {
      value.visit([this](const c10::IValue& each) {
        if (each.isTensor() && is_plain(each.toTensor()))
          ++memory_[each.toTensor().storage().unsafeGetStorageImpl()].users;
        return false;
      });
    }
  }

  at::Tensor copy_of(const at::Tensor& tensor) {
    if (!is_plain(tensor)) return copy_of_tensor(tensor);
    Memory& memory = memory_.at(tensor.storage().unsafeGetStorageImpl());
    if (memory.users == 1) return copy_of_tensor(tensor);
    const at::TensorOptions bytes = at::TensorOptions(at::kByte).device(tensor.device());
    const auto size = static_cast<std::int64_t>(tensor.storage().nbytes());
    if (!memory.copy.defined()) memory.copy = at::empty({0}, bytes).set_(tensor.storage(), 0, {size}, {1}).clone();
    at::Tensor& copy = memory.copies[tensor.unsafeGetTensorImpl()];
    if (!copy.defined()) {
      copy = at::empty({0}, bytes.dtype(tensor.dtype()));
      copy.set_(memory.copy.storage(), tensor.storage_offset(), tensor.sizes(), tensor.strides());
    }
    return copy;
  }

 private:
  struct Memory {
    std::size_t users = 0;
    at::Tensor copy;                                               // all of it
    std::unordered_map<const at::TensorImpl*, at::Tensor> copies;  // look-up only
  };

  static bool is_plain(const at::Tensor& tensor) {
    return tensor.defined() && tensor.has_storage() && tensor.layout() == at::kStrided && !tensor.is_quantized() &&
           !tensor.is_conj() && !tensor.is_neg();
  }

  std::unordered_map<const c10::StorageImpl*, Memory> memory_;  // look-up only
};

c10::IValue copied(const c10::IValue& value, const std::function<at::Tensor(const at::Tensor&)>& copy) {
  if (value.isTensor()) return copy(value.toTensor());
  if (value.isTuple()) {
    std::vector<c10::IValue> elements;
    for (const c10::IValue& element : value.toTupleRef().elements()) elements.push_back(copied(element, copy));
    const auto type = value.toTupleRef().type();
    return type->schema() ? c10::IValue(c10::ivalue::Tuple::createNamed(std::move(elements), type))
                          : c10::IValue(c10::ivalue::Tuple::create(std::move(elements)));
  }
  if (value.isList()) {
    c10::impl::GenericList list(value.toList().elementType());
    for (const c10::IValue& element : value.toListRef()) list.push_back(copied(element, copy));
    return list;
  }
  if (value.isGenericDict()) {
    const auto from = value.toGenericDict();
    c10::impl::GenericDict dict(from.keyType(), from.valueType());
    for (const auto& entry : from) dict.insert(entry.key(), copied(entry.value(), copy));
    return dict;
  }
  return value;
}

}  // namespace

c10::IValue copy_of(const c10::IValue& value) { return copied(value, copy_of_tensor); }

std::vector<c10::IValue> copies_of(const std::vector<c10::IValue>& values) {
  SharedCopies shared(values);
  std::vector<c10::IValue> copies;
  for (const c10::IValue& value : values)
    copies.push_back(copied(value, [&](const at::Tensor& tensor) { return shared.copy_of(tensor); }));
  return copies;
}

}  // namespace fx
