#include <fxgraph/module/code.h>
#include <fxgraph/module/separated_memory.h>

#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/version.h>

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <set>
#include <unordered_set>

#include <fxgraph/codegen/python.h>
#include <fxgraph/module/history.h>
#include <fxgraph/module/inline_modules.h>
#include <fxgraph/module/written_mode.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/nn/nn_construction.h>
#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/run/missing_operators.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>
#include <fxgraph/support/output_file.h>

namespace fx {
namespace {

CodeOptions options_for(const GraphModule& module, const Graph& graph) {
  CodeOptions options{.class_name = module.class_name()};
  std::unordered_set<std::string> seen;
  for (const Node* node : graph.find_nodes(Op::get_attr)) {
    bool is_parameter = false;
    const std::string path = node->target().str();
    if (!seen.insert(path).second) continue;
    const torch::Tensor tensor = find_tensor(module, path, &is_parameter);
    if (tensor.defined())
      options.tensors.push_back({path, tensor_info(tensor), is_parameter, is_parameter && !tensor.requires_grad()});
  }
  for (const Node* node : graph.find_nodes(Op::call_module)) {
    const std::string path = node->target().str();
    const std::shared_ptr<torch::nn::Module> called = module.find_submodule(path);
    std::optional<CodeModule> made = called && seen.insert(path).second ? construction_of(*called) : std::nullopt;
    if (!made) {
      const auto result = called ? result_of(*called) : std::nullopt;
      if (result && !result->parts.empty()) options.results.emplace(path, *result);
      continue;
    }
    made->path = path;
    for (const auto& parameter : called->named_parameters()) {
      if (!parameter->requires_grad()) made->frozen.push_back(parameter.key());
    }
    options.modules.push_back(std::move(*made));
  }
  return options;
}

std::string quoted(const std::string& text) { return to_string(Argument(text)); }

// Whether a module that is made has the tensor.
bool comes_with_a_module(const CodeTensor& tensor, const CodeOptions& options) {
  return std::ranges::any_of(options.modules,
                             [&](const auto& module) { return tensor.path.starts_with(module.path + "."); });
}

// A folder holds all that the program holds, read or not.
void add_unread_tensors(const GraphModule& module, CodeOptions& options) {
  const auto add = [&](const std::string& path, const torch::Tensor& tensor, bool is_parameter) {
    CodeTensor made{path, {}, is_parameter, is_parameter && !tensor.requires_grad()};
    if (!tensor.defined() || comes_with_a_module(made, options)) return;
    if (std::ranges::find(options.tensors, path, &CodeTensor::path) != options.tensors.end()) return;
    made.info = tensor_info(tensor);
    options.tensors.push_back(std::move(made));
  };
  for (const auto& each : module.named_parameters()) add(each.key(), each.value(), true);
  for (const auto& each : module.named_buffers()) add(each.key(), each.value(), false);
}

std::string add_modules(const CodeOptions& options) {
  std::string out;
  for (const CodeModule& module : options.modules) {
    std::string frozen;
    for (const std::string& name : module.frozen) frozen += (frozen.empty() ? "" : ", ") + quoted(name);
    out += "        self._add_module(" + quoted(module.path) + ", " + module.python_construction + ", weights, " +
           (module.training ? "True" : "False") + ", [" + frozen + "])\n";
  }
  return out;
}

// Assigning to a tensor's data keeps the tensor, which the module may hold elsewhere too, and takes any type.
constexpr std::string_view kAddPythonModule = R"(
    def _add_module(self, path, module, weights, training, frozen):
        owner, name = self._owner(path)
        owner.add_module(name, module.train(training))
        for key, tensor in module.state_dict(keep_vars=True).items():
            tensor.data = weights[path + '.' + key]
            tensor.requires_grad_(tensor.requires_grad and key not in frozen)
)";

// The modules that it makes, the tree of plain ones with the tensors, then what the file holds.
std::string constructor(const CodeOptions& options) {
  std::string out =
      "    def __init__(self):\n        super().__init__()\n"
      "        weights = dict(torch.load(pathlib.Path(__file__).parent / 'weights.pt'))\n";
  out += add_modules(options);
  for (const CodeTensor& tensor : options.tensors) {
    if (comes_with_a_module(tensor, options)) continue;
    out += std::string("        self._add_") + (tensor.is_parameter ? "parameter" : "buffer") + "(" +
           quoted(tensor.path) + ", weights[" + quoted(tensor.path) + "]" +
           (tensor.is_frozen ? ", requires_grad=False" : "") + ")\n";
  }
  if (!options.modules.empty()) out += kAddPythonModule;
  return out + R"(
    def _owner(self, path):
        owner = self
        for name in path.split('.')[:-1]:
            if name not in owner._modules:
                owner.add_module(name, torch.nn.Module())
            owner = owner._modules[name]
        return owner, path.split('.')[-1]

    def _add_parameter(self, path, tensor, requires_grad=True):
        owner, name = self._owner(path)
        requires_grad = requires_grad and tensor.is_floating_point()
        owner.register_parameter(name, torch.nn.Parameter(tensor, requires_grad=requires_grad))

    def _add_buffer(self, path, tensor):
        owner, name = self._owner(path)
        owner.register_buffer(name, tensor)

)";
}

void refuse_unknown_modules(const Graph& graph, const CodeOptions& options) {
  for (const Node* node : graph.find_nodes(Op::call_module)) {
    const auto made = std::ranges::find(options.modules, node->target().str(), &CodeModule::path);
    if (made != options.modules.end() && !made->python_construction.empty()) continue;
    throw Error(ErrorKind::unsupported,
                "to_folder: what the module '" + node->target().str() + "', called by %" + node->name() +
                    ", computes is not known to fxgraph, nor how Python makes one; trace it without leaf modules, or "
                    "register its type with its hyper-parameters",
                node->name());
  }
}

// What Python's modules have by these names is found first, and it registers no tensor there.
void refuse_names(const Graph& graph, const CodeOptions& options) {
  static constexpr std::string_view kOfModules[] = {"T_destination",
                                                    "add_module",
                                                    "apply",
                                                    "bfloat16",
                                                    "buffers",
                                                    "children",
                                                    "cpu",
                                                    "cuda",
                                                    "double",
                                                    "dump_patches",
                                                    "eval",
                                                    "extra_repr",
                                                    "float",
                                                    "forward",
                                                    "half",
                                                    "ipu",
                                                    "load_state_dict",
                                                    "modules",
                                                    "named_buffers",
                                                    "named_children",
                                                    "named_modules",
                                                    "named_parameters",
                                                    "parameters",
                                                    "register_buffer",
                                                    "register_module",
                                                    "register_parameter",
                                                    "requires_grad_",
                                                    "share_memory",
                                                    "state_dict",
                                                    "to",
                                                    "to_empty",
                                                    "train",
                                                    "training",
                                                    "type",
                                                    "xpu",
                                                    "zero_grad",
                                                    "_owner",
                                                    "_add_buffer",
                                                    "_add_module",
                                                    "_add_parameter"};
  const auto refuse = [](const std::string& path, const std::string& why) {
    throw Error(ErrorKind::unsupported, "to_folder: '" + path + "' " + why);
  };
  for (const CodeTensor& tensor : options.tensors) {
    const std::string name = split_path(tensor.path).second;
    const bool is_of_classes = name.starts_with("__") && name.ends_with("__");
    if (is_of_classes || std::ranges::find(kOfModules, name) != std::end(kOfModules))
      refuse(tensor.path, "is the name of what every torch.nn.Module has; rename the tensor");
  }
  for (const Node* node : graph.find_nodes(Op::get_attr)) {
    const std::string path = node->target().str();
    if (std::ranges::find(options.tensors, path, &CodeTensor::path) == options.tensors.end())
      refuse(path, "is a graph, which Python's code has no words for; save the program as .pt2");
  }
}

// Pairs of names and tensors: LibTorch pickles a dictionary with a tag that Python's torch.load refuses from
// version 2.6.
std::vector<char> pickled_weights(const GraphModule& module, const CodeOptions& options) {
  const auto separated = internal::separated_tensors(module, "to_folder");
  const auto written = [&](const at::Tensor& tensor) {
    const auto alone = separated.find(tensor.unsafeGetTensorImpl());
    return (alone == separated.end() ? tensor : alone->second).detach();
  };
  std::vector<c10::IValue> weights;
  for (const CodeTensor& tensor : options.tensors) {
    if (comes_with_a_module(tensor, options)) continue;
    weights.emplace_back(c10::ivalue::Tuple::create(tensor.path, written(module.attribute(tensor.path))));
  }
  for (const CodeModule& made : options.modules) {
    const std::shared_ptr<torch::nn::Module> called = module.find_submodule(made.path);
    for (const auto& tensors : {called->named_parameters(), called->named_buffers()}) {
      for (const auto& item : tensors)
        weights.emplace_back(c10::ivalue::Tuple::create(join_path(made.path, item.key()), written(item.value())));
    }
  }
  return torch::jit::pickle_save(c10::ivalue::Tuple::create(std::move(weights)));
}

}  // namespace

// Compiled code has LibTorch's operators alone.
static void refuse_missing_operators(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    const Call call = call_of(node);
    if (!call || !missing_operator_body(call.schema().target)) continue;
    throw Error(ErrorKind::unsupported,
                "cpp_code: %" + node.name() + ": LibTorch " TORCH_VERSION " has no " + call.schema().target.str() +
                    ", so compiled code could not call it; save the program as .pt, which brings it along",
                node.name());
  }
}

std::string code(const GraphModule& module, Language language) {
  if (language == Language::python) return python_code(module.graph());
  const Graph graph = inline_modules(module);
  if (language == Language::cpp) refuse_missing_operators(graph);
  CodeOptions options = options_for(module, graph);
  options.training = module.is_training();
  // Calls that stay are calls of modules.
  options.fixed_mode = internal::mode_of_written(module, [](const torch::nn::Module& called) {
    const auto* leaf = dynamic_cast<const LeafModule*>(&called);
    return leaf ? !leaf->body() : !leaf_from_module(called);
  });
  return code(graph, language, options);
}

void to_folder(const GraphModule& module, const std::string& folder, const std::string& class_name) {
  const Graph graph = inline_modules(module);
  CodeOptions options = options_for(module, graph);
  add_unread_tensors(module, options);
  refuse_unknown_modules(graph, options);
  refuse_names(graph, options);
  internal::refuse_history(module, graph);
  std::string source = python_module(graph, class_name);
  const std::string marker = "class " + class_name + "(torch.nn.Module):\n";
  source.insert(source.find(marker) + marker.size(), constructor(options));
  std::set<std::string> imports = {"pathlib"};
  for (const CodeModule& made : options.modules) imports.insert(made.python_import);
  std::string first;
  for (const std::string& name : imports) first += "import " + name + "\n";
  source.insert(0, first);
  const std::vector<char> weights = pickled_weights(module, options);
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  const auto write = [&](const char* name, const auto& content) {
    write_file(std::filesystem::path(folder) / name,
               [&](std::ostream& file) { file.write(content.data(), static_cast<std::streamsize>(content.size())); });
  };
  write("weights.pt", weights);
  write("module.py", source);
}

std::string GraphModule::code() const { return fx::code(*this); }

}  // namespace fx
