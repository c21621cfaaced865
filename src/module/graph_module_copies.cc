// GraphModule as another: clones, and itself with other types or on another device.
#include <fxgraph/module/graph_module.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/run/held_memory.h>

namespace fx {

using torch::nn::Module;

namespace {

// What a program has made by itself, or taken from outside of the traced module, is nothing of that module: the
// module's to() does not reach it.
class KeptTypes {
 public:
  explicit KeptTypes(const Module& module) {
    const auto add = [&](const auto& items) {
      for (const auto& item : items) {
        if (item.key().starts_with("_tensor_constant") && item.value().defined())
          kept_.emplace_back(item.value(), item.value().detach());
      }
    };
    add(module.named_parameters(/*recurse=*/false));
    add(module.named_buffers(/*recurse=*/false));
  }
  void put_back() {
    for (auto& [tensor, contents] : kept_) tensor.set_data(contents.to(tensor.device()));
  }

 private:
  std::vector<std::pair<torch::Tensor, torch::Tensor>> kept_;
};

}  // namespace

void GraphModule::to(torch::Device device, torch::Dtype dtype, bool non_blocking) {
  KeptTypes kept(*this);
  Module::to(device, dtype, non_blocking);
  kept.put_back();
}

void GraphModule::to(torch::Dtype dtype, bool non_blocking) {
  KeptTypes kept(*this);
  Module::to(dtype, non_blocking);
  kept.put_back();
}

std::shared_ptr<Module> GraphModule::clone(const TorchDeviceOption& device) const {
  auto copy = std::make_shared<GraphModule>(graph_.clone(), class_name_);
  deep_copy_contents(*this, *copy, device ? &*device : nullptr);
  keep_ties(*this, *copy);
  copy->fixed_mode_ = fixed_mode_;
  copy->hold_memory(held_memory_ != nullptr);
  copy->set_micro_batches(micro_batches());
  return copy;
}

std::shared_ptr<GraphModule> GraphModule::clone_graph_module() const {
  return std::dynamic_pointer_cast<GraphModule>(clone());
}

}  // namespace fx
