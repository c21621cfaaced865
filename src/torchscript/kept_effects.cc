#include <fxgraph/torchscript/kept_effects.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/ops/call.h>

namespace fx::internal {

namespace {

using Dropped = std::optional<std::pair<const Node*, std::string>>;

/// True when an overload says that its result may share storage. Of what a container holds TorchScript assumes it.
bool says_that_it_aliases(const Node& node) {
  const auto says = [](const OperatorSchema* schema) {
    return std::ranges::any_of(schema->returns, [](const SchemaReturn& result) {
      return !result.alias.empty() || result.type.base == SchemaType::Base::other;
    });
  };
  const std::vector<const OperatorSchema*>& several = candidate_overloads(node.op(), node.target());
  if (!several.empty()) return std::ranges::any_of(several, says);
  const Call call = call_of(node);
  return !call || says(&call.schema());  // getitem and the like: they become operators that say so
}

bool is_nested_call(const Node& node) { return node.is(Op::call_function) && runs_graphs(node); }

bool is_call(const Node& node) { return node.is(Op::call_function) || node.is(Op::call_method); }

using VisitBody = std::function<void(const Graph& body, const ModuleInfo& below)>;

/// The graphs that a call runs, which LibTorch writes out in its place: that of a module, and those that a nested call
/// is given. False when one is not known.
bool for_each_body(const Node& call, const ModuleInfo& modules, const VisitBody& visit) {
  bool known = true;
  const auto look = [&](std::string_view path) {
    const std::shared_ptr<const Graph> body = modules.body ? modules.body(path) : nullptr;
    if (body) visit(*body, modules.below ? modules.below(path) : ModuleInfo());
    known &= body != nullptr;
  };
  if (call.is(Op::call_module)) {
    look(call.target().view());
  } else if (is_nested_call(call)) {
    call.for_each_input([&](const Node& input) {
      const std::string_view path = input.target().view();
      if (input.is(Op::get_attr) && !(modules.tensor && modules.tensor(path))) look(path);
    });
  }
  return known;
}

/// Shares storage with its inputs, and TorchScript takes the result for new: unsafe_chunk, dropout that does nothing.
bool hides(const Node& node, const ModuleInfo& modules) {
  bool inside = false;
  for_each_body(node, modules, [&](const Graph& body, const ModuleInfo& below) {
    for (const Node& each : body.nodes()) inside = inside || hides(each, below);
  });
  if (inside) return true;
  if (!is_call(node)) return false;
  const NodeEffects effects = effects_of(node);
  return effects.may_alias && !effects.unknown && !effects.writes && !says_that_it_aliases(node);
}

/// Writes what its schema says nothing of, as norms do that train, or modules.
bool is_untold(const Node& node, const NodeEffects& effects) {
  if (!node.is_callable() || !effects.writes) return false;
  const Call call = call_of(node);
  const auto says = [](const SchemaArgument& argument) { return argument.alias.writes; };
  return node.is(Op::call_module) || (call && std::ranges::none_of(call.schema().arguments, says));
}

/// What a call does to others, as LibTorch sees it.
struct Done {
  bool random = false;
  bool untold = false;   ///< writes that no schema tells of
  bool written = true;   ///< it may write to its operands, and says so
  bool outside = false;  ///< side effects, and what nobody knows: LibTorch keeps it
};

/// Of a nested call what its graphs do.
Done done_by(const Node& node, const NodeEffects& effects, const ModuleInfo& modules) {
  if (!is_nested_call(node)) {
    const bool untold = is_untold(node, effects);
    return {effects.random, untold, !untold, effects.side_effect || effects.unknown};
  }
  Done done{.written = false};
  done.outside = !for_each_body(node, modules, [&](const Graph& body, const ModuleInfo& below) {
    const Effects inside(body, {.modules = below});
    for (const Node& each : body.nodes()) {
      const Done one = done_by(each, inside.of(each), below);
      done.random |= one.random;
      done.untold |= one.untold;
      done.outside |= one.outside;
      const auto is_external = [&](Effects::Set set) { return inside.is_external(set); };
      done.written |= one.written && std::ranges::any_of(inside.written_sets(each), is_external);
    }
  });
  return done;
}

/// What is so, beside what TorchScript knows of it.
class WrittenEffects {
 public:
  WrittenEffects(const Graph& graph, const ModuleInfo& modules)
      : graph_(graph),
        effects_(graph, {.modules = modules}),
        hides_([&modules](const Node& node) { return hides(node, modules); }),
        told_(graph, {.modules = modules, .is_own = hides_}),
        done_(graph),
        live_(graph, false) {
    for (const Node& node : graph.nodes()) done_[node] = done_by(node, effects_.of(node), modules);
  }

  Dropped find() {
    std::vector<const Node*> hidden(effects_.num_sets(), nullptr);  // by set: what TorchScript takes for new
    for (const Node& node : graph_.nodes()) {
      if (!hides_(node)) continue;
      for (const Effects::Set set : effects_.sets(node)) hidden[set] = hidden[set] ? hidden[set] : &node;
    }
    for (Effects::Set set = 0; set < hidden.size(); ++set) {
      if (!hidden[set]) continue;
      // What was written before is forwarded as it is.
      const auto later = std::ranges::find_if(effects_.writers(set),
                                              [&](const Node* writer) { return is_missed(*writer, *hidden[set]); });
      if (later != effects_.writers(set).end()) found(**later, hidden[set]);
    }
    mark_live();
    for (const Node& node : graph_.nodes()) {
      const Done& done = done_[node];
      if (live_[node] || !(done.random || done.untold) || (first_ && !node.is_before(*first_->first))) continue;
      first_ = {&node, done.random
                           ? "nothing that comes out depends on the random numbers that it draws, so TorchScript "
                             "drops it, and later calls draw others; erase it, or return its result"
                           : "nothing that comes out depends on its result, so TorchScript drops it, with what "
                             "it writes (running statistics); erase it, or return its result"};
    }
    return first_;
  }

 private:
  static bool is_held_outside(const Node& node) { return node.is(Op::placeholder) || node.is(Op::get_attr); }

  /// Whether somebody sees the write through a tensor that TorchScript takes for another than the written one. Who
  /// reads what was written, as the cells of recurrent layers do, loses nothing.
  bool is_missed(const Node& writer, const Node& hidden) {
    if (!effects_.of(writer).writes || !hidden.is_before(writer)) return false;
    bool missed = false;
    const auto look = [&](const Node& written) {
      for (const Effects::Set set : effects_.sets(written)) {
        for (const Node* read : effects_.members(set)) {
          if (told_.may_alias(*read, written)) continue;
          missed |= is_held_outside(*read);
          for (const Node& reader : read->users()) missed |= hidden.is_before(reader);
        }
      }
    };
    for_each_written(writer, [&](const Argument& written) { for_each_node(written, look); });
    return missed;
  }

  void found(const Node& writer, const Node* alias) {
    if (first_ && !writer.is_before(*first_->first)) return;
    first_ = {&writer, "it writes to what %" + alias->name() + ", an " + alias->target().str() +
                           ", shares; TorchScript takes that for a tensor of its own, and may drop the write or what "
                           "reads it; put aten::alias in its place, or a clone"};
  }

  /// What reaches the output, the caller's tensors, or the outside.
  void mark_live() {
    std::vector<const Node*> open;
    const auto add = [&](const Node& node) {
      if (live_[node]) return;
      live_[node] = true;
      open.push_back(&node);
    };
    for (const Node& node : graph_.nodes()) {
      if (node.is(Op::output) || is_held_outside(node) || done_[node].outside) add(node);
    }
    std::vector<std::size_t> added(effects_.num_sets(), 0);  // by set: how many of its writers are live
    while (!open.empty()) {
      const Node& node = *open.back();
      open.pop_back();
      // What is written before somebody reads; of tensors that others hold, all.
      const auto add_writers = [&](const Node& value, const Node* reader) {
        for (const Effects::Set set : effects_.sets(value)) {
          const auto writers = effects_.writers(set);
          for (; added[set] < writers.size() && (!reader || writers[added[set]]->is_before(*reader)); ++added[set]) {
            if (done_[*writers[added[set]]].written) add(*writers[added[set]]);
          }
        }
      };
      if (is_held_outside(node)) add_writers(node, nullptr);
      node.for_each_input([&](const Node& input) {
        add(input);
        add_writers(input, &node);
      });
    }
  }

  const Graph& graph_;
  const Effects effects_;
  const std::function<bool(const Node&)> hides_;
  const Effects told_;
  NodeMap<Done> done_;
  NodeMap<bool> live_;
  Dropped first_;
};

/// TorchScript keeps equal constants once, and takes these for equal.
Dropped find_two_zeros(const Graph& graph) {
  const Node* negative = nullptr;
  bool positive = false;
  const auto look = [&](const Node& node, const Argument& argument, const auto& again) -> void {
    if (argument.is_float() && argument.as_float() == 0) {
      if (!std::signbit(argument.as_float())) {
        positive = true;
      } else if (!negative) {
        negative = &node;
      }
    }
    for (const Argument& element : argument.elements()) again(node, element, again);
  };
  for (const Node& node : graph.nodes()) {
    for (const Argument& argument : node.args()) look(node, argument, look);
    for (const auto& [name, argument] : node.kwargs()) look(node, argument, look);
  }
  if (!negative || !positive) return {};
  return {{negative, "TorchScript keeps 0.0 and -0.0 as one constant, and both are in the program"}};
}

}  // namespace

std::optional<std::pair<const Node*, std::string>> find_dropped_effect(const Graph& graph, const ModuleInfo& modules) {
  if (Dropped zeros = find_two_zeros(graph)) return zeros;
  return WrittenEffects(graph, modules).find();
}

}  // namespace fx::internal
