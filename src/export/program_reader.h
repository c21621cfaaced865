// ProgramReader: an exported program's JSON and tensors into a GraphModule: its signature, attributes, checks, nodes
// and results. load_exported is its one user.
//
// It and program_writer.h put three parts together. The archive: json, literals, tensors, tree_spec, input_notes,
// saved_state. The graph: graph_reader with graph_calls and lifts, graph_writer with size_nodes, operators, numbers
// with tensor_numbers, number_lists and tensor_questions. Sizes and guards: call_inputs, value_shapes with
// observed_run, data_sizes, guards with program_guards.
//
// Thread-safety: none.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fxgraph/export/graph_reader.h>
#include <fxgraph/export/guards.h>
#include <fxgraph/export/input_notes.h>
#include <fxgraph/export/load.h>
#include <fxgraph/export/tensors.h>
#include <fxgraph/export/tree_spec.h>

namespace fx::pt2 {

class ProgramReader {
 public:
  ProgramReader(const Json& program, StoredTensors weights, StoredTensors constants, const ExportedOptions& options);

  std::shared_ptr<GraphModule> read();

 private:
  /// A tensor of the program's own.
  struct State {
    std::string name;
    std::string attribute;
    bool persistent = true;
    bool is_constant = false;  ///< a tensor that is no state
  };
  /// What the caller gives.
  struct Input : CallValue {
    std::string name;
  };

  void check_version();
  void read_ranges();
  void read_call();
  void read_signature();
  void add_literal(const std::string& name, const Json& value);
  void add_varying(const std::string& name);
  void add_attributes();
  void add_inputs();
  void add_input(const std::string& name, const TreeSpec& spec, std::size_t& leaf);
  std::string annotation_of(const TreeSpec& spec, std::size_t& leaf) const;
  static std::string annotation_of(const Argument& literal);
  void take_apart(Node& whole, const TreeSpec& spec, std::size_t& leaf);
  void add_leaf(Node& node, const Input& input);
  InputNote note_of(std::size_t first_leaf, std::size_t count);
  void add_guards();
  std::vector<StatedGuard> read_guards();
  std::vector<StatedGuard> read_reasons();
  std::optional<std::size_t> leaf_of(const std::vector<GuardStep>& path) const;
  void add_states();
  void add_updates();
  void add_output();
  void set_mode();
  Argument target_of_update(const Json& output, const char* name, bool is_input);

  const Json& program_;
  const Json& module_json_;
  StoredTensors weights_;
  StoredTensors constants_;
  ExportedOptions options_;
  std::shared_ptr<GraphModule> module_;
  Refusals refusals_;
  std::unique_ptr<GraphReader> reader_;

  SizeRanges ranges_;
  TreeSpec in_spec_, out_spec_;
  std::vector<std::string> argument_names_;
  bool named_ = false;  ///< argument_names_ has one for each argument
  std::vector<State> states_;
  std::vector<Input> inputs_;
  /// An input that is a container, and where its values begin in inputs_.
  struct Packed {
    Node* node;
    const TreeSpec* spec;
    std::size_t first_leaf;
  };
  std::vector<Packed> packed_;
  std::vector<CheckedInput> checked_;
  struct Update {
    std::string value;
    Argument target;
  };
  std::vector<Update> updates_;
};

}  // namespace fx::pt2
