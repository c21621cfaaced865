#include <fxgraph/rewriter/quantize/float_input.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/rewriter/quantize/flat_program.h>
#include <fxgraph/rewriter/quantize/observer.h>
#include <fxgraph/rewriter/quantize/packed.h>
#include <fxgraph/rewriter/quantize/recurrent.h>
#include <fxgraph/rewriter/quantize/reference.h>
#include <fxgraph/rewriter/rules/weights.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>

namespace fx::quantize {

namespace {

/// A layer, and the program that it is a layer of.
struct Question {
  const GraphModule& flat;
  rules::ProgramEffects& written;
  const Shapes& shapes;
  const Node& node;
  const Call& call;
};

/// Why the layer cannot be quantized by its weight; empty when it can.
std::string weight_obstacle(const Question& ask) {
  const std::string path = attribute_path(ask.call.argument("weight"));
  if (path.empty()) return "its weight is computed, not an attribute";
  if (!ask.written.not_constant(path).empty()) return "the program writes to its weight";
  if (ask.flat.attribute(path).scalar_type() != at::kFloat) return "its weight is not float32";
  return {};
}

std::string weight_only_obstacle(const Question& ask) {
  const TensorInfo* value = ask.shapes[ask.node].tensor();
  return value && value->dtype == DType::float32 ? weight_obstacle(ask) : "its value is not float32";
}

std::string linear_obstacle(const Question& ask) {
  const TensorInfo* value = ask.shapes[ask.node].tensor();
  return value && value->sizes.size() < 2 ? "the kernel wants a batch" : weight_only_obstacle(ask);
}

std::string lookup_obstacle(const Question& ask) {
  const Argument* indices = ask.call.argument("indices");
  const Node* given = indices ? indices->node_or_null() : nullptr;
  const TensorInfo* info = given ? ask.shapes[*given].tensor() : nullptr;
  if (!info || info->sizes.empty() || info->sizes.size() > 2)
    return "the kernel wants indices in one or two dimensions";
  // It reads past the end of none at all.
  if (std::ranges::find(info->sizes, 0) != info->sizes.end()) return "the kernel wants at least one index";
  for (const char* name : {"scale_grad_by_freq", "sparse"}) {
    const Argument* value = ask.call.argument(name);
    if (!value || !value->is_bool()) return std::string("its ") + name + " is computed";
  }
  return {};
}

std::string embedding_obstacle(const Question& ask) {
  const std::string why = lookup_obstacle(ask);
  return why.empty() ? weight_obstacle(ask) : why;
}

std::string bag_obstacle(const Question& ask) {
  if (std::string why = lookup_obstacle(ask); !why.empty()) return why;
  const Call& call = ask.call;
  const Node* offsets = call.argument("offsets")->node_or_null();
  const TensorInfo *one = ask.shapes[call.argument("indices")->node()].tensor(),
                   *other = offsets ? ask.shapes[*offsets].tensor() : nullptr;
  if (!other || one->dtype != other->dtype) return "the kernel wants indices and offsets of one type";
  const Argument *mode = call.argument("mode"), *padding = call.argument("padding_idx");
  if (!mode || !mode->is_int() || mode->as_int() != 0) return "the kernel knows sums only";
  if (padding && !padding->is_none()) return "the kernel knows no padding index";
  for (const Node& user : ask.node.users()) {
    const bool sum = user.target() == python::kGetItem && user.arg(1).is_int() && user.arg(1).as_int() == 0;
    if (!sum) return "more than its sums is read";
  }
  return weight_obstacle(ask);
}

std::string sequence_obstacle(const Question& ask) { return recurrent_obstacle(ask.flat, ask.call); }
std::string step_obstacle(const Question& ask) { return cell_obstacle(ask.flat, ask.call); }

class FloatInputWriter {
 public:
  FloatInputWriter(GraphModule& flat, TargetEngine& target)
      : flat_(flat), graph_(flat.graph()), target_(target), backend_(target.backend()) {}

  void sequence(Node& node, const QuantSettings& settings) { quantize_recurrent(flat_, node, target_, settings); }
  void step(Node& node, const QuantSettings& settings) { quantize_cell(flat_, node, target_, settings); }

  void weight_only(Node& node, const QuantSettings& settings) {
    const auto axis = channel_axis(*row_of(node.target().view()));
    Node& weight = call_of(node).argument("weight")->node();
    Node& quantized = graph_.get_attr(install_weight(node, settings, axis));
    node.replace_input_with(weight, graph_.call_function("aten::dequantize.self", {quantized}));
  }

  void dynamic_linear(Node& node, const QuantSettings& settings) {
    const Call call = call_of(node);
    const Argument x = *call.argument("input"), bias = *call.argument("bias");
    const std::string weight_path = install_weight(node, settings, 0);
    if (backend_ == QuantBackend::reference) {
      Node& range = graph_.call_function("aten::_choose_qparams_per_tensor", {x, settings.activation.reduce_range});
      Node& scale = graph_.call_function(python::kGetItem, {range, 0});
      Node& zero = graph_.call_function(python::kGetItem, {range, 1});
      Node& quantized = graph_.call_function("aten::quantize_per_tensor", {x, scale, zero, DType::quint8});
      Node& floats = graph_.call_function("aten::dequantize.self", {quantized});
      Node& weight = graph_.call_function("aten::dequantize.self", {graph_.get_attr(weight_path)});
      return replace(node, graph_.call_function("aten::linear", {floats, weight, bias}));
    }
    const Node* given = bias.node_or_null();
    const c10::IValue numbers = given ? c10::IValue(flat_.attribute(given->target().str()).detach()) : c10::IValue();
    c10::IValue packed =
        target_.pack_matrix(node.name(), flat_.attribute(weight_path), numbers, settings.activation.quant_max());
    const std::string path = install_object(flat_, weight_path, "packed_params", std::move(packed));
    replace(node, graph_.call_function("quantized::linear_dynamic",
                                       {x, graph_.get_attr(path), settings.activation.reduce_range}));
  }

  // A row of the table has a scale and, as a float, a zero point of its own: torch.ao's
  // per_channel_affine_float_qparams.
  void embedding(Node& node, const QuantSettings&) {
    const auto made = packed_table(node);
    if (made)
      replace(node, graph_.call_function("quantized::embedding_byte",
                                         {graph_.get_attr(*made), *call_of(node).argument("indices")}));
  }

  void embedding_bag(Node& node, const QuantSettings&) {
    const auto made = packed_table(node);
    if (!made) return;
    const Call call = call_of(node);
    const auto given = [&](const char* name) { return *call.argument(name); };
    Node& sums = graph_.call_function(
        "quantized::embedding_bag_byte",
        {graph_.get_attr(*made), given("indices"), given("offsets"), given("scale_grad_by_freq"), std::int64_t{0},
         false, given("per_sample_weights"), Argument(), given("include_last_offset")});
    std::vector<Node*> readers;
    for (Node& user : node.users()) readers.push_back(&user);
    for (Node* reader : readers) {
      reader->replace_all_uses_with(sums);
      graph_.erase_node(*reader);
    }
    graph_.erase_node(node);
  }

 private:
  void replace(Node& node, Node& by) {
    const std::string name = node.name();
    node.replace_all_uses_with(by);
    graph_.erase_node(node);
    by.rename(name);
  }

  std::string install_weight(const Node& node, const QuantSettings& settings, std::optional<std::int64_t> axis) {
    const std::string path = attribute_path(call_of(node).argument("weight"));
    const std::string made = flat_.fresh_path(path + "_quantized");
    flat_.set_buffer(made, quantized_weight(settings.weight, flat_.attribute(path).detach(), axis, node.name()));
    return made;
  }

  /// Where the packed table lies; nothing for the reference form, which reads it back in place.
  std::optional<std::string> packed_table(Node& node) {
    Node& attribute = call_of(node).argument("weight")->node();
    const std::string path = attribute.target().str();
    const at::Tensor weight = flat_.attribute(path).detach();
    const auto [low, high] = at::aminmax(weight, 1);
    at::Tensor scale = (high - low) / 255.0;
    scale = at::where(scale > std::numeric_limits<float>::epsilon(), scale, at::ones_like(scale));
    const at::Tensor quantized = at::quantize_per_channel(weight, scale, -low / scale, 0, at::kQUInt8);
    if (backend_ == QuantBackend::reference) {
      const std::string made = flat_.fresh_path(path + "_quantized");
      flat_.set_buffer(made, quantized);
      Node& table = graph_.call_function("aten::dequantize.self", {graph_.get_attr(made)});
      node.replace_input_with(attribute, table);
      return std::nullopt;
    }
    return install_object(flat_, path, "packed_params", call_operator("quantized::embedding_bag_prepack", {quantized}));
  }

  GraphModule& flat_;
  Graph& graph_;
  TargetEngine& target_;
  QuantBackend backend_;
};

constexpr const char kByRows[] = "its table is quantized by rows";
constexpr const char kInEachRun[] = "its weights are quantized, its inputs' ranges found in each run";

/// How calls of an operator are quantized in these modes.
struct Way {
  std::string_view packet;  ///< empty: any other operator that the table of the backend has a weight for
  bool dynamic, weight_only;
  const char* how;
  std::string (*obstacle)(const Question& ask);
  void (FloatInputWriter::*write)(Node& node, const QuantSettings& settings);
};
constexpr Way kWays[] = {
    {"aten::embedding", true, true, kByRows, embedding_obstacle, &FloatInputWriter::embedding},
    {"aten::embedding_bag", true, true, kByRows, bag_obstacle, &FloatInputWriter::embedding_bag},
    {"aten::lstm", true, false, kInEachRun, sequence_obstacle, &FloatInputWriter::sequence},
    {"aten::gru", true, false, kInEachRun, sequence_obstacle, &FloatInputWriter::sequence},
    {"aten::lstm_cell", true, false, kInEachRun, step_obstacle, &FloatInputWriter::step},
    {"aten::gru_cell", true, false, kInEachRun, step_obstacle, &FloatInputWriter::step},
    {"aten::linear", true, false, "its weight is quantized, its input's range found in each run", linear_obstacle,
     &FloatInputWriter::dynamic_linear},
    {"", false, true, "its weight is quantized, it computes with floats", weight_only_obstacle,
     &FloatInputWriter::weight_only},
};

/// Null when these settings leave the operator as it is.
const Way* way_of(const Node& node, QuantMode mode) {
  const std::string_view target = node.target().view(), packet = packet_of(target);
  const Row* row = row_of(target);
  const auto found = std::ranges::find_if(kWays, [&](const Way& way) {
    const bool meant = way.packet.empty() ? row && row->role == Role::weighted : way.packet == packet;
    return meant &&
           ((mode == QuantMode::dynamic && way.dynamic) || (mode == QuantMode::weight_only && way.weight_only));
  });
  return found == std::end(kWays) ? nullptr : &*found;
}

}  // namespace

FloatInputPlan::FloatInputPlan(const GraphModule& flat, const Shapes& shapes, const Annotation& annotation) {
  rules::ProgramEffects written(flat);
  for (Node& node : const_cast<Graph&>(flat.graph()).nodes()) {
    const QuantSettings* settings = annotation.of(node).settings;
    if (!settings || !node.is(Op::call_function)) continue;
    const Way* way = way_of(node, settings->mode);
    if (!way) continue;
    const std::string why = way->obstacle({flat, written, shapes, node, call_of(node)});
    (why.empty() ? layers_ : refused_).push_back({&node, settings, why.empty() ? way->how : why});
  }
}

const std::string* FloatInputPlan::find(const std::vector<Layer>& layers, const Node& node) {
  const auto found = std::ranges::find(layers, &node, &Layer::node);
  return found == layers.end() ? nullptr : &found->how;
}

void FloatInputPlan::apply(GraphModule& flat, TargetEngine& target) const {
  for (const Layer& layer : layers_) {
    const std::string name = layer.node->name();
    try {
      FloatInputWriter writer(flat, target);
      const auto scope = flat.graph().inserting_before(*layer.node);
      (writer.*way_of(*layer.node, layer.settings->mode)->write)(*layer.node, *layer.settings);
    } catch (const std::exception& error) {
      target.keep_float(name, first_line(error));
    }
  }
}

}  // namespace fx::quantize
