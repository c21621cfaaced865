#include <fxgraph/rewriter/rules/packed_calls.h>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <string_view>
#include <vector>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/ops/effects.h>
#include <fxgraph/ops/schema.h>
#include <fxgraph/rewriter/rules/spelling.h>
#include <fxgraph/rewriter/rules/weights.h>
#include <fxgraph/run/operators.h>
#include <fxgraph/run/packed_once.h>

namespace fx::rules {

namespace {

/// The format that a call of aten::contiguous asks for; empty when `node` is no such call.
Symbol asked_format(const Node& node) {
  if (!node.is_call("aten::contiguous")) return {};
  const Argument* format = bound_argument(node, "memory_format");
  if (!format || format->is_none()) return Symbol("contiguous_format");
  return format->kind() == ArgumentKind::memory_format ? format->as_memory_format().name : Symbol();
}

/// Pure calls on attributes whose values nobody writes and only packing, or what packing takes, sees.
class WeightPreparation {
 public:
  explicit WeightPreparation(GraphModule& module)
      : module_(module), rewriter_(module.graph()), written_(module), prepares_(module.graph(), false) {}

  std::size_t run() {
    std::vector<Node*> nodes;
    for (Node& node : module_.graph().nodes()) nodes.push_back(&node);
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) prepares_[**node] = prepares(**node);
    std::size_t prepared = 0;
    for (Node* node : nodes) {
      if (!prepares_[*node] || node->is_erased() || !on_attributes(*node)) continue;
      fold(*node);
      ++prepared;
    }
    return prepared;
  }

 private:
  /// Back to front: users are known.
  bool prepares(const Node& node) const {
    if (!node.is(Op::call_function) || !node.has_users() || written_.is_written(node)) return false;
    if (effects_of(node).impure() || is_packing_call(node)) return false;
    for (const Node& user : node.users()) {
      if (!prepares_[user] && !is_packing_call(user) && !user.is_call("aten::addmm") && !user.is_call("aten::addcmul"))
        return false;
    }
    return true;
  }

  static bool is_packing_call(const Node& node) {
    const OperatorSchema* called = overload_of(node);
    const TorchOperator* op = called ? find_torch_operator(called->target) : nullptr;
    return op && is_packing(*op->schema);
  }

  bool on_attributes(const Node& node) const {
    bool all = true, any = false;
    node.for_each_input([&](const Node& input) {
      all = all && input.is(Op::get_attr) && written_.not_constant(path_of(input)).empty();
      any = true;
    });
    return all && any;
  }

  void fold(Node& node) {
    Graph alone;
    GraphModule::Attributes attributes;
    NodeMap<Node*> copies(module_.graph(), nullptr);
    std::string stem;
    node.for_each_input([&](const Node& input) {
      if (copies[input]) return;
      const std::string path = path_of(input);
      copies[input] = &alone.get_attr(path);
      attributes.emplace_back(path, module_.attribute(path).detach());
      if (stem.empty()) stem = path;
    });
    alone.output(alone.node_copy(node, [&](Node& input) { return Argument(*copies[input]); }));
    const at::Tensor made = GraphModule(attributes, std::move(alone)).run({}).toTensor().detach();
    constexpr std::string_view kSuffix = "_packed";
    const std::size_t at = stem.rfind(kSuffix);
    const std::string fresh = module_.fresh_path(at == std::string::npos ? stem + std::string(kSuffix) : stem);
    if (module_.is_parameter(stem)) {
      module_.set_parameter(fresh, made);
    } else {
      module_.set_buffer(fresh, made);
    }
    const auto scope = rewriter_.inserting_before(node);
    Node& attribute = rewriter_.get_attr(fresh);
    const std::vector<Node*> inputs = node.all_input_nodes();
    rewriter_.replace_all_uses_with(node, attribute);
    rewriter_.erase_node(node);
    for (Node* input : inputs) {
      if (!input->is_erased() && !input->has_users()) rewriter_.erase_node(*input);
    }
  }

  GraphModule& module_;
  Rewriter rewriter_;
  mutable ProgramEffects written_;  // remembers its answers
  NodeMap<bool> prepares_;
};

}  // namespace

const std::vector<NamedArgument>& channels_last_kwargs() {
  static const std::vector<NamedArgument> kFormat = {{"memory_format", MemoryFormat{Symbol("channels_last")}}};
  return kFormat;
}

Node& channels_last(Rewriter& rewriter, Node& value) {
  return rewriter.call_function("aten::contiguous", {value}, channels_last_kwargs());
}

Node& channels_last_weight(Rewriter& rewriter, Node& weight) {
  return rewriter.call_function("aten::clone", {weight}, channels_last_kwargs());
}

bool is_channels_last_call(const Node& node) { return asked_format(node) == "channels_last"; }
bool is_plain_contiguous(const Node& node) { return asked_format(node) == "contiguous_format"; }

bool is_float_on_cpu(const TensorInfo& info) {
  return info.dtype == DType::float32 && (info.device.type.empty() || info.device.type == "cpu");
}

std::size_t prepare_weights(GraphModule& module) {
  const at::NoGradGuard no_grad;
  return WeightPreparation(module).run();
}

}  // namespace fx::rules
