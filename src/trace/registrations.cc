#include <fxgraph/trace/registrations.h>

#include <algorithm>

namespace fx::internal {
namespace {

using torch::nn::Module;

bool is_same(const std::shared_ptr<Module>& a, const std::shared_ptr<Module>& b) { return a == b; }
bool is_same(const torch::Tensor& a, const torch::Tensor& b) { return a.is_same(b); }

template <typename Items>
bool are_same(const Items& a, const Items& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& left, const auto& right) {
    return left.first == right.first && is_same(left.second, right.second);
  });
}

template <typename Items>
bool has(const Items& items, const typename Items::value_type& wanted) {
  return std::any_of(items.begin(), items.end(), [&](const auto& item) {
    return item.first == wanted.first && is_same(item.second, wanted.second);
  });
}

// `registers the buffer 'w'`, `replaces …` or `unregisters …`; empty when nothing is different.
template <typename Items>
std::string difference(const Items& before, const Items& now, const std::string& kind) {
  if (are_same(before, now)) return {};
  const auto named = [](const Items& items, const std::string& name) {
    return std::any_of(items.begin(), items.end(), [&](const auto& item) { return item.first == name; });
  };
  for (const auto& item : now) {
    if (!has(before, item))
      return (named(before, item.first) ? "replaces the " : "registers the ") + kind + " '" + item.first + "'";
  }
  for (const auto& item : before) {
    if (!has(now, item)) return "unregisters the " + kind + " '" + item.first + "'";
  }
  return "registers its " + kind + "s in another order";
}

}  // namespace

Registrations::Children Registrations::children_of(const Module& module) {
  Children children;
  for (const auto& item : module.named_children()) children.emplace_back(item.key(), item.value());
  return children;
}

Registrations::Tensors Registrations::parameters_of(const Module& module) {
  Tensors tensors;
  for (const auto& item : module.named_parameters(/*recurse=*/false)) tensors.emplace_back(item.key(), item.value());
  return tensors;
}

Registrations::Tensors Registrations::buffers_of(const Module& module) {
  Tensors tensors;
  for (const auto& item : module.named_buffers(/*recurse=*/false)) tensors.emplace_back(item.key(), item.value());
  return tensors;
}

void Registrations::add(const std::shared_ptr<Module>& module, std::string name) {
  entries_.push_back({std::move(name), module, children_of(*module), parameters_of(*module), buffers_of(*module)});
}

std::string Registrations::change() const {
  for (const Entry& entry : entries_) {
    std::string change = difference(entry.children, children_of(*entry.module), "module");
    if (change.empty()) change = difference(entry.parameters, parameters_of(*entry.module), "parameter");
    if (change.empty()) change = difference(entry.buffers, buffers_of(*entry.module), "buffer");
    if (!change.empty()) return change + " in " + entry.name;
  }
  return {};
}

}  // namespace fx::internal
