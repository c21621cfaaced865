// The list of hooks may change while they are told: one that is removed leaves a gap until the telling ends, one that
// is set then is told of the next edit.
#include <fxgraph/ir/graph_hooks.h>

#include <algorithm>
#include <utility>

#include <fxgraph/ir/graph_storage.h>
#include <fxgraph/support/error.h>

namespace fx {

namespace internal {

GraphStorage::~GraphStorage() {
  for (GraphHooks* hooks : hooks) {
    if (hooks) hooks->storage_ = nullptr;
  }
}

template <typename Tell>
void GraphStorage::tell(Tell&& tell) {
  struct Telling {
    explicit Telling(GraphStorage& s) : storage(s) { ++storage.telling; }
    ~Telling() {
      if (--storage.telling == 0) std::erase(storage.hooks, nullptr);
    }
    GraphStorage& storage;
  } const telling_now(*this);
  const std::size_t count = hooks.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (hooks[i]) tell(hooks[i]->hooks_);
  }
}

void GraphStorage::require_unedited(std::uint64_t before, const char* what) const {
  if (revision == before) return;
  throw Error(ErrorKind::invalid_argument,
              std::string("a hook edited the graph while it was told that ") + what + "; note it, and edit afterwards");
}

void GraphStorage::tell_created(Node& node) {
  constexpr int kDeepest = 500;  // each takes some of the stack
  try {
    if (telling >= kDeepest) {
      throw Error(ErrorKind::invalid_argument, "hooks made nodes that hooks were told of, " + std::to_string(kDeepest) +
                                                   " deep; note what is to be made, and make it afterwards");
    }
    tell([&](const EditHooks& told) {
      const std::function<void(Node&)> created = told.created;  // a hook may remove itself
      if (created && !node.erased_) created(node);
    });
  } catch (...) {
    if (!node.erased_ && !node.has_users()) owner->erase_node(node);
    throw;
  }
}

void GraphStorage::tell_erased(Node& node) {
  const std::uint64_t before = revision;
  tell([&](const EditHooks& told) {
    const std::function<void(Node&)> erased = told.erased;
    if (erased) erased(node);
    require_unedited(before, "a node goes");
  });
}

void GraphStorage::tell_replaced(Node& old, const Argument& by, std::span<Node* const> users) {
  const std::uint64_t before = revision;
  for (Node* user : users) {
    tell([&](const EditHooks& told) {
      const auto replaced = told.replaced;
      if (replaced) replaced(old, by, *user);
      require_unedited(before, "a value is replaced");
    });
  }
}

void GraphStorage::tell_changed(std::span<Node* const> nodes) {
  for (Node* node : nodes) {
    tell([&](const EditHooks& told) {
      const auto changed = told.changed;
      if (changed) changed(*node);
    });
  }
}

}  // namespace internal

GraphHooks::GraphHooks(Graph& graph, EditHooks hooks)
    : storage_(&internal::GraphStorage::of(graph)), hooks_(std::move(hooks)) {
  storage_->hooks.push_back(this);
}

GraphHooks::~GraphHooks() { remove(); }

void GraphHooks::remove() {
  internal::GraphStorage* storage = std::exchange(storage_, nullptr);
  if (!storage) return;
  *std::ranges::find(storage->hooks, this) = nullptr;
  if (storage->telling == 0) std::erase(storage->hooks, nullptr);
}

}  // namespace fx
