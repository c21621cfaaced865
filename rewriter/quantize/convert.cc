// convert: the observers' ranges become quantize and dequantize nodes, and these the engine's kernels.
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <unordered_set>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/rewriter/quantize/annotation.h>
#include <fxgraph/rewriter/quantize/flat_program.h>
#include <fxgraph/rewriter/quantize/float_input.h>
#include <fxgraph/rewriter/quantize/lowering.h>
#include <fxgraph/rewriter/quantize/quantize.h>
#include <fxgraph/rewriter/quantize/record.h>
#include <fxgraph/rewriter/quantize/reference.h>
#include <fxgraph/rewriter/quantize/strides.h>
#include <fxgraph/rewriter/quantize/training.h>
#include <fxgraph/support/error.h>

namespace fx {

using namespace quantize;

namespace {

/// The flat float program that `prepared` was made from, with the weights that it has now.
std::shared_ptr<GraphModule> without_observers(const GraphModule& prepared, const QuantRecord& record) {
  std::shared_ptr<GraphModule> flat = prepared.clone_graph_module();
  Graph& graph = flat->graph();
  for (Node& node : graph.nodes()) {
    if (!node.is(Op::call_module)) continue;
    const auto module = flat->find_submodule(node.target().str());
    const auto* fake = dynamic_cast<const FakeQuantize*>(module.get());
    const bool checks = dynamic_cast<const SampleCheck*>(module.get());
    if (!fake && !checks && !dynamic_cast<const Observer*>(module.get())) continue;
    node.replace_all_uses_with(node.arg(0));
    graph.erase_node(node);
  }
  if (record.training) {
    fold_trained_layers(*flat, record);
  } else {
    for (const QuantRecord::State& state : record.state) state.restore(flat->attribute(state.path));
  }
  flat->eval();
  return flat;
}

QuantConfig config_of(const QuantRecord& record, const ConvertOptions& options, const Graph& flat) {
  QuantConfig config = record.config;
  for (const std::string& name : options.keep_float) {
    if (!flat.find(name))
      throw Error(ErrorKind::not_found, "the node '" + name + "' that is to stay float is not in the program");
  }
  config.keep_float_nodes(options.keep_float);
  return config;
}

struct Converted {
  std::shared_ptr<GraphModule> module;
  TargetEngine target;
};

Converted convert_noting(const GraphModule& prepared, const ConvertOptions& options) {
  const at::NoGradGuard no_grad;
  const QuantBackend backend = resolve_quant_backend(options.backend);
  const QuantRecord& record = record_of(prepared);
  const bool every_engine = options.every_engine || options.backend == QuantBackend::automatic;
  Converted made{without_observers(prepared, record), {backend, every_engine}};
  const QuantConfig config = config_of(record, options, made.module->graph());
  const Shapes shapes = record.shapes_of(made.module->graph());
  const Annotation annotation(*made.module, shapes, config, finiteness_of(prepared, record));
  const FloatInputPlan plan(*made.module, shapes, annotation);
  write_reference(*made.module, annotation, prepared, record);
  plan.apply(*made.module, made.target);
  made.module->delete_submodule(kRecordPath);
  if (backend == QuantBackend::reference) {
    restore_strides(*made.module, record.values);
    tidy(*made.module);
  } else {
    lower(*made.module, made.target, record.values);
  }
  made.module->graph().lint();
  return made;
}

// Sizes and conditions; programs that were traced compute with them in tensors of one element.
bool is_size(const ValueInfo& value) {
  for (const TensorInfo& info : value.tensors) {
    if (!info.sizes.empty() || (info.dtype != DType::int64 && info.dtype != DType::boolean)) return false;
  }
  return true;
}

/// What the engines said of the node, after what the annotation and the plan said.
void add_notes(QuantReason& reason, const TargetEngine& target) {
  const auto note_in = [&](const NodeNotes& notes) -> const std::string* {
    const auto found = std::ranges::find(notes, reason.node, &NodeNotes::value_type::first);
    return found == notes.end() ? nullptr : &found->second;
  };
  if (const std::string* why = note_in(target.refused())) {
    reason.reason = "computed between dequantize and quantize: " + *why;
  } else if (const std::string* kept = note_in(target.kept())) {
    reason.quantized = false;
    reason.reason = *kept;
  } else if (const std::string* tied = note_in(target.tied())) {
    reason.engine = to_string(target.backend());
    reason.reason = (reason.reason.empty() ? "" : reason.reason + "; ") + *tied;
  }
}

}  // namespace

std::shared_ptr<GraphModule> convert(const GraphModule& prepared, const ConvertOptions& options) {
  return convert_noting(prepared, options).module;
}

std::vector<QuantReason> quantization_reasons(const GraphModule& prepared, const ConvertOptions& options) {
  const QuantRecord& record = record_of(prepared);
  const std::shared_ptr<GraphModule> flat = without_observers(prepared, record);
  const QuantConfig config = config_of(record, options, flat->graph());
  const Shapes shapes = record.shapes_of(flat->graph());
  const Annotation annotation(*flat, shapes, config, finiteness_of(prepared, record));
  const FloatInputPlan plan(*flat, shapes, annotation);
  const TargetEngine target = convert_noting(prepared, options).target;
  std::vector<QuantReason> reasons;
  for (const Node& node : flat->graph().nodes()) {
    if (node.is(Op::placeholder) || node.is(Op::get_attr) || node.is(Op::output)) continue;
    if (is_size(shapes[node])) continue;
    const Mark& mark = annotation.of(node);
    QuantReason reason{
        node.name(), std::string(packet_of(node.target().view())), layer_path(node), mark.quantized, mark.reason, ""};
    if (mark.part_of) reason.reason = "part of " + mark.part_of->name();
    if (const std::string* why = plan.why_not(node)) reason.reason = *why;
    if (const std::string* how = plan.how(node)) {
      reason.quantized = true;
      reason.reason = *how;
    }
    add_notes(reason, target);
    reasons.push_back(std::move(reason));
  }
  return reasons;
}

}  // namespace fx
