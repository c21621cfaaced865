#include <fxgraph/rewriter/partition/inline_submodules.h>

#include <map>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/ops/element.h>
#include <fxgraph/rewriter/partition/attribute_of.h>
#include <fxgraph/rewriter/partition/split_module.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

/// The result's tensors and modules by path, each there once.
class Paths {
 public:
  explicit Paths(const GraphModule& module) : module_(module) {}

  /// The path for what `owner` has at `path`: that, if it is free or the same thing, else one below `prefix`.
  std::string place(const GraphModule& owner, const Node& node, const std::string& prefix) {
    const std::string path = node.target().str();
    if (put(owner, node, path)) return path;
    for (std::size_t i = 0;; ++i) {
      const std::string other = join_path(i ? prefix + "_" + std::to_string(i) : prefix, path);
      if (put(owner, node, other)) return other;
    }
  }
  const GraphModule::Attributes& attributes() const { return attributes_; }

 private:
  static const void* identity(const GraphModule::Attribute& attribute) {
    if (const auto* tensor = std::get_if<torch::Tensor>(&attribute)) return tensor->unsafeGetTensorImpl();
    return std::get<std::shared_ptr<torch::nn::Module>>(attribute).get();
  }
  bool put(const GraphModule& owner, const Node& node, const std::string& path) {
    GraphModule::Attribute attribute = attribute_of(owner, node);
    // What the program calls itself goes first, whenever it is met.
    const torch::Tensor tensor = module_.find_attribute(path);
    const auto child = module_.find_submodule(path);
    const void* mine = tensor.defined() ? static_cast<const void*>(tensor.unsafeGetTensorImpl()) : child.get();
    if (mine && mine != identity(attribute)) return false;
    const auto [at, is_new] = taken_.emplace(path, identity(attribute));
    if (is_new) attributes_.emplace_back(path, std::move(attribute));
    return at->second == (is_new ? at->second : identity(attribute));
  }

  const GraphModule& module_;
  std::map<std::string, const void*> taken_;
  GraphModule::Attributes attributes_;
};

class Inlining {
 public:
  Inlining(const GraphModule& module, const std::vector<std::string>& paths)
      : module_(module), places_(module), values_(module.graph()) {
    for (const std::string& path : paths) {
      auto part = std::dynamic_pointer_cast<GraphModule>(module.find_submodule(path));
      if (!part) {
        throw Error(ErrorKind::invalid_argument,
                    "inline_submodules: '" + path + "' is no GraphModule of the program; name one that it calls");
      }
      parts_[path] = std::move(part);
    }
  }

  std::shared_ptr<GraphModule> run() {
    for (const Node& node : module_.graph().nodes()) {
      const auto part = node.is(Op::call_module) ? parts_.find(node.target().str()) : parts_.end();
      if (part != parts_.end()) {
        ++calls_[part->first];
        values_[node] = write_out(node, *part->second);
      } else if (!take_element(node)) {
        values_[node] = copy(node, module_, "", [&](Node& input) { return values_[input]; });
      }
    }
    for (const auto& [path, part] : parts_) {
      if (!calls_[path]) throw Error(ErrorKind::invalid_argument, "inline_submodules: nothing calls '" + path + "'");
    }
    auto result = std::make_shared<GraphModule>(places_.attributes(), std::move(graph_), module_.class_name());
    set_own_mode(*result, module_.is_training());
    return result;
  }

 private:
  using Map = std::function<Argument(Node&)>;

  Argument copy(const Node& node, const GraphModule& owner, const std::string& prefix, const Map& value_of) {
    Node& made = graph_.node_copy(node, value_of);
    if (node.is(Op::call_module) || node.is(Op::get_attr)) made.set_target(Symbol(places_.place(owner, node, prefix)));
    return made;
  }

  /// An element of what a part returned, as its value; false for any other node.
  bool take_element(const Node& node) {
    const std::optional<Element> taken = taken_element(node);
    if (!taken || !taken->of->is(Op::call_module) || !parts_.contains(taken->of->target().str())) return false;
    const Argument& tuple = values_[*taken->of];
    if (!tuple.is_sequence()) return false;
    const auto size = static_cast<std::int64_t>(tuple.elements().size());
    const std::int64_t index = taken->index < 0 ? taken->index + size : taken->index;
    if (index < 0 || index >= size) return false;
    values_[node] = Argument(tuple.elements()[static_cast<std::size_t>(index)]);
    return true;
  }

  Argument write_out(const Node& call, const GraphModule& part) {
    const std::vector<Node*> parameters = part.graph().placeholders();
    if (!call.kwargs().empty() || call.args().size() > parameters.size()) {
      throw Error(ErrorKind::invalid_argument,
                  "inline_submodules: %" + call.name() + " does not fit the inputs of '" + call.target().str() + "'",
                  call.name());
    }
    NodeMap<Argument> inside(part.graph());
    const Map value_of = [&](Node& input) { return inside[input]; };
    std::size_t next = 0;
    for (const Node& node : part.graph().nodes()) {
      if (node.is(Op::output)) return node.args().empty() ? Argument() : map_nodes(node.arg(0), value_of);
      if (!node.is(Op::placeholder)) {
        inside[node] = copy(node, part, call.target().str(), value_of);
        continue;
      }
      const std::size_t i = next++;
      if (i < call.args().size()) {
        inside[node] = map_nodes(call.arg(i), [&](Node& input) { return values_[input]; });
      } else if (!node.args().empty()) {
        inside[node] = node.arg(0);
      } else {
        throw Error(ErrorKind::invalid_argument,
                    "inline_submodules: %" + call.name() + " leaves out the input '" + node.target().str() + "'",
                    call.name());
      }
    }
    return {};
  }

  const GraphModule& module_;
  std::map<std::string, std::shared_ptr<GraphModule>> parts_;
  std::map<std::string, std::size_t> calls_;
  Paths places_;
  Graph graph_;
  NodeMap<Argument> values_;
};

}  // namespace

std::shared_ptr<GraphModule> inline_submodules(const GraphModule& module, const std::vector<std::string>& paths) {
  return Inlining(module, paths).run();
}

std::shared_ptr<GraphModule> lift_submodule(const GraphModule& module, const std::vector<Node*>& nodes,
                                            const std::string& path) {
  if (!is_identifier(path) || module.find_submodule(path) || module.find_attribute(path).defined()) {
    throw Error(ErrorKind::invalid_argument,
                "lift_submodule: '" + path + "' is taken, or is no identifier; choose another name");
  }
  NodeMap<bool> chosen(module.graph());
  for (const Node* node : nodes) chosen[*node] = true;
  return split_module(
      module, [](const Node&) { return 0; },
      {.stays = [&](const Node& node) { return !chosen[node]; }, .name = [&](std::int64_t) { return path; }});
}

}  // namespace fx
