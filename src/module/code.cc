#include <fxgraph/module/code.h>

#include <torch/csrc/jit/serialization/pickle.h>

#include <filesystem>
#include <ostream>
#include <unordered_set>

#include <fxgraph/codegen/python.h>
#include <fxgraph/module/history.h>
#include <fxgraph/module/inline_modules.h>
#include <fxgraph/module/written_mode.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/nn/nn_construction.h>
#include <fxgraph/nn/nn_modules.h>
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
    if (!made) continue;
    made->path = path;
    for (const auto& parameter : called->named_parameters()) {
      if (!parameter->requires_grad()) made->frozen.push_back(parameter.key());
    }
    options.modules.push_back(std::move(*made));
  }
  return options;
}

std::string quoted(const std::string& text) { return to_string(Argument(text)); }

// The tree of plain modules with the tensors, then what the file holds.
std::string constructor(const CodeOptions& options) {
  std::string out =
      "    def __init__(self):\n        super().__init__()\n"
      "        weights = dict(torch.load(pathlib.Path(__file__).parent / 'weights.pt'))\n";
  for (const CodeTensor& tensor : options.tensors) {
    out += std::string("        self._add_") + (tensor.is_parameter ? "parameter" : "buffer") + "(" +
           quoted(tensor.path) + ", weights[" + quoted(tensor.path) + "]" +
           (tensor.is_frozen ? ", requires_grad=False" : "") + ")\n";
  }
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

// Pairs of names and tensors: LibTorch pickles a dictionary with a tag that Python's torch.load refuses from
// version 2.6.
std::vector<char> pickled_weights(const GraphModule& module, const CodeOptions& options) {
  std::vector<c10::IValue> weights;
  for (const CodeTensor& tensor : options.tensors) {
    weights.emplace_back(c10::ivalue::Tuple::create(tensor.path, module.attribute(tensor.path).detach()));
  }
  return torch::jit::pickle_save(c10::ivalue::Tuple::create(std::move(weights)));
}

}  // namespace

std::string code(const GraphModule& module, Language language) {
  if (language == Language::python) return python_code(module.graph());
  const Graph graph = inline_modules(module);
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
  for (const Node* node : graph.find_nodes(Op::call_module)) {
    throw Error(ErrorKind::unsupported,
                "to_folder: what the module '" + node->target().str() + "', called by %" + node->name() +
                    ", computes is not known to fxgraph; trace it without leaf modules",
                node->name());
  }
  internal::refuse_history(module, graph);
  const CodeOptions options = options_for(module, graph);
  std::string source = python_module(graph, class_name);
  const std::string marker = "class " + class_name + "(torch.nn.Module):\n";
  source.insert(source.find(marker) + marker.size(), constructor(options));
  source.insert(0, "import pathlib\n");
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
