#include <fxgraph/analysis/cost.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include <fxgraph/contract/called_shapes.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/ops/records/costs.h>
#include <fxgraph/ops/schema.h>
#include <fxgraph/support/flat_map.h>

namespace fx {

namespace {

/// The modules by path, and their costs added up from the nodes.
class ModuleTree {
 public:
  ModuleTree() { add_module("", 0, 0); }

  void add(std::string_view path, const NodeCost& cost) {
    for (int module = find(path); module >= 0; module = parents_[static_cast<std::size_t>(module)]) {
      ModuleCost& m = modules_[static_cast<std::size_t>(module)];
      m.cost += cost;
      ++m.nodes;
    }
  }
  /// What lies in one storage counts at most as that in each module: tied weights once, parts of a storage each.
  void add_parameter(std::string_view path, const TensorInfo& tensor) {
    for (int module = find(path); module >= 0; module = parents_[static_cast<std::size_t>(module)]) {
      std::int64_t bytes = tensor.bytes();
      if (tensor.storage >= 0 && tensor.storage_bytes >= 0) {
        std::int64_t& counted = counted_[{module, tensor.storage}];
        bytes = std::min(bytes, tensor.storage_bytes - counted);
        counted += bytes;
      }
      modules_[static_cast<std::size_t>(module)].cost.parameter_bytes += bytes;
    }
  }

  void add_parameters(std::string_view path, std::int64_t bytes) {
    for (int module = find(path); module >= 0; module = parents_[static_cast<std::size_t>(module)])
      modules_[static_cast<std::size_t>(module)].cost.parameter_bytes += bytes;
  }

  /// Parents before children, siblings by first appearance.
  std::vector<ModuleCost> in_order() const {
    std::vector<std::vector<int>> children(modules_.size());
    for (std::size_t i = 1; i < modules_.size(); ++i)
      children[static_cast<std::size_t>(parents_[i])].push_back(static_cast<int>(i));
    std::vector<ModuleCost> ordered;
    std::vector<int> stack{0};
    while (!stack.empty()) {
      const auto at = static_cast<std::size_t>(stack.back());
      stack.pop_back();
      ordered.push_back(modules_[at]);
      stack.insert(stack.end(), children[at].rbegin(), children[at].rend());
    }
    return ordered;
  }

 private:
  int find(std::string_view path) {
    const auto it = index_.find(path);
    if (it != index_.end()) return it->second;
    // Make what is missing from the top down.
    int parent = 0, depth = 0;
    for (std::size_t dot = path.find('.');; dot = path.find('.', dot + 1)) {
      const std::string_view prefix = path.substr(0, dot);
      ++depth;
      const auto known = index_.find(prefix);
      parent = known != index_.end() ? known->second : add_module(prefix, parent, depth);
      if (dot == path.npos) return parent;
    }
  }
  int add_module(std::string_view path, int parent, int depth) {
    const int index = static_cast<int>(modules_.size());
    index_.emplace(path, index);
    modules_.push_back({std::string(path), depth, 0, {}});
    parents_.push_back(index == 0 ? -1 : parent);
    return index;
  }

  std::vector<ModuleCost> modules_;
  std::vector<int> parents_;
  std::map<std::string, int, std::less<>> index_;
  std::map<std::pair<int, std::int64_t>, std::int64_t> counted_;  // bytes, by module and storage
};

std::string_view parent_path(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == path.npos ? std::string_view() : path.substr(0, dot);
}

/// The nodes among the arguments, in the operator's order.
template <typename Visit>
void for_each_operand(const Node& node, const Call& call, Visit&& visit) {
  if (!call) return node.for_each_input(visit);
  for (std::size_t i = 0; i < call.schema().arguments.size(); ++i) {
    if (const Argument* argument = call.argument(i)) for_each_node(*argument, visit);
  }
}

/// The costs of calls, in numbers or expressions: as `types_of` gives the tensors of a node.
class CallCosts {
 public:
  using TypesOf = std::function<void(const Node& node, std::vector<TensorType>& types)>;

  CallCosts(const Graph& graph, TypesOf types_of) : types_of_(std::move(types_of)), last_user_(graph, nullptr) {}

  CallCost of(const Node& node, const std::optional<ModuleCall>& module) {
    inputs_.clear();
    outputs_.clear();
    SizeExpr bytes;
    const auto add = [&](const Node& input) {
      const std::size_t before = inputs_.size();
      types_of_(input, inputs_);
      if (std::exchange(last_user_[input], &node) == &node) return;
      for (std::size_t i = before; i < inputs_.size(); ++i) bytes = bytes + bytes_of(inputs_[i]);
    };
    const Call call = call_of(node);
    for_each_operand(node, call, add);
    const std::size_t given = inputs_.size();
    const PackedKernel* kernel = packed_kernel(node);
    if (kernel) node.arg(1).node().for_each_input(add);
    for (const TensorInfo& tensor : module ? module->parameters : std::vector<TensorInfo>()) {
      inputs_.push_back({tensor.dtype, {tensor.sizes.begin(), tensor.sizes.end()}, {}});
      bytes = bytes + bytes_of(inputs_.back());
    }
    types_of_(node, outputs_);
    const Symbol packet = kernel ? Symbol(kernel->computes) : module ? module->packet : packet_symbol(node, call);
    return cost_of_call({node, call, packet, inputs_, outputs_, inputs_.size() - given}, bytes);
  }

 private:
  const TypesOf types_of_;
  NodeMap<const Node*> last_user_;
  std::vector<TensorType> inputs_, outputs_;
};

bool calls_something(const Node& node) {
  return !node.is(Op::placeholder) && !node.is(Op::get_attr) && !node.is(Op::output) && !packs(node);
}

}  // namespace

NodeCost& NodeCost::operator+=(const NodeCost& other) {
  macs += other.macs;
  flops += other.flops;
  bytes_read += other.bytes_read;
  bytes_written += other.bytes_written;
  parameter_bytes += other.parameter_bytes;
  known = known && other.known;
  return *this;
}

std::string module_path(const Node& node) {
  if (node.is(Op::call_module)) return node.target().str();
  const Meta* meta = node.find_meta();
  const std::string* path = meta ? meta->get<std::string>(meta_key::kModuleStack) : nullptr;
  return path ? *path : std::string();
}

Cost::Cost(const Graph& graph, const Shapes& shapes, const ModuleInfo& modules) : costs_(graph) {
  ModuleTree tree;
  FlatMap<char> seen;  // attributes and modules whose parameters are counted
  CallCosts calls(graph, [&](const Node& node, std::vector<TensorType>& types) {
    for (const TensorInfo& tensor : shapes[node].tensors)
      types.push_back({tensor.dtype, {tensor.sizes.begin(), tensor.sizes.end()}, {}});
  });
  for (const Node& node : graph.nodes()) {
    if (node.is(Op::get_attr) && !std::exchange(seen[node.target().id()], 1)) {
      const std::string_view path = parent_path(node.target().view());
      for (const TensorInfo& tensor : shapes[node].tensors) tree.add_parameter(path, tensor);
    }
    if (!calls_something(node)) continue;
    const auto module = node.is(Op::call_module) && modules.cost ? modules.cost(node) : std::nullopt;
    const CallCost call = calls.of(node, module);
    const auto macs = call.operations.macs.evaluate({}), flops = call.operations.flops.evaluate({}),
               read = call.bytes_read.evaluate({}), written = call.bytes_written.evaluate({});
    NodeCost& cost = costs_[node];
    cost = {static_cast<double>(macs.value_or(0)), static_cast<double>(flops.value_or(0)), read.value_or(0),
            written.value_or(0)};
    cost.known = call.known && macs && flops && read && written;
    std::int64_t parameters = 0;
    for (const Node* input : node.all_input_nodes()) parameters += input->is(Op::get_attr) ? shapes[*input].bytes() : 0;
    if (packed_kernel(node))
      node.arg(1).node().for_each_input([&](const Node& input) { parameters += shapes[input].bytes(); });
    for (const TensorInfo& tensor : module ? module->parameters : std::vector<TensorInfo>())
      parameters += tensor.bytes();
    const std::string path = module_path(node);
    const auto called = !cost.known && node.is(Op::call_module) ? shapes_in_call(node, shapes, modules) : std::nullopt;
    if (called) {
      const Cost inside(*called->graph, called->shapes, called->modules);
      for (const std::string& name : inside.unknown()) unknown_.push_back(node.name() + "/" + name);
      cost = inside.total();
      parameters = std::exchange(cost.parameter_bytes, 0);
    } else if (!cost.known) {
      unknown_.push_back(node.name());
    }
    tree.add(path, cost);
    if ((module || called) && !std::exchange(seen[node.target().id()], 1)) {
      if (called) tree.add_parameters(path, parameters);
      if (module && !called) {
        for (const TensorInfo& tensor : module->parameters) tree.add_parameter(path, tensor);
      }
    }
    cost.parameter_bytes = parameters;
  }
  modules_ = tree.in_order();
}

std::optional<CostFormula> cost_formula(const Graph& graph, const SymbolicShapes& shapes, const ModuleInfo& modules) {
  CostFormula total;
  CallCosts calls(graph, [&](const Node& node, std::vector<TensorType>& types) {
    shapes[node].for_each_tensor([&](const TensorType& type) { types.push_back(type); });
  });
  for (const Node& node : graph.nodes()) {
    if (!calls_something(node)) continue;
    const CallCost call = calls.of(node, node.is(Op::call_module) && modules.cost ? modules.cost(node) : std::nullopt);
    CostFormula cost{call.operations.macs, call.operations.flops, call.bytes_read + call.bytes_written};
    if (!call.known) {
      const auto called = node.is(Op::call_module)
                              ? sizes_in_call(
                                    node, [&](const Node& input) { return shapes[input]; }, modules)
                              : std::nullopt;
      const auto inside = called ? cost_formula(*called->graph, called->sizes, called->modules) : std::nullopt;
      if (!inside) return std::nullopt;
      cost = *inside;
    }
    total = {total.macs + cost.macs, total.flops + cost.flops, total.bytes + cost.bytes};
  }
  return total;
}

double roofline_seconds(const NodeCost& cost, const Machine& machine) {
  const double compute = machine.flops_per_second > 0 ? cost.flops / machine.flops_per_second : 0;
  const double move = machine.bytes_per_second > 0 ? static_cast<double>(cost.bytes()) / machine.bytes_per_second : 0;
  return std::max(compute, move);
}

bool is_memory_bound(const NodeCost& cost, const Machine& machine) {
  return static_cast<double>(cost.bytes()) * machine.flops_per_second > cost.flops * machine.bytes_per_second;
}

}  // namespace fx
