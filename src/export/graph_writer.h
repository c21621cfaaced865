// GraphWriter: a graph of operators into the JSON of torch.export's schema.
//
// Numbers that are the same in every run are written as numbers where they are used; what makes them is left out. What
// has no words in the schema is collected, so that it is told all at once. Thread-safety: none.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include <fxgraph/export/json.h>
#include <fxgraph/export/value_shapes.h>

namespace fx::pt2 {

/// What the format has no words for.
struct Wordless {
  std::string what;    ///< an operator, or what else
  std::string node{};  ///< where; empty when `what` says it
  std::string why{};   ///< empty when there is no more to say
};

class GraphWriter {
 public:
  using NestedShapes = std::map<const Graph*, ValueShapes>;
  GraphWriter(const GraphModule& module, const Graph& graph, const ValueShapes& shapes, const NestedShapes& nested,
              std::vector<Wordless>& refusals, const DataSizes* data = nullptr)
      : module_(module),
        graph_(graph),
        shapes_(shapes),
        nested_shapes_(nested),
        refusals_(refusals),
        data_(data),
        names_(graph) {}

  /// Gives the value of `node` a name that no other has, and writes what it is.
  const std::string& name_value(const Node& node, const std::string& wanted);
  const std::string& name_value(const Node& node, const std::string& wanted, const ValueShape& shape);
  /// The name of a value that is no node's: one of an input that is a container.
  std::string add_value(const std::string& wanted, const ValueShape& shape);
  /// Says that `node` is a value that has a name already.
  void set_name(const Node& node, const std::string& name) { names_[node] = name; }
  const std::string& name_of(const Node& node) const { return names_[node]; }
  bool has_name(const Node& node) const { return !names_[node].empty(); }

  /// Writes a graph within the program whole: inputs, nodes, outputs.
  Json write_all();
  void write_nodes();
  /// An argument as the schema's union.
  Json argument(const Argument& value);
  /// The reference to a value: as_tensor, as_sym_int, …
  static Json reference(const std::string& name, const ValueShape& shape);
  /// The graph's JSON. `inputs` and `outputs` are lists of unions.
  Json finish(Json inputs, Json outputs, bool single = false);

 private:
  /// Where a symbol can be had from.
  struct SymbolSource {
    std::string tensor{};  ///< that has a size of `step` times the symbol
    std::int64_t dim = 0;
    std::int64_t step = 1;
    std::int64_t example = 0;
    Json value{};  ///< the number, once it was written
  };

  void write_call(const Node& node);
  void write_operator(const Node& node, const std::string& target, Json inputs);
  void write_assertion(const Node& node);
  void write_question(const Node& node);
  void write_higher_order(const Node& node);
  bool write_as_expression(const Node& node);
  const DataSource* source(const Node& node) const { return data_ ? data_->find(node) : nullptr; }
  void note_symbol(const SymbolicSize& size, SymbolSource source);
  std::optional<Json> number_of(const SizeExpr& expr);
  Json add_number(const SizeExpr& expr, const std::string& target, Json inputs);
  void add_node(const Node& node, const std::string& target, Json inputs, Json outputs, Json single);
  void push_node(const std::string& name, const std::string& target, Json inputs, Json outputs, Json single,
                 Json metadata);
  void find_left_out();
  bool is_fixed(const Node& node) const;
  Json results_of(const Node& node, const ValueShape& shape, bool is_tuple);
  Argument named(const Argument& value, const c10::TypePtr& type) const;
  Json sequence(const Argument& value);
  static Json list_of(const std::vector<Json>& elements);
  Json nested(const Node& node);
  void refuse(const Node& node, const std::string& why);
  std::string fresh(const std::string& wanted);

  const GraphModule& module_;
  const Graph& graph_;
  const ValueShapes& shapes_;
  const NestedShapes& nested_shapes_;
  std::vector<Wordless>& refusals_;
  const DataSizes* data_;
  NodeMap<std::string> names_;
  std::unordered_set<const Node*> left_out_;  // look-up only
  std::map<std::string, SymbolSource> symbols_;
  std::set<std::string> taken_;
  Json nodes_ = Json::array();
  Json tensors_ = Json::object();
  Json integers_ = Json::object();
  Json booleans_ = Json::object();
  Json floats_ = Json::object();
};

/// An argument of a call.
Json input_named(const std::string& name, Json value, bool keyword = false);

/// The getitem that takes `key` out of `whole`; null when there is none.
Node* element_at(const Node& whole, const Argument& key);

}  // namespace fx::pt2
