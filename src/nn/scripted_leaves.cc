#include <fxgraph/nn/scripted_leaves.h>

#include <torch/csrc/jit/api/module.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/nn/leaf_module.h>
#include <fxgraph/ops/python_symbols.h>

namespace fx::internal {
namespace {

class RecurrentLeaf {
 public:
  RecurrentLeaf(const LeafModule& leaf, CallForm form, bool lstm)
      : leaf_(leaf), form_(form), lstm_(lstm), batch_first_(flag("batch_first")) {
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
  Node& call(Symbol target, const std::vector<Argument>& args) { return graph_.call_function(target, args); }
  bool flag(const char* name) const { return leaf_.script()->attr(name).toBool(); }

  Argument state(Node* given, std::int64_t which, Node& x, Node& size) {
    if (given) {
      Node& part = which < 0 ? *given : call(python::kGetItem, {*given, which});
      return form_.rank == 2 ? call("aten::unsqueeze", {part, std::int64_t{1}}) : part;
    }
    const std::int64_t projected = leaf_.script()->attr("proj_size", std::int64_t{0}).toInt();
    const std::int64_t width = which < 1 && projected > 0 ? projected : leaf_.script()->attr("hidden_size").toInt();
    return call("aten::new_zeros", {x, Argument::list(std::vector<Argument>{layers_ * directions_, size, width})});
  }

  Argument result(Node& all, std::int64_t which, std::int64_t batch) {
    Node& part = call(python::kGetItem, {all, which});
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

std::shared_ptr<const Graph> instance_norm_of(const LeafModule& leaf) {
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

std::shared_ptr<const Graph> cell_of(const LeafModule& leaf, CallForm form, bool lstm) {
  Graph graph;
  const auto call = [&](Symbol target, const std::vector<Argument>& args) -> Node& {
    return graph.call_function(target, args);
  };
  Node* x = &graph.placeholder("input");
  Node* given = form.has_state ? &graph.placeholder("hx") : nullptr;
  if (form.rank == 1) x = &call("aten::unsqueeze", {*x, std::int64_t{0}});
  Node& size = call("aten::size.int", {*x, std::int64_t{0}});
  const std::int64_t width = leaf.script()->attr("hidden_size").toInt();
  const auto state = [&](std::int64_t which) -> Argument {
    if (!given) return call("aten::new_zeros", {*x, Argument::list(std::vector<Argument>{size, width})});
    Node& part = lstm ? call(python::kGetItem, {*given, which}) : *given;
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
    const Argument h = result(call(python::kGetItem, {made, std::int64_t{0}})),
                   c = result(call(python::kGetItem, {made, std::int64_t{1}}));
    graph.output(Argument::tuple(std::vector<Argument>{h, c}));
  } else {
    graph.output(result(made));
  }
  return std::make_shared<Graph>(std::move(graph));
}

std::shared_ptr<const Graph> recurrent_leaf(const LeafModule& leaf, CallForm form, bool lstm) {
  return form.rank == 2 || form.rank == 3 ? RecurrentLeaf(leaf, form, lstm).make() : nullptr;
}

std::shared_ptr<const Graph> cell_leaf(const LeafModule& leaf, CallForm form, bool lstm) {
  return form.rank == 1 || form.rank == 2 ? cell_of(leaf, form, lstm) : nullptr;
}

}  // namespace

std::shared_ptr<const Graph> lstm_leaf(const LeafModule& leaf, CallForm form) {
  return recurrent_leaf(leaf, form, true);
}

std::shared_ptr<const Graph> gru_leaf(const LeafModule& leaf, CallForm form) {
  return recurrent_leaf(leaf, form, false);
}

std::shared_ptr<const Graph> lstm_cell_leaf(const LeafModule& leaf, CallForm form) {
  return cell_leaf(leaf, form, true);
}

std::shared_ptr<const Graph> gru_cell_leaf(const LeafModule& leaf, CallForm form) {
  return cell_leaf(leaf, form, false);
}

// torch.nn.functional.embedding_bag: a matrix of indices is one bag a row.
std::shared_ptr<const Graph> embedding_bag_leaf(const LeafModule& leaf, CallForm form) {
  if (form.rank != 1 && form.rank != 2) return nullptr;
  const torch::jit::Module& script = *leaf.script();
  const std::string mode = script.attr("mode").toStringRef();
  if (form.has_state == (form.rank == 2) || !script.attr("max_norm", c10::IValue()).isNone()) return nullptr;
  Graph graph;
  const auto call = [&](Symbol target, const std::vector<Argument>& args) -> Node& {
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
  graph.output(call(python::kGetItem, {made, std::int64_t{0}}));
  return std::make_shared<Graph>(std::move(graph));
}

std::shared_ptr<const Graph> instance_norm_leaf(const LeafModule& leaf, CallForm form, int dims) {
  return form.rank == dims + 2 && !form.has_state ? instance_norm_of(leaf) : nullptr;
}

}  // namespace fx::internal
