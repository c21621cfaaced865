#include <fxgraph/trace/symbolic_trace.h>

#include <fxgraph/nn/module_tree.h>

namespace fx {

std::shared_ptr<GraphModule> to_graph_module(Trace trace) {
  GraphModule::Attributes attributes;
  for (TracedAttribute& attribute : trace.attributes) {
    attributes.emplace_back(std::move(attribute.path), std::move(attribute.tensor));
  }
  for (auto& [path, module] : trace.modules) attributes.emplace_back(std::move(path), std::move(module));
  std::string name = "GraphModule";
  if (trace.root) {
    name = trace.root->name();
    if (const std::size_t colons = name.rfind("::"); colons != std::string::npos) name.erase(0, colons + 2);
    if (name.ends_with("Impl")) name.resize(name.size() - 4);
  }
  auto module = std::make_shared<GraphModule>(attributes, std::move(trace.graph), name);
  if (trace.root) copy_modes(*trace.root, *module);
  return module;
}

}  // namespace fx
