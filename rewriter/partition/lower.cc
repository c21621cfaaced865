#include <fxgraph/rewriter/partition/lower.h>

#include <typeindex>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/rewriter/partition/inline_submodules.h>
#include <fxgraph/rewriter/partition/split_module.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

void call_compiled(torch::nn::Module& module, torch::jit::Stack& stack) {
  c10::IValue result = dynamic_cast<CompiledPart&>(module).run(std::move(stack));
  stack.clear();
  stack.push_back(std::move(result));
}

void make_callable(const torch::nn::Module& module, const std::string& backend) {
  if (dynamic_cast<const CompiledPart*>(&module) && !find_module_type(module))
    add_module_type(typeid(module), {.qualified_name = backend + "." + module.name(), .call = &call_compiled});
}

OrderEdges order_edges_of(const GraphModule& module) { return Effects(module).order_edges(); }

void check_name(const std::string& name) {
  if (is_identifier(name)) return;
  throw Error(ErrorKind::invalid_argument,
              "lower: a back end is called '" + name + "', which is no identifier; it names the parts it compiles");
}

/// `mine_`, or `mine_2_`, `mine_3_`, … where the program has such modules already.
std::string free_prefix(const GraphModule& module, const std::string& name) {
  const auto is_taken = [&](const std::string& prefix) {
    for (const auto& child : module.named_children()) {
      if (child.key().starts_with(prefix)) return true;
    }
    return false;
  };
  std::string prefix = name + "_";
  for (int i = 2; is_taken(prefix); ++i) prefix = name + "_" + std::to_string(i) + "_";
  return prefix;
}

}  // namespace

std::optional<std::string> Backend::why_not(const CallFacts& call) const {
  if (supports(call)) return std::nullopt;
  return name() + " does not support " + call.op();
}

std::shared_ptr<GraphModule> fuse_by_partitions(const GraphModule& module,
                                                const std::vector<std::vector<Node*>>& partitions,
                                                const std::string& prefix) {
  NodeMap<std::int64_t> part_of(module.graph(), -1);
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    for (const Node* node : partitions[i]) {
      if (&node->graph() != &module.graph() || node->is_erased()) {
        throw Error(ErrorKind::invalid_argument,
                    "fuse_by_partitions: %" + node->name() + " is no node of the module's graph", node->name());
      }
      if (part_of[*node] >= 0) {
        throw Error(ErrorKind::invalid_argument, "fuse_by_partitions: %" + node->name() + " is in two partitions",
                    node->name());
      }
      part_of[*node] = static_cast<std::int64_t>(i);
    }
  }
  return split_module(module, [&](const Node& node) { return part_of[node]; },
                      {.stays = [&](const Node& node) { return part_of[node] < 0; },
                       .name = [&](std::int64_t part) { return prefix + std::to_string(part); }});
}

Lowered lower(GraphModule& module, const Backend& backend, const LowerOptions& options) {
  check_name(backend.name());
  std::optional<ShapeProp> prop;
  const bool is_closed = module.graph().placeholders().empty();  // its values need no examples
  if (!options.examples.empty() || (options.tensors_only && is_closed))
    prop.emplace(module).propagate(options.examples);
  const Shapes* shapes = prop ? &prop->shapes() : nullptr;
  if (options.tensors_only && !shapes) {
    throw Error(ErrorKind::invalid_argument,
                "lower: which values are tensors is not known; tensors_only needs example inputs");
  }
  const std::function<bool(const Node&)> is_tensor = [&](const Node& value) {
    if (!(*shapes)[value].tensor()) return false;
    const Call call = call_of(value);  // a list of one tensor is no tensor
    return !call || (call.schema().returns.size() == 1 && !call.schema().returns[0].type.list);
  };
  const auto movable = why_not_movable(module);
  const OrderEdges order = order_edges_of(module);
  const Partitioning parts = propose_partitions(module.graph(),
                                                [&](const Node& node) {
                                                  auto why = movable(node);
                                                  return why ? why : backend.why_not(CallFacts(module, node, shapes));
                                                },
                                                {.order = &order,
                                                 .colour = options.colour,
                                                 .keep_apart = options.keep_apart,
                                                 .crosses = options.tensors_only ? is_tensor : nullptr,
                                                 .min_size = options.min_size,
                                                 .trim = options.trim});

  Lowered result;
  result.report_ = parts.report();
  std::vector<std::vector<Node*>> nodes;
  for (const Partition& part : parts.partitions()) nodes.push_back(part.nodes);
  const std::string prefix = free_prefix(module, backend.name());
  result.fused_ = fuse_by_partitions(module, nodes, prefix);
  result.module_ = fuse_by_partitions(module, nodes, prefix);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::string path = prefix + std::to_string(i);
    result.all_parts_.push_back(path);
    std::shared_ptr<torch::nn::Module> compiled;
    try {
      compiled = backend.compile(std::dynamic_pointer_cast<GraphModule>(result.fused_->submodule(path)));
    } catch (const std::exception& error) {
      throw Error(ErrorKind::unsupported, "lower: " + backend.name() + " did not compile " + path + " (%" +
                                              nodes[i].front()->name() + " and what goes with it): " + error.what());
    }
    if (!compiled) {
      result.module_ = inline_submodules(*result.module_, {path});
      result.report_ += backend.name() + " left partition " + std::to_string(i) + " in the program\n";
      continue;
    }
    make_callable(*compiled, backend.name());
    result.module_->replace_submodule(path, std::move(compiled));
    result.parts_.push_back(path);
  }
  return result;
}

std::shared_ptr<GraphModule> Lowered::inlined() const { return inline_submodules(*fused_, all_parts_); }

std::shared_ptr<torch::nn::Module> CompiledPart::clone(const TorchDeviceOption& /*device*/) const {
  throw Error(ErrorKind::unsupported, "a part that a back end compiled, of type " + name() +
                                          ", cannot be copied: override CompiledPart::clone() to say how");
}

}  // namespace fx
