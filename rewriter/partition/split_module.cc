// Partitions are numbered by first appearance. One pass over the nodes finds what each takes and gives and who waits
// for whom; the order is Kahn's, the first in the graph first; a second pass copies.
#include <fxgraph/rewriter/partition/split_module.h>

#include <algorithm>
#include <map>
#include <queue>
#include <utility>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/ir/definition_order.h>
#include <fxgraph/ir/graph_order.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/ops/argument_type.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/ops/records/python_types.h>
#include <fxgraph/rewriter/partition/attribute_of.h>
#include <fxgraph/support/error.h>
#include <fxgraph/support/flat_map.h>

namespace fx {
namespace {

using PartIndex = std::uint32_t;
constexpr PartIndex kMain = ~PartIndex{0};

// What is noted of a value is noted of the input of a part that stands for it, but for what tells how the value came to
// be, or what it is to the whole program: sizes, examples and forms of inputs, what was transformed or quantized.
void copy_notes(const Node& value, Node& input) {
  static const Symbol kOfTheWhole[] = {
      "sizes",       "example",         "val",           "tree_spec",        "keyword", "state", "traced_body",
      "transformed", "source_fn_stack", "quantize_path", "quantize_operator"};
  const Meta* notes = value.find_meta();
  if (!notes || notes->empty()) return;
  input.meta() = *notes;
  for (const Symbol& key : kOfTheWhole) input.meta().erase(key);
}

// What a saved part takes: an input of no type is a tensor.
void note_type(Node& value, Node& input) {
  if (input.meta().get<std::string>(meta_key::kType)) return;
  const auto text = [](const internal::ArgumentType& kind) { return std::string(internal::annotation_of(kind)); };
  std::string type;
  if (const Call call = call_of(value); call && call.schema().returns.size() > 1) {
    for (const SchemaReturn& each : call.schema().returns)
      type += (type.empty() ? "Tuple[" : ", ") + text({each.type.base, each.type.list});
    type += "]";
  } else {
    type = text(internal::argument_type(Argument(value)));
  }
  if (!type.empty() && type != "Tensor" && type != "number") input.meta().set(meta_key::kType, std::move(type));
}

/// Why `to` waits for `from`.
struct Edge {
  PartIndex from;
  const Node* source;
  const Node* reached;
};

struct Part {
  std::int64_t id = 0;
  const Node* stays = nullptr;    // a call that stays in the program; the rest but `waits_for` is empty then
  std::vector<Node*> inputs;      // placeholders and results of other parts
  std::vector<Node*> attributes;  // get_attr nodes
  std::vector<Node*> outputs;
  std::vector<Edge> waits_for;
  std::vector<PartIndex> wait_for_it;
  std::optional<Graph> graph;
  Node* call = nullptr;  // in the main graph
};

class Splitter {
 public:
  Splitter(const GraphModule& module, const SplitOptions& options)
      : module_(module), graph_(module.graph()), options_(options), part_of_(graph_, kMain), main_values_(graph_) {}

  std::shared_ptr<GraphModule> run(const std::function<std::int64_t(const Node&)>& partition_of) {
    assign(partition_of);
    find_values();
    find_order_edges();
    const std::vector<PartIndex> order = sorted();
    fill_parts();
    return assemble(order);
  }

 private:
  std::string path_of(const Part& part) const {
    return options_.name ? options_.name(part.id) : "submod_" + std::to_string(part.id);
  }
  static std::string number_of(const Part& part) { return part.stays ? "outside" : std::to_string(part.id); }

  void assign(const std::function<std::int64_t(const Node&)>& partition_of) {
    std::map<std::int64_t, PartIndex> index_of;
    for (const Node& node : graph_.nodes()) {
      if (!node.is_callable()) continue;
      if (options_.stays && options_.stays(node)) {
        part_of_[node] = static_cast<PartIndex>(parts_.size());
        parts_.emplace_back().stays = &node;
        continue;
      }
      const auto [at, is_new] = index_of.emplace(partition_of(node), static_cast<PartIndex>(parts_.size()));
      if (is_new) parts_.emplace_back().id = at->first;
      part_of_[node] = at->second;
    }
  }

  // True once for each pair.
  bool is_new(PartIndex part, const Node& node) {
    return std::exchange(seen_[(std::uint64_t{part} << 32) | node.id()], 1) == 0;
  }

  void find_values() {
    for (const Node& node : graph_.nodes()) {
      const PartIndex part = part_of_[node];
      node.for_each_input([&](Node& input) {
        if (part == part_of_[input] || !is_new(part, input)) return;
        if (part_of_[input] != kMain) give(input, part, node);
        if (part != kMain && !parts_[part].stays)
          (input.is(Op::get_attr) ? parts_[part].attributes : parts_[part].inputs).push_back(&input);
      });
    }
    for (Part& part : parts_) {
      std::sort(part.inputs.begin(), part.inputs.end(), GraphOrder{});
      std::sort(part.attributes.begin(), part.attributes.end(), GraphOrder{});
      std::sort(part.outputs.begin(), part.outputs.end(), GraphOrder{});
      part.outputs.erase(std::unique(part.outputs.begin(), part.outputs.end()), part.outputs.end());
    }
  }

  void give(Node& value, PartIndex to, const Node& user) {
    const PartIndex from = part_of_[value];
    if (!parts_[from].stays) parts_[from].outputs.push_back(&value);
    if (to != kMain) wait(from, to, value, user);
  }

  void wait(PartIndex from, PartIndex to, const Node& source, const Node& reached) {
    parts_[to].waits_for.push_back({from, &source, &reached});
    parts_[from].wait_for_it.push_back(to);
  }

  void find_order_edges() {
    const Effects effects(module_);
    const OrderEdges edges = effects.order_edges();
    for (const Node& node : graph_.nodes()) {
      for (const Node* before : edges.before(node)) {
        const PartIndex from = part_of_[*before], to = part_of_[node];
        if (from != to && from != kMain && to != kMain) wait(from, to, *before, node);
      }
    }
  }

  std::vector<PartIndex> sorted() const {
    std::vector<std::size_t> waiting(parts_.size());
    std::priority_queue<PartIndex, std::vector<PartIndex>, std::greater<>> ready;
    for (PartIndex i = 0; i < parts_.size(); ++i) {
      waiting[i] = parts_[i].waits_for.size();
      if (waiting[i] == 0) ready.push(i);
    }
    std::vector<PartIndex> order;
    while (!ready.empty()) {
      order.push_back(ready.top());
      ready.pop();
      for (const PartIndex next : parts_[order.back()].wait_for_it) {
        if (--waiting[next] == 0) ready.push(next);
      }
    }
    if (order.size() < parts_.size()) refuse(waiting);
    return order;
  }

  // Every part that is left waits for another that is left: going back comes round.
  [[noreturn]] void refuse(const std::vector<std::size_t>& waiting) const {
    const auto is_left = [&](const Edge& edge) { return waiting[edge.from] > 0; };
    std::vector<bool> visited(parts_.size());
    std::vector<const Edge*> way;
    auto at =
        static_cast<PartIndex>(std::ranges::find_if(waiting, [](std::size_t n) { return n > 0; }) - waiting.begin());
    while (!visited[at]) {
      visited[at] = true;
      const Edge& edge = *std::ranges::find_if(parts_[at].waits_for, is_left);
      way.push_back(&edge);
      at = edge.from;
    }
    // `at` was met before: what came before that is not part of the circle.
    while (part_of_[*way.front()->reached] != at) way.erase(way.begin());
    std::string text;
    for (auto edge = way.rbegin(); edge != way.rend(); ++edge) {
      text += (text.empty() ? "" : ", ") + ("%" + (*edge)->source->name()) + " (" + number_of(parts_[(*edge)->from]) +
              ") before %" + (*edge)->reached->name() + " (" + number_of(parts_[part_of_[*(*edge)->reached]]) + ")";
    }
    throw Error(ErrorKind::invalid_argument,
                "split_module: partitions would have to wait for each other: " + text +
                    "; put these nodes into one partition, or cut it in two",
                way.back()->source->name());
  }

  void fill_parts() {
    std::vector<FlatMap<Node*>> values(parts_.size());  // by id in the whole graph
    for (PartIndex i = 0; i < parts_.size(); ++i) {
      Part& part = parts_[i];
      if (part.stays) continue;
      part.graph.emplace();
      for (std::size_t k = 0; k < part.inputs.size(); ++k) {
        Node& input = *part.inputs[k];
        Node& made =
            part.graph->placeholder(options_.keep_original_input_names ? input.name() : "arg_" + std::to_string(k));
        copy_notes(input, made);
        note_type(input, made);
        values[i][input.id()] = &made;
      }
      for (const Node* attribute : part.attributes)
        values[i][attribute->id()] = &part.graph->node_copy(*attribute, [](Node&) { return Argument(); });
    }
    for (const Node& node : graph_.nodes()) {
      if (!node.is_callable()) continue;
      const PartIndex i = part_of_[node];
      if (parts_[i].stays) continue;
      values[i][node.id()] =
          &parts_[i].graph->node_copy(node, [&](Node& input) { return Argument(*values[i].find(input.id())); });
    }
    for (PartIndex i = 0; i < parts_.size(); ++i) {
      if (parts_[i].stays) continue;
      std::vector<Argument> results;
      for (const Node* output : parts_[i].outputs) results.emplace_back(*values[i].find(output->id()));
      const bool one = results.size() == 1 && !options_.tuple_return;
      parts_[i].graph->output(results.empty() ? Argument() : one ? results[0] : Argument::tuple(results));
    }
  }

  std::shared_ptr<GraphModule> assemble(const std::vector<PartIndex>& order) {
    const std::function<Argument(Node&)> value_of = [&](Node& input) { return main_values_[input]; };
    Graph main;
    for (const Node* placeholder : graph_.placeholders()) {
      main_values_[*placeholder] = main.node_copy(*placeholder, value_of);
    }
    GraphModule::Attributes attributes;
    for (const PartIndex i : order) {
      Part& part = parts_[i];
      if (part.stays) {
        copy_to_main(*part.stays, main, attributes);
        continue;
      }
      std::vector<Argument> inputs;
      for (Node* input : part.inputs) inputs.push_back(main_values_[*input]);
      call(part, main.call_module(path_of(part), inputs));
      note_paths(part);
      std::shared_ptr<torch::nn::Module> made =
          std::make_shared<GraphModule>(module_, std::move(*part.graph), path_of(part));
      attributes.emplace_back(path_of(part), std::move(made));
    }
    if (const Node* output = graph_.output_node()) {
      copy_to_main(*output, main, attributes);
    }
    auto result = std::make_shared<GraphModule>(attributes, std::move(main), module_.class_name());
    result->take_mode(module_);
    return result;
  }

  // With the attributes that it reads.
  void copy_to_main(const Node& node, Graph& main, GraphModule::Attributes& attributes) {
    const std::function<Argument(Node&)> value_of = [&](Node& input) { return main_values_[input]; };
    node.for_each_input([&](Node& input) {
      if (!input.is(Op::get_attr) || !main_values_[input].is_none()) return;
      main_values_[input] = main.node_copy(input, value_of);
      attributes.emplace_back(input.target().str(), attribute_of(module_, input));
    });
    Node& copy = main.node_copy(node, value_of);
    if (node.is(Op::output)) return;
    main_values_[node] = copy;
    if (node.is(Op::call_module)) attributes.emplace_back(node.target().str(), attribute_of(module_, node));
  }

  // Gives the main graph what the part returns.
  void call(const Part& part, Node& node) {
    if (part.outputs.size() == 1 && !options_.tuple_return) {
      main_values_[*part.outputs[0]] = node;
      return;
    }
    for (std::size_t i = 0; i < part.outputs.size(); ++i) {
      main_values_[*part.outputs[i]] = node.graph().call_function(
          python::kGetItem, {node, static_cast<std::int64_t>(i)}, {}, part.outputs[i]->name());
    }
  }

  void note_paths(const Part& part) const {
    if (!options_.module_paths) return;
    for (const Node* node : part.graph->find_nodes(Op::call_module))
      options_.module_paths->emplace_back(path_of(part) + "." + node->target().str(), node->target().str());
  }

  const GraphModule& module_;
  const Graph& graph_;
  const SplitOptions& options_;
  NodeMap<PartIndex> part_of_;
  NodeMap<Argument> main_values_;
  std::vector<Part> parts_;
  FlatMap<char> seen_;
};

}  // namespace

std::shared_ptr<GraphModule> split_module(const GraphModule& module,
                                          const std::function<std::int64_t(const Node&)>& partition_of,
                                          const SplitOptions& options) {
  if (!partition_of) {
    throw Error(ErrorKind::invalid_argument,
                "split_module: the function that says each node's partition is empty; give one");
  }
  require_definitions_before_uses(module.graph());
  return Splitter(module, options).run(partition_of);
}

}  // namespace fx
