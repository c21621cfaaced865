// Submodules that stay calls.
#include <algorithm>

#include <fxgraph/module/traced_body.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/nn/object_attribute.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/print.h>
#include <fxgraph/torchscript/importer.h>
#include <fxgraph/torchscript/source.h>

namespace fx::torchscript {
namespace {

/// How many arguments are given, if those at the end that are what the method's defaults say are left out.
std::size_t given_args(const c10::FunctionSchema& schema, const Values& args) {
  std::size_t count = args.size();
  while (count > 0) {
    const c10::Argument& parameter = schema.arguments()[count];
    const AbstractValue& value = args[count - 1];
    if (!parameter.default_value() || !is_known(value)) break;
    const c10::IValue constant = to_constant(value);
    if (constant.isTensor() || constant.tagKind() != parameter.default_value()->tagKind() ||
        !(constant == *parameter.default_value())) {
      break;
    }
    --count;
  }
  return count;
}

/// A copy of the module objects that shares their tensors, so that its mode can change by itself.
torch::jit::Module copy_objects(const torch::jit::Module& module) {
  torch::jit::Module copy = module.copy();
  for (const auto& child : module.named_children()) copy.setattr(child.name, copy_objects(child.value)._ivalue());
  return copy;
}

std::vector<NamedTensor> tensors_of(const torch::jit::Module& module) {
  std::vector<NamedTensor> tensors;
  for (const auto& item : module.named_parameters()) tensors.push_back({item.name, item.value, true});
  for (const auto& item : module.named_buffers()) {
    const bool known =
        std::any_of(tensors.begin(), tensors.end(), [&](const NamedTensor& t) { return t.path == item.name; });
    if (!known) tensors.push_back({item.name, item.value, false});
  }
  return tensors;
}

void add_missing(std::vector<NamedTensor>& tensors, const std::vector<NamedTensor>& more) {
  for (const NamedTensor& each : more) {
    const bool known =
        std::any_of(tensors.begin(), tensors.end(), [&](const NamedTensor& t) { return t.path == each.path; });
    if (!known) tensors.push_back(each);
  }
}

}  // namespace

bool Importer::is_leaf(const ObjectRef& object) const {
  if (inside_leaf_ || !object.object->type()->is_module()) return false;
  const std::string name = demangle(object.object->type()->name()->qualifiedName());
  return options_.is_leaf ? options_.is_leaf(name, object.path) : is_torch_nn_leaf(name);
}

CalledLeaf* Importer::find_leaf(const std::string& path) {
  const auto found = leaf_index_.find(path);
  return found == leaf_index_.end() ? nullptr : &leaves[found->second].second;
}

// A leaf keeps the computation of its first call. A later call in another way (another method of a trace, other
// arguments) that computes something else is inlined when it can be, or gets a leaf of its own.
AbstractValue Importer::call_leaf(const JitNode& node, Frame& frame, const ObjectRef& object,
                                  torch::jit::Function& method, Values args) {
  const torch::jit::Module module(object.object);
  const std::size_t count = given_args(method.getSchema(), args);
  std::vector<bool> given(args.size());
  bool literals = false;
  for (std::size_t i = 0; i < args.size(); ++i) {
    given[i] = i < count;
    literals = literals || (given[i] && is_known(args[i]));
  }
  const auto inlined = [&] {
    Values all{AbstractValue()};
    all[0].kind = AbstractValue::Kind::object;
    all[0].type = object.object->type();
    all[0].object = std::make_shared<ObjectRef>(object);
    all.insert(all.end(), args.begin(), args.end());
    return call(method, std::move(all), object.path, frame.depth + 1);
  };
  std::string path = object.path;
  CalledLeaf* known = find_leaf(path);
  if (!known || known->method != method.name() || known->num_args != count) {
    CalledLeaf fresh = make_called_leaf(module, method, args, given);
    if (!fresh.body_text.empty() && (literals || (known && known->body_text != fresh.body_text))) return inlined();
    if (known && fresh.body_text.empty()) {
      path += "_" + method.name();
      known = find_leaf(path);
    }
    if (!known) {
      leaf_index_.emplace(path, leaves.size());
      leaves.emplace_back(path, std::move(fresh));
    }
  } else if (literals && !known->body_text.empty()) {
    return inlined();
  }
  std::vector<Argument> arguments;
  for (std::size_t i = 0; i < count; ++i) {
    arguments.push_back(to_argument(args[i], method.getSchema().arguments()[i + 1].real_type(), node, frame));
  }
  Node& made = graph.call_module(path, arguments);
  annotate(made, node, frame);
  if (examples_) {
    if (find_leaf(path)->body_text.empty()) note_operators(made, module, method, args);
    examples_->run_leaf(made, module, method.name());
  }
  return AbstractValue::of_node(made, node.output()->type());
}

// The leaf stays a call, which asks for ranks each time; at those of the examples it is known what it computes.
void Importer::note_operators(Node& call, const torch::jit::Module& leaf, torch::jit::Function& method,
                              const Values& args) {
  const bool training = leaf.attr("training", false).toBool();
  Importer inner(options_, training);
  try {
    inner.import_leaf(leaf, method, args, *examples_);
  } catch (const Error&) {
    return;
  }
  if (inner.graph.placeholders().size() != call.all_input_nodes().size()) return;
  call.meta().set(meta_key::kTracedBody,
                  TracedBody{std::make_shared<const Graph>(std::move(inner.graph)), {}, training});
}

CalledLeaf Importer::make_called_leaf(const torch::jit::Module& module, torch::jit::Function& method,
                                      const Values& args, const std::vector<bool>& given) {
  const bool training = module.attr("training", false).toBool();
  std::vector<NamedTensor> owned = tensors_of(module);
  std::shared_ptr<const Graph> bodies[2];
  std::vector<std::pair<std::string, c10::IValue>> held;
  bool mode_matters = true;
  std::unordered_map<const at::TensorImpl*, std::string> constants;  // of both bodies, each under a name of its own
  std::size_t num_constants = 0;
  for (const bool mode : {training, !training}) {
    Importer inner(options_, mode);
    inner.constant_paths_ = constants;
    inner.num_constants_ = num_constants;
    try {
      inner.import_leaf(module, method, args, given);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unsupported) throw;
      continue;
    }
    add_missing(owned, inner.tensors);
    held.insert(held.end(), inner.objects.begin(), inner.objects.end());
    constants = inner.constant_paths_;
    num_constants = inner.num_constants_;
    bodies[mode] = std::make_shared<const Graph>(std::move(inner.graph));
    if (!inner.read_training) {
      mode_matters = false;
      break;
    }
  }
  CalledLeaf leaf;
  leaf.method = method.name();
  leaf.num_args = static_cast<std::size_t>(std::count(given.begin(), given.end(), true));
  leaf.module = std::make_shared<LeafModule>(demangle(module.type()->name()->qualifiedName()), owned);
  for (const auto& [path, object] : held) {
    const auto [parent, name] = split_path(path);
    if (!find_object(*leaf.module, path))
      make_holders(*leaf.module, parent).register_module(name, std::make_shared<ObjectAttribute>(object));
  }
  leaf.module->train(training);
  if (bodies[training]) leaf.body_text = print_graph(*bodies[training]);
  if (!mode_matters) {
    leaf.module->set_body(bodies[training]);
  } else {
    leaf.module->set_body(bodies[0], false);
    leaf.module->set_body(bodies[1], true);
    if (!bodies[0] || !bodies[1]) leaf.module->set_script(copy_objects(module), method.name());
  }
  return leaf;
}

}  // namespace fx::torchscript
