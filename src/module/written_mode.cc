#include <fxgraph/module/written_mode.h>

#include <torch/nn/modules/container/sequential.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include <fxgraph/module/inline_modules.h>
#include <fxgraph/module/traced_body.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/text/print.h>

namespace fx::internal {
namespace {

bool is_zero(const Argument* number) {
  return number && ((number->is_float() && number->as_float() == 0) || (number->is_int() && number->as_int() == 0));
}

// Position of the flag that says whether the operator trains, where it matters.
std::optional<std::size_t> mode_flag(const Node& node) {
  const Call call = call_of(node);
  if (!call) return std::nullopt;
  for (std::size_t i = 0; i < call.schema().arguments.size(); ++i) {
    const std::string_view name = call.schema().arguments[i].name.view();
    if (name != "train" && name != "training" && name != "use_input_stats") continue;
    const Argument* flag = call.argument(i);
    if (!flag || !flag->is_bool()) return std::nullopt;
    if (is_zero(call.argument("p")) || is_zero(call.argument("dropout"))) return std::nullopt;
    const Argument* layers = call.argument("num_layers");
    if (layers && layers->is_int() && layers->as_int() == 1) return std::nullopt;
    // Without running statistics there are only those of the batch, in both modes.
    const bool is_norm = name != "train" && call.schema().target.view().find("norm") != std::string_view::npos;
    const Argument* mean = call.argument("running_mean");
    if (is_norm && (!mean || mean->is_none())) return std::nullopt;
    return i;
  }
  return std::nullopt;
}

bool is_of_torch(const torch::nn::Module& module) { return module.name().starts_with("torch::nn::"); }

class Written {
 public:
  explicit Written(const WrittenToFollow& follows) : follows_(follows) {}

  std::string mode_of(const GraphModule& module, const std::string& path) const {
    if (!module.fixed_mode().empty()) return module.fixed_mode();
    for (const Node& node : module.graph().nodes()) {
      if (!node.is(Op::call_module)) continue;
      const auto called = module.find_submodule(node.target().str());
      if (!called) continue;
      std::string why = mode_of_call(node, called, join_path(path, node.target().view()));
      if (!why.empty()) return why;
    }
    return {};
  }

 private:
  std::string mode_of_call(const Node& node, const std::shared_ptr<torch::nn::Module>& called,
                           const std::string& path) const {
    if (const auto* nested = dynamic_cast<const GraphModule*>(called.get())) return mode_of(*nested, path);
    if (dynamic_cast<const torch::nn::SequentialImpl*>(called.get())) {
      for (const auto& child : called->named_children()) {
        std::string why = mode_of_call(node, child.value(), join_path(path, child.key()));
        if (!why.empty()) return why;
      }
      return {};
    }
    if (!depends_on_mode(node, called) || follows_(*called)) return {};
    const auto* leaf = dynamic_cast<const LeafModule*>(called.get());
    const std::string type = leaf ? leaf->type_name() : called->name();
    return "what " + path + " (" + type + ") does was written as it is in " +
           (called->is_training() ? "train()" : "eval()") + " mode; switch the mode of the module before it is written";
  }

  static bool depends_on_mode(const Node& node, const std::shared_ptr<torch::nn::Module>& called) {
    if (const auto* leaf = dynamic_cast<const LeafModule*>(called.get())) {
      const Graph *training = leaf->body_in_mode(true).get(), *evaluation = leaf->body_in_mode(false).get();
      if (training == evaluation) return false;
      return !training || !evaluation || print_graph(*training) != print_graph(*evaluation);
    }
    const ModuleType* type = find_module_type(*called);
    if (type && type->follows_mode && !type->follows_mode(*called)) return false;
    if (const std::shared_ptr<const Graph> body = module_body(called))
      return find_mode_call(*body) || (!is_of_torch(*called) && has_other_body(*called, *body));
    const Meta* notes = node.find_meta();
    const TracedBody* traced = notes ? notes->get<TracedBody>(meta_key::kTracedBody) : nullptr;
    return !is_of_torch(*called) || (traced && find_mode_call(*traced->graph));
  }

  // Of a type that the program has registered itself.
  static bool has_other_body(torch::nn::Module& module, const Graph& body) {
    const ModuleType* type = find_module_type(module);
    const bool mode = module.is_training();
    set_own_mode(module, !mode);
    const std::optional<Graph> other = type && type->body ? type->body(module) : std::nullopt;
    set_own_mode(module, mode);
    return !other || print_graph(*other) != print_graph(body);
  }

  const WrittenToFollow& follows_;
};

}  // namespace

const Node* find_mode_call(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (mode_flag(node)) return &node;
  }
  return nullptr;
}

std::optional<Graph> in_other_mode(const Graph& body) {
  if (!find_mode_call(body)) return std::nullopt;
  Graph other = body.clone();
  for (Node& node : other.nodes()) {
    const std::optional<std::size_t> flag = mode_flag(node);
    if (!flag) continue;
    spell_as_operator(node);
    if (node.target().view().find("dropout") == std::string_view::npos || *flag >= node.args().size())
      return std::nullopt;
    node.update_arg(*flag, Argument(!node.arg(*flag).as_bool()));
  }
  return other;
}

std::string mode_of_written(const GraphModule& module, const WrittenToFollow& follows) {
  return Written(follows).mode_of(module, "");
}

}  // namespace fx::internal
