// What the engine asks about values beyond how they are computed: dtypes, sizes, whether they are constant.
#include <fxgraph/matchers/engine.h>

#include <unordered_set>

#include <fxgraph/effects/effects_of.h>

namespace fx::internal {

namespace {

bool is_device(const Device& wanted, const Device& found) {
  return wanted.type == found.type && (wanted.index < 0 || wanted.index == found.index);
}

}  // namespace

bool Engine::fits_tensor(std::uint32_t pattern, const Value& value, const Node* user) {
  const PatternNode& node = program_.node(pattern);
  const TensorTest& test = *node.tensor;
  const auto refuse = [&](TensorPart part) {
    return fail(pattern, value, user, Mismatch::tensor, static_cast<std::uint32_t>(part));
  };
  const TensorInfo* tensor = value.node ? (*options_.shapes)[*value.node].tensor() : nullptr;
  if (!tensor) return refuse(TensorPart::unknown);
  const auto code = static_cast<unsigned>(tensor->dtype);
  if ((code >= 64 || !(test.dtypes >> code & 1)) && !refuse(TensorPart::dtype)) return false;
  if (test.device && !is_device(*test.device, tensor->device) && !refuse(TensorPart::device)) return false;
  if (!test.sized) return true;
  const std::size_t rank = tensor->sizes.size();
  if (test.open < 0 ? rank != node.dims.size() : rank < node.dims.size()) return refuse(TensorPart::rank);
  for (std::size_t i = 0; i < node.dims.size(); ++i) {
    const bool after = test.open >= 0 && i >= static_cast<std::size_t>(test.open);
    made_.emplace_back(tensor->sizes[after ? rank - node.dims.size() + i : i]);
    if (!enter(node.dims[i], {nullptr, &made_.back()}, value.node)) return false;
  }
  return true;
}

namespace {

bool writes_to(const Node& user, const Node& value, const ModuleEffects& modules) {
  bool written = false;
  for_each_written(
      user,
      [&](const Argument& argument) { for_each_node(argument, [&](const Node& node) { written |= &node == &value; }); },
      modules);
  return written;
}

bool may_be(const Node& user, const Node& value, const ModuleEffects& modules) {
  bool found = false;
  for_each_aliased_input(
      user, [&](const Node& input) { found |= &input == &value; }, modules);
  return found;
}

}  // namespace

/// Marks the storages of attributes that something writes to, or that the program hands out: by the node, or by any
/// view of it, under any path. One pass along the graph.
class ChangingStorages {
 public:
  ChangingStorages(const Graph& graph, const ModuleEffects& modules) : modules_(modules) {
    for (const Node& node : graph.nodes()) {
      if (node.is(Op::get_attr)) {
        const Symbol storage = modules_.storage_of(node.target());
        if (!contains(storage) && is_changed(node, true)) changing_.insert(storage);
      }
      if (!node.is(Op::call_module) || !modules_.state) continue;
      const NodeEffects effects = effects_of(node, modules_);
      if (effects.writes || effects.unknown)
        modules_.state(node.target(), [&](Symbol storage) { changing_.insert(storage); });
    }
  }
  bool contains(Symbol storage) const { return changing_.count(storage) > 0; }
  /// Something writes to the value or a view of it; or, `kept` from run to run, the program hands it out.
  bool is_changed(const Node& made, bool kept) const {
    std::unordered_set<const Node*> seen = {&made};  // membership only
    std::vector<const Node*> open = {&made};
    while (!open.empty()) {
      const Node& value = *open.back();
      open.pop_back();
      for (const Node& user : value.users()) {
        const NodeEffects effects = effects_of(user, modules_);
        if (user.is(Op::output) && kept) return true;
        if ((effects.writes || effects.unknown) && writes_to(user, value, modules_)) return true;
        if (effects.may_alias && may_be(user, value, modules_) && seen.insert(&user).second) open.push_back(&user);
      }
    }
    return false;
  }

 private:
  const ModuleEffects& modules_;
  std::unordered_set<Symbol> changing_;  // membership only
};

// An explicit stack; a node is settled when its inputs are. Answers are kept until the graph changes.
bool Engine::is_constant(const Node& node) {
  constexpr std::uint8_t kNo = 1;
  constexpr std::uint8_t kYes = 2;
  if (constant_.size() < graph_.id_bound()) constant_.resize(graph_.id_bound());
  std::vector<const Node*> open = {&node};
  while (!open.empty()) {
    const Node& top = *open.back();
    std::uint8_t& known = constant_[top.id()];
    if (!changing_) changing_ = std::make_shared<ChangingStorages>(graph_, options_.modules);
    if (known == 0 && top.is(Op::get_attr)) {
      known = changing_->contains(options_.modules.storage_of(top.target())) ? kNo : kYes;
    }
    const NodeEffects effects = known == 0 ? effects_of(top, options_.modules) : NodeEffects{};
    if (known == 0 && (top.is(Op::placeholder) || top.is(Op::output) || effects.impure())) known = kNo;
    if (known == 0) {
      const Node* unsettled = nullptr;
      bool constant = true;
      top.for_each_input([&](const Node& input) {
        constant &= constant_[input.id()] != kNo;
        if (constant_[input.id()] == 0) unsettled = &input;
      });
      if (constant && unsettled) {
        open.push_back(unsettled);
        continue;
      }
      // A view changes with what it looks at, which is among its inputs.
      known = constant && (effects.may_alias || !changing_->is_changed(top, false)) ? kYes : kNo;
    }
    open.pop_back();
  }
  return constant_[node.id()] == kYes;
}

}  // namespace fx::internal
