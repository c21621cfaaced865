#include <fxgraph/rewriter/program/hostile/program.h>

#include <ATen/ATen.h>

#include <map>
#include <sstream>

#include <fxgraph/text/print.h>

namespace fx::hostile {

namespace {

void add_tensor(torch::nn::Module& root, const Weight& weight, const at::Tensor& tensor) {
  if (weight.parameter) {
    root.register_parameter(weight.path, tensor, false);
  } else {
    root.register_buffer(weight.path, tensor);
  }
}

class AnyModule : public torch::nn::Module {};

}  // namespace

std::shared_ptr<GraphModule> Program::build() const {
  AnyModule root;
  std::map<std::string, at::Tensor> tensors;
  std::map<std::string, std::shared_ptr<torch::nn::Module>> modules;
  for (const Weight& weight : weights) {
    at::Tensor tensor = weight.same_as.empty() ? copy_of(weight.value) : tensors.at(weight.same_as);
    if (weight.row_of) tensor = tensor.select(0, 0);
    tensors[weight.path] = tensor;
    add_tensor(root, weight, tensor);
  }
  for (const Submodule& submodule : submodules) {
    auto module = submodule.same_as.empty() ? submodule.prototype->clone() : modules.at(submodule.same_as);
    modules[submodule.path] = module;
    root.register_module(submodule.path, module);
  }
  return std::make_shared<GraphModule>(root, graph.clone());
}

Program Program::clone() const {
  Program copy;
  copy.graph = graph.clone();
  copy.weights = weights;
  copy.submodules = submodules;
  copy.inputs = inputs;
  copy.numbers = numbers;
  copy.narrowest = narrowest;
  return copy;
}

std::string Program::str() const {
  std::ostringstream out;
  out << print_graph(graph);
  std::size_t next = 0;
  for (const Node* placeholder : graph.placeholders()) {
    if (!inputs.empty() && next < inputs[0].size())
      out << "  " << placeholder->name() << " = " << describe(inputs[0][next++]) << "\n";
  }
  for (const Weight& weight : weights) {
    out << "  " << weight.path << (weight.parameter ? " (parameter)" : "") << " = "
        << (weight.same_as.empty() ? describe(weight.value) : (weight.row_of ? "row 0 of " : "") + weight.same_as)
        << "\n";
  }
  for (const Submodule& submodule : submodules) {
    out << "  " << submodule.path << " = ";
    if (submodule.same_as.empty()) {
      out << *submodule.prototype << (submodule.prototype->is_training() ? ", training" : ", evaluating");
    } else {
      out << submodule.same_as;
    }
    out << "\n";
  }
  return out.str();
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
