#include <fxgraph/rewriter/quantize/lowering.h>

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/ir/number_list.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/nn/object_attribute.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/rewriter/program/replace_pattern.h>
#include <fxgraph/rewriter/quantize/backend_table.h>
#include <fxgraph/rewriter/quantize/engine_cache.h>
#include <fxgraph/rewriter/quantize/engine_limits.h>
#include <fxgraph/rewriter/quantize/flat_program.h>
#include <fxgraph/rewriter/quantize/input_limits.h>
#include <fxgraph/rewriter/quantize/list_lowering.h>
#include <fxgraph/rewriter/quantize/packed.h>
#include <fxgraph/rewriter/quantize/reference.h>
#include <fxgraph/rewriter/quantize/strides.h>
#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>

namespace fx::quantize {

namespace {

// The patterns. An operator `y` on floats, perhaps an activation `a` on that, and the quantization of the result.
constexpr std::string_view kResult =
    "return aten::quantize_per_tensor(y, scale: float, zero_point: int, dtype: literal)";
constexpr std::string_view kActivatedResult =
    "a = {aten::relu, aten::relu6, aten::hardtanh, aten::clamp}(y, ...)\n"
    "return aten::quantize_per_tensor(a, scale: float, zero_point: int, dtype: literal)";

/// How the operands of a role stand in the reference form; `$op` is the operator.
std::string_view operands(Role role) {
  switch (role) {
    case Role::weighted:
      return "x = aten::dequantize.self(xq: node)\nw = aten::dequantize.self(wq: get_attr)\ny = $op(x, w, ...)\n";
    case Role::elementwise:
      return "x = aten::dequantize.self(xq: node)\nz = aten::dequantize.self(zq: node)\ny = $op(x, z, ...)\n";
    case Role::concat:
    case Role::share_all: return "y = $op(tensors, ...)\n";
    case Role::by_number: return "x = aten::dequantize.self(xq: node)\ny = $op(x, number: literal)\n";
    default: return "x = aten::dequantize.self(xq: node)\ny = $op(x, ...)\n";
  }
}

std::string pattern_of(const Row& row, bool activated) {
  std::string text(operands(row.role));
  text.replace(text.find("$op"), 3, packet_of(row.packet));
  return text.append(activated ? kActivatedResult : kResult);
}

/// One match, in the words of the reference form.
struct Place {
  const Match& match;
  Node& op;
  Call call;  ///< that `op` is
  double scale;
  std::int64_t zero_point;
  Argument dtype;
  Bounds bounds;  ///< of the activation, if there is one

  explicit Place(const Match& m)
      : match(m),
        op(m["y"]),
        call(call_of(op)),
        scale(m.literal("scale")),
        zero_point(static_cast<std::int64_t>(m.literal("zero_point"))),
        dtype(m.argument("dtype")) {
    if (m.has("a")) bounds = bounds_of(m["a"]);
  }

  /// True when saturation at the ends of the quantized range does what the bound does.
  bool low_is_implied() const { return -static_cast<double>(zero_point) * scale >= bounds.low - scale / 2; }
  bool high_is_implied() const { return static_cast<double>(255 - zero_point) * scale <= bounds.high + scale / 2; }
  bool is_relu() const { return bounds.is_activation && bounds.low == 0; }
};

class LoweringRules {
 public:
  LoweringRules(GraphModule& module, TargetEngine& target, const Trial::Values& values)
      : module_(module), target_(target), backend_(target.backend()), trial_(module, backend_, values) {}

  std::vector<Rule> make() {
    std::vector<Rule> rules;
    for (const Row& row : backend_table()) {
      if (row.packet.starts_with("operator.")) continue;
      const bool takes_activation = row.role != Role::share && row.role != Role::fixed && row.role != Role::by_number;
      if (takes_activation) rules.push_back(rule(row, true));
      rules.push_back(rule(row, false));
    }
    rules.push_back(
        {.name = "lower-sizes",
         .pattern = "{aten::size, aten::dim, aten::numel, aten::sym_size}(aten::dequantize.self(xq: node), ...)",
         .replacement = [](const Match& m, Rewriter& r) -> Node& { return on_quantized(m.anchor(), m, r); }});
    return rules;
  }

  /// The quantized weights of the layers that were lowered, by the path of what they were packed into.
  const std::unordered_map<std::string, at::Tensor>& weights() const { return weights_; }

 private:
  Rule rule(const Row& row, bool activated) {
    const Row* entry = &row;
    return {.name = "lower-" + std::string(row.packet.substr(6)) + (activated ? "-activated" : ""),
            .pattern = pattern_of(row, activated),
            .when =
                [activated](const Match& m) {
                  // What stays float may stand between two quantized values too.
                  const Meta* meta = m["y"].find_meta();
                  if (!meta || !meta->get<bool>(meta_key::kQuantized)) return false;
                  return !activated || bounds_of(m["a"]).is_activation;
                },
            .replacement = [this, entry](const Match& m, Rewriter& r) { return lower(*entry, Place(m), r); },
            .promise = Promise::approximate};
  }

  std::vector<Argument> lower(const Row& row, const Place& place, Rewriter& rewriter) {
    try {
      Node* made = row.role == Role::share ? share(place, rewriter) : call(row, place, rewriter);
      if (!made) return {};
      const bool relu = place.is_relu() && !row.kernel_relu.empty();
      const std::string fault = trial_.fault(*made, place.op, relu, /*compare=*/row.role != Role::weighted);
      if (!fault.empty()) return refuse(place, fault);
      if (row.role == Role::weighted)  // what has run remembers the sizes of its first run and is slow for others
        module_.replace_submodule(made->arg(1).node().target().str(),
                                  std::make_shared<ObjectAttribute>(packed(row, place, backend_)));
      if (row.role != Role::share) {
        made->meta().set(meta_key::kGrid, *grid_of(place.match.anchor()));
        made = &clamp(row, place, *made, rewriter);
      }
      const Meta* meta = place.match.anchor().find_meta();
      if (const std::string* value = meta ? meta->get<std::string>(meta_key::kValue) : nullptr)
        made->meta().set(meta_key::kValue, *value);
      return {*made};
    } catch (const Error& error) {
      return refuse(place, error.message());
    } catch (const std::exception& error) {
      return refuse(place, first_line(error));
    }
  }

  std::vector<Argument> refuse(const Place& place, const std::string& why) {
    target_.refuse(place.op.name(), why);
    return {};
  }

  static Node& require_quint8(Node& value) {
    const auto grid = grid_of(value);
    if (grid && grid->dtype != DType::quint8) throw Error(ErrorKind::unsupported, "kernels take inputs of type quint8");
    return value;
  }

  Node* call(const Row& row, const Place& place, Rewriter& rewriter) {
    if (place.dtype.as_dtype() != DType::quint8)
      throw Error(ErrorKind::unsupported, "kernels take activations of type quint8");
    for (const char* name : {"xq", "zq"}) {
      if (place.match.has(name)) require_quint8(place.match[name]);
    }
    switch (row.role) {
      case Role::weighted: return &weighted(row, place, rewriter);
      case Role::concat: return concat(row, place, rewriter);
      case Role::share_all: return stack(row, place, rewriter);
      case Role::by_number: return &rewriter.call_function(row.kernel, {place.match["xq"], number_of(place.call)});
      default: return &by_schema(row, place, rewriter);
    }
  }

  // What only moves elements takes quantized tensors as they are, once it is sure that the range stays.
  static Node* share(const Place& place, Rewriter& rewriter) {
    const Meta* notes = place.match.anchor().find_meta();
    return notes && notes->get<bool>(meta_key::kShared) ? &on_quantized(place.op, place.match, rewriter) : nullptr;
  }

  /// The same call with the quantized value in place of its dequantization.
  static Node& on_quantized(const Node& call, const Match& match, Rewriter& rewriter) {
    const auto swapped = [&](const Argument& argument) {
      return map_nodes(argument, [&](Node& node) -> Argument {
        const bool is_it = node.is_call("aten::dequantize.self") && node.arg(0).node_or_null() == &match["xq"];
        return is_it ? Argument(match["xq"]) : Argument(node);
      });
    };
    std::vector<Argument> args;
    std::vector<NamedArgument> kwargs;
    for (const Argument& each : call.args()) args.push_back(swapped(each));
    for (const auto& [name, value] : call.kwargs()) kwargs.push_back({name, swapped(value)});
    return rewriter.create_node(call.op(), call.target(), args, kwargs);
  }

  // ── Layers ───────────────────────────────────────────────────────────────────────────────────────────────────────

  Node& weighted(const Row& row, const Place& place, Rewriter& rewriter) {
    const bool relu = place.is_relu() && !row.kernel_relu.empty();
    const std::string weight = place.match["wq"].target().str();
    const at::Tensor numbers = module_.attribute(weight);
    const Argument* groups = place.call.argument("groups");
    const EngineLayer layer{row, numbers, constant(*place.call.argument("bias")), groups ? groups->as_int() : 1,
                            grid_of(place.match["xq"])};
    const auto packed_for = [&](QuantBackend backend) {
      check_engine_limits(backend, layer);
      return packed(row, place, backend);
    };
    check_saving(backend_, layer);
    const std::string path = install_object(module_, weight, "packed_params", packed_for(backend_));
    target_.ask_others(place.op.name(), packed_for);
    weights_.emplace(path, numbers);
    return rewriter.call_function(relu ? row.kernel_relu : row.kernel,
                                  {place.match["xq"], rewriter.get_attr(path), place.scale, place.zero_point});
  }

  c10::IValue constant(const Argument& argument) const {
    if (const Node* node = argument.node_or_null()) return module_.attribute(node->target().str()).detach();
    return to_ivalue(argument);
  }

  static c10::IValue numbers(const Argument& argument, std::int64_t size) {
    return c10::List<std::int64_t>(
        at::ArrayRef<std::int64_t>(integers_of(argument, static_cast<std::size_t>(size)).value()));
  }

  c10::IValue packed(const Row& row, const Place& place, QuantBackend backend) const {
    const at::Tensor weight = module_.attribute(place.match["wq"].target().str());
    std::vector<c10::IValue> arguments = {weight, constant(*place.call.argument("bias"))};
    if (row.packet != "aten::linear") {
      const std::int64_t size = weight.dim() - 2;
      const bool transposed = row.packet.starts_with("aten::conv_transpose");
      arguments.push_back(numbers(*place.call.argument("stride"), size));
      arguments.push_back(numbers(*place.call.argument("padding"), size));
      if (transposed) arguments.push_back(numbers(*place.call.argument("output_padding"), size));
      arguments.push_back(numbers(*place.call.argument("dilation"), size));
      arguments.push_back(place.call.argument("groups")->as_int());
    }
    const EngineScope engine(backend);
    return call_operator(row.prepack, std::move(arguments));
  }

  /// The quantized values of a list; nothing when one of them is on floats.
  static std::optional<std::vector<Argument>> quantized_list(const Place& place) {
    const Argument list = place.match.argument("tensors");
    if (!list.is_list() && !list.is_tuple()) return std::nullopt;
    std::vector<Argument> tensors;
    for (const Argument& each : list.elements()) {
      const Node* floats = each.node_or_null();
      if (!floats || !floats->is_call("aten::dequantize.self")) return std::nullopt;
      tensors.push_back(require_quint8(floats->arg(0).node()));
    }
    return tensors;
  }

  static Node* concat(const Row& row, const Place& place, Rewriter& rewriter) {
    const auto tensors = quantized_list(place);
    return tensors ? &rewriter.call_function(row.kernel, {Argument::list(*tensors), *place.call.argument("dim"),
                                                          place.scale, place.zero_point})
                   : nullptr;
  }

  // What has no kernel of its own moves whole numbers: they must mean the same.
  static Node* stack(const Row& row, const Place& place, Rewriter& rewriter) {
    const auto tensors = quantized_list(place);
    if (!tensors) return nullptr;
    for (const Argument& each : *tensors) {
      const auto grid = grid_of(each.node());
      if (!grid || grid->scale != place.scale || grid->zero_point != place.zero_point)
        throw Error(ErrorKind::unsupported, "its inputs have different ranges");
    }
    return &rewriter.call_function(row.packet, {Argument::list(*tensors), *place.call.argument("dim")});
  }

  /// The kernel's arguments by the names that the float operator's have; those that a kernel adds are known here.
  Node& by_schema(const Row& row, const Place& place, Rewriter& rewriter) {
    std::string kernel(row.kernel);
    const bool relu = place.is_relu() && !row.kernel_relu.empty();
    if (relu) kernel = row.kernel_relu;
    if (row.packet == "aten::batch_norm")
      kernel.insert(std::string_view("quantized::batch_norm").size(), rank_suffix(place));
    if (kernel.empty()) return on_quantized(place.op, place.match, rewriter);
    const OperatorSchema* schema = find_overload(kernel);
    if (!schema) throw Error(ErrorKind::unsupported, "this LibTorch has no " + kernel);
    const bool prefixed = schema->index_of("output_scale") >= 0;
    std::vector<Argument> args;
    for (std::size_t i = 0; i < schema->arguments.size(); ++i) {
      const std::string_view name = schema->arguments[i].name.view();
      if (i == 0) {
        args.push_back(place.match["xq"]);
      } else if (i == 1 && row.role == Role::elementwise) {
        args.push_back(place.match["zq"]);
      } else if (name == (prefixed ? "output_scale" : "scale")) {
        args.push_back(place.scale);
      } else if (name == (prefixed ? "output_zero_point" : "zero_point")) {
        args.push_back(place.zero_point);
      } else if (name == "inplace") {
        args.push_back(false);
      } else {
        args.push_back(*place.call.argument(name == "mean" ? "running_mean" : name == "var" ? "running_var" : name));
      }
    }
    return rewriter.call_function(kernel, args);
  }

  static std::string rank_suffix(const Place& place) {
    const Meta* meta = place.op.find_meta();
    const int* rank = meta ? meta->get<int>(meta_key::kRank) : nullptr;
    return rank && *rank == 5 ? "3d" : "2d";
  }

  // Bounds that saturation does not see to.
  Node& clamp(const Row& row, const Place& place, Node& made, Rewriter& rewriter) const {
    if (!place.bounds.is_activation) return made;
    const bool low_done = (place.is_relu() && !row.kernel_relu.empty()) || place.low_is_implied();
    const bool high_done = place.high_is_implied();
    if (low_done && high_done) return made;
    if (high_done && place.is_relu()) return rewriter.call_function("aten::relu", {made});
    const auto finite = [](double bound) { return std::isinf(bound) ? Argument() : Argument(bound); };
    const std::vector<Argument> bounds = {finite(place.bounds.low), finite(place.bounds.high)};
    // qnnpack's own clamp wants both bounds, and mixes up the elements of images.
    if (backend_ == QuantBackend::qnnpack || at::globalContext().qEngine() == at::QEngine::QNNPACK) {
      Node& floats = rewriter.call_function("aten::dequantize.self", {made});
      Node& clamped = rewriter.call_function("aten::clamp", {floats, bounds[0], bounds[1]});
      return rewriter.call_function("aten::quantize_per_tensor", {clamped, place.scale, place.zero_point, place.dtype});
    }
    return rewriter.call_function("aten::clamp", {made, bounds[0], bounds[1]});
  }

  GraphModule& module_;
  TargetEngine& target_;
  QuantBackend backend_;
  Trial trial_;
  std::unordered_map<std::string, at::Tensor> weights_;
};

}  // namespace

void lower(GraphModule& reference, TargetEngine& target, const Trial::Values& values) {
  const at::NoGradGuard no_grad;
  lower_lists(reference.graph());
  eliminate_dead_code(reference);
  LoweringRules rules(reference, target, values);
  rewrite_once(reference, RuleSet(rules.make()));
  if (target.backend() == QuantBackend::onednn) keep_apart(reference.graph(), rules.weights());
  restore_strides(reference, values);
  assert_input_limits(reference, values);
  tidy(reference);
}

namespace {

/// A copy in which the quantized value has the float value's name. A new graph, so that all names are free; what still
/// makes the value on floats gives its name up.
Graph with_value_names(const Graph& graph) {
  const auto value_of = [](const Node& node) {
    const Meta* meta = node.find_meta();
    const std::string* value = meta ? meta->get<std::string>(meta_key::kValue) : nullptr;
    return value && !node.is_call("aten::quantize_per_tensor") ? *value : std::string();
  };
  std::unordered_set<std::string> taken;
  for (const Node& node : graph.nodes()) {
    if (const std::string value = value_of(node); !value.empty()) taken.insert(value);
  }
  Graph named;
  NodeMap<Argument> values(graph);
  for (const Node& node : graph.nodes()) {
    Node& copy = named.node_copy(node, [&](Node& input) { return values[input]; });
    const std::string value = value_of(node);
    if (!value.empty()) {
      copy.rename(value);
    } else if (taken.contains(node.name())) {
      copy.rename(node.name() + "_float");
    }
    values[node] = copy;
  }
  return named;
}

}  // namespace

void tidy(GraphModule& module) {
  optimize(module, {.rules = {"common-subexpression", "dead-code"}});
  module.delete_all_unused_attributes();
  module.delete_all_unused_submodules();
  module.set_graph(with_value_names(module.graph()));
  module.graph().lint();
}

}  // namespace fx::quantize
