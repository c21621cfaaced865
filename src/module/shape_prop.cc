#include "module/shape_prop.h"

#include <ATen/ops/zeros.h>
#include <c10/core/StorageImpl.h>

#include <unordered_map>
#include <utility>

#include "module/plan.h"
#include "module/value.h"

namespace fx {
namespace {

/// Numbers storages. An address may be given out again once its storage is gone; a weak reference keeps the address
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

}  // namespace

Shapes propagate_shapes(GraphModule& module, std::vector<c10::IValue> inputs) {
  Shapes shapes(module.graph());
  StorageNumbers storages;
  const auto plan = Plan::compile(module, {.observe = true});
  const c10::IValue result = plan->run(module, std::move(inputs), [&](const Node& node, const c10::IValue& value) {
    TensorInfos infos = tensor_infos(value);
    storages.renumber(value, infos);
    shapes[node] = std::move(infos);
  });
  if (const Node* output = module.graph().output_node()) {
    TensorInfos infos = tensor_infos(result);
    storages.renumber(result, infos);
    shapes[*output] = std::move(infos);
  }
  return shapes;
}

Shapes propagate_shapes(GraphModule& module, const std::vector<TensorInfo>& inputs) {
  std::vector<c10::IValue> values;
  for (const TensorInfo& info : inputs) values.emplace_back(zeros_like_info(info));
  return propagate_shapes(module, std::move(values));
}

at::Tensor zeros_like_info(const TensorInfo& info) {
  return at::zeros(info.sizes, at::TensorOptions(to_scalar_type(info.dtype)).device(to_torch_device(info.device)));
}

}  // namespace fx
