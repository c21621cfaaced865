#include <fxgraph/rewriter/rules/weights.h>

#include <ATen/ATen.h>

#include <algorithm>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/nn/leaf_module.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/rewriter/rules/operator_of.h>

namespace fx::rules {

namespace {

// Sets argument `name` of a call, wherever it stands in it.
void set_argument(Rewriter& rewriter, Node& call, std::string_view name, const Argument& value) {
  spell_as_operator(call);
  const OperatorSchema& schema = call_of(call).schema();
  const auto index = static_cast<std::size_t>(schema.index_of(name));
  std::vector<Argument> args(call.args().begin(), call.args().end());
  std::vector<NamedArgument> kwargs = call.kwargs().to_vector();
  if (index < args.size()) {
    args[index] = value;
  } else if (index == args.size() && !call.kwarg(name) && !schema.arguments[index].keyword_only) {
    args.push_back(value);
  } else if (const auto given = std::ranges::find(kwargs, Symbol(name), &NamedArgument::name); given != kwargs.end()) {
    given->value = value;
  } else {
    kwargs.push_back({Symbol(name), value});
  }
  rewriter.set_args_kwargs(call, args, kwargs);
}

// A copy of the operation's leaf with other tensors; one without a bias gets one.
std::shared_ptr<LeafModule> leaf_with(const OperationSite& site, const at::Tensor& weight, const at::Tensor& bias) {
  NodeMap<Node*> copies;
  Graph body = site.leaf()->body()->clone(&copies);
  Node& call = *copies[site.caller()];
  std::vector<NamedTensor> tensors = site.leaf()->tensors();
  const auto path_in_leaf = [&](std::string_view name) {
    const Node* node = site.argument(name) ? site.argument(name)->node_or_null() : nullptr;
    return node ? path_of(*node) : std::string();
  };
  const std::string weight_path = path_in_leaf("weight");
  std::string bias_path = path_in_leaf("bias");
  std::erase_if(tensors, [&](const NamedTensor& tensor) { return tensor.path == bias_path || tensor.path == "bias"; });
  for (NamedTensor& tensor : tensors) {
    if (tensor.path == weight_path) tensor.tensor = weight;
  }
  if (bias_path.empty()) {
    bias_path = "bias";
    Rewriter rewriter(body);
    const auto scope = rewriter.inserting_before(call);
    set_argument(rewriter, call, "bias", rewriter.get_attr(bias_path));
  }
  tensors.push_back({bias_path, bias, true});
  return make_leaf(site.leaf()->qualified_name(), tensors, std::move(body));
}

ChannelAffine no_affine(std::string reason) { return {{}, {}, std::move(reason)}; }

bool may_be_view(const Node& node) {
  if (!node.is(Op::call_function) && !node.is(Op::call_method)) return false;
  const NodeEffects effects = effects_of(node);
  return effects.may_alias && !effects.aliases && !effects.writes;
}

}  // namespace

const Node* written_if_strides_say_so(const Graph& graph, const ProgramEffects& effects) {
  for (const Node& node : graph.nodes()) {
    if (!may_be_view(node) || !effects.is_written(node)) continue;
    const Node* value = &node;
    while (!effects.is_fresh(*value)) {
      const Node* source = value->args().empty() ? nullptr : value->arg(0).node_or_null();
      if (!source || source->num_users() > 1) return &node;
      value = source;
    }
  }
  return nullptr;
}

bool holds_same(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.device() == b.device() && a.sizes() == b.sizes() &&
         a.strides() == b.strides() && at::equal(a, b);
}

bool is_batch_norm(std::string_view packet) { return packet == "aten::batch_norm"; }
bool is_linear(std::string_view packet) { return packet == "aten::linear"; }

ChannelAffine affine_of_batch_norm(const OperationSite& bn) {
  if (bn.literal_bool("training") != false) return no_affine("it normalises by the batch's statistics (training mode)");
  const at::Tensor mean = bn.tensor("running_mean"), variance = bn.tensor("running_var");
  if (!mean.defined() || !variance.defined()) return no_affine("it has no running statistics");
  const Argument* eps = bn.argument("eps");
  if (!eps || !eps->is_number()) return no_affine("its eps is not a literal");
  const at::Tensor gamma = bn.tensor("weight"), beta = bn.tensor("bias");
  if (!gamma.defined() && !bn.is_none("weight")) return no_affine("its weight is computed, not an attribute");
  if (!beta.defined() && !bn.is_none("bias")) return no_affine("its bias is computed, not an attribute");

  const auto wide = [](const at::Tensor& tensor) { return tensor.detach().to(at::kDouble); };
  ChannelAffine affine;
  affine.scale = at::rsqrt(wide(variance) + eps->as_float());
  if (gamma.defined()) affine.scale = affine.scale * wide(gamma);
  affine.shift = -wide(mean) * affine.scale;
  if (beta.defined()) affine.shift = affine.shift + wide(beta);
  return affine;
}

std::string ProgramEffects::not_constant(const std::string& path) {
  if (attribute_writer(path)) return "the program writes to " + path;
  if (is_attribute_returned(path)) return "the program returns " + path + ", and its caller may write to it";
  return {};
}

std::string Weights::not_constant(const OperationSite& site, const std::vector<std::string_view>& names) {
  for (const std::string_view name : names) {
    const std::string path = site.tensor_path(name);
    if (path.empty()) continue;
    if (std::string reason = effects_.not_constant(path); !reason.empty()) return reason;
  }
  return {};
}

std::string Weights::not_replaceable(const OperationSite& site) {
  for (const char* name : {"weight", "bias"}) {
    const Argument* tensor = site.leaf() ? site.argument(name) : nullptr;
    if (tensor && tensor->is_node() && tensor->node().num_users() > 1)
      return std::string("the module reads its ") + name + " elsewhere too";
  }
  return not_constant(site, {"weight", "bias"});
}

void Weights::replace(const OperationSite& site, const at::Tensor& weight, const at::Tensor& bias) {
  if (site.leaf()) {
    install_leaf(site, weight, bias);
  } else {
    install_attributes(site, weight, bias);
  }
}

const Weights::Replacement* Weights::find_replacement(const std::string& old, const at::Tensor& weight,
                                                      const at::Tensor& bias) const {
  const auto [first, last] = replacements_.equal_range(old);
  const auto found = std::find_if(first, last, [&](const auto& entry) {
    return holds_same(entry.second.weight, weight) && holds_same(entry.second.bias, bias);
  });
  return found == last ? nullptr : &found->second;
}

void Weights::install_leaf(const OperationSite& site, const at::Tensor& weight, const at::Tensor& bias) {
  const std::string path = path_of(site.node());
  std::string place;
  if (const Replacement* made = find_replacement(path, weight, bias)) {
    place = made->path;
  } else {
    const bool is_shared = module_.graph().count(Op::call_module, Symbol(path)) > 1 || reads_inside(path);
    const bool is_made = std::ranges::any_of(replacements_, [&](const auto& each) { return each.second.path == path; });
    place = is_shared || is_made ? module_.fresh_path(path + "_folded") : path;
    if (is_run_by_another(module_, path)) {
      // Not beside it: a Sequential runs all that it holds.
      std::string outside = path + "_folded";
      std::ranges::replace(outside, '.', '_');
      place = module_.fresh_path(outside);
    }
    module_.add_submodule(place, leaf_with(site, weight, bias));
    if (place != path) replacements_.emplace(path, Replacement{weight, bias, place, {}});
  }
  rewriter_.set_target(site.node(), place);
}

bool is_run_by_another(const GraphModule& module, const std::string& path) {
  const std::string parent = split_path(path).first;
  const torch::nn::Module* holder = find_module(module, parent);
  if (parent.empty() || !holder || dynamic_cast<const Holder*>(holder)) return false;
  return std::ranges::any_of(module.graph().nodes(), [&](const Node& node) {
    const auto called = node.is(Op::call_module) ? module.find_submodule(path_of(node)) : nullptr;
    return called && std::ranges::any_of(called->modules(), [&](const auto& each) { return each.get() == holder; });
  });
}

bool Weights::reads_inside(const std::string& path) const {
  for (const Node& node : module_.graph().nodes()) {
    if (node.is(Op::get_attr) && path_of(node).starts_with(path + ".")) return true;
  }
  return false;
}

void Weights::install_attributes(const OperationSite& site, const at::Tensor& weight, const at::Tensor& bias) {
  const std::string old = site.tensor_path("weight");
  const Replacement* made = find_replacement(old, weight, bias);
  if (!made) {
    std::string bias_stem = site.tensor_path("bias");
    if (bias_stem.empty()) {
      const std::size_t dot = old.rfind('.');
      bias_stem = (dot == std::string::npos ? "" : old.substr(0, dot + 1)) + "bias";
    }
    const std::string weight_path = module_.fresh_path(old + "_folded");
    module_.set_parameter(weight_path, weight);
    const std::string bias_path = module_.fresh_path(bias_stem + "_folded");
    module_.set_parameter(bias_path, bias);
    made = &replacements_.emplace(old, Replacement{weight, bias, weight_path, bias_path})->second;
  }

  Node& node = site.node();
  const std::vector<Node*> inputs = node.all_input_nodes();
  const auto scope = rewriter_.inserting_before(node);
  set_argument(rewriter_, node, "weight", rewriter_.get_attr(made->path));
  set_argument(rewriter_, node, "bias", rewriter_.get_attr(made->bias_path));
  erase_unread(inputs);
}

void Weights::erase_unread(const std::vector<Node*>& nodes) {
  for (Node* node : nodes) {
    if (!node->is_erased() && node->is(Op::get_attr) && !node->has_users()) rewriter_.erase_node(*node);
  }
}

}  // namespace fx::rules
