#include <fxgraph/rewriter/rules/program_image.h>

#include <algorithm>
#include <set>

#include <fxgraph/nn/leaf_module.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

// Stands before the name of a node in an argument; no text of a program begins so.
constexpr char kNodeMark = '\x01';

Argument by_name(const Argument& argument) {
  return map_nodes(argument, [](Node& node) { return Argument(kNodeMark + node.name()); });
}

template <typename Visit>
void for_each_name(const Argument& argument, Visit&& visit) {
  if (argument.is_string()) {
    if (const std::string text(argument.as_string()); text.starts_with(kNodeMark)) visit(text.substr(1));
  } else if (argument.is_sequence() || argument.is_dict() || argument.is_slice()) {
    for (const Argument& element : argument.elements()) for_each_name(element, visit);
  }
}

/// The argument with nodes for their names.
Argument resolve(const Argument& argument, const std::map<std::string, Node*>& nodes) {
  if (argument.is_string()) {
    const std::string text(argument.as_string());
    return text.starts_with(kNodeMark) ? Argument(*nodes.at(text.substr(1))) : argument;
  }
  const auto all = [&] {
    std::vector<Argument> elements;
    for (const Argument& element : argument.elements()) elements.push_back(resolve(element, nodes));
    return elements;
  };
  if (argument.is_list()) return Argument::list(all());
  if (argument.is_tuple()) return Argument::tuple(all());
  if (argument.is_dict()) return Argument::dict(all());
  if (argument.is_slice()) {
    const std::vector<Argument> parts = all();
    return Argument::slice(parts.at(0), parts.at(1), parts.at(2));
  }
  return argument;
}

/// The tensors of a module that is called: rewrites put tensors of their own beside them.
void add_inside(const torch::nn::Module& module, const std::string& path, std::vector<LeafImage>& leaves) {
  for (const auto& item : module.named_parameters())
    leaves.push_back({join_path(path, item.key()), item.value(), true, true});
  for (const auto& item : module.named_buffers())
    leaves.push_back({join_path(path, item.key()), item.value(), false, true});
}

void add_leaves(const torch::nn::Module& holder, const std::string& prefix, ProgramImage& image) {
  std::vector<LeafImage>& leaves = image.leaves;
  for (const auto& item : holder.named_parameters(false))
    leaves.push_back({join_path(prefix, item.key()), item.value(), true});
  for (const auto& item : holder.named_buffers(false))
    leaves.push_back({join_path(prefix, item.key()), item.value(), false});
  for (const auto& item : holder.named_children()) {
    const std::string path = join_path(prefix, item.key());
    if (dynamic_cast<const Holder*>(item.value().get())) {
      image.modes[path] = item.value()->is_training();
      add_leaves(*item.value(), path, image);
    } else {
      leaves.push_back({path, item.value(), false});
      add_inside(*item.value(), path, leaves);
    }
  }
}

/// Gives the modules that are called the tensors of the image, and takes others from them.
void install_inside(GraphModule& module, const ProgramImage& image) {
  std::map<std::string, const LeafImage*> wanted;
  for (const LeafImage& leaf : image.leaves) {
    if (leaf.inside) wanted[leaf.path] = &leaf;
  }
  std::vector<LeafImage> present;
  for (const LeafImage& leaf : image.leaves) {
    if (const auto* child = std::get_if<std::shared_ptr<torch::nn::Module>>(&leaf.object))
      add_inside(**child, leaf.path, present);
  }
  for (const LeafImage& leaf : present) {
    const auto same = wanted.find(leaf.path);
    if (same == wanted.end()) {
      module.delete_attribute(leaf.path);
    } else if (same->second->identity() != leaf.identity()) {
      const auto& tensor = std::get<torch::Tensor>(same->second->object);
      leaf.is_parameter ? module.set_parameter(leaf.path, tensor) : module.set_buffer(leaf.path, tensor);
    }
    wanted.erase(leaf.path);
  }
  // Of a module that lost a tensor all are set anew, in their order.
  std::set<std::string> poorer;
  for (const auto& [path, leaf] : wanted) poorer.insert(path.substr(0, path.rfind('.')));
  const auto of_poorer = [&](const LeafImage& leaf) {
    return leaf.inside && poorer.contains(leaf.path.substr(0, leaf.path.rfind('.')));
  };
  for (const LeafImage& leaf : image.leaves) {
    if (of_poorer(leaf)) module.delete_attribute(leaf.path);
  }
  for (const LeafImage& leaf : image.leaves) {
    if (!of_poorer(leaf)) continue;
    const auto& tensor = std::get<torch::Tensor>(leaf.object);
    leaf.is_parameter ? module.set_parameter(leaf.path, tensor) : module.set_buffer(leaf.path, tensor);
  }
}

void install_leaves(GraphModule& module, const ProgramImage& image) {
  const auto children = module.named_children();
  for (const auto& child : children) module.delete_submodule(child.key());
  std::vector<std::string> tensors;
  for (const auto& item : module.named_parameters(false)) tensors.push_back(item.key());
  for (const auto& item : module.named_buffers(false)) tensors.push_back(item.key());
  for (const std::string& name : tensors) module.delete_attribute(name);
  for (const LeafImage& leaf : image.leaves) {
    if (leaf.inside) continue;
    if (const auto* child = std::get_if<std::shared_ptr<torch::nn::Module>>(&leaf.object)) {
      module.add_submodule(leaf.path, *child);
    } else if (leaf.is_parameter) {
      module.set_parameter(leaf.path, std::get<torch::Tensor>(leaf.object));
    } else {
      module.set_buffer(leaf.path, std::get<torch::Tensor>(leaf.object));
    }
  }
  install_inside(module, image);
  for (const auto& [path, training] : image.modes) {
    if (const auto holder = module.find_submodule(path)) set_own_mode(*holder, training);
  }
}

/// The items of `now` in the order that `order` gives those it names; the others behind what they stand behind now.
template <typename Item, typename NameOf>
void bring_into_order(std::vector<Item>& now, const std::vector<std::string>& order, NameOf name_of) {
  std::map<std::string, std::size_t> place;
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i + 1;
  std::vector<std::pair<std::size_t, Item>> keyed;
  std::size_t last = 0;
  for (Item& item : now) {
    const auto known = place.find(name_of(item));
    if (known != place.end()) last = known->second;
    keyed.emplace_back(last, std::move(item));
  }
  std::ranges::stable_sort(keyed, {}, [](const auto& pair) { return pair.first; });
  now.clear();
  for (auto& [key, item] : keyed) now.push_back(std::move(item));
}

}  // namespace

bool NodeImage::same_call(const NodeImage& other) const {
  return name == other.name && op == other.op && target == other.target && args == other.args &&
         object == other.object && std::ranges::equal(kwargs, other.kwargs, [](const auto& a, const auto& b) {
           return a.name == b.name && a.value == b.value;
         });
}

const void* LeafImage::identity() const {
  if (const auto* tensor = std::get_if<torch::Tensor>(&object)) return tensor->unsafeGetTensorImpl();
  return std::get<std::shared_ptr<torch::nn::Module>>(object).get();
}

ProgramImage ProgramImage::of(const GraphModule& module) {
  ProgramImage image;
  for (const Node& node : module.graph().nodes()) {
    NodeImage& one = image.nodes.emplace_back();
    one.name = node.name();
    one.op = node.op();
    one.target = node.target();
    for (const Argument& argument : node.args()) one.args.push_back(by_name(argument));
    for (const auto& [name, value] : node.kwargs()) one.kwargs.push_back({name, by_name(value)});
    const std::string path = node.target().str();
    if (node.is(Op::call_module)) one.object = module.find_submodule(path).get();
    if (node.is(Op::get_attr) && module.find_attribute(path).defined())
      one.object = module.find_attribute(path).unsafeGetTensorImpl();
    if (node.find_meta()) one.meta = *node.find_meta();
  }
  add_leaves(module, "", image);
  return image;
}

void ProgramImage::install(GraphModule& module) const {
  Graph graph;
  std::map<std::string, Node*> made;
  for (const NodeImage& image : nodes) {
    const auto check = [&](const std::string& name) {
      if (made.contains(name)) return;
      throw Error(ErrorKind::invalid_argument,
                  "%" + image.name + " uses %" + name + ", which goes when the transformation is taken back",
                  image.name);
    };
    std::vector<Argument> args;
    std::vector<NamedArgument> kwargs;
    for (const Argument& argument : image.args) {
      for_each_name(argument, check);
      args.push_back(resolve(argument, made));
    }
    for (const auto& [name, value] : image.kwargs) {
      for_each_name(value, check);
      kwargs.push_back({name, resolve(value, made)});
    }
    Node& node = graph.create_node(image.op, image.target, args, kwargs, image.name);
    if (!image.meta.empty()) node.meta() = image.meta;
    made[image.name] = &node;
  }
  install_leaves(module, *this);
  module.set_graph(std::move(graph));
}

std::size_t ProgramChange::size() const {
  std::set<std::string> names;
  for (const auto& [name, image] : before) names.insert(name);
  for (const auto& [name, image] : after) names.insert(name);
  return names.size();
}

ProgramChange change_between(const ProgramImage& before, const ProgramImage& after) {
  ProgramChange change;
  std::map<std::string, const NodeImage*> then, now;
  for (const NodeImage& node : before.nodes) {
    then[node.name] = &node;
    change.order.push_back(node.name);
  }
  for (const NodeImage& node : after.nodes) now[node.name] = &node;
  for (const auto& [name, node] : then) {
    const auto other = now.find(name);
    if (other != now.end() && node->same_call(*other->second)) continue;
    change.before[name] = *node;
    if (other != now.end()) change.after[name] = *other->second;
  }
  for (const auto& [name, node] : now) {
    if (!then.contains(name)) change.after[name] = *node;
  }
  change.modes = before.modes;
  std::map<std::string, const LeafImage*> leaves_then, leaves_now;
  for (const LeafImage& leaf : before.leaves) {
    leaves_then[leaf.path] = &leaf;
    change.leaf_order.push_back(leaf.path);
  }
  for (const LeafImage& leaf : after.leaves) leaves_now[leaf.path] = &leaf;
  for (const auto& [path, leaf] : leaves_then) {
    const auto other = leaves_now.find(path);
    if (other != leaves_now.end() && leaf->identity() == other->second->identity() &&
        leaf->inside == other->second->inside)
      continue;
    change.leaves_before[path] = *leaf;
    if (other != leaves_now.end()) change.leaves_after[path] = *other->second;
  }
  for (const auto& [path, leaf] : leaves_now) {
    if (!leaves_then.contains(path)) change.leaves_after[path] = *leaf;
  }
  change.ties = ties_of(before.leaves, change.leaves_before);
  return change;
}

ProgramImage ProgramChange::undo(ProgramImage now) const {
  std::map<std::string, const NodeImage*> present;
  for (const NodeImage& node : now.nodes) present[node.name] = &node;
  for (const auto& [name, image] : after) {
    const auto node = present.find(name);
    // A copy of the program has copies of the tensors and modules.
    NodeImage expected = image;
    if (node != present.end()) expected.object = node->second->object;
    if (node == present.end() || !node->second->same_call(expected)) {
      throw Error(ErrorKind::invalid_argument,
                  "%" + name + " is no longer what " + by + " made it; take back first what was done since", name);
    }
  }
  for (const auto& [name, image] : before) {
    if (!after.contains(name) && present.contains(name)) {
      throw Error(ErrorKind::invalid_argument, "%" + name + ", which " + by + " removed, has been made anew", name);
    }
  }
  std::vector<NodeImage> nodes;
  for (NodeImage& node : now.nodes) {
    const auto old = before.find(node.name);
    if (old != before.end()) {
      nodes.push_back(old->second);
    } else if (!after.contains(node.name)) {
      nodes.push_back(std::move(node));
    }
  }
  std::set<std::string> kept;
  for (const NodeImage& node : nodes) kept.insert(node.name);
  for (const auto& [name, image] : before) {
    if (!kept.contains(name)) nodes.push_back(image);
  }
  bring_into_order(nodes, order, [](const NodeImage& node) { return node.name; });
  std::vector<LeafImage> leaves;
  std::set<std::string> paths;
  for (LeafImage& leaf : now.leaves) {
    const auto old = leaves_before.find(leaf.path);
    if (old != leaves_before.end()) {
      leaves.push_back(old->second);
    } else if (!leaves_after.contains(leaf.path)) {
      leaves.push_back(std::move(leaf));
    } else {
      continue;
    }
    paths.insert(leaves.back().path);
  }
  for (const auto& [path, leaf] : leaves_before) {
    if (!paths.contains(path)) leaves.push_back(leaf);
  }
  bring_into_order(leaves, leaf_order, [](const LeafImage& leaf) { return leaf.path; });
  std::map<std::string, bool> holders = std::move(now.modes);
  holders.insert(modes.begin(), modes.end());
  return {std::move(nodes), std::move(leaves), std::move(holders)};
}

}  // namespace fx
