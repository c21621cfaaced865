// ProgramWriter: a GraphModule into an exported program: its call, its state, its graph, as JSON and tensors.
//
// save_exported is its one user. Thread-safety: as running the module.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/export/graph_writer.h>
#include <fxgraph/export/input_notes.h>
#include <fxgraph/export/save.h>

namespace fx::pt2 {

/// One tensor that the archive holds.
struct SavedTensor {
  std::string name;
  at::Tensor tensor;
  bool is_parameter = false;
};

struct WrittenProgram {
  Json json;
  std::vector<SavedTensor> weights;
  std::vector<SavedTensor> constants;
  c10::IValue example;  ///< (args, kwargs)
};

class ProgramWriter {
 public:
  ProgramWriter(GraphModule& module, const SaveExportedOptions& options);
  WrittenProgram write();

 private:
  /// A value that the caller gives: a tensor, or the one value that the program holds for.
  struct Leaf {
    Node* node = nullptr;  ///< the placeholder, or the getitem that takes it out of one; null when nothing reads it
    std::string name;
    TensorMeta meta{};
    at::Tensor example{};
    std::optional<Argument> literal{};
  };
  /// An argument of the call.
  struct Input {
    Node* placeholder;
    TreeSpec spec;
    std::size_t first_leaf;
    bool keyword;
  };

  void flatten_modules();
  void add_input(Node& placeholder, const c10::IValue* example);
  void add_leaves(Node* node, const TreeSpec& spec, const c10::IValue* example, const std::string& name);
  void add_leaf(Node* node, const c10::IValue* example, const std::string& name);
  void add_symbols();
  void make_dynamic(const DynamicSize& size);
  std::vector<c10::IValue> make_inputs(const Symbols& symbols) const;
  c10::IValue make_leaf(const Leaf& leaf, const Symbols& symbols) const;
  void drop_checks();
  void check_container(Node& whole, const TreeSpec& spec);
  void add_states(Json& inputs, Json& specs);
  void add_state(const char* kind, const char* prefix, const std::string& path, const at::Tensor& tensor, Json& inputs,
                 Json& specs);
  void add_user_inputs(Json& inputs, Json& specs);
  std::pair<Json, Json> outputs(std::string& out_spec);
  Node& element_of(Node& whole, std::size_t index);
  Argument whole_values(const Argument& value);
  std::string in_spec() const;
  c10::IValue example_inputs() const;

  GraphModule& module_;
  const SaveExportedOptions& options_;
  Graph graph_;
  std::vector<Leaf> leaves_;
  std::vector<Input> inputs_;
  Symbols symbols_;
  std::map<std::string, SizeRange> ranges_;
  ValueShapes shapes_;
  std::vector<std::string> refusals_;
  std::unique_ptr<GraphWriter> writer_;
  WrittenProgram written_;
};

}  // namespace fx::pt2
