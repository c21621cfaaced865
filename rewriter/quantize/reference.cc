#include <fxgraph/rewriter/quantize/reference.h>

#include <ATen/ATen.h>

#include <cmath>
#include <map>
#include <tuple>

#include <fxgraph/ops/call.h>
#include <fxgraph/rewriter/quantize/flat_program.h>
#include <fxgraph/rewriter/quantize/trial.h>
#include <fxgraph/support/error.h>

namespace fx::quantize {

at::Tensor quantized_weight(const Quantizer& quantizer, const at::Tensor& weight, std::optional<std::int64_t> axis,
                            const std::string& node) {
  const at::NoGradGuard no_grad;
  Quantizer wanted = quantizer;
  wanted.per_channel &= axis.has_value();
  if (wanted.range == RangeKind::moving_average) wanted.range = RangeKind::min_max;
  Observer observer(wanted, node, wanted.per_channel ? *axis : -1);
  observer.observe(weight);
  const QuantParameters parameters = observer.parameters();
  at::Tensor values = weight.detach().contiguous();
  return parameters.quantize(values);
}

namespace {

// The range that the kernel gives to the result of a value and a number: where it can, the whole numbers stay as they
// are and mean something else.
QuantParameters by_number(const Row& row, const Node& node, QuantParameters parameters) {
  const double number = number_of(call_of(node)), scale = parameters.scale_value();
  const bool is_signed = parameters.dtype == DType::qint8;
  const double low = is_signed ? -128 : 0, high = low + 255;
  double made = scale, zero_point = static_cast<double>(parameters.zero_point_value());
  if (row.kernel == "quantized::add.Scalar") {
    zero_point -= std::nearbyint(number / scale);
    if (zero_point < low) {
      made = scale * (high - zero_point) / 255, zero_point = low;
    } else if (zero_point > high) {
      made = scale * (zero_point - low) / 255, zero_point = high;
    }
  } else {
    made = number == 0 ? 1 : scale * std::abs(number);
    zero_point = number > 0 ? zero_point : number < 0 ? high + low - zero_point : 0;
  }
  parameters.scale = at::full({1}, made, at::kFloat);
  parameters.zero_point = at::full({1}, static_cast<std::int64_t>(zero_point), at::kLong);
  parameters.quant_min = static_cast<std::int64_t>(low), parameters.quant_max = static_cast<std::int64_t>(high);
  return parameters;
}

class ReferenceWriter {
 public:
  ReferenceWriter(GraphModule& flat, const Annotation& annotation, const GraphModule& prepared,
                  const QuantRecord& record)
      : flat_(flat), graph_(flat.graph()), annotation_(annotation), prepared_(prepared), record_(record) {}

  void write() {
    for (int range = 0; range < annotation_.num_ranges(); ++range) {
      const Node& maker = annotation_.maker(annotation_.root(range));
      const Mark& mark = annotation_.of(maker);
      if (mark.quantized && mark.row->role == Role::by_number)
        follows_[range] = annotation_.range_of(call_of(maker).argument(0)->node());
    }
    std::vector<Node*> nodes;
    for (Node& node : graph_.nodes()) nodes.push_back(&node);
    for (Node* node : nodes) {
      const Mark& mark = annotation_.of(*node);
      if (mark.quantized) node->meta().set(meta_key::kQuantized, true);
      if (mark.quantized && mark.row->role == Role::weighted) quantize_weight(*node, mark);
      if (mark.quantized && mark.row->packet == "aten::batch_norm") note_rank(*node);
    }
    for (Node* node : nodes) {
      const int range = annotation_.range_of(*node);
      if (range != Annotation::kNone) quantize_value(*node, range);
    }
  }

 private:
  void note_rank(Node& node) const {
    const auto known = record_.values.find(node.name());
    const TensorInfo* tensor = known == record_.values.end() ? nullptr : known->second.tensor();
    if (tensor) node.meta().set(meta_key::kRank, static_cast<int>(tensor->sizes.size()));
  }

  void quantize_weight(Node& layer, const Mark& mark) {
    Node& attribute = call_of(layer).argument("weight")->node();
    const std::string path = attribute.target().str();
    const auto axis = channel_axis(*mark.row);
    // Layers that share a weight share its quantized form.
    std::string& quantized = weights_[{path, axis.value_or(-1)}];
    if (quantized.empty()) {
      quantized = flat_.fresh_path(path + "_quantized");
      flat_.set_buffer(quantized, quantized_weight(mark.settings->weight, flat_.attribute(path), axis, layer.name()));
    }
    const auto scope = graph_.inserting_before(layer);
    Node& weight = graph_.call_function("aten::dequantize.self", {graph_.get_attr(quantized)});
    layer.replace_input_with(attribute, weight);
  }

  QuantParameters parameters_of(int range) {
    if (const auto known = parameters_.find(range); known != parameters_.end()) return known->second;
    const Node& root = annotation_.root(range);
    const Node& maker = annotation_.maker(root);
    const Row* row = annotation_.is_made_quantized(root) ? annotation_.of(maker).row : nullptr;
    QuantParameters found;
    if (row && row->role == Role::fixed) {
      found = fixed_parameters(row->scale, row->zero_point);
    } else if (row && row->role == Role::by_number) {
      found = by_number(*row, maker, parameters_of(follows_.at(range)));
    } else {
      auto path = record_.observers.find(root.name());
      // An operator that now stays float may have had an activation as its part: then that was observed, and saturates
      // as the activation does.
      for (const Node& node : graph_.nodes()) {
        if (path != record_.observers.end()) break;
        if (annotation_.range_of(node) == range) path = record_.observers.find(node.name());
      }
      if (path == record_.observers.end())
        throw Error(ErrorKind::invalid_argument, "%" + root.name() + " was not there when the program was prepared",
                    root.name());
      found = observed_parameters(prepared_, path->second);
    }
    parameters_.emplace(range, found);
    return found;
  }

  void quantize_value(Node& value, int range) {
    const TensorInfo* tensor = nullptr;
    if (const auto known = record_.values.find(value.name()); known != record_.values.end())
      tensor = known->second.tensor();
    if (!tensor) return;  // a list: its elements are quantized when they are taken out
    const bool everyone = annotation_.is_made_quantized(value);
    std::vector<Node*> readers;
    for (Node& user : value.users()) {
      if (everyone || annotation_.reads_quantized(user, value)) readers.push_back(&user);
    }
    if (readers.empty()) return;
    Node& quantized = quantize(value, parameters_of(range));
    if (&annotation_.root(range) != &value) quantized.meta().set(meta_key::kShared, true);
    for (Node* reader : readers) {
      const auto scope = graph_.inserting_before(*reader);
      Node& floats = graph_.call_function("aten::dequantize.self", {quantized});
      reader->replace_input_with(value, floats);
    }
  }

  Node& quantize(Node& value, const QuantParameters& parameters) {
    Node* place = value.next();
    while (place && place->is(Op::placeholder)) place = place->next();
    const auto scope = graph_.inserting_before(*place);
    if (value.is(Op::get_attr)) {
      const std::string path = flat_.fresh_path(value.target().str() + "_quantized");
      flat_.set_buffer(path, parameters.quantize(flat_.attribute(value.target().str()).detach()));
      return graph_.get_attr(path);
    }
    Node& quantized =
        graph_.call_function("aten::quantize_per_tensor",
                             {value, parameters.scale_value(), parameters.zero_point_value(), parameters.dtype});
    quantized.meta().set(meta_key::kValue, value.name());
    quantized.meta().set(meta_key::kGrid, Grid{parameters.scale_value(), parameters.zero_point_value(),
                                               parameters.dtype, parameters.quant_max});
    return quantized;
  }

  GraphModule& flat_;
  Graph& graph_;
  const Annotation& annotation_;
  const GraphModule& prepared_;
  const QuantRecord& record_;
  std::map<std::pair<std::string, std::int64_t>, std::string> weights_;
  std::map<int, QuantParameters> parameters_;
  std::map<int, int> follows_;  // of the result of a number and a value: the value's
};

}  // namespace

void write_reference(GraphModule& flat, const Annotation& annotation, const GraphModule& prepared,
                     const QuantRecord& record) {
  const at::NoGradGuard no_grad;
  ReferenceWriter(flat, annotation, prepared, record).write();
}

}  // namespace fx::quantize
