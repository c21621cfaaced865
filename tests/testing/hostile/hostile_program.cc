#include <fxgraph/testing/hostile/hostile_program.h>

#include <ATen/ATen.h>

#include <map>
#include <sstream>

#include <fxgraph/text/print.h>

namespace fx::hostile {

namespace {

class AnyModule : public torch::nn::Module {};

/// The module that holds what is at `path`, made where it is not there; `path` becomes the name in it.
torch::nn::Module& holder_of(torch::nn::Module& root, std::string& path) {
  torch::nn::Module* at = &root;
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.')) {
    const std::string name = path.substr(0, dot);
    const auto children = at->named_children();
    const auto* known = children.find(name);
    at = known ? known->get() : at->register_module(name, std::make_shared<AnyModule>()).get();
    path.erase(0, dot + 1);
  }
  return *at;
}

void add_tensor(torch::nn::Module& root, const Weight& weight, const at::Tensor& tensor) {
  std::string name = weight.path;
  torch::nn::Module& holder = holder_of(root, name);
  if (weight.parameter) {
    holder.register_parameter(name, tensor, false);
  } else {
    holder.register_buffer(name, tensor);
  }
}

const char* reading_text(Reading reading) {
  constexpr const char* kTexts[] = {"",
                                    ".select(0, 0)",
                                    ".t()",
                                    ".unsqueeze(0).expand({2, -1, -1})",
                                    ".conj()",
                                    ".conj().imag",
                                    "._neg_view()",
                                    ".real",
                                    ".view(torch.int8)"};
  return kTexts[static_cast<std::size_t>(reading)];
}

}  // namespace

at::Tensor read_as(Reading reading, const at::Tensor& tensor) {
  switch (reading) {
    case Reading::itself: return tensor;
    case Reading::row: return tensor.select(0, 0);
    case Reading::transposed: return tensor.t();
    case Reading::expanded: return tensor.unsqueeze(0).expand({2, -1, -1});
    case Reading::conjugate: return tensor.conj();
    case Reading::imaginary: return at::imag(tensor.conj());
    case Reading::negative: return tensor._neg_view();
    case Reading::real: return at::real(tensor);
    case Reading::bytes: return tensor.view(at::kChar);
  }
  return tensor;
}

std::shared_ptr<GraphModule> HostileProgram::build() const {
  AnyModule root;
  std::map<std::string, at::Tensor> tensors;
  std::map<std::string, std::shared_ptr<torch::nn::Module>> modules;
  for (const Weight& weight : weights) {
    at::Tensor tensor = weight.same_as.empty() ? copy_of(weight.value) : tensors.at(weight.same_as);
    tensor = read_as(weight.reading, tensor);
    tensors[weight.path] = tensor;
    add_tensor(root, weight, tensor);
  }
  for (const Submodule& submodule : submodules) {
    auto module = submodule.same_as.empty() ? submodule.prototype->clone() : modules.at(submodule.same_as);
    for (const auto& [name, weight] : submodule.tied) tie(*module, name, tensors.at(weight));
    modules[submodule.path] = module;
    std::string name = submodule.path;
    holder_of(root, name).register_module(name, module);
  }
  auto made = std::make_shared<GraphModule>(root, graph.clone());
  for (const Weight& weight : weights) {  // what no node names is there all the same
    if (made->find_attribute(weight.path).defined()) continue;
    weight.parameter ? made->set_parameter(weight.path, tensors.at(weight.path))
                     : made->set_buffer(weight.path, tensors.at(weight.path));
  }
  return made;
}

HostileProgram HostileProgram::clone() const {
  HostileProgram copy;
  copy.graph = graph.clone();
  copy.weights = weights;
  copy.submodules = submodules;
  copy.inputs = inputs;
  copy.numbers = numbers;
  copy.narrowest = narrowest;
  return copy;
}

HostileProgram HostileProgram::with_tame_numbers() const {
  HostileProgram tame = clone();
  tame.numbers = Numbers::tame;
  for (Tensors& set : tame.inputs) {
    for (at::Tensor& input : set) input = tamed(input);
  }
  for (Weight& weight : tame.weights) {
    if (weight.same_as.empty()) weight.value = tamed(weight.value);
  }
  return tame;
}

std::string HostileProgram::str() const {
  std::ostringstream out;
  out << print_graph(graph);
  std::size_t next = 0;
  for (const Node* placeholder : graph.placeholders()) {
    if (!inputs.empty() && next < inputs[0].size())
      out << "  " << placeholder->name() << " = " << describe(inputs[0][next++]) << "\n";
  }
  for (const Weight& weight : weights) {
    out << "  " << weight.path << (weight.parameter ? " (parameter)" : "") << " = "
        << (weight.same_as.empty() ? describe(weight.value) : weight.same_as) << reading_text(weight.reading) << "\n";
  }
  for (const Submodule& submodule : submodules) {
    out << "  " << submodule.path << " = ";
    if (const auto* nested = dynamic_cast<const GraphModule*>(submodule.prototype.get());
        nested && submodule.same_as.empty()) {
      out << print_graph(nested->graph());
    } else if (submodule.same_as.empty()) {
      out << *submodule.prototype << (submodule.prototype->is_training() ? ", training" : ", evaluating");
    } else {
      out << submodule.same_as;
    }
    for (const auto& [name, weight] : submodule.tied) out << ", " << name << " tied with " << weight;
    out << "\n";
  }
  return out.str();
}

void tie(torch::nn::Module& module, const std::string& name, const at::Tensor& tensor) {
  at::Tensor own = module.named_parameters(false)[name];
  own.set_data(tensor.detach());
}

std::vector<std::pair<std::string, at::Tensor>> state_of(const torch::nn::Module& root) {
  std::vector<std::pair<std::string, at::Tensor>> state;
  // Unlike named_parameters() this lists a shared module under each of its paths.
  std::vector<std::pair<std::string, const torch::nn::Module*>> open = {{"", &root}};
  while (!open.empty()) {
    const auto [prefix, module] = open.back();
    open.pop_back();
    for (const auto& item : module->named_parameters(false)) state.emplace_back(prefix + item.key(), item.value());
    for (const auto& item : module->named_buffers(false)) state.emplace_back(prefix + item.key(), item.value());
    for (const auto& item : module->named_children()) open.emplace_back(prefix + item.key() + ".", item.value().get());
  }
  return state;
}

}  // namespace fx::hostile
