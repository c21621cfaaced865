// Dead code, and why it is dead.
//
//   fx::DeadCode dead(graph);
//   for (const fx::DeadFinding& f : dead.findings()) std::cout << dead.explain(f) << "\n";
//   // add_1: dead because its only user relu_2 is dead because nothing uses it
//
// A node is live when the output, an operator with side effects, a random draw, or a write that can be seen outside
// needs it: directly, through a value, or through a write that it may read. All others are dead. That finds more than
// eliminate_dead_code, which keeps every write: a write into storage that the graph made itself, and that no live node
// reads afterwards, is a dead store.
//
// Complexity: O((nodes + uses) α) beside the alias sets; explain is O(chain shown). Nothing recurses. The result is a
// snapshot, valid until the graph is edited; the graph must outlive it. Thread-safety: const functions may run on
// several threads at once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/analysis/no_ops.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/tensor_info.h>

namespace fx {

/// Something that the program could do without.
struct DeadFinding {
  /// What is found, in the order in which findings() has it.
  enum class Kind : std::uint8_t {
    dead_node,         ///< its value is not needed
    dead_store,        ///< what it writes is never read
    unused_output,     ///< one result of an operator with several
    unused_input,      ///< a placeholder that no live node uses
    no_op,             ///< returns its argument as it is
    unused_attribute,  ///< a parameter or buffer that no live node reads
    unused_module,     ///< a module none of whose attributes is read and that no live node calls
  };
  Kind kind;                ///< says which of the other members mean something
  Node* node = nullptr;     ///< null for attributes and modules
  int output = -1;          ///< of unused_output: which
  std::string path{};       ///< of attributes and modules
  std::int64_t bytes = 0;   ///< of attributes and modules, as given
  Node* same_as = nullptr;  ///< of no_op
  std::string detail{};     ///< of no_op: what it does not do; of unused_output: the result's name
};

/// `dead node`, `dead store`, …
std::string_view to_string(DeadFinding::Kind kind);

/// A parameter or buffer that the module has, so that unused ones are found.
struct AttributeInfo {
  std::string path;        ///< as get_attr nodes name it
  std::int64_t bytes = 0;  ///< shown with a finding
};

/// What is known of a graph beside its nodes.
struct DeadCodeOptions {
  const Effects* effects = nullptr;         ///< made before; else computed from the graph alone
  const Shapes* shapes = nullptr;           ///< finds more no-ops, and unused results of operators without a schema
  std::vector<AttributeInfo> attributes{};  ///< all that the module has: those that nothing reads are findings
};

/// Finds what a graph does not need; see the top of this file.
class DeadCode {
 public:
  /// Analyses `graph` as it is now. What `options` points to is read during construction only.
  explicit DeadCode(const Graph& graph, const DeadCodeOptions& options = {});
  /// The same of a program; effects that are not given are worked out with what is known of its modules.
  explicit DeadCode(const Program auto& program, const DeadCodeOptions& options = {})
      : DeadCode(program.graph(), internal::with_effects(options, Effects(program))) {}

  /// True when nothing that is live needs `node`.
  bool is_dead(const Node& node) const { return !live_[node.id()]; }
  /// True for a dead node that writes: what it stores is never read.
  bool is_dead_store(const Node& node) const { return writes_[node.id()]; }
  /// By kind, and within a kind in graph order (attributes and modules: by path).
  std::span<const DeadFinding> findings() const { return findings_; }
  /// How many findings are of this kind.
  std::size_t count(DeadFinding::Kind kind) const;
  /// One line: the node or path, what it is, and the chain of reasons, cut after kMaxReasons.
  std::string explain(const DeadFinding& finding) const;
  /// The chain of reasons for a dead node: "its only user b is dead because nothing uses it"; empty for a live one.
  std::string why(const Node& node) const;

  static constexpr int kMaxReasons = 6;  ///< links of a chain of reasons that explain and why write out

 private:
  void find_dead_nodes(const Effects& effects);
  void find_unused_outputs(const Shapes* shapes);
  void find_unused_inputs();
  void find_unused_attributes(const std::vector<AttributeInfo>& attributes);

  const Graph* graph_;
  std::vector<bool> live_, writes_;  // by id
  std::vector<DeadFinding> findings_;
};

}  // namespace fx
