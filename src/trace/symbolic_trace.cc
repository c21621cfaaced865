#include <fxgraph/trace/symbolic_trace.h>

#include <cctype>
#include <set>

#include <fxgraph/nn/module_tree.h>

namespace fx {

namespace {

// `models::Block<float, 2>` -> `Block_float_2`: what Python and TorchScript take for a name.
std::string class_name_of(const std::string& type) {
  std::string name;
  std::size_t word = 0;  // where the last word of `name` begins: namespaces go
  for (std::size_t i = 0; i < type.size(); ++i) {
    const char c = type[i];
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
      name += c;
    } else if (c == ':' || type.compare(i, 21, "(anonymous namespace)") == 0) {
      name.resize(word);
      if (c == '(') i += 20;
    } else {
      if (!name.empty() && name.back() != '_') name += '_';
      word = name.size();
    }
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  if (name.ends_with("Impl")) name.resize(name.size() - 4);
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name.insert(0, "Module");
  return name;
}

// A tensor that the program reads under one of its names keeps the others: what is tied stays tied.
void keep_other_names(const torch::nn::Module& root, GraphModule& module) {
  std::set<const void*> read;
  for (const auto& tensors : {module.named_parameters(), module.named_buffers()}) {
    for (const auto& item : tensors) {
      if (item.value().defined()) read.insert(item.value().unsafeGetTensorImpl());
    }
  }
  const auto is_missing = [&](const std::string& name, const at::Tensor& tensor) {
    return tensor.defined() && read.contains(tensor.unsafeGetTensorImpl()) && !module.find_attribute(name).defined();
  };
  for (const auto& item : root.named_parameters()) {
    if (is_missing(item.key(), item.value())) module.set_parameter(item.key(), item.value());
  }
  for (const auto& item : root.named_buffers()) {
    if (is_missing(item.key(), item.value())) module.set_buffer(item.key(), item.value());
  }
}

}  // namespace

std::shared_ptr<GraphModule> to_graph_module(Trace trace) {
  GraphModule::Attributes attributes;
  for (TracedAttribute& attribute : trace.attributes) {
    attributes.emplace_back(std::move(attribute.path), std::move(attribute.tensor));
  }
  for (auto& [path, module] : trace.modules) attributes.emplace_back(std::move(path), std::move(module));
  std::string name = "GraphModule";
  if (trace.root) {
    name = class_name_of(trace.root->name());
  }
  auto module = std::make_shared<GraphModule>(attributes, std::move(trace.graph), name);
  if (trace.root) {
    keep_other_names(*trace.root, *module);
    copy_modes(*trace.root, *module);
  } else if (trace.mode) {
    module->train(*trace.mode);
  }
  static const std::string kAgain = "; trace the module again in the mode that you want";
  if (!trace.holds_for_mode.empty())
    module->fix_mode(trace.holds_for_mode + (trace.holds_for_mode.ends_with(kAgain) ? "" : kAgain));
  return module;
}

}  // namespace fx
