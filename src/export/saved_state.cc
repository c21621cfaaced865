// A program's parameters, buffers and constants as an archive holds them.
//
// Tensors that share memory share it in the archive, or what is written to one, by the program or by an optimiser, is
// not seen in the other. An archive keeps what is saved apart from constants, and both apart in memory. So a view that
// no module has registered (`_tensor_constant0`) is taken in the graph of the tensor that it looks at; where that
// cannot be, both are saved.
#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <utility>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/export/program_writer.h>
#include <fxgraph/module/history.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/module/separated_memory.h>
#include <fxgraph/support/error.h>

namespace fx::pt2 {
namespace {

using Held = SavedState::Held;

/// Elements of a storage, the first and the one behind the last.
struct Region {
  std::int64_t first = 0, end = 0;

  bool covers(const Region& other) const { return first <= other.first && other.end <= end; }
  static Region of(const at::Tensor& tensor) {
    const std::int64_t offset = tensor.storage_offset();
    if (tensor.numel() == 0) return {offset, offset};
    std::int64_t last = offset;
    for (std::int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
    return {offset, last + 1};
  }
};

Argument numbers(at::IntArrayRef values) { return Argument::list(std::vector<Argument>(values.begin(), values.end())); }

class Settler {
 public:
  Settler(const GraphModule& module, Graph& graph) : module_(module), graph_(graph) {}

  std::vector<SavedState> run() {
    const at::NoGradGuard no_grad;
    collect();
    for (const Group& group : groups()) settle(group);
    std::vector<SavedState> all;
    for (State& state : states_) {
      if (!state.is_taken) all.push_back(std::move(state));
    }
    std::ranges::stable_partition(all, [](const SavedState& each) { return each.held != Held::constant; });
    return all;
  }

 private:
  struct State : SavedState {
    Region region{};
    internal::HeldTensor uses{};  ///< what the program does with it
    bool is_written = false;      ///< by the program
    bool is_reshaped = false;     ///< so that it has other sizes in the next run
    bool is_taken = false;        ///< of another in the graph
    /// No module knows it by a name.
    bool is_unregistered() const {
      const bool is_made_up = path.starts_with("_tensor_constant");
      return held == Held::constant || (held == Held::parameter && is_made_up && !tensor.is_leaf());
    }
  };
  using Group = std::vector<State*>;

  void collect() {
    const Effects effects(graph_, {.modules = module_info(module_)});
    const auto add = [&](const std::string& path, const at::Tensor& tensor, Held held) {
      if (tensor.defined()) states_.push_back(state_of(path, tensor, held, effects));
    };
    for (const auto& item : module_.named_parameters()) add(item.key(), item.value(), Held::parameter);
    for (const auto& item : module_.named_buffers()) add(item.key(), item.value(), kind_of(item.key()));
    counts_memory_ = std::ranges::any_of(states_, [](const State& each) { return each.uses.is_read_beyond; });
  }

  State state_of(const std::string& path, const at::Tensor& tensor, Held held, const Effects& effects) const {
    if (tensor.layout() != at::kStrided)
      throw Error(ErrorKind::unsupported,
                  "'" + path + "' is no dense tensor (" + c10::str(tensor.layout()) +
                      "), for which .pt2 has no words; make it dense, or save the program as .pt");
    State state{{path, tensor, held}};
    state.region = Region::of(tensor);
    for (const Node* node : graph_.find_nodes(Op::get_attr, Symbol(path))) {
      state.uses.note(*node, effects);
      for (const Effects::Set set : effects.sets(*node)) {
        for (const Node* writer : effects.writers(set)) {
          state.is_written = true;
          state.is_reshaped |= effects.of(*writer).restructures;
        }
      }
    }
    // What a run left there is a value like any other.
    if (state.is_written && internal::has_history(tensor)) state.tensor = tensor.detach();
    state.uses.path = path;
    state.uses.tensor = state.tensor;
    return state;
  }

  Held kind_of(const std::string& path) const {
    const StateKind* kind = nullptr;
    for (const Node* node : module_.graph().find_nodes(Op::get_attr, Symbol(path))) {
      if (const Meta* notes = node->find_meta()) kind = notes->get<StateKind>(kStateNote);
    }
    if (kind) return *kind == StateKind::constant ? Held::constant : Held::not_saved;
    return path.starts_with("_tensor_constant") ? Held::constant : Held::buffer;
  }

  // By storage, in order.
  std::vector<Group> groups() {
    std::vector<Group> all;
    std::map<const void*, std::size_t> known;
    for (State& state : states_) {
      if (state.tensor.is_quantized()) continue;
      const auto [place, fresh] = known.try_emplace(state.tensor.storage().unsafeGetStorageImpl(), all.size());
      if (fresh) all.emplace_back();
      all[place->second].push_back(&state);
    }
    return all;
  }

  void settle(const Group& group) {
    std::vector<internal::HeldTensor> held;
    for (const State* state : group) held.push_back(state->uses);
    if (!internal::is_read_in_one_way(held)) return part(group, held);
    std::vector<std::pair<State*, State*>> taken;
    Group kept;
    for (State* state : group) {
      State* whole = state->is_unregistered() ? whole_of(*state, group) : nullptr;
      if (whole) taken.emplace_back(state, whole);
      if (!whole) kept.push_back(state);
    }
    for (const State* state : kept) {
      refuse_history(*state);
      refuse_double(*state, kept);
    }
    const std::int64_t shift = leave_out_memory(kept);
    for (const auto& [state, whole] : taken) take(*state, *whole, shift);
    // What is saved and what is not are two memories when they are read.
    const bool is_saved = std::ranges::any_of(kept, [](const State* state) { return state->held <= Held::buffer; });
    for (State* state : kept) {
      if (is_saved && state->held != Held::parameter) state->held = Held::buffer;
      if (state->held == Held::constant && state->is_written) state->held = Held::not_saved;  // as Python wants it
    }
  }

  // The tensor that has all of its elements, and more registered names.
  static State* whole_of(const State& view, const Group& group) {
    if (view.is_reshaped) return nullptr;
    const auto found = std::ranges::find_if(group, [&](const State* state) {
      return !state->is_unregistered() && state->tensor.is_non_overlapping_and_dense() && !state->is_reshaped &&
             state->region.covers(view.region);
    });
    return found == group.end() ? nullptr : *found;
  }

  void take(State& view, const State& whole, std::int64_t shift) {
    view.is_taken = true;
    for (Node* node : graph_.find_nodes(Op::get_attr, Symbol(view.path))) {
      const auto at = graph_.inserting_before(*node);
      Node* value = &graph_.get_attr(Symbol(whole.path));
      if (whole.tensor.requires_grad() && !view.tensor.requires_grad())
        value = &graph_.call_function("aten::detach", {*value});
      value = &graph_.call_function(
          "aten::as_strided",
          {*value, numbers(view.tensor.sizes()), numbers(view.tensor.strides()), view.tensor.storage_offset() - shift});
      node->replace_all_uses_with(*value);
      graph_.erase_node(*node);
    }
  }

  // Two tensors that look alike are one when they are read.
  static void refuse_double(const State& state, const Group& group) {
    if (!state.is_reshaped) return;
    for (const State* other : group) {
      const at::Tensor &a = state.tensor, &b = other->tensor;
      if (a.is_same(b) || a.sizes() != b.sizes() || a.strides() != b.strides() ||
          a.storage_offset() != b.storage_offset())
        continue;
      throw Error(ErrorKind::unsupported, "the tensors '" + state.path + "', '" + other->path +
                                              "' are alike, and the program gives the first another shape in place; "
                                              ".pt2 has one for both: give the shape to a view of it");
    }
  }

  // Gradients would lead out of the program.
  static void refuse_history(const State& state) {
    const at::Tensor& tensor = state.tensor;
    if (!internal::has_history(tensor)) return;
    if (state.held == Held::parameter && tensor.is_view() && tensor._base().is_leaf()) return;  // is what it looks at
    internal::refuse_history(state.path);
  }

  void part(const Group& group, const std::vector<internal::HeldTensor>& held) {
    const std::vector<at::Tensor> alone = internal::separated(held, "torch.export");
    for (std::size_t i = 0; i < group.size(); ++i) {
      refuse_history(*group[i]);
      group[i]->tensor = alone[i];
      if (group[i]->held == Held::constant && group[i]->is_written) group[i]->held = Held::not_saved;
    }
  }

  // The tensors get a memory of what they need of theirs. Returns by how much they lie nearer to its start.
  std::int64_t leave_out_memory(const Group& group) const {
    if (counts_memory_ || group.empty()) return 0;
    Region all = group[0]->region;
    for (const State* state : group) {
      if (state->tensor.numel() == 0) continue;
      if (all.first == all.end) all = state->region;
      all = {std::min(all.first, state->region.first), std::max(all.end, state->region.end)};
    }
    const at::Tensor& one = group[0]->tensor;
    const auto bytes = static_cast<std::size_t>(all.end - all.first) * one.element_size();
    if (bytes == one.storage().nbytes()) return 0;
    const at::Tensor needed = one.detach().as_strided({all.end - all.first}, {1}, all.first).clone();
    std::map<const void*, at::Tensor> moved;  // one that has two names stays one
    for (State* state : group) {
      const auto [known, fresh] = moved.try_emplace(state->tensor.unsafeGetTensorImpl());
      if (fresh) {
        const at::Tensor& old = state->tensor;
        const std::int64_t offset = old.numel() == 0 ? 0 : old.storage_offset() - all.first;
        known->second = at::empty({0}, old.options()).set_(needed.storage(), offset, old.sizes(), old.strides());
        known->second.set_requires_grad(old.requires_grad());
      }
      state->tensor = known->second;
    }
    return all.first;
  }

  const GraphModule& module_;
  Graph& graph_;
  std::vector<State> states_;
  bool counts_memory_ = false;
};

}  // namespace

std::vector<SavedState> settle_state(const GraphModule& module, Graph& graph) { return Settler(module, graph).run(); }

}  // namespace fx::pt2
