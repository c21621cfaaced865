#include <fxgraph/nn/nn_modules.h>

#include <deque>
#include <mutex>
#include <unordered_map>

#include <fxgraph/nn/module_tree.h>
#include <fxgraph/nn/nn_rows.h>

namespace fx {
namespace {

class TypeTable {
 public:
  TypeTable() {
    for (auto& [type, row] : internal::torch_rows()) {
      // Types of torch.nn go by their last name, too.
      const ModuleType& added = add(type, std::move(row));
      by_name_.emplace(split_path(added.qualified_name).second, &added);
    }
  }

  const ModuleType* find(const std::type_index& type) const { return found(by_type_, type); }
  const ModuleType* find(std::string_view name) const { return found(by_name_, std::string(name)); }

  const ModuleType& add(std::optional<std::type_index> type, ModuleType row) {
    if (const ModuleType* known = type ? find(*type) : nullptr) return *known;
    const ModuleType& added = rows_.emplace_back(std::move(row));
    if (type) by_type_.emplace(*type, &added);
    by_name_.emplace(added.qualified_name, &added);
    return added;
  }

 private:
  template <typename Map>
  static const ModuleType* found(const Map& map, const typename Map::key_type& key) {
    const auto at = map.find(key);
    return at == map.end() ? nullptr : at->second;
  }

  std::deque<ModuleType> rows_;  // which stay where they are
  std::unordered_map<std::type_index, const ModuleType*> by_type_;
  std::unordered_map<std::string, const ModuleType*> by_name_;
};

struct Registry {
  std::mutex mutex;
  TypeTable types;
};

Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

template <typename Key>
const ModuleType* find_row(const Key& key) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  return all.types.find(key);
}

}  // namespace

const ModuleType* find_module_type(const torch::nn::Module& module) {
  return find_row(std::type_index(typeid(module)));
}

const ModuleType* find_module_type(std::string_view name) { return find_row(name); }

void add_module_type(std::type_index type, ModuleType row) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.types.add(type, std::move(row));
}

std::shared_ptr<LeafModule> leaf_from_module(const torch::nn::Module& module) {
  const ModuleType* type = find_module_type(module);
  if (!type || !type->body) return nullptr;
  std::optional<Graph> body = type->body(module);
  if (!body) return nullptr;
  std::vector<NamedTensor> tensors;
  for (const auto& item : module.named_parameters()) tensors.push_back({item.key(), item.value(), true});
  for (const auto& item : module.named_buffers()) tensors.push_back({item.key(), item.value(), false});
  std::shared_ptr<LeafModule> leaf = make_leaf(type->qualified_name, tensors, std::move(*body));
  leaf->train(module.is_training());
  return leaf;
}

}  // namespace fx
