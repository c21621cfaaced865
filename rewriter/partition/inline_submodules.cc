#include <fxgraph/rewriter/partition/inline_submodules.h>

#include <map>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/ir/subgraph.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/ops/element.h>
#include <fxgraph/rewriter/partition/attribute_of.h>
#include <fxgraph/rewriter/partition/split_module.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

using Attribute = GraphModule::Attribute;

const void* identity(const Attribute& attribute) {
  if (const auto* tensor = std::get_if<torch::Tensor>(&attribute)) return tensor->unsafeGetTensorImpl();
  return std::get<std::shared_ptr<torch::nn::Module>>(attribute).get();
}

/// Whether `holder` is a module that has `attribute` at `path`.
bool has_at(const Attribute& holder, const std::string& path, const Attribute& attribute) {
  const auto* module = std::get_if<std::shared_ptr<torch::nn::Module>>(&holder);
  if (!module) return false;
  if (std::holds_alternative<torch::Tensor>(attribute)) {
    const torch::Tensor tensor = find_tensor(**module, path);
    return tensor.defined() && tensor.unsafeGetTensorImpl() == identity(attribute);
  }
  return find_child(**module, path).get() == identity(attribute);
}

/// The result's tensors and modules by path: each there once, and below a module only what it has there.
class Paths {
 public:
  /// What the program names itself, but for the calls of `parts`, stays where it is.
  Paths(const GraphModule& module, const std::map<std::string, std::shared_ptr<GraphModule>>& parts) {
    for (const Node& node : module.graph().nodes()) {
      const std::string path = node.target().str();
      const bool is_part = node.is(Op::call_module) && parts.contains(path);
      if (node.is(Op::get_attr) || (node.is(Op::call_module) && !is_part)) {
        named_.emplace(path, attribute_of(module, node));
      }
    }
  }

  /// The path for what `owner` has at `path`: that, if it is free or the same thing, else one below `prefix`.
  std::string place(const GraphModule& owner, const Node& node, const std::string& prefix) {
    const std::string path = node.target().str();
    if (put(owner, node, path)) return path;
    for (std::size_t i = 0;; ++i) {
      const std::string other = join_path(i ? prefix + "_" + std::to_string(i) : prefix, path);
      if (put(owner, node, other)) return other;
    }
  }
  GraphModule::Attributes attributes() const { return {named_.begin(), named_.end()}; }

 private:
  bool put(const GraphModule& owner, const Node& node, const std::string& path) {
    Attribute attribute = attribute_of(owner, node);
    if (!fits(path, attribute)) return false;
    named_.emplace(path, std::move(attribute));
    return true;
  }

  bool fits(const std::string& path, const Attribute& attribute) const {
    if (const auto same = named_.find(path); same != named_.end()) {
      return identity(same->second) == identity(attribute);
    }
    for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) {
      const auto above = named_.find(path.substr(0, dot));
      if (above != named_.end() && !has_at(above->second, path.substr(dot + 1), attribute)) return false;
    }
    const std::string below = path + ".";
    for (auto at = named_.lower_bound(below); at != named_.end() && at->first.starts_with(below); ++at) {
      if (!has_at(attribute, at->first.substr(below.size()), at->second)) return false;
    }
    return true;
  }

  std::map<std::string, Attribute> named_;
};

class Inlining {
 public:
  Inlining(const GraphModule& module, const std::vector<std::string>& paths)
      : module_(module), parts_(parts_at(module, paths)), places_(module, parts_), values_(module.graph()) {}

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
    result->take_mode(module_);
    return result;
  }

 private:
  using Map = std::function<Argument(Node&)>;
  using Parts = std::map<std::string, std::shared_ptr<GraphModule>>;

  static Parts parts_at(const GraphModule& module, const std::vector<std::string>& paths) {
    Parts parts;
    for (const std::string& path : paths) {
      auto part = std::dynamic_pointer_cast<GraphModule>(module.find_submodule(path));
      if (!part) {
        throw Error(ErrorKind::invalid_argument,
                    "inline_submodules: '" + path + "' is no GraphModule of the program; name one that it calls");
      }
      parts[path] = std::move(part);
    }
    return parts;
  }

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
  Parts parts_;
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
  if (nodes.empty())
    throw Error(ErrorKind::invalid_argument, "lift_submodule: there are no nodes for '" + path + "'; name some");
  NodeMap<bool> chosen(module.graph());
  for (const Node* node : piece_of(module.graph(), nodes)) chosen[*node] = true;
  return split_module(
      module, [](const Node&) { return 0; },
      {.stays = [&](const Node& node) { return !chosen[node]; }, .name = [&](std::int64_t) { return path; }});
}

}  // namespace fx
