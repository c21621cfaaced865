// StorageNumbers: which values lie in one storage, as small numbers in the order of first sight.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/StorageImpl.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

#include <fxgraph/ir/tensor_info.h>

namespace fx {

/// An address may be given out again once its storage is gone; a weak reference keeps the address
/// taken.
class StorageNumbers {
 public:
  void renumber(const c10::IValue& value, TensorInfos& infos) {
    note(value);
    for (TensorInfo& info : infos) {
      if (info.storage >= 0) info.storage = numbers_.at(info.storage);
    }
  }

 private:
  void note(const c10::IValue& value) {
    if (value.isTensor() && value.toTensor().defined() && value.toTensor().has_storage()) {
      const at::Storage& storage = value.toTensor().storage();
      const auto address = reinterpret_cast<std::intptr_t>(storage.unsafeGetStorageImpl());
      if (!numbers_.try_emplace(address, static_cast<std::int64_t>(numbers_.size())).second) return;
      held_.emplace_back(storage.getWeakStorageImpl());
    } else if (value.isTuple()) {
      for (const c10::IValue& element : value.toTupleRef().elements()) note(element);
    } else if (value.isList()) {
      for (const c10::IValue& element : value.toListRef()) note(element);
    } else if (value.isGenericDict()) {
      for (const auto& item : value.toGenericDict()) note(item.value());
    }
  }

  std::unordered_map<std::int64_t, std::int64_t> numbers_;  // look-up only
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> held_;
};

}  // namespace fx
