// PlanCompiler: turns a GraphModule into a Plan's program. Included by the plan's own files only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/nn/leaf_module.h>
#include <fxgraph/nn/owning_module.h>
#include <fxgraph/run/operators.h>
#include <fxgraph/run/plan_program.h>
#include <fxgraph/run/python_calls.h>

namespace fx {

/// True where a parameter takes anything, or a list of it, as it is: `t`, `t[]`.
inline bool has_type_variables(const c10::Type& type) {
  return type.kind() == c10::TypeKind::VarType || type.hasFreeVariables();
}

class PlanCompiler {
 public:
  PlanCompiler(const OwningModule& module, Plan::Options options);
  std::unique_ptr<const Plan::Code> compile();

 private:
  /// What is known of a node's value while compiling.
  struct Value {
    enum class Kind : std::uint8_t {
      constant,  ///< program.constants[index]
      slot,      ///< a value made while running; numbered without reuse until finish()
      bundle,    ///< a tuple of such values, not built unless someone wants it whole
    };
    Kind kind = Kind::constant;
    std::uint32_t index = 0;
    c10::TypePtr type;  ///< null: not known
    std::vector<Value> elements;
  };

  /// The graph that is being compiled: the module's own, a nested module's, or a body.
  struct Scope {
    const Graph& graph;
    const torch::nn::Module* root;  ///< where get_attr and call_module look
    bool is_body = false;
    bool is_top = false;
    std::uint32_t outer_node = 0;  ///< for a body: the node of the module's graph that it belongs to
    NodeMap<Value> values;
    std::uint32_t node_of(const Node& node) const { return is_top ? node.id() : outer_node; }
  };

  // plan_compile.cc: graphs and nodes
  Value compile_graph(Scope& scope, const std::vector<Value>& inputs);
  Value compile_node(Scope& scope, const Node& node);
  Value compile_attribute(Scope& scope, const Node& node);
  Value compile_body(Scope& scope, const Node& node, std::shared_ptr<const Graph> body, const torch::nn::Module* root);
  std::vector<Value> bind_body_inputs(Scope& scope, const Node& node, const Graph& body);
  void observe(Scope& scope, const Node& node);
  std::unique_ptr<const Plan::Code> finish(const Value& result);

  // plan_calls.cc: calls
  Value compile_call(Scope& scope, const Node& node);
  Value compile_operator(Scope& scope, const Node& node, const TorchOperator& target, ArgumentSpan args,
                         KwargSpan kwargs);
  std::optional<Value> compile_packing(Scope& scope, const Node& node, const TorchOperator& pack,
                                       const std::vector<internal::Operand>& operands);
  Value compile_python(Scope& scope, const Node& node, const PythonFunction& function);
  bool take_element(Scope& scope, const Node& node, Value& element);
  Value compile_module(Scope& scope, const Node& node);
  Value compile_module_at(Scope& scope, const Node& node, const std::shared_ptr<torch::nn::Module>& module);
  Value compile_sequential(Scope& scope, const Node& node, const torch::nn::Module& sequential);
  Value compile_script(Scope& scope, const Node& node, const LeafModule& leaf);

  // plan_emit.cc: operands and steps
  Value constant(c10::IValue value, c10::TypePtr type = nullptr);
  Value literal(const Argument& argument, const c10::TypePtr& type);
  Value fresh_slot(c10::TypePtr type);
  Value to_value(Scope& scope, const Argument& argument);
  internal::Operand operand(Scope& scope, const Argument& argument, const c10::TypePtr& type = nullptr, int repeat = 1);
  internal::Operand operand_of(const Value& value, const c10::TypePtr& type = nullptr, int repeat = 1);
  internal::Operand aggregate(Scope& scope, const Argument& argument, const c10::TypePtr& type);
  std::uint32_t coercion(const Value& value, const c10::TypePtr& type, int repeat);
  internal::Step& step(Scope& scope, const Node& node, internal::Step::Kind kind,
                       const std::vector<internal::Operand>& operands, std::size_t num_results);
  Value call_function(Scope& scope, const Node& node, const std::vector<internal::Operand>& operands,
                      internal::StackFunction function, c10::TypePtr type = nullptr);
  void mark_last_uses(const Value& result);
  void assign_slots();

  const OwningModule& module_;
  Plan::Options options_;
  std::unique_ptr<Plan::Code> program_;
};

}  // namespace fx
