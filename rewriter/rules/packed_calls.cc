#include <fxgraph/rewriter/rules/packed_calls.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/rewriter/rules/operator_of.h>
#include <fxgraph/rewriter/rules/weights.h>
#include <fxgraph/run/call_target.h>
#include <fxgraph/run/packed_once.h>

namespace fx::rules {

namespace {

/// The format that a call of aten::contiguous asks for; empty when `node` is no such call.
Symbol asked_format(const Node& node) {
  const Call call = call_of(node);
  if (!call || call.schema().target != "aten::contiguous") return {};
  const Argument* format = call.argument("memory_format");
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
    if (!node.is(Op::call_function) && !node.is(Op::call_method)) return false;
    if (!node.has_users() || written_.is_written(node)) return false;
    if (effects_of(node).impure() || is_packing_call(node)) return false;
    // In another type, once; but what the caller gets is made in each call.
    if (node.is_call("aten::_to_copy")) return !written_.is_returned(node);
    static constexpr std::array kTakers = {"aten::addmm", "aten::addcmul", "fxgraph::packed_lstm",
                                           "fxgraph::packed_gru"};
    for (const Node& user : node.users()) {
      const auto is_call = [&](const char* target) { return user.is_call(target); };
      if (!prepares_[user] && !is_packing_call(user) && std::ranges::none_of(kTakers, is_call)) return false;
    }
    return true;
  }

  static bool is_packing_call(const Node& node) {
    const Call call = call_of(node);
    const TorchOperator* op = call ? torch_operator(call) : nullptr;
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
    const auto scope = rewriter_.inserting_before(node);
    Node& attribute = rewriter_.get_attr(path_for(stem, made));
    const std::vector<Node*> inputs = node.all_input_nodes();
    rewriter_.replace_all_uses_with(node, attribute);
    rewriter_.erase_node(node);
    for (Node* input : inputs) {
      if (!input->is_erased() && !input->has_users()) rewriter_.erase_node(*input);
    }
  }

  /// Where it stands: what several calls make of one attribute is there once.
  std::string path_for(const std::string& stem, const at::Tensor& made) {
    const auto [first, last] = made_.equal_range(stem);
    const auto found = std::find_if(
        first, last, [&](const auto& entry) { return holds_same(module_.attribute(entry.second).detach(), made); });
    if (found != last) return found->second;
    constexpr std::string_view kSuffix = "_packed";
    const std::size_t at = stem.rfind(kSuffix);
    const std::string fresh = module_.fresh_path(at == std::string::npos ? stem + std::string(kSuffix) : stem);
    if (module_.is_parameter(stem)) {
      module_.set_parameter(fresh, made);
    } else {
      module_.set_buffer(fresh, made);
    }
    made_.emplace(stem, fresh);
    return fresh;
  }

  GraphModule& module_;
  Rewriter rewriter_;
  mutable ProgramEffects written_;                // remembers its answers
  std::multimap<std::string, std::string> made_;  // paths, by those that they were made of
  NodeMap<bool> prepares_;
};

// They show all elements of what they take, whose strides are no larger than it. Packets.
constexpr auto kWholeViews = std::to_array<std::string_view>(
    {"aten::_unsafe_view", "aten::contiguous", "aten::flatten", "aten::permute", "aten::reshape", "aten::squeeze",
     "aten::t", "aten::transpose", "aten::unsqueeze", "aten::view", "aten::view_as"});

// Seen in LibTorch 1.13 to lay their results out anew, with strides that follow from the sizes; what computes element
// by element, clone and others keep strides of dimensions of one element. Packets.
constexpr auto kOwnStrides = std::to_array<std::string_view>({"aten::adaptive_avg_pool2d",
                                                              "aten::addmm",
                                                              "aten::avg_pool2d",
                                                              "aten::batch_norm",
                                                              "aten::bmm",
                                                              "aten::cat",
                                                              "aten::conv2d",
                                                              "aten::embedding",
                                                              "aten::layer_norm",
                                                              "aten::linear",
                                                              "aten::matmul",
                                                              "aten::max_pool2d",
                                                              "aten::mm",
                                                              "aten::softmax",
                                                              "aten::stack",
                                                              "fxgraph::max_pool2d",
                                                              "fxgraph::packed_linear",
                                                              "mkldnn_prepacked::conv2d_run",
                                                              "prepacked::conv2d_clamp_run",
                                                              "prepacked::conv2d_transpose_clamp_run",
                                                              "prepacked::linear_clamp_run"});

/// As the rules write it: other spellings are not theirs.
bool is_call_of_two(const Node& node, std::string_view target) {
  return node.is_call(target) && node.args().size() == 2 && node.kwargs().empty();
}

/// What `view_as(reshape(value, [-1]), value)` takes, or null.
const Node* given_own_strides(const Node& node) {
  if (!is_call_of_two(node, "aten::view_as")) return nullptr;
  const Node *flat = node.arg(0).node_or_null(), *value = node.arg(1).node_or_null();
  const bool fits = flat && value && is_call_of_two(*flat, "aten::reshape") && flat->num_users() == 1 &&
                    flat->arg(0) == node.arg(1) && flat->arg(1) == Argument::list({-1});
  return fits ? value : nullptr;
}

/// No stride of the value is larger than all of it: it is no view of anything larger, and lies as no such view does.
bool has_own_strides(const Node& value, const GraphModule& module, bool inputs_do) {
  constexpr std::size_t kMost = 64;
  std::vector<const Node*> open = {&value};
  for (std::size_t next = 0; next < open.size(); ++next) {
    const Node& node = *open[next];
    if (node.is(Op::placeholder) && inputs_do) continue;
    if (node.is(Op::get_attr)) {
      const at::Tensor tensor = module.find_attribute(path_of(node));
      const auto is_within = [&](std::int64_t stride) { return stride <= tensor.numel(); };
      if (!tensor.defined() || !std::ranges::all_of(tensor.strides(), is_within)) return false;
      continue;
    }
    const Call call = call_of(node);
    if (!call) return false;
    const Symbol target = operator_name(call.schema());
    if (is_one_of(kOwnStrides, target)) continue;
    if (open.size() > kMost || !(call.schema().traits.pointwise || is_one_of(kWholeViews, target))) return false;
    node.for_each_input([&](const Node& input) { open.push_back(&input); });
  }
  return true;
}

const Argument& to_pixels() {
  static const Argument kOrder = Argument::list({0, 2, 3, 1});
  return kOrder;
}
const Argument& to_images() {
  static const Argument kOrder = Argument::list({0, 3, 1, 2});
  return kOrder;
}

/// What the permutation `user` of `value` brings back: x of permute(permute(x, [0, 2, 3, 1]), [0, 3, 1, 2]); or null.
Node* undone_by(const Node& user, const Node& value) {
  const bool undone = is_call_of_two(user, "aten::permute") && is_call_of_two(value, "aten::permute") &&
                      user.arg(1) == to_images() && value.arg(1) == to_pixels();
  return undone ? value.arg(0).node_or_null() : nullptr;
}

/// oneDNN refuses to pack what it has no kernels for.
bool packs_bfloat16() {
  static const bool kPacks = [] {
    const TorchOperator* pack = find_torch_operator(Symbol("mkldnn_prepacked::conv2d_prepack"));
    if (!pack) return false;
    using Sizes = std::vector<std::int64_t>;
    const at::Tensor weight = at::ones({1, 1, 1, 1}, at::kBFloat16);
    torch::jit::Stack stack = {weight, c10::IValue(),     Sizes{1, 1},        Sizes{0, 0}, Sizes{1, 1},
                               1,      Sizes{1, 1, 1, 1}, std::string("none")};
    try {
      (*pack)(stack);
      const TorchOperator* run = find_torch_operator(Symbol("mkldnn_prepacked::conv2d_run"));
      stack.insert(stack.begin(), c10::IValue(weight));
      (*run)(stack);
      return stack.size() == 1 && stack[0].toTensor().item<float>() == 1;
    } catch (const std::exception&) {
      return false;
    }
  }();
  return kPacks;
}

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

Node& as_pixels(Rewriter& rewriter, Node& image) {
  return rewriter.call_function("aten::permute", {image, to_pixels()});
}
Node& as_image(Rewriter& rewriter, Node& pixels) {
  return rewriter.call_function("aten::permute", {pixels, to_images()});
}

Node& onednn_image(Rewriter& rewriter, Node& image) {
  Node& pixels = as_pixels(rewriter, channels_last(rewriter, image));
  Node& flat = rewriter.call_function("aten::reshape", {pixels, Argument::list({-1})});
  Node& with_own = rewriter.call_function("aten::view_as", {flat, pixels});
  return as_image(rewriter, with_own);
}

Argument onednn_bias(Rewriter& rewriter, const Argument& bias) {
  if (!bias.is_node()) return bias;
  return Argument(rewriter.call_function("aten::contiguous", {bias}));
}

Node& xnnpack_linear_weights(Rewriter& rewriter, Node& weight, const Argument& bias, const Argument& least,
                             const Argument& most) {
  const auto detached = [&](Node& value) { return Argument(rewriter.call_function("aten::detach", {value})); };
  const Argument with = bias.is_node() ? detached(bias.node()) : bias;
  return rewriter.call_function("prepacked::linear_clamp_prepack", {detached(weight), with, least, most});
}

std::size_t drop_own_strides(const GraphModule& module, Rewriter& rewriter, bool of_inputs) {
  std::vector<Node*> found;
  for (Node& node : rewriter.graph().nodes()) {
    const Node* value = given_own_strides(node);
    if (value && has_own_strides(*value, module, of_inputs)) found.push_back(&node);
  }
  for (Node* node : found) {
    Node& value = node->arg(1).node();
    const std::vector<Node*> users = node->users().to_vector();
    for (Node* user : users) {
      Node* before = undone_by(*user, value);
      if (before) rewriter.replace_all_uses_with(*user, *before);
      if (before) rewriter.erase_node(*user);
    }
    rewriter.replace_all_uses_with(*node, value);
    Node& flat = node->arg(0).node();
    rewriter.erase_node(*node);
    rewriter.erase_node(flat);
    if (!value.has_users()) rewriter.erase_node(value);
  }
  return found.size();
}

bool is_channels_last_call(const Node& node) { return asked_format(node) == "channels_last"; }
bool is_plain_contiguous(const Node& node) { return asked_format(node) == "contiguous_format"; }

bool is_packed_convolution(const Node& node) {
  return node.is_call("mkldnn_prepacked::conv2d_run") || is_xnnpack_convolution(node);
}
bool is_xnnpack_convolution(const Node& node) {
  return node.is_call("prepacked::conv2d_clamp_run") || node.is_call("prepacked::conv2d_transpose_clamp_run");
}
bool is_xnnpack_linear(const Node& node) { return node.is_call("prepacked::linear_clamp_run"); }

bool uses_xnnpack(const Node& node) {
  if (is_xnnpack_convolution(node) || is_xnnpack_linear(node)) return true;
  if (!node.is_call("fxgraph::packed_lstm") && !node.is_call("fxgraph::packed_gru")) return false;
  const Call call = call_of(node);
  const Argument* packed = call.argument("packed");
  return packed && !packed->elements().empty();
}

bool is_on_cpu(const TensorFacts& value, DType type) {
  const Symbol device = value.example().device.type;
  return value.dtype() == type && (device.empty() || device == "cpu");
}

bool has_packed_kernels(const TensorFacts& value) {
  return is_on_cpu(value, DType::float32) || (is_on_cpu(value, DType::bfloat16) && packs_bfloat16());
}

at::Tensor as_in_island(const at::Tensor& value) {
  c10::Storage storage(c10::Storage::use_byte_size_t(), value.nbytes(), c10::GetDefaultMobileCPUAllocator(), false);
  return at::empty({0}, value.options()).set_(storage, 0, value.sizes(), value.strides()).copy_(value);
}

std::size_t prepare_weights(GraphModule& module) {
  const at::NoGradGuard no_grad;
  return WeightPreparation(module).run();
}

}  // namespace fx::rules
