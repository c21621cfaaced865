#include <fxgraph/torchscript/packed.h>

#include <ATen/core/grad_mode.h>
#include <ATen/core/jit_type.h>

#include <optional>
#include <string_view>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/run/operators.h>
#include <fxgraph/run/packed_once.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>
#include <fxgraph/torchscript/method_builder.h>

namespace fx::internal {

namespace {

namespace jit = torch::jit;

bool is_packed_type(const c10::TypePtr& type) {
  const auto* made = type->castRaw<c10::ClassType>();
  return made && made->name() && made->name()->qualifiedName().starts_with("__torch__.torch.classes.");
}

/// The operator, when `node` packs nothing but attributes and literals.
const TorchOperator* packs_constants(const Node& node) {
  if (!node.is(Op::call_function)) return nullptr;
  const TorchOperator* op = find_torch_operator(node.target());
  if (!op || !is_packing(*op->schema)) return nullptr;
  bool constant = true;
  node.for_each_input([&](const Node& input) { constant = constant && input.is(Op::get_attr); });
  return constant ? op : nullptr;
}

/// One packing call as a module.
class PackingModule {
 public:
  PackingModule(const GraphModule& from, const Node& call, const TorchOperator& op,
                const std::shared_ptr<jit::CompilationUnit>& unit)
      : from_(from),
        call_(call),
        op_(op),
        unit_(unit),
        made_(c10::QualifiedName("__torch__.fxgraph.Packed"), unit, true) {}

  jit::Module make() {
    made_.register_attribute("training", c10::BoolType::get(), false);
    add_pack();
    const c10::TypePtr type = op_.schema->returns()[0].type();
    made_.register_attribute(kPackedAttribute, type, packed());
    add_get_state();
    add_set_state(type);
    return made_;
  }

 private:
  /// Tensors are called as the attributes that they were: weight, bias.
  std::string add_tensor(const std::string& path) {
    std::string stem = path.substr(path.rfind('.') + 1);
    std::string name = stem;
    for (int i = 1; made_.type()->hasAttribute(name) || name == kPackedAttribute; ++i)
      name = stem + "_" + std::to_string(i);
    const at::Tensor tensor = from_.attribute(path);
    if (from_.is_parameter(path)) {
      made_.register_parameter(name, tensor, /*is_buffer=*/false);
    } else {
      made_.register_buffer(name, tensor);
    }
    names_.push_back(name);
    return name;
  }

  void add_pack() {
    Graph body;
    NodeMap<Node*> tensors(call_.graph(), nullptr);
    call_.for_each_input([&](const Node& input) {
      if (!tensors[input]) tensors[input] = &body.get_attr(add_tensor(input.target().str()));
    });
    body.output(body.node_copy(call_, [&](Node& input) { return Argument(tensors[input]); }));
    add_method(kPackMethod,
               build_method(body, made_.type(), [](const std::string&) { return std::string("forward"); }));
  }

  c10::IValue packed() {
    const at::NoGradGuard no_grad;
    return made_.get_method(kPackMethod)({});
  }

  void add_get_state() {
    const auto graph = std::make_shared<jit::Graph>();
    jit::Value* self = graph->addInput("self")->setType(made_.type());
    std::vector<jit::Value*> state;
    for (const std::string& name : names_) state.push_back(graph->insertGetAttr(self, name));
    state.push_back(graph->insertGetAttr(self, "training"));
    jit::Value* tuple = graph->insertNode(graph->createTuple(state))->output();
    state_type_ = tuple->type();
    graph->registerOutput(tuple);
    add_method("__getstate__", graph);
  }

  void add_set_state(const c10::TypePtr& type) {
    const auto graph = std::make_shared<jit::Graph>();
    jit::Value* self = graph->addInput("self")->setType(made_.type());
    jit::Value* state = graph->addInput("state")->setType(state_type_);
    jit::Node* parts = graph->insertNode(graph->createTupleUnpack(state));
    for (std::size_t i = 0; i < names_.size(); ++i) set(*graph, self, names_[i], parts->outputs()[i]);
    set(*graph, self, "training", parts->outputs()[names_.size()]);
    jit::Node* pack = graph->insertNode(graph->create(c10::prim::CallMethod, {self}));
    pack->s_(c10::attr::name, kPackMethod);
    set(*graph, self, kPackedAttribute, pack->output()->setType(type));
    graph->registerOutput(graph->insertConstant(c10::IValue()));
    add_method("__setstate__", graph);
  }

  static void set(jit::Graph& graph, jit::Value* self, const std::string& name, jit::Value* value) {
    graph.insertNode(graph.create(c10::prim::SetAttr, {self, value}, 0))->s_(c10::attr::name, name);
  }

  void add_method(const std::string& name, const std::shared_ptr<jit::Graph>& body) {
    made_.type()->addMethod(unit_->create_function(c10::QualifiedName(*made_.type()->name(), name), body));
  }

  const GraphModule& from_;
  const Node& call_;
  const TorchOperator& op_;
  std::shared_ptr<jit::CompilationUnit> unit_;
  jit::Module made_;
  std::vector<std::string> names_;  // of its tensors
  c10::TypePtr state_type_;
};

std::string free_name(const GraphModule& module, const std::string& stem) {
  std::string name = stem;
  for (int i = 1; module.find_submodule(name) || module.find_attribute(name).defined(); ++i)
    name = stem + "_" + std::to_string(i);
  return name;
}

}  // namespace

std::optional<PackedGraph> separate_packing(const GraphModule& module, const Graph& graph,
                                            const std::shared_ptr<jit::CompilationUnit>& unit) {
  PackedGraph result;
  NodeMap<Node*> copies(graph, nullptr);
  NodeMap<bool> stays(graph, true);  // get_attr nodes that someone else reads
  for (const Node& node : graph.nodes()) {
    if (!node.is(Op::get_attr)) continue;
    stays[node] = !node.has_users();
    for (const Node& user : node.users()) stays[node] = stays[node] || !packs_constants(user);
    if (!stays[node]) result.moved.insert(node.target().str());
  }
  if (result.moved.empty()) {
    bool any = false;
    for (const Node& node : graph.nodes()) any = any || packs_constants(node);
    if (!any) return std::nullopt;
  }
  for (const Node& node : graph.nodes()) {
    if (node.is(Op::get_attr) && stays[node]) result.moved.erase(node.target().str());
  }
  for (const Node& node : graph.nodes()) {
    if (node.is(Op::get_attr) && !stays[node]) continue;
    if (const TorchOperator* op = packs_constants(node)) {
      const std::string name = free_name(module, node.name());
      result.modules.emplace_back(name, PackingModule(module, node, *op, unit).make());
      copies[node] = &result.graph.get_attr(name + "." + kPackedAttribute);
    } else {
      copies[node] = &result.graph.node_copy(node, [&](Node& input) { return Argument(copies[input]); });
    }
  }
  return result;
}

jit::Function* packing_method(const c10::ClassType& owner, std::size_t slot) {
  const c10::TypePtr& type = owner.getAttribute(slot);
  if (!is_packed_type(type)) return nullptr;
  jit::Function* pack = owner.findMethod(kPackMethod);
  if (!pack || pack->getSchema().arguments().size() != 1 || pack->getSchema().returns().size() != 1) return nullptr;
  return *pack->getSchema().returns()[0].type() == *type ? pack : nullptr;
}

}  // namespace fx::internal
