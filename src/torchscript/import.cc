#include <fxgraph/torchscript/import.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <unordered_set>

#include <fxgraph/contract/contract.h>
#include <fxgraph/contract/restated.h>
#include <fxgraph/effects/effects_of.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/nn/object_attribute.h>
#include <fxgraph/run/stored_values.h>
#include <fxgraph/run/value.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/support/error.h>
#include <fxgraph/torchscript/file_mode.h>
#include <fxgraph/torchscript/importer.h>
#include <fxgraph/torchscript/micro_batches.h>
#include <fxgraph/torchscript/source.h>

namespace fx {
namespace {

// As torch.backends.quantized.engine spells it.
std::string name_of(at::QEngine engine) {
  std::string name = at::toString(engine);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

// Quantized layers are packed when they are loaded, by the engine that is set; another one may take what it refuses.
// Returns that one's name; empty when there is none.
std::string engine_that_reads(const std::string& path) {
  at::Context& context = at::globalContext();
  const at::QEngine set = context.qEngine();
  std::string found;
  for (const at::QEngine engine : at::Context::supportedQEngines()) {
    if (engine == set || engine == at::QEngine::NoQEngine || !found.empty()) continue;
    context.setQEngine(engine);
    try {
      stored_module(path);
      found = name_of(engine);
    } catch (const std::exception&) {  // then it is something else
    }
  }
  context.setQEngine(set);
  return found;
}

torch::jit::Module read_module(const std::string& path) {
  try {
    return stored_module(path);
  } catch (const Error& error) {
    const std::string engine = std::filesystem::exists(path) ? engine_that_reads(path) : std::string();
    if (engine.empty()) throw;
    throw Error(ErrorKind::unsupported, path + ": its quantized layers were packed for the engine " + engine +
                                            ", and " + name_of(at::globalContext().qEngine()) +
                                            ", which is set, refuses them; set torch.backends.quantized.engine = '" +
                                            engine + "' before loading, or quantize with --backend auto");
  }
}

// Parameters and buffers that the program does not read are the file's all the same, under all of their names; a module
// that has several has one here.
void keep_unread(GraphModule& made, const torch::jit::Module& source) {
  std::map<const void*, std::vector<std::string>> modules;  // by object: its names
  std::unordered_set<std::string> shared;
  for (const auto& item : source.named_modules()) {
    std::vector<std::string>& names = modules[item.value._ivalue().get()];
    names.push_back(item.name);
    if (names.size() > 1) shared.insert(names.begin(), names.end());
  }
  std::unordered_set<const void*> kept;
  for (const torch::Tensor& each : made.parameters()) kept.insert(each.unsafeGetTensorImpl());
  for (const torch::Tensor& each : made.buffers()) kept.insert(each.unsafeGetTensorImpl());
  const auto is_missing = [&](const std::string& path, const torch::Tensor& tensor) {
    const std::string owner(split_path(path).first);
    const bool is_called = !owner.empty() && !made.graph().find_nodes(Op::call_module, Symbol(owner)).empty();
    if (is_called || made.find_attribute(path).defined()) return false;
    return kept.insert(tensor.unsafeGetTensorImpl()).second || !shared.contains(owner);
  };
  for (const auto& parameter : source.named_parameters()) {
    if (is_missing(parameter.name, parameter.value)) made.set_parameter(parameter.name, parameter.value);
  }
  for (const auto& buffer : source.named_buffers()) {
    if (is_missing(buffer.name, buffer.value)) made.set_buffer(buffer.name, buffer.value);
  }
}

// Leaves know their mode already; the holders above them get theirs.
void set_modes(GraphModule& made, const torch::jit::Module& source) {
  for (const auto& item : source.named_modules()) {
    torch::nn::Module* place = item.name.empty() ? &made : made.find_submodule(item.name).get();
    if (!place || dynamic_cast<const LeafModule*>(place)) continue;
    set_own_mode(*place, item.value.attr("training", false).toBool());
  }
}

// As what was saved: `read_training` says that the graph has a mode folded in.
void fix_mode(GraphModule& made, const torch::jit::Module& source, bool read_training) {
  for (const auto& item : source.named_modules()) {
    if (!item.value.hasattr(internal::kFileMode) || !item.value.attr(internal::kFileMode).isString()) continue;
    std::string reason = item.value.attr(internal::kFileMode).toStringRef();
    if (reason.empty() && read_training) {
      reason = std::string("it was loaded in ") + (made.is_training() ? "train()" : "eval()") +
               " mode with modules written out that follow the mode; load it with those as leaves";
    }
    if (reason.empty()) continue;
    made.fix_mode(std::move(reason));
    return;
  }
}

/// A tensor of floats, or a list or tuple of such; of others nothing is known.
AbstractValue form_of(const c10::IValue& value) {
  if (value.isTensor()) {
    const bool is_known =
        at::isFloatingType(value.toTensor().scalar_type()) && value.toTensor().layout() == at::kStrided;
    return is_known ? AbstractValue(tensor_type(tensor_infos(value.toTensor()).front())) : AbstractValue();
  }
  if (!value.isList() && !value.isTuple()) return {};
  AbstractValue::List parts;
  for (const c10::IValue& each : value.isList() ? value.toListRef() : value.toTupleRef().elements()) {
    parts.push_back(form_of(each));
    if (!parts.back().is_known()) return {};
  }
  return parts;
}

/// What was decided by sizes inside of the program is asserted of those of its inputs, each condition once.
void say_in_inputs(GraphModule& module, const std::vector<c10::IValue>& examples) {
  std::vector<AbstractValue> inputs;
  std::ranges::transform(examples, std::back_inserter(inputs), form_of);
  restate_assertions(module.graph(), std::move(inputs), shape_sources(module));
  drop_implied_assertions(module.graph());
}

}  // namespace

bool is_torch_nn_leaf(const std::string& qualified_name) {
  if (!qualified_name.starts_with("torch.nn.modules.") && !qualified_name.starts_with("torch.ao.nn.")) return false;
  return !qualified_name.starts_with("torch.nn.modules.container.");
}

std::shared_ptr<GraphModule> from_torchscript(const torch::jit::Module& module, const LoadOptions& options) {
  torchscript::Importer importer(options);
  try {
    importer.import_model(module);
  } catch (const Error& error) {
    if (!options.lazy_examples || error.kind() != ErrorKind::unsupported) throw;
    LoadOptions again = options;
    again.examples = std::exchange(again.lazy_examples, nullptr)();
    return from_torchscript(module, again);
  }
  const std::string name = torchscript::last_atom(torchscript::demangle(module.type()->name()->qualifiedName()));
  auto made = std::make_shared<GraphModule>(std::move(importer.graph), name);
  for (auto& [path, leaf] : importer.leaves) made->add_submodule(path, leaf.module);
  for (const NamedTensor& tensor : importer.tensors) {
    if (made->find_attribute(tensor.path).defined()) continue;  // a leaf's own
    tensor.is_parameter ? made->set_parameter(tensor.path, tensor.tensor)
                        : made->set_buffer(tensor.path, tensor.tensor);
  }
  for (const auto& [path, object] : importer.objects)
    made->add_submodule(path, std::make_shared<ObjectAttribute>(object));
  if (!options.examples.empty()) say_in_inputs(*made, options.examples);
  eliminate_dead_code(*made);
  made->delete_all_unused_submodules();
  made->delete_all_unused_attributes();  // constants of the program
  keep_unread(*made, module);
  set_modes(*made, module);
  fix_mode(*made, module, importer.read_training);
  if (MicroBatches cut = internal::saved_micro_batches(module);
      cut.inputs.size() == made->graph().placeholders().size())
    made->set_micro_batches(std::move(cut));
  return made;
}

std::shared_ptr<GraphModule> symbolic_trace(const torch::jit::Module& module, std::vector<c10::IValue> examples) {
  return from_torchscript(module, {.examples = std::move(examples)});
}

std::shared_ptr<GraphModule> torchscript::read_file(const std::string& path, const LoadOptions& options) {
  const torch::jit::Module module = read_module(path);
  try {
    return from_torchscript(module, options);
  } catch (const Error& error) {
    throw Error(error.kind(), path + ": " + error.message(), error.node(), error.location());
  } catch (const c10::Error& error) {  // what LibTorch reads late, and is not what it says
    throw Error(ErrorKind::io,
                path + ": is a damaged TorchScript file (" + first_line(error) + "); save the model again");
  } catch (const std::bad_alloc&) {  // a damaged length says as much
    throw Error(ErrorKind::io, path +
                                   ": reading it takes more memory than there is; if it is not as large as that, it is "
                                   "damaged: save the model again");
  }
}

}  // namespace fx
