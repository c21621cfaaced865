#include <fxgraph/rewriter/quantize/flat_program.h>

#include <ATen/core/grad_mode.h>

#include <optional>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/number_list.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/module/inline_modules.h>
#include <fxgraph/module/scripted_bodies.h>
#include <fxgraph/module/state_keeper.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/rewriter/quantize/backend_table.h>
#include <fxgraph/rewriter/quantize/strides.h>
#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/run/value.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/support/error.h>

namespace fx::quantize {

namespace {

void note_modules(GraphModule& module) {
  for (Node& node : module.graph().nodes()) {
    if (!node.is(Op::call_module)) continue;
    node.meta().set(meta_key::kPath, node.target().str());
    node.meta().set(meta_key::kType, module.module_type(node.target().str()));
  }
}

// A run on the example says of what ranks their inputs are.
ModuleBodies scripted_bodies_for(GraphModule& module, const std::vector<c10::IValue>& example) {
  if (example.empty() || !internal::has_scripted_leaves(module)) return {};
  const StateKeeper keeper(module);
  return internal::scripted_bodies(module, propagate_shapes(module, example));
}

// ── Convolutions ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// `convolution`, `_convolution` and `convNd.padding` in the spelling of convNd, where all is known.
class ConvolutionSpelling {
 public:
  explicit ConvolutionSpelling(const GraphModule& module) : module_(module) {}

  void respell(Node& node) const {
    const Call call = call_of(node);
    if (!call) return;
    const std::string_view target = call.schema().target.view(), packet = packet_of(target);
    if (packet == "aten::convolution" || packet == "aten::_convolution") return respell_general(node, call);
    if (packet.starts_with("aten::conv") && target.ends_with(".padding")) respell_named(node, call);
  }

 private:
  at::Tensor weight_of(const Call& call) const {
    return module_.find_attribute(attribute_path(call.argument("weight")));
  }

  std::size_t dimensions(const Call& call) const {
    const at::Tensor tensor = weight_of(call);
    return tensor.defined() && tensor.dim() >= 3 && tensor.dim() <= 5 ? static_cast<std::size_t>(tensor.dim()) - 2 : 0;
  }

  static void set(Node& node, const std::string& target, const std::vector<Argument>& args) {
    node.set_args_kwargs(args, KwargSpan());
    node.set_target(target);
  }

  void respell_general(Node& node, const Call& call) const {
    const std::size_t size = dimensions(call);
    const auto argument = [&](const char* name) { return call.argument(name); };
    const auto numbers = [&](const char* name) { return integers_of(*argument(name), size); };
    const auto stride = numbers("stride"), padding = numbers("padding"), dilation = numbers("dilation"),
               output_padding = numbers("output_padding");
    const Argument *transposed = argument("transposed"), *groups = argument("groups");
    if (!size || !stride || !padding || !dilation || !output_padding || !transposed->is_bool() || !groups->is_int())
      return;
    const Argument input = *argument("input"), weight = *argument("weight"), bias = *argument("bias");
    const std::string digits = std::to_string(size) + "d";
    if (transposed->as_bool()) {
      set(node, "aten::conv_transpose" + digits + (size == 1 ? "" : ".input"),
          {input, weight, bias, list_of(*stride), list_of(*padding), list_of(*output_padding), *groups,
           list_of(*dilation)});
    } else {
      set(node, "aten::conv" + digits,
          {input, weight, bias, list_of(*stride), list_of(*padding), list_of(*dilation), *groups});
    }
  }

  // padding='same' and 'valid', where as much goes on either side.
  void respell_named(Node& node, const Call& call) const {
    const std::size_t size = dimensions(call);
    const auto argument = [&](const char* name) { return call.argument(name); };
    const auto stride = integers_of(*argument("stride"), size), dilation = integers_of(*argument("dilation"), size);
    const Argument* padding = argument("padding");
    if (!size || !stride || !dilation || !padding || !padding->is_string()) return;
    std::vector<std::int64_t> sides(size, 0);
    if (padding->as_string() == "same") {
      const at::Tensor weight = weight_of(call);
      for (std::size_t i = 0; i < size; ++i) {
        const std::int64_t total = (*dilation)[i] * (weight.size(static_cast<std::int64_t>(i) + 2) - 1);
        if (total % 2 || (*stride)[i] != 1) return;
        sides[i] = total / 2;
      }
    }
    set(node, "aten::conv" + std::to_string(size) + "d",
        {*argument("input"), *argument("weight"), *argument("bias"), list_of(*stride), list_of(sides),
         list_of(*dilation), *argument("groups")});
  }

  const GraphModule& module_;
};

// ── Writes ───────────────────────────────────────────────────────────────────────────────────────────────────────────

bool makes_a_fresh_tensor(const Node& node) {
  if (!node.is(Op::call_function) || effects_of(node).may_alias || effects_of(node).unknown) return false;
  const Call call = call_of(node);
  if (!call || call.schema().returns.size() != 1) return false;
  const SchemaReturn& made = call.schema().returns[0];
  return made.type.is_tensor() && !made.type.list && made.alias.empty();
}

/// `aten::relu` for `aten::relu_`; empty when there is none that takes the same arguments.
std::string functional_twin(const OperatorSchema& schema) {
  const std::string target = schema.target.str();
  const std::string packet(packet_of(target));
  if (!packet.ends_with('_') || packet.ends_with("__") || schema.arguments.empty()) return {};
  for (std::size_t i = 0; i < schema.arguments.size(); ++i) {
    if (schema.arguments[i].alias.writes != (i == 0)) return {};
  }
  const std::string twin = packet.substr(0, packet.size() - 1) + target.substr(packet.size());
  const OperatorSchema* found = find_overload(twin);
  if (!found || found->arguments.size() != schema.arguments.size()) return {};
  for (std::size_t i = 0; i < schema.arguments.size(); ++i) {
    // What is written is given by its place: `self` here, `input` there.
    if ((i && found->arguments[i].name != schema.arguments[i].name) ||
        found->arguments[i].type.text != schema.arguments[i].type.text)
      return {};
  }
  return twin;
}

bool is_dropout(std::string_view target) {
  const std::string_view packet = packet_of(target);
  return packet == "aten::dropout" || packet == "aten::feature_dropout" || packet == "aten::alpha_dropout" ||
         packet == "aten::feature_alpha_dropout";
}

// Activations without a row of their own. Not any operator: comparisons write floats and return booleans.
bool is_smooth_activation(std::string_view target) {
  const std::string_view packet = packet_of(target);
  return packet == "aten::silu" || packet == "aten::gelu" || packet == "aten::mish" || packet == "aten::selu" ||
         is_dropout(target);
}

// In evaluation, or with a probability of nothing, dropout returns its input, and in place it writes nothing.
void drop_idle_dropout(Graph& graph) {
  for (Node& node : graph.nodes()) {
    if (!node.is(Op::call_function) || node.args().size() != 3) continue;
    std::string target = node.target().str();
    const bool in_place = target.ends_with('_');
    if (in_place) target.pop_back();
    const Argument &probability = node.arg(1), &train = node.arg(2);
    const bool idle = (train.is_bool() && !train.as_bool()) || (probability.is_number() && probability.as_float() == 0);
    if (!is_dropout(target) || !idle) continue;
    if (!in_place) {
      node.update_arg(2, false);  // a rule drops it, if nobody writes
    } else if (node.arg(0).is_node()) {
      node.replace_all_uses_with(node.arg(0));
      graph.erase_node(node);
    }
  }
}

}  // namespace

std::size_t make_functional(GraphModule& flat, const std::vector<c10::IValue>& example) {
  std::optional<Shapes> shapes;
  const auto type_of = [&](const Node& value) -> std::optional<DType> {
    if (example.empty()) return std::nullopt;
    if (!shapes) {
      const StateKeeper keeper(flat);
      shapes = propagate_shapes(flat, example);
    }
    const TensorInfo* info = (*shapes)[value].tensor();
    return info ? std::optional(info->dtype) : std::nullopt;
  };
  // A call that writes gives the type of what it writes, its twin that of all operands.
  const auto keeps_type = [&](const Node& call, const Node& written) {
    bool alike = true;
    call.for_each_input([&](const Node& input) {
      alike = alike && (&input == &written || (type_of(input) && type_of(input) == type_of(written)));
    });
    return alike;
  };
  std::size_t changed = 0;
  for (Node& node : flat.graph().nodes()) {
    const Call call = call_of(node);
    const std::string twin = call ? functional_twin(call.schema()) : std::string();
    Node* written = twin.empty() || node.args().empty() ? nullptr : node.arg(0).node_or_null();
    if (!written || (effects_of(node).random && !is_dropout(twin))) continue;
    // What writes is to be quantized, or what it writes to: conv - silu_.
    if (!row_of(twin) && !(is_smooth_activation(twin) && row_of(written->target().view()))) continue;
    if (!makes_a_fresh_tensor(*written) || !keeps_type(node, *written)) continue;
    bool seen_elsewhere = false;
    for (const Node& user : written->users()) {
      if (&user != &node && effects_of(user).may_alias && user.is_before(node)) seen_elsewhere = true;
    }
    if (seen_elsewhere) continue;
    node.set_target(twin);
    // Who reads the operand later reads what was written.
    written->replace_all_uses_with(node, [&](const Node& user) { return &user != &node && node.is_before(user); });
    ++changed;
  }
  return changed;
}

std::string layer_path(const Node& node) {
  const Meta* meta = node.find_meta();
  const std::string* noted = meta ? meta->get<std::string>(meta_key::kPath) : nullptr;
  const std::string path = noted ? *noted : "";
  const std::string owner = split_path(attribute_path(call_of(node).argument("weight"))).first;
  return owner.size() > path.size() ? owner : path;  // inside a Sequential the weight's path is the longer one
}

std::string layer_type(const Node& node) {
  const Meta* meta = node.find_meta();
  const std::string* noted = meta ? meta->get<std::string>(meta_key::kType) : nullptr;
  return noted ? *noted : "";
}

std::string attribute_path(const Argument* argument) {
  const Node* attribute = argument ? argument->node_or_null() : nullptr;
  return attribute && attribute->is(Op::get_attr) ? attribute->target().str() : "";
}

std::vector<Argument> all_arguments(const Call& call) {
  std::vector<Argument> all;
  for (std::size_t i = 0; i < call.schema().arguments.size(); ++i) all.push_back(*call.argument(i));
  return all;
}

std::shared_ptr<GraphModule> flat_program(const GraphModule& module, const std::vector<c10::IValue>& example,
                                          bool fold) {
  const at::NoGradGuard no_grad;
  const std::shared_ptr<GraphModule> copy = module.clone_graph_module();
  copy->eval();
  note_modules(*copy);
  internal::write_out_traced_leaves(*copy);
  Graph graph = inline_modules(*copy, scripted_bodies_for(*copy, example));
  auto flat = std::make_shared<GraphModule>(*copy, std::move(graph), module.class_name());
  flat->eval();
  const ConvolutionSpelling convolutions(*flat);
  for (Node& node : flat->graph().nodes()) {
    spell_as_operator(node);
    if (const Call call = call_of(node)) {  // of LibTorch's aliases rows know the one on which they agree
      const OperatorSchema* agreed = find_overload(operator_name(call.schema()));
      if (agreed && agreed != &call.schema()) node.set_target(agreed->target);
    }
    convolutions.respell(node);
  }
  ask_inputs_for_ranks(*flat, flat->graph());
  ask_for_no_strides(*flat, example);
  drop_idle_dropout(flat->graph());
  make_functional(*flat, example);
  if (fold) {
    std::vector<TensorInfo> inputs;
    for (const c10::IValue& value : example) {
      if (value.isTensor()) inputs.push_back(tensor_info(value.toTensor()));
    }
    if (inputs.size() != example.size()) inputs.clear();
    optimize(*flat, {.rules = {"literal-operands", "drop-no-ops", "recognise-hardswish", "recognise-linear",
                               "fuse-conv-bn", "fuse-linear-bn"},
                     .inputs = inputs});
  }
  return flat;
}

}  // namespace fx::quantize
