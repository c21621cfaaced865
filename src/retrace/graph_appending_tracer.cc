#include <fxgraph/retrace/graph_appending_tracer.h>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include <fxgraph/run/value.h>
#include <fxgraph/trace/argument_inputs.h>
#include <fxgraph/trace/outputs.h>

namespace fx {
namespace {

at::Tensor meta_tensor(const TensorInfo& info) {
  const at::TensorOptions options = at::TensorOptions(to_scalar_type(info.dtype)).device(at::kMeta);
  c10::impl::ExcludeDispatchKeyGuard untraced(internal::kTraceKeys);
  return info.strides.empty() ? at::empty(info.sizes, options) : at::empty_strided(info.sizes, info.strides, options);
}

}  // namespace

GraphAppendingTracer::GraphAppendingTracer(Graph& graph, const Shapes* shapes) : graph_(graph), shapes_(shapes) {
  internal::install_dispatch();
  session_ = std::make_shared<internal::Session>(static_cast<internal::NodeMaker&>(*this));
}

GraphAppendingTracer::GraphAppendingTracer(GraphModule& module, const Shapes* shapes)
    : GraphAppendingTracer(module.graph(), shapes) {
  module_ = &module;
  for (const auto& item : module.named_parameters()) session_->add_attribute(item.key(), item.value());
  for (const auto& item : module.named_buffers()) session_->add_attribute(item.key(), item.value());
}

GraphAppendingTracer::~GraphAppendingTracer() { session_->close(); }

torch::Tensor GraphAppendingTracer::proxy(Node& node) {
  if (&node.graph() != &graph_) {
    throw Error(ErrorKind::invalid_argument, "GraphAppendingTracer: %" + node.name() + " belongs to another graph",
                node.name());
  }
  const TensorInfo* known = shapes_ ? (*shapes_)[node].tensor() : nullptr;
  if (!known) return session_->proxy(node);
  return session_->proxy(node, meta_tensor(*known),
                         known->device == Device() ? c10::Device(c10::kCPU) : to_torch_device(known->device));
}

Node& GraphAppendingTracer::node(const torch::Tensor& tensor) {
  if (!tensor.defined())
    throw Error(ErrorKind::invalid_argument, "GraphAppendingTracer: an undefined tensor has no node");
  return session_->argument_for(tensor).node();
}

Argument GraphAppendingTracer::argument(const c10::IValue& value) {
  return internal::ivalue_to_argument(*session_, value);
}

Argument GraphAppendingTracer::append_callable(const internal::Callable& callable, std::vector<Argument> inputs) {
  internal::ArgumentInputs values(*session_, std::move(inputs), [this](Node& node) { return proxy(node); });
  internal::RecordingScope recording(*session_);
  return internal::run(callable, values);
}

bool GraphAppendingTracer::is_free_attribute(const std::string& path) const {
  if (module_ && (module_->find_attribute(path).defined() || module_->find_submodule(path))) return false;
  return graph_.count(Op::get_attr, path) == 0;
}

void GraphAppendingTracer::captured(const std::string& path, const torch::Tensor& tensor) {
  if (module_) module_->set_attribute(path, tensor);
  attributes_.emplace_back(path, tensor);
}

Node& GraphAppendingTracer::create_node(Op op, Symbol target, ArgumentSpan args, KwargSpan kwargs,
                                        std::string_view name) {
  return graph_.create_node(op, target, args, kwargs, name);
}

}  // namespace fx
