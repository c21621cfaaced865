// What the engine asks about values beyond how they are computed: dtypes, sizes, whether they are constant.
#include <fxgraph/matchers/engine.h>
#include <fxgraph/ops/effects.h>

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
  if (!(test.dtypes >> static_cast<unsigned>(tensor->dtype) & 1) && !refuse(TensorPart::dtype)) return false;
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

/// True when nothing that uses the attribute writes to it. A write through a view of it is not seen.
bool is_never_written(const Node& attribute) {
  for (const Node& user : attribute.users()) {
    if (!effects_of(user).writes) continue;
    bool written = false;
    for_each_written(user, [&](const Argument& argument) {
      for_each_node(argument, [&](const Node& node) { written |= &node == &attribute; });
    });
    if (written) return false;
  }
  return true;
}

}  // namespace

// An explicit stack; a node is settled when its inputs are. Answers are kept until the graph changes.
bool Engine::is_constant(const Node& node) {
  constexpr std::uint8_t kNo = 1;
  constexpr std::uint8_t kYes = 2;
  if (constant_.size() < graph_.id_bound()) constant_.resize(graph_.id_bound());
  std::vector<const Node*> open = {&node};
  while (!open.empty()) {
    const Node& top = *open.back();
    std::uint8_t& known = constant_[top.id()];
    if (known == 0 && top.is(Op::get_attr)) known = is_never_written(top) ? kYes : kNo;
    if (known == 0 && (top.is(Op::placeholder) || top.is(Op::output) || effects_of(top).impure())) known = kNo;
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
      known = constant ? kYes : kNo;
    }
    open.pop_back();
  }
  return constant_[node.id()] == kYes;
}

}  // namespace fx::internal
