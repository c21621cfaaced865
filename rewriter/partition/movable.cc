// Storage that the program writes, or that a caller gets back as a view of what it gave, must stay one storage: a value
// that lies in it may be read where it is, but not be made by somebody who may copy. So must what somebody reads by its
// strides.
#include <map>
#include <memory>
#include <set>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/rewriter/layout_checks.h>
#include <fxgraph/rewriter/partition/lower.h>

namespace fx {
namespace {

class Movable {
 public:
  explicit Movable(const GraphModule& module) : module_(module), effects_(module), pinned_(effects_.num_sets()) {
    for (Effects::Set set = 0; set < pinned_.size(); ++set) {
      if (!effects_.writers(set).empty()) pinned_[set] = "%" + effects_.writers(set).front()->name() + " writes to";
    }
    pin_what_callers_see();
    note_written_attributes();
    note_layout_readers();
  }

  std::optional<std::string> why_not(const Node& node) const {
    const NodeEffects& effects = effects_.of(node);
    if (effects.unknown) return "what it does is not known";
    if (effects_.writes(node)) return "it writes to what it is given";
    if (effects.random) return "it draws random numbers";
    if (effects.side_effect) return "it has a side effect";
    if (auto why = pinned(node)) return "its result may share storage that " + *why;
    if (internal::reads_layout(node)) return "it reads how its input lies in memory";
    for (const Effects::Set set : effects_.sets(node)) {
      if (const Node* reader = layout_reader_[set])
        return "%" + reader->name() + " reads how its result lies in memory";
    }
    std::optional<std::string> why;
    node.for_each_input([&](const Node& input) {
      if (input.is(Op::get_attr) && !why && pinned(input))
        why = "it reads " + input.target().str() + ", which " + *pinned(input);
    });
    if (!why && node.is(Op::call_module) && reads_written(node)) why = "it reads a tensor that the program writes to";
    return why;
  }

 private:
  std::optional<std::string> pinned(const Node& node) const {
    for (const Effects::Set set : effects_.sets(node)) {
      if (!pinned_[set].empty()) return pinned_[set];
    }
    return std::nullopt;
  }

  // A result that is a view of an input or a weight, and two results that share storage: a caller's write to one shows
  // in the other.
  void pin_what_callers_see() {
    const Node* output = module_.graph().output_node();
    if (!output) return;
    std::map<Effects::Set, std::size_t> returned;
    output->for_each_input([&](const Node& value) {
      for (const Effects::Set set : effects_.sets(value)) {
        if (++returned[set] > 1 || effects_.is_external(set))
          if (pinned_[set].empty()) pinned_[set] = "the caller gets to see";
      }
    });
  }

  void note_written_attributes() {
    for (const Node& node : module_.graph().nodes()) {
      if (!node.is(Op::get_attr) || !pinned(node)) continue;
      const torch::Tensor tensor = module_.find_attribute(node.target().str());
      if (tensor.defined() && tensor.has_storage()) written_.insert(tensor.storage().unsafeGetStorageImpl());
    }
  }

  void note_layout_readers() {
    layout_reader_.resize(effects_.num_sets());
    for (const Node& node : module_.graph().nodes()) {
      if (!node.is_callable() || !internal::reads_layout(node)) continue;
      node.for_each_input([&](const Node& input) {
        for (const Effects::Set set : effects_.sets(input)) layout_reader_[set] = &node;
      });
    }
  }

  bool reads_written(const Node& node) const {
    if (written_.empty()) return false;
    const auto called = module_.find_submodule(node.target().str());
    if (!called) return false;
    for (const auto& tensors : {called->parameters(), called->buffers()}) {
      for (const torch::Tensor& tensor : tensors) {
        if (tensor.defined() && tensor.has_storage() && written_.contains(tensor.storage().unsafeGetStorageImpl()))
          return true;
      }
    }
    return false;
  }

  const GraphModule& module_;
  Effects effects_;
  std::vector<std::string> pinned_;         // by set: why, or empty
  std::vector<const Node*> layout_reader_;  // by set: a call that reads how it lies in memory, or null
  std::set<const void*> written_;
};

}  // namespace

std::function<std::optional<std::string>(const Node&)> why_not_movable(const GraphModule& module) {
  auto movable = std::make_shared<const Movable>(module);
  return [movable](const Node& node) { return movable->why_not(node); };
}

}  // namespace fx
