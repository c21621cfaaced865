// CallInputs: what the caller of a written program gives: its arguments, the tensors and numbers in them, which of
// their sizes vary, and inputs made for any choice of these.
//
// Thread-safety: none.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fxgraph/export/guards.h>
#include <fxgraph/export/input_notes.h>
#include <fxgraph/export/save.h>
#include <fxgraph/export/tree_spec.h>
#include <fxgraph/export/value_shapes.h>

namespace fx::pt2 {

class CallInputs {
 public:
  /// A value that the caller gives.
  struct Leaf : CallValue {
    Node* node = nullptr;  ///< the placeholder, or the getitem that takes it out of one; null when nothing reads it
    std::string name;
    std::optional<TensorMeta> given{};  ///< the example, where sizes are found: see free_sizes()
    at::Tensor example{};               ///< with its numbers, where they are known
    bool noted = false;                 ///< the archive that the program came from says what it is
  };
  /// An argument of the call.
  struct Input {
    Node* placeholder;
    TreeSpec spec;
    std::size_t first_leaf;
    bool keyword;
  };

  /// The placeholders of `graph`, with the examples given or noted. Throws Error(invalid_argument) where there is none.
  CallInputs(GraphModule& module, const Graph& graph, const SaveExportedOptions& options);

  const std::vector<Leaf>& leaves() const { return leaves_; }
  const std::vector<Input>& inputs() const { return inputs_; }
  const Symbols& symbols() const { return symbols_; }
  const std::map<std::string, SizeRange>& ranges() const { return ranges_; }
  /// What sizes must satisfy beside their ranges.
  const std::vector<SizeExpr>& guards() const { return guards_; }
  /// True when sizes were found free by trying alone: one that turns out to have no expression may be fixed.
  bool may_fix() const { return options_.sizes == ExportedSizes::found; }

  /// Makes these symbols what they are in the example.
  void fix(const std::set<std::string>& symbols);
  /// True when one of these symbols is the archive's own, which nobody fixes.
  bool notes(const std::set<std::string>& symbols) const;
  /// What the input, or the part of one, is that `node` stands for; unknown for other nodes.
  AbstractValue input_at(const Node& node) const;
  /// The arguments for these values of the symbols.
  std::vector<c10::IValue> make(const Symbols& symbols) const;
  /// `(args, kwargs)` for the example, as Python keeps it.
  c10::IValue example() const;
  std::string spec() const;

 private:
  void add_input(Node& placeholder, const c10::IValue* example);
  void add_leaves(Node* node, const TreeSpec& spec, const c10::IValue* example, const std::string& name);
  void add_leaf(Node* node, const c10::IValue* example, const std::string& name);
  void add_noted(Leaf& leaf, const CallValue& note, const c10::IValue* example);
  void make_dynamic(const DynamicSize& size);
  void say_least(const AskedSize& size, const SizeRange& range, std::int64_t step = 1);
  static SymbolicSize& size_of(Leaf& leaf, std::size_t dim);
  static void settle_leaf(Leaf& leaf);
  void free_sizes(GraphModule& module, const Graph& graph);
  void keep_what_runs(GraphModule& module, const Graph& graph);
  void add_symbols();
  c10::IValue make_leaf(const Leaf& leaf, const Symbols& symbols) const;

  const SaveExportedOptions& options_;
  std::vector<SizeExpr> guards_;
  const InputNote* note_ = nullptr;  ///< of the argument that is being added
  std::size_t first_leaf_ = 0;
  std::vector<Leaf> leaves_;
  std::vector<Input> inputs_;
  Symbols symbols_;
  std::map<std::string, SizeRange> ranges_;
};

/// The note under `key`; null when there is none.
template <typename T>
const T* note(const Node* node, const char* key) {
  const Meta* notes = node ? node->find_meta() : nullptr;
  return notes ? notes->get<T>(key) : nullptr;
}

/// `path` with an underscore for whatever a name may not hold.
std::string identifier_of(const std::string& path);

}  // namespace fx::pt2
