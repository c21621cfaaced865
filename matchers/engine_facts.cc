// What the engine asks about values beyond how they are computed: dtypes, sizes, whether they are constant.
#include <fxgraph/matchers/engine.h>

#include <fxgraph/effects/tracked_effects.h>

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

const TrackedEffects& Engine::effects() const {
  if (followed_) {
    followed_->expect_writes();
    return *followed_;
  }
  if (!effects_) {
    const auto made = std::make_shared<TrackedEffects>(graph_, options_.modules);
    made->expect_writes();
    effects_ = made;
  }
  return *effects_;
}

// An explicit stack; a node is settled when its inputs are. Answers are kept until the graph changes.
bool Engine::is_constant(const Node& node) {
  constexpr std::uint8_t kNo = 1;
  constexpr std::uint8_t kYes = 2;
  if (constant_.size() < graph_.id_bound()) constant_.resize(graph_.id_bound());
  std::vector<const Node*> open = {&node};
  while (!open.empty()) {
    const Node& top = *open.back();
    std::uint8_t& known = constant_[top.id()];
    // From run to run an attribute keeps what is written there, and what the program hands out may be written.
    if (known == 0 && top.is(Op::get_attr))
      known = effects().is_written(top) || effects().is_returned(top) ? kNo : kYes;
    const NodeEffects effects = known == 0 ? this->effects().of(top) : NodeEffects{};
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
      known = constant && (effects.may_alias || !this->effects().is_written(top)) ? kYes : kNo;
    }
    open.pop_back();
  }
  return constant_[node.id()] == kYes;
}

}  // namespace fx::internal
