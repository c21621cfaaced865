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

#include <fxgraph/export/call_inputs.h>
#include <fxgraph/export/graph_writer.h>
#include <fxgraph/export/input_notes.h>
#include <fxgraph/export/save.h>

namespace fx::pt2 {

/// One tensor of the program.
struct SavedState {
  enum class Held : std::uint8_t { parameter, buffer, not_saved, constant };
  std::string path;
  at::Tensor tensor;  ///< those that share memory share it here, too; no memory that none of them needs
  Held held = Held::parameter;
};

/// All of `module`, in the order in which they are written: constants last. Rewrites reads of views in `graph`, which
/// runs over the module. Throws Error(unsupported), naming the tensors, for what cannot be kept: memory that is read as
/// two types, and what was computed of a parameter before the program ran.
std::vector<SavedState> settle_state(const GraphModule& module, Graph& graph);

struct WrittenProgram {
  Json json;
  std::vector<SavedState> weights;
  std::vector<SavedState> constants;
  c10::IValue example;  ///< (args, kwargs)
};

class ProgramWriter {
 public:
  ProgramWriter(GraphModule& module, const SaveExportedOptions& options);
  WrittenProgram write();

 private:
  void flatten_modules();
  void put_in_literals();
  void put_in_types();
  static void refuse(const std::string& calls_of_data);
  void find_shapes();
  void drop_checks();
  Json ranges() const;
  Json reasons() const;
  void check_container(Node& whole, const TreeSpec& spec, std::size_t leaf);
  void add_states(Json& inputs, Json& specs);
  void add_state(const char* kind, const char* prefix, const SavedState& state, Json& inputs, Json& specs);
  void add_user_inputs(Json& inputs, Json& specs);
  std::pair<Json, Json> outputs(std::string& out_spec);
  Node& element_of(Node& whole, std::size_t index);
  Argument whole_values(const Argument& value);

  GraphModule& module_;
  const SaveExportedOptions& options_;
  Graph graph_;
  std::vector<SavedState> states_;
  std::map<const void*, std::string> state_names_;  ///< by tensor
  std::unique_ptr<CallInputs> call_;
  ProgramValues shapes_;
  std::vector<Wordless> refusals_;
  std::vector<std::string> leaf_names_;  ///< of the values that the caller gives
  std::unique_ptr<GraphWriter> writer_;
  WrittenProgram written_;
};

}  // namespace fx::pt2
