#include <fxgraph/trace/tracer.h>

#include <optional>
#include <utility>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/trace/attempt.h>
#include <fxgraph/trace/caller.h>

namespace fx {
namespace {

// By the declaration alone, as FX does: what a batch norm does to its statistics is not declared.
void refuse_writes(Node& node) {
  const Call call = call_of(node);
  if (!call) return;
  for (const SchemaArgument& argument : call.schema().arguments) {
    if (!argument.alias.writes) continue;
    const Node* first = call.args().empty() ? nullptr : call.args()[0].node_or_null();
    const std::string what = target_text(node.target()) + (first ? " on %" + first->name() : "");
    node.graph().erase_node(node);
    throw Error(ErrorKind::trace,
                what + " writes its argument `" + argument.name.str() +
                    "`, which check_mutable_operations forbids; use the operator that returns a new tensor",
                first ? first->name() : "");
  }
}

}  // namespace

Trace Tracer::trace_callable(const internal::Callable& callable, std::vector<c10::IValue> examples,
                             internal::PlaceholderInputs::Literals literals) {
  Repeats repeats;
  for (;;) {
    if (std::optional<Trace> trace = Attempt(*this, callable, examples, literals, repeats).run())
      return std::move(*trace);
  }
}

bool Tracer::is_free_attribute(const std::string& path) const {
  if (!root_) return true;
  return !root_->named_parameters(false).contains(path) && !root_->named_buffers(false).contains(path) &&
         !root_->named_children().contains(path);
}

Node& Tracer::create_node(Op op, Symbol target, ArgumentSpan args, KwargSpan kwargs, std::string_view name) {
  Node& node = graph_->create_node(op, target, args, kwargs, name);
  if (options_.check_mutable_operations) refuse_writes(node);
  if (!name.empty()) named_.insert(&node);
  if (options_.record_stack_traces) node.meta().set(meta_key::kStackTrace, internal::stack_of_calls());
  return node;
}

bool Tracer::is_leaf_module(const torch::nn::Module& module, const std::string&) const {
  static constexpr std::string_view kNamespace = "torch::nn::";
  const std::string name = module.name();
  if (!name.starts_with(kNamespace)) return false;
  for (const char* container : {"Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"}) {
    if (name.find(container) != std::string::npos) return false;
  }
  return true;
}

std::string Tracer::path_of_module(const torch::nn::Module& module) const {
  if (root_) {
    if (root_.get() == &module) return "";
    for (const auto& item : root_->named_modules()) {
      if (item.value().get() == &module) return item.key();
    }
  }
  throw Error(ErrorKind::not_found, "path_of_module: the module of type " + module.name() +
                                        " is not registered below the root; register it with register_module");
}

}  // namespace fx
