#include <fxgraph/nn/object_attribute.h>

#include <torch/serialize/archive.h>

#include <fxgraph/nn/module_tree.h>

namespace fx {

void ObjectAttribute::save(torch::serialize::OutputArchive& archive) const { archive.write("object", value_); }
void ObjectAttribute::load(torch::serialize::InputArchive& archive) { archive.read("object", value_); }

const c10::IValue* find_object(const torch::nn::Module& root, const std::string& path) {
  const auto module = std::dynamic_pointer_cast<ObjectAttribute>(find_child(root, path));
  return module ? &module->value() : nullptr;
}

}  // namespace fx
