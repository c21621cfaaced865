#include <fxgraph/nn/module_watch.h>

#include <algorithm>
#include <cstring>

#include <fxgraph/nn/leaf_module.h>
#include <fxgraph/nn/module_members.h>
#include <fxgraph/nn/module_tree.h>

namespace fx {

namespace {

using torch::nn::Module;

template <typename Dict>
std::uint32_t index_of(const Dict& dict, const std::string& name) {
  const auto& items = dict.items();
  const auto found = std::ranges::find_if(items, [&](const auto& item) { return item.key() == name; });
  return static_cast<std::uint32_t>(found - items.begin());
}

const void* address_of(const std::shared_ptr<Module>& module) { return module.get(); }
const void* address_of(const torch::Tensor& tensor) { return tensor.unsafeGetTensorImpl(); }

// The entry's place is tried, not its name looked up. A name that was not there is watched behind the last entry.
template <typename Dict>
bool is_at(const Dict& dict, std::uint32_t index, const std::string& name, const void* value) {
  const auto& items = dict.items();
  if (!value) return !dict.contains(name);
  return index < items.size() && address_of(items[index].value()) == value && items[index].key() == name;
}

}  // namespace

void ModuleWatch::add(Entry entry) {
  std::string key = entry.name;
  key.append(1, '\0').append(1, static_cast<char>('0' + static_cast<int>(entry.kind)));
  key.append(reinterpret_cast<const char*>(&entry.owner), sizeof entry.owner);
  if (known_.insert(std::move(key)).second) entries_.push_back(std::move(entry));
}

void ModuleWatch::child(const Module& root, const std::string& path) {
  const Module* at = &root;
  for (std::size_t from = 0; !path.empty() && from <= path.size();) {
    const std::size_t dot = std::min(path.find('.', from), path.size());
    const std::string atom = path.substr(from, dot - from);
    const auto& children = internal::children_of(*at);
    const std::shared_ptr<Module>* found = children.find(atom);
    add({at, atom, found ? found->get() : nullptr, index_of(children, atom), Entry::Kind::child});
    if (!found || !*found) return;
    at = found->get();
    from = dot + 1;
  }
}

void ModuleWatch::tensor(const Module& root, const std::string& path) {
  const auto [parent, name] = split_path(path);
  child(root, parent);
  const Module* owner = find_module(root, parent);
  if (!owner) return;
  // A parameter goes before a buffer of the same name.
  const auto& parameters = internal::parameters_of(*owner);
  const torch::Tensor* parameter = parameters.find(name);
  add({owner, name, parameter ? address_of(*parameter) : nullptr, index_of(parameters, name), Entry::Kind::parameter});
  if (parameter) return;
  const auto& buffers = internal::buffers_of(*owner);
  const torch::Tensor* buffer = buffers.find(name);
  add({owner, name, buffer ? address_of(*buffer) : nullptr, index_of(buffers, name), Entry::Kind::buffer});
}

void ModuleWatch::children(const Module& module) {
  counts_.push_back({&module, internal::children_of(module).size()});
  for (const auto& item : internal::children_of(module)) child(module, item.key());
}

void ModuleWatch::body(const LeafModule& leaf) {
  bodies_.push_back({&leaf, leaf.body_in_mode(leaf.is_training()).get(), leaf.is_training()});
}

void ModuleWatch::bytes(std::span<const std::byte> bytes) {
  if (!bytes.empty()) bytes_.push_back({bytes, {bytes.begin(), bytes.end()}});
}

bool ModuleWatch::holds(const Entry& entry) {
  switch (entry.kind) {
    case Entry::Kind::child: return is_at(internal::children_of(*entry.owner), entry.index, entry.name, entry.value);
    case Entry::Kind::parameter:
      return is_at(internal::parameters_of(*entry.owner), entry.index, entry.name, entry.value);
    case Entry::Kind::buffer: break;
  }
  return is_at(internal::buffers_of(*entry.owner), entry.index, entry.name, entry.value);
}

// Entries first, in the order in which they were found: they say which modules are still there to be asked.
bool ModuleWatch::unchanged() const {
  return std::ranges::all_of(entries_, &ModuleWatch::holds) &&
         std::ranges::all_of(
             counts_,
             [](const Count& count) { return internal::children_of(*count.owner).size() == count.children; }) &&
         std::ranges::all_of(
             bodies_,
             [](const Body& watched) { return watched.leaf->body_in_mode(watched.training).get() == watched.body; }) &&
         std::ranges::all_of(bytes_, [](const Bytes& watched) {
           return std::memcmp(watched.now.data(), watched.then.data(), watched.then.size()) == 0;
         });
}

}  // namespace fx
