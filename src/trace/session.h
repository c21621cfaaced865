// Session: one trace while it runs. Turns the operators that reach it into nodes and hands back proxies.
//
// Proxies hold their session, so that a proxy which outlives the trace finds out and says so. A session belongs to one
// thread at a time; any number of sessions may run in different threads.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/ScalarType.h>

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <fxgraph/contract/assertions.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/shapes/op_record.h>
#include <fxgraph/shapes/shape_engine.h>
#include <fxgraph/support/flat_map.h>
#include <fxgraph/trace/follower.h>
#include <fxgraph/trace/program_modes.h>
#include <fxgraph/trace/proxy_impl.h>

namespace fx::internal {

/// Whole numbers and truth values have none.
inline bool may_have_gradient(at::ScalarType type) { return at::isFloatingType(type) || at::isComplexType(type); }

/// Who makes the nodes of a trace.
class NodeMaker {
 public:
  virtual ~NodeMaker() = default;
  virtual Node& create_node(Op op, Symbol target, ArgumentSpan args, KwargSpan kwargs, std::string_view name) = 0;
  /// Whether `path` is free for a captured tensor.
  virtual bool is_free_attribute(const std::string& path) const = 0;
  /// Told when a tensor from outside gets its path.
  virtual void captured(const std::string&, const at::Tensor&) {}
  /// Whether one get_attr serves all uses of a tensor; false where the insertion point may move back.
  virtual bool one_get_attr_each() const { return true; }
};

/// An ordinary tensor that the trace has met: a parameter or buffer of the root, or one captured from outside.
struct CapturedTensor {
  at::Tensor tensor;
  std::string path;  ///< empty until a constant is used
  bool of_root = false;
  bool is_literal = false;     ///< the program makes it in each call
  bool required_grad = false;  ///< when the trace began
  Node* node = nullptr;        ///< what it stands for now: its get_attr, a view, or the last in-place operator on it
  Node* attribute = nullptr;   ///< its get_attr
  at::Tensor value;            ///< its shape, on the meta device
};

/// Tensors of the type `from` are taken for tensors of the type `to`.
struct OtherType {
  at::ScalarType from, to;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  /// `engine` may be shared by sessions of one thread, so that equal shapes are worked out once.
  explicit Session(NodeMaker& maker, std::shared_ptr<ShapeEngine> engine = std::make_shared<ShapeEngine>())
      : maker_(&maker), engine_(std::move(engine)) {}

  bool is_open() const { return maker_ != nullptr; }
  /// Ends the trace: proxies that are still around refuse to be used from now on.
  void close() { maker_ = nullptr; }

  /// Makes `tensor` known as the attribute `path` of the root; the first path of a tensor stays.
  void add_attribute(const std::string& path, const at::Tensor& tensor);
  /// A proxy for `node`; `example`, when defined, is a tensor with its shape, dtype and device. `device` says what
  /// the device is where the example is on the meta device.
  at::Tensor proxy(Node& node, const at::Tensor& example = {}, std::optional<c10::Device> device = {});
  /// The argument that stands for `tensor`: a node, or None for an undefined tensor. Makes get_attr nodes on first use.
  Argument argument_for(const at::Tensor& tensor);
  Node& create_node(Op op, Symbol target, ArgumentSpan args = {}, KwargSpan kwargs = {}, std::string_view name = {});
  AssertionWriter assertions() {
    return AssertionWriter(
        [this](Symbol target, ArgumentSpan args) -> Node& { return create_node(Op::call_function, target, args); });
  }
  Node& getitem(Node& node, const Argument& index);

  /// The argument for `tensor` where no gradient flows: detached, unless it has none.
  Argument argument_without_grad(const at::Tensor& tensor);
  /// What requires_grad() of a proxy says. Throws Error(trace) where that may be another answer in another run.
  bool requires_grad(const ProxyImpl& proxy) const;
  /// The program asks what autograd notes of how a tensor came about (`is_view()`). Throws Error(trace).
  void asked_history(const ProxyImpl& proxy, const char* call) const;
  /// A proxy's other handle on the same memory that takes no part in gradients: what data() returns.
  c10::intrusive_ptr<c10::TensorImpl> without_grad(const ProxyImpl& proxy);

  /// Lets the program use what it kept of the call that `first` traced: as get_attr nodes that kept_value() knows.
  void follow_call(std::shared_ptr<const Session> first) { first_call_ = std::move(first); }
  /// The node of an earlier call that `node` stands for, or null; and the session of that call.
  const Node* kept_value(const Node& node) const;
  const Session& kept_session(const Node& node) const { return *kept_values_.at(node.id()).session; }
  /// Remembers the tensor that an input would be in a call outside of the trace; a blank one has no contents.
  void remember_input(const Node& node, const at::Tensor& tensor, bool blank) {
    inputs_.insert_or_assign(node.id(), Input{tensor, blank});
  }
  /// That tensor, zeros for a blank one; undefined for other nodes.
  at::Tensor input(const Node& node) const;
  /// Says that what `node` stands for takes no part in gradients.
  void mark_without_grad(const Node& node) { without_grad_.insert(node.id()); }
  bool has_values_without_grad() const { return !without_grad_.empty(); }
  /// Tells `follower` (null: nobody) of everything from now on.
  void follow(TraceFollower* follower) { follower_ = follower; }
  /// Takes the root's tensors for tensors of another type.
  void read_as(const std::vector<OtherType>& types) { other_types_ = types; }
  /// What values of unknown shape say when they are compared with a type; nothing: that they are of none.
  void tell_type(at::ScalarType type) { told_type_ = type; }
  const std::optional<at::ScalarType>& told_type() const { return told_type_; }
  /// Whether the shape of some value was not known.
  bool has_unknown_shapes() const { return has_unknown_shapes_; }
  /// Whether it is known what the inputs look like.
  bool has_inputs() const { return !inputs_.empty(); }
  /// Notes a question that is refused, for the program may go on as if nothing had been.
  void note_refused(const std::string& message) {
    if (refused_.empty()) refused_ = message;
  }
  /// The first question that was refused; empty when none was.
  const std::string& refused() const { return refused_; }
  /// The program asks for the shape of what `node` stands for.
  void asked(const Node* node) const {
    if (follower_ && node) follower_->asked(*node);
  }
  void note_rank_query(const Node* node) const {
    if (follower_ && node) follower_->note_rank_query(*node);
  }
  /// From now on nothing is contiguous, so that contiguous() is an operator always: for inputs that lie otherwise it is
  /// one.
  void record_contiguous(bool always) { records_contiguous_ = always; }
  bool records_contiguous() const { return records_contiguous_; }
  /// The program asks whether what `node` stands for is contiguous. True when it is to be told no.
  bool asks_contiguity(const Node* node);
  /// Whether the program has asked that for anything else than contiguous().
  bool takes_layout() const { return takes_layout_ || contiguity_asked_of_; }
  /// The program asks for strides, or whether a value lies in some way.
  void asked_layout() { asks_layout_ = true; }
  bool asks_layout() const { return asks_layout_; }

  /// Replaces the arguments of `op` on the stack by its results, having made a node of it.
  void record(const c10::OperatorHandle& op, torch::jit::Stack& stack);

  /// Whether operators were recorded in other threads than the one that made this. From then on errors wait for
  /// throw_what_waits(), which is to be called when the program has ended.
  bool has_other_threads() const { return has_other_threads_; }
  void throw_what_waits();
  /// The program has ended: throws what waits, and for what only its end shows.
  void end_program() {
    throw_what_waits();
    ProgramModes::end();
  }
  ProxyList& proxies() { return proxies_; }
  /// Whether a proxy is alive.
  bool has_proxies() const { return !proxies_.is_empty(); }
  const std::vector<CapturedTensor>& captured() const { return captured_; }
  /// The tensor that a get_attr of this trace stands for, or null.
  const CapturedTensor* captured_by(const Node& node) const;
  /// The path of a tensor of the root; null for others.
  const std::string* attribute_path(const at::Tensor& tensor) const;
  /// The path of the attribute whose last in-place operator is `node`, or null.
  const std::string* written_attribute(const Node& node) const;
  const std::shared_ptr<ShapeEngine>& engine() const { return engine_; }
  /// Says what the value of a node is after all, as a meta tensor.
  void set_value(const Node& node, const at::Tensor& value) { remember(node, value, std::nullopt); }
  /// The value of a node as a meta tensor; undefined when it is not known or not one tensor.
  at::Tensor value_of(const Node& node) const { return node.id() < values_.size() ? values_[node.id()] : at::Tensor(); }
  /// The device of a node whose value is known.
  c10::Device device_of(const Node& node) const { return devices_[node.id()]; }
  /// Notes that `to`, which takes the place of `from`, has its value.
  void copy_value(const Node& from, Node& to);
  /// The node that stands for what `node` was made for: itself, or what took its place; null when nothing did.
  Node* standing_for(Node& node) const;
  /// Whether an operator has changed the shape of a tensor in place.
  bool reshapes_in_place() const { return reshapes_in_place_; }
  /// Shapes that the trace has found.
  Shapes shapes(const Graph& graph) const;

 private:
  class Call;
  /// The tensors of a tuple or list.
  struct CompoundValue {
    std::vector<at::Tensor> parts;
    c10::Device device;
  };

  struct Input {
    at::Tensor tensor;
    bool blank;
  };

  struct KeptValue {
    const Node* node;
    const Session* session;
  };

  bool follows(const Session& session) const;
  void settle_contiguity(const c10::OperatorHandle& op, const torch::jit::Stack& stack);
  Node& kept_node(const ProxyImpl& kept);
  void require_grad(ProxyImpl& proxy);
  Argument detached(Node& node);
  CapturedTensor& capture(const at::Tensor& tensor);
  Node& attribute_node(CapturedTensor& captured);
  CapturedTensor* viewed_parameter(const CapturedTensor& captured);
  Node& view_node(CapturedTensor& view, CapturedTensor& parameter);
  const at::Tensor& meta_value(const at::Tensor& tensor);
  const at::Tensor& meta_value(CapturedTensor& captured) const;
  void settle(ProxyImpl& constant);
  at::Tensor make_proxy(Node& node, at::Tensor value, std::optional<c10::Device> device);
  void remember(const Node& node, const at::Tensor& value, std::optional<c10::Device> device);
  void remember_parts(const Node& node, const std::vector<c10::IValue>& values, c10::Device device);
  void rebind(const at::Tensor& tensor, Node& node);
  void reshape(const at::Tensor& tensor, at::Tensor value);

  Node& create_followed(const TracedCall& call, ArgumentSpan args, KwargSpan kwargs, std::string_view name);

  NodeMaker* maker_;
  ProxyList proxies_;
  TraceFollower* follower_ = nullptr;
  std::shared_ptr<ShapeEngine> engine_;
  std::vector<CapturedTensor> captured_;
  FlatMap<std::uint32_t> captured_index_;  // address of the TensorImpl -> position + 1
  FlatMap<std::uint32_t> storage_index_;   // address of the storage of the root's tensors -> position + 1
  std::vector<at::Tensor> values_;         // by node id
  std::vector<c10::Device> devices_;
  std::vector<std::pair<std::uint32_t, CompoundValue>> compound_values_;
  std::unordered_map<std::uint32_t, Node*> replaced_;  // by the id of the node that was; look-up only
  bool reshapes_in_place_ = false;
  std::uint32_t next_constant_ = 0;
  std::string refused_;
  std::vector<OtherType> other_types_;
  std::optional<at::ScalarType> told_type_;
  bool has_unknown_shapes_ = false;
  bool records_contiguous_ = false;
  bool takes_layout_ = false, asks_layout_ = false;
  int contiguity_questions_ = 0;               // in a row, of one value
  const Node* contiguity_asked_of_ = nullptr;  // by the last question, when no operator has followed yet
  ProgramModes modes_;
  std::recursive_mutex mutex_;  // the program may use several threads
  const std::thread::id thread_ = std::this_thread::get_id();
  bool has_other_threads_ = false;
  std::exception_ptr waiting_;
  Node* latest_ = nullptr;           // that a proxy was made for
  std::vector<at::Tensor> on_loan_;  // what was copied, so that no other tensor gets its address
  std::shared_ptr<const Session> first_call_;
  std::unordered_map<const ProxyImpl*, Node*> kept_nodes_;    // look-up only
  std::unordered_map<std::uint32_t, KeptValue> kept_values_;  // by node id; look-up only
  std::unordered_map<std::uint32_t, Input> inputs_;           // by node id; look-up only
  std::unordered_set<std::uint32_t> without_grad_;            // node ids; look-up only
  std::vector<Argument> args_;                                // buffers of record()
  std::vector<NamedArgument> kwargs_;
  std::vector<Argument> all_;
};

}  // namespace fx::internal
