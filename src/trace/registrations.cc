#include <fxgraph/trace/registrations.h>

#include <algorithm>

namespace fx::internal {

using torch::nn::Module;

Registrations::Items Registrations::items_of(const Module& module) {
  Items items;
  for (const auto& item : module.named_children()) items.push_back({"module", item.key(), item.value(), {}});
  for (const auto& item : module.named_parameters(/*recurse=*/false))
    items.push_back({"parameter", item.key(), nullptr, item.value()});
  for (const auto& item : module.named_buffers(/*recurse=*/false))
    items.push_back({"buffer", item.key(), nullptr, item.value()});
  return items;
}

void Registrations::add(const std::shared_ptr<Module>& module, std::string name) {
  entries_.push_back({std::move(name), module, items_of(*module)});
}

std::string Registrations::change() const {
  for (const Entry& entry : entries_) {
    const Items &before = entry.items, now = items_of(*entry.module);
    const auto in_words = [&](const std::string& what, const Item& item) {
      return what + " the " + item.kind + " '" + item.name + "' in " + entry.name;
    };
    for (const Item& item : now) {
      if (std::ranges::find(before, item) != before.end()) continue;
      const bool is_known = std::ranges::any_of(before, [&](const Item& each) { return each.is_named_as(item); });
      return in_words(is_known ? "replaces" : "registers", item);
    }
    for (const Item& item : before) {
      if (std::ranges::find(now, item) == now.end()) return in_words("unregisters", item);
    }
    const auto [was, is] = std::ranges::mismatch(before, now);
    if (was != before.end()) return std::string("registers its ") + was->kind + "s in another order in " + entry.name;
  }
  return {};
}

}  // namespace fx::internal
