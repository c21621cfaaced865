#include <fxgraph/module/scripted_bodies.h>

#include <torch/csrc/jit/api/module.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <fxgraph/module/inline_bodies.h>
#include <fxgraph/nn/leaf_module.h>
#include <fxgraph/support/error.h>

namespace fx::internal {

namespace {

/// What the calls of a leaf have in common.
struct CallForm {
  int rank = -1;           ///< of the input
  bool has_state = false;  ///< a second argument
  friend bool operator==(const CallForm&, const CallForm&) = default;
};

class RecurrentBody {
 public:
  RecurrentBody(const LeafModule& leaf, CallForm form)
      : leaf_(leaf), form_(form), lstm_(leaf.type_name() == "LSTM"), batch_first_(flag("batch_first")) {
    directions_ = flag("bidirectional") ? 2 : 1;
    layers_ = leaf.script()->attr("num_layers").toInt();
  }

  std::shared_ptr<const Graph> make() {
    const std::int64_t batch = batch_first_ && form_.rank == 3 ? 0 : 1;
    Node* x = &graph_.placeholder("input");
    Node* given = form_.has_state ? &graph_.placeholder("hx") : nullptr;
    if (form_.rank == 2) x = &call("aten::unsqueeze", {*x, std::int64_t{batch_first_ ? 0 : 1}});
    Node& size = call("aten::size.int", {*x, form_.rank == 2 ? std::int64_t{batch_first_ ? 0 : 1} : batch});
    const Argument states =
        lstm_ ? Argument::list(std::vector<Argument>{state(given, 0, *x, size), state(given, 1, *x, size)})
              : state(given, -1, *x, size);
    Node& all = call(lstm_ ? "aten::lstm.input" : "aten::gru.input",
                     {*x, states, Argument::list(parameters()), flag("bias"), layers_,
                      leaf_.script()->attr("dropout").toDouble(), false, directions_ == 2, batch_first_});
    const Argument made = result(all, 0, batch_first_ ? 0 : 1);
    const Argument hidden = result(all, 1, 1);
    const Argument kept = lstm_ ? Argument::tuple(std::vector<Argument>{hidden, result(all, 2, 1)}) : hidden;
    graph_.output(Argument::tuple(std::vector<Argument>{made, kept}));
    return std::make_shared<Graph>(std::move(graph_));
  }

 private:
  Node& call(const char* target, const std::vector<Argument>& args) { return graph_.call_function(target, args); }
  bool flag(const char* name) const { return leaf_.script()->attr(name).toBool(); }

  Argument state(Node* given, std::int64_t which, Node& x, Node& size) {
    if (given) {
      Node& part = which < 0 ? *given : call("operator.getitem", {*given, which});
      return form_.rank == 2 ? call("aten::unsqueeze", {part, std::int64_t{1}}) : part;
    }
    const std::int64_t projected = leaf_.script()->attr("proj_size", std::int64_t{0}).toInt();
    const std::int64_t width = which < 1 && projected > 0 ? projected : leaf_.script()->attr("hidden_size").toInt();
    return call("aten::new_zeros", {x, Argument::list(std::vector<Argument>{layers_ * directions_, size, width})});
  }

  Argument result(Node& all, std::int64_t which, std::int64_t batch) {
    Node& part = call("operator.getitem", {all, which});
    return form_.rank == 2 ? call("aten::squeeze.dim", {part, batch}) : part;
  }

  std::vector<Argument> parameters() {
    std::vector<Argument> all;
    for (std::int64_t layer = 0; layer < layers_; ++layer) {
      for (int direction = 0; direction < directions_; ++direction) {
        const std::string end = "_l" + std::to_string(layer) + (direction ? "_reverse" : "");
        for (const char* stem : {"weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr"}) {
          if (leaf_.find_tensor(stem + end).defined()) all.push_back(graph_.get_attr(stem + end));
        }
      }
    }
    return all;
  }

  const LeafModule& leaf_;
  CallForm form_;
  bool lstm_, batch_first_;
  int directions_ = 1;
  std::int64_t layers_ = 1;
  Graph graph_;
};

std::shared_ptr<const Graph> instance_norm_body(const LeafModule& leaf) {
  Graph graph;
  Node& x = graph.placeholder("input");
  const auto tensor = [&](const char* name) {
    return leaf.find_tensor(name).defined() ? Argument(graph.get_attr(name)) : Argument();
  };
  const torch::jit::Module& script = *leaf.script();
  const bool tracked = script.attr("track_running_stats").toBool();
  const Argument weight = tensor("weight"), bias = tensor("bias"), mean = tensor("running_mean"),
                 variance = tensor("running_var");
  const std::vector<Argument> args = {
      x,   weight, bias, mean, variance, !tracked, script.attr("momentum").toDouble(), script.attr("eps").toDouble(),
      true};
  graph.output(graph.call_function("aten::instance_norm", args));
  return std::make_shared<Graph>(std::move(graph));
}

std::shared_ptr<const Graph> cell_body(const LeafModule& leaf, CallForm form) {
  Graph graph;
  const bool lstm = leaf.type_name() == "LSTMCell";
  const auto call = [&](const char* target, const std::vector<Argument>& args) -> Node& {
    return graph.call_function(target, args);
  };
  Node* x = &graph.placeholder("input");
  Node* given = form.has_state ? &graph.placeholder("hx") : nullptr;
  if (form.rank == 1) x = &call("aten::unsqueeze", {*x, std::int64_t{0}});
  Node& size = call("aten::size.int", {*x, std::int64_t{0}});
  const std::int64_t width = leaf.script()->attr("hidden_size").toInt();
  const auto state = [&](std::int64_t which) -> Argument {
    if (!given) return call("aten::new_zeros", {*x, Argument::list(std::vector<Argument>{size, width})});
    Node& part = lstm ? call("operator.getitem", {*given, which}) : *given;
    return form.rank == 1 ? call("aten::unsqueeze", {part, std::int64_t{0}}) : part;
  };
  const Argument hidden = lstm ? Argument::list(std::vector<Argument>{state(0), state(1)}) : state(0);
  std::vector<Argument> args = {*x, hidden};
  for (const char* name : {"weight_ih", "weight_hh", "bias_ih", "bias_hh"})
    args.push_back(leaf.find_tensor(name).defined() ? Argument(graph.get_attr(name)) : Argument());
  Node& made = call(lstm ? "aten::lstm_cell" : "aten::gru_cell", args);
  const auto result = [&](Node& value) -> Argument {
    return form.rank == 1 ? call("aten::squeeze.dim", {value, std::int64_t{0}}) : value;
  };
  if (lstm) {
    const Argument h = result(call("operator.getitem", {made, std::int64_t{0}})),
                   c = result(call("operator.getitem", {made, std::int64_t{1}}));
    graph.output(Argument::tuple(std::vector<Argument>{h, c}));
  } else {
    graph.output(result(made));
  }
  return std::make_shared<Graph>(std::move(graph));
}

// torch.nn.functional.embedding_bag: a matrix of indices is one bag a row.
std::shared_ptr<const Graph> bag_body(const LeafModule& leaf, CallForm form) {
  const torch::jit::Module& script = *leaf.script();
  const std::string mode = script.attr("mode").toStringRef();
  if (form.has_state == (form.rank == 2) || !script.attr("max_norm", c10::IValue()).isNone()) return nullptr;
  Graph graph;
  const auto call = [&](const char* target, const std::vector<Argument>& args) -> Node& {
    return graph.call_function(target, args);
  };
  Node* indices = &graph.placeholder("input");
  Node* offsets = form.has_state ? &graph.placeholder("offsets") : nullptr;
  if (!offsets) {
    Node& width = call("aten::size.int", {*indices, std::int64_t{1}});
    Node& all = call("aten::numel", {*indices});
    offsets = &graph.call_function("aten::arange.start_step", std::vector<Argument>{std::int64_t{0}, all, width},
                                   std::vector<NamedArgument>{{Symbol("dtype"), DType::int64}});
    indices = &call("aten::reshape", {*indices, Argument::list(std::vector<Argument>{std::int64_t{-1}})});
  }
  const c10::IValue padding = script.attr("padding_idx", c10::IValue());
  Node& made = call("aten::embedding_bag.padding_idx",
                    {graph.get_attr("weight"), *indices, *offsets, script.attr("scale_grad_by_freq").toBool(),
                     std::int64_t{mode == "sum"    ? 0
                                  : mode == "mean" ? 1
                                                   : 2},
                     script.attr("sparse").toBool(), Argument(), script.attr("include_last_offset").toBool(),
                     padding.isInt() ? Argument(padding.toInt()) : Argument()});
  graph.output(call("operator.getitem", {made, std::int64_t{0}}));
  return std::make_shared<Graph>(std::move(graph));
}

std::shared_ptr<const Graph> scripted_body(const LeafModule& leaf, CallForm form) {
  const std::string& type = leaf.type_name();
  if (type == "LSTM" || type == "GRU")
    return form.rank == 2 || form.rank == 3 ? RecurrentBody(leaf, form).make() : nullptr;
  if (type == "LSTMCell" || type == "GRUCell")
    return form.rank == 1 || form.rank == 2 ? cell_body(leaf, form) : nullptr;
  if (type == "EmbeddingBag") return form.rank == 1 || form.rank == 2 ? bag_body(leaf, form) : nullptr;
  const bool batched = form.rank == type[type.size() - 2] - '0' + 2;  // InstanceNorm2d: images
  return batched && !form.has_state ? instance_norm_body(leaf) : nullptr;
}

std::shared_ptr<LeafModule> scripted_leaf(const GraphModule& module, const Node& node) {
  if (!node.is(Op::call_module) || !node.kwargs().empty() || node.args().empty() || node.args().size() > 2)
    return nullptr;
  auto leaf = std::dynamic_pointer_cast<LeafModule>(module.find_submodule(node.target().str()));
  if (!leaf || !leaf->script() || leaf->body()) return nullptr;
  const std::string& type = leaf->type_name();
  const bool known = type == "LSTM" || type == "GRU" || type == "LSTMCell" || type == "GRUCell" ||
                     type == "EmbeddingBag" || type == "InstanceNorm1d" || type == "InstanceNorm2d" ||
                     type == "InstanceNorm3d";
  return known && leaf->qualified_name().find("torch.nn.modules.") != std::string::npos ? leaf : nullptr;
}

}  // namespace

void write_out_traced_leaves(GraphModule& module) {
  try {
    if (auto graph = inline_traced_bodies(module)) module.set_graph(std::move(*graph));
  } catch (const Error&) {
    // They stay calls.
  }
}

bool has_scripted_leaves(const GraphModule& module) {
  for (const Node& node : module.graph().nodes()) {
    if (scripted_leaf(module, node)) return true;
  }
  return false;
}

ModuleBodies scripted_bodies(const GraphModule& module, const Shapes& shapes) {
  std::map<std::string, std::pair<std::shared_ptr<LeafModule>, std::vector<const Node*>>> calls;
  for (const Node& node : module.graph().nodes()) {
    const std::shared_ptr<LeafModule> leaf = scripted_leaf(module, node);
    if (!leaf || leaf->is_training()) continue;
    auto& known = calls[node.target().str()];
    known.first = leaf;
    known.second.push_back(&node);
  }
  ModuleBodies bodies;
  for (const auto& [path, leaf_and_calls] : calls) {
    std::vector<CallForm> forms;
    for (const Node* node : leaf_and_calls.second) {
      const Node* input = node->arg(0).node_or_null();
      const TensorInfo* info = input ? shapes[*input].tensor() : nullptr;
      const bool has_state = node->args().size() == 2 && !node->arg(1).is_none();
      const bool drops_none = node->args().size() == 2 && !has_state;  // the body would take one argument less
      forms.push_back({info && !drops_none ? static_cast<int>(info->sizes.size()) : -1, has_state});
    }
    if (!std::ranges::all_of(forms, [&](const CallForm& each) { return each == forms[0]; })) continue;
    if (auto body = scripted_body(*leaf_and_calls.first, forms[0])) bodies.emplace(path, std::move(body));
  }
  return bodies;
}

}  // namespace fx::internal
