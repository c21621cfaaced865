// Importer: the abstract interpreter behind fx::load. Included by this folder's files only.
//
// It walks the TorchScript IR of a method in order, keeping an AbstractValue for every IR value. What the file decides
// is computed at once; what is left becomes nodes of a Graph. Recursion follows calls only.
#pragma once

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/nn/leaf_module.h>
#include <fxgraph/torchscript/abstract_value.h>
#include <fxgraph/torchscript/examples.h>
#include <fxgraph/torchscript/import.h>

namespace fx::torchscript {

using JitNode = torch::jit::Node;
using JitBlock = torch::jit::Block;
using JitValue = torch::jit::Value;
using Values = std::vector<AbstractValue>;

/// Does the program raise whenever `value` is `outcome`? Then what is computed needlessly may as well raise.
bool raises_when(const JitValue& value, bool outcome);

/// A leaf that was called, and how.
struct CalledLeaf {
  std::shared_ptr<LeafModule> module;
  std::string method;
  std::size_t num_args = 0;
  std::string body_text;  ///< empty: it runs as TorchScript
};

class Importer {
 public:
  /// `training`, when given, is what every `training` attribute reads as.
  Importer(const LoadOptions& options, std::optional<bool> training = std::nullopt);

  /// Imports a whole model: inputs become placeholders, leaves stay calls.
  void import_model(const torch::jit::Module& model);
  /// Imports one method of a leaf; `given` says which arguments become placeholders, the others are constants.
  void import_leaf(const torch::jit::Module& leaf, torch::jit::Function& method, const Values& args,
                   const std::vector<bool>& given);
  /// The same as the method goes at what `args`, values of another graph, are at its examples: by their ranks, never by
  /// their sizes. Each distinct node among them becomes a placeholder.
  void import_leaf(const torch::jit::Module& leaf, torch::jit::Function& method, const Values& args,
                   const Examples& examples);

  Graph graph;
  /// Tensors read by get_attr, by path, in order of first use.
  std::vector<NamedTensor> tensors;
  /// Objects of custom classes read by get_attr, by path, in order of first use.
  std::vector<std::pair<std::string, c10::IValue>> objects;
  /// Leaves called, by path, in order of first call.
  std::vector<std::pair<std::string, CalledLeaf>> leaves;
  /// Did anything ask for the training flag?
  bool read_training = false;

 private:
  /// One call in progress.
  struct Frame {
    std::unordered_map<const JitValue*, AbstractValue> values;
    std::string path;  ///< of the module whose method runs
    int depth = 0;
  };
  using Handler = void (Importer::*)(const JitNode&, Frame&);
  struct HandlerTable;
  static const std::unordered_map<std::string, Handler>& handlers();

  // importer.cc: calls, blocks, nodes
  AbstractValue call(torch::jit::Function& function, Values args, const std::string& path, int depth);
  Values run_block(const JitBlock& block, Frame& frame);
  void run_node(const JitNode& node, Frame& frame);
  AbstractValue& value_of(const JitValue* value, Frame& frame);
  Values inputs_of(const JitNode& node, Frame& frame);
  void set(const JitNode& node, Frame& frame, AbstractValue value, std::size_t output = 0);
  bool fold(const JitNode& node, Frame& frame);
  AbstractValue from_constant(const c10::IValue& value, const c10::TypePtr& type);
  void import_inputs(const c10::FunctionSchema& schema, Values& args);
  void import_leaf(const torch::jit::Module& leaf, torch::jit::Function& method, Values args);
  AbstractValue as_input(const AbstractValue& value, const Examples& examples,
                         std::unordered_map<const Node*, Node*>& inputs);
  [[noreturn]] void refuse(const JitNode& node, const Frame& frame, const std::string& what) const;

  // emit.cc: nodes of the new graph
  void emit(const JitNode& node, Frame& frame);
  Node& emit_call(const JitNode& node, Frame& frame, Symbol target, const std::vector<Argument>& args,
                  const std::vector<NamedArgument>& kwargs = {});
  bool emit_convolution(const JitNode& node, Frame& frame);
  void emit_item(const JitNode& node, Frame& frame, const AbstractValue& container, const AbstractValue& index);
  Argument to_argument(const AbstractValue& value, const c10::TypePtr& type, const JitNode& node, Frame& frame);
  AbstractValue tensor_attribute(const std::string& path, const at::Tensor& tensor, bool is_parameter);
  AbstractValue object_attribute(const std::string& path, const c10::IValue& value);
  AbstractValue tensor_constant(const at::Tensor& tensor);
  AbstractValue attribute_value(const ObjectRef& owner, const std::string& name, std::size_t slot);
  void annotate(Node& made, const JitNode& node, const Frame& frame);

  // control.cc: conditions, loops, exceptions
  void run_if(const JitNode& node, Frame& frame);
  void run_loop(const JitNode& node, Frame& frame);
  void raise(const JitNode& node, Frame& frame);
  bool assert_instead(const JitNode& node, Frame& frame, Node& condition);
  bool skip_branches(const JitNode& node, Frame& frame);
  bool combine_conditions(const JitNode& node, Frame& frame, Node& condition);
  void take_branch(const JitNode& node, Frame& frame, std::size_t branch);
  Node& negate(const JitNode& node, Frame& frame, Node& condition);
  void emit_assert(const JitNode& node, Frame& frame, Node& condition, bool expected, const std::string& message);
  std::string message_of(const JitBlock& block, Frame& frame);
  std::optional<bool> truth_of(const AbstractValue& value) const;
  std::optional<bool> truth_of_types(const Node& condition) const;
  std::optional<c10::IValue> decide(const JitNode& node, Frame& frame, const AbstractValue& value);
  std::string in_words(const fx::Argument& argument, int depth, fx::Symbol as) const;
  std::string condition_text(const fx::Argument& argument) const;
  std::string cure() const;
  std::optional<std::int64_t> known_number(const fx::Argument& value) const;
  bool asks_for_sizes(const fx::Argument& value) const;

  // messages.cc: what the file's own errors say
  std::string text_of(const JitValue* value, Frame& frame);
  std::string words_of(const JitValue* value, Frame& frame);

  // objects.cc: attributes, methods, functions
  void load_constant(const JitNode& node, Frame& frame);
  void get_attribute(const JitNode& node, Frame& frame);
  void set_attribute(const JitNode& node, Frame& frame);
  void call_method(const JitNode& node, Frame& frame);
  void call_function(const JitNode& node, Frame& frame);
  void create_object(const JitNode& node, Frame& frame);
  void enter(const JitNode& node, Frame& frame);
  void leave(const JitNode& node, Frame& frame);
  void is_instance(const JitNode& node, Frame& frame);
  void is_none(const JitNode& node, Frame& frame);
  void pass_through(const JitNode& node, Frame& frame);
  void uninitialized(const JitNode& node, Frame& frame);
  void ignore(const JitNode& node, Frame& frame);
  bool emit_own_operator(const JitNode& node, Frame& frame, const torch::jit::Function& function, const Values& args);
  bool check_batch_size(const JitNode& node, Frame& frame, const Values& args);
  bool is_same_at_examples(const AbstractValue& a, const AbstractValue& b) const;
  bool settle(const JitNode& node, Frame& frame, AbstractValue& value);
  bool holds_attribute(const Node* node, const std::string& path) const;

  // leaves.cc: modules that stay calls
  bool is_leaf(const ObjectRef& object) const;
  AbstractValue call_leaf(const JitNode& node, Frame& frame, const ObjectRef& object, torch::jit::Function& method,
                          Values args);
  CalledLeaf make_called_leaf(const torch::jit::Module& module, torch::jit::Function& method, const Values& args,
                              const std::vector<bool>& given);
  CalledLeaf* find_leaf(const std::string& path);
  void note_operators(Node& call, const torch::jit::Module& leaf, torch::jit::Function& method, const Values& args);

  // containers.cc: lists, tuples, dicts
  void make_list(const JitNode& node, Frame& frame);
  void make_tuple(const JitNode& node, Frame& frame);
  void make_dict(const JitNode& node, Frame& frame);
  void unpack(const JitNode& node, Frame& frame);
  Node& count_of(const JitNode& node, Frame& frame, Node& list);
  std::optional<Values> elements_at_examples(const JitNode& node, Frame& frame, const AbstractValue& list);
  void assert_length(const JitNode& node, Frame& frame, const AbstractValue& list);
  void tuple_index(const JitNode& node, Frame& frame);
  void tuple_slice(const JitNode& node, Frame& frame);
  void length(const JitNode& node, Frame& frame);
  void get_item(const JitNode& node, Frame& frame);
  void set_item(const JitNode& node, Frame& frame);
  void append(const JitNode& node, Frame& frame);
  void extend(const JitNode& node, Frame& frame);
  void insert(const JitNode& node, Frame& frame);
  void pop(const JitNode& node, Frame& frame);
  void clear(const JitNode& node, Frame& frame);
  void reverse(const JitNode& node, Frame& frame);
  void sort(const JitNode& node, Frame& frame);
  void new_dict(const JitNode& node, Frame& frame);
  void copy_list(const JitNode& node, Frame& frame);
  void slice(const JitNode& node, Frame& frame);
  void concatenate(const JitNode& node, Frame& frame);
  void repeat_list(const JitNode& node, Frame& frame);
  void contains(const JitNode& node, Frame& frame);
  void dict_keys(const JitNode& node, Frame& frame);
  void dict_values(const JitNode& node, Frame& frame);
  void dict_items(const JitNode& node, Frame& frame);
  void dict_get(const JitNode& node, Frame& frame);
  void dict_update(const JitNode& node, Frame& frame);
  void dict_delete(const JitNode& node, Frame& frame);
  void dict_half(const JitNode& node, Frame& frame, std::size_t first);
  void put(AbstractValue& dict, AbstractValue key, AbstractValue value, const JitNode& node, Frame& frame);
  AbstractValue* find_key(AbstractValue& dict, AbstractValue& key, const JitNode& node, Frame& frame);
  Elements& writable(const AbstractValue& container, const JitNode& node, Frame& frame);
  std::optional<std::size_t> index_in(const AbstractValue& list, const AbstractValue& index, const JitNode& node,
                                      Frame& frame);

  LoadOptions options_;
  std::optional<bool> training_;
  bool inside_leaf_ = false;
  c10::ClassTypePtr root_type_;  ///< of the model or leaf
  std::unordered_map<const c10::ivalue::Object*, std::string> paths_;
  std::unordered_map<std::string, Node*> attribute_nodes_;
  std::unordered_map<std::string, AbstractValue> attribute_lists_;
  std::unordered_map<std::string, AbstractValue> set_attributes_;  ///< by the call, by path
  std::unordered_set<std::string> read_attributes_;                ///< paths, as the file has them; not for a warning
  std::unordered_map<const at::TensorImpl*, std::string> constant_paths_;
  std::size_t num_constants_ = 0;
  std::unordered_map<std::string, std::size_t> leaf_index_;
  std::unique_ptr<Examples> examples_;
  std::function<bool()> settles_;  ///< is_settled_by_one_call, of the file at the examples
  std::optional<bool> is_settled_;
  std::unordered_set<std::string> decided_;  ///< what is asserted already; look-up only
};

/// What fx::load makes of a TorchScript file.
std::shared_ptr<GraphModule> read_file(const std::string& path, const LoadOptions& options);

}  // namespace fx::torchscript
