// SecondCall: a program that has just been traced is called again, to see whether it does the same.
//
// Nothing is put back between the calls, so what the program keeps from one to the next (a counter, a cache, a flag, a
// static, random numbers of C++) shows itself: as another operator, another number, another constant, or as a traced
// value of the first call. Usually the second call makes no nodes: each one it asks for is compared with the node that
// the first call made. Only a program that goes another way is traced twice more, from the start, to tell what differs:
// a value that is kept and depends on nothing (a mask, a table of positions) is no difference.
//
// Where no example says what a value is, the first call is told no type, the second float: who asks shows it, too.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <fxgraph/trace/module_state.h>
#include <fxgraph/trace/session.h>

namespace fx::internal {

/// Runs the program once in `session`, which makes the nodes of `graph`, the output included.
using RunOnce = std::function<void(Session& session, Graph& graph)>;

/// A buffer that the program replaces by a new value: `value` is to be written to `attribute`.
struct BufferUpdate {
  std::string attribute;
  Node* value;
};

struct SecondCallPlan {
  Graph& graph;            ///< of the first call, as it was recorded
  const Session& session;  ///< of the first call; closed
  ModuleState& state;      ///< as it was before the first call
  RunOnce run;
  std::function<bool(const std::string&)> is_free_attribute;
};

/// One call of a program with a graph of its own, which shares nothing with other calls but the root's tensors.
class SeparateCall final : public NodeMaker {
 public:
  explicit SeparateCall(const SecondCallPlan& plan);
  ~SeparateCall() override;
  SeparateCall(const SeparateCall&) = delete;
  SeparateCall& operator=(const SeparateCall&) = delete;
  void run();
  /// Nobody will ask for what the program has kept of it: that becomes as ModuleState::leave() says.
  void end();

  Node& create_node(Op op, Symbol target, ArgumentSpan args, KwargSpan kwargs, std::string_view name) override;
  bool is_free_attribute(const std::string& path) const override;

  Graph graph;
  std::shared_ptr<Session> session;

 private:
  const SecondCallPlan& plan_;
};

/// Throws Error(trace) saying what the second call does otherwise and why that cannot be recorded. Returns the updates
/// that make the graph do what the program does with its buffers.
std::vector<BufferUpdate> compare_second_call(const SecondCallPlan& plan);

/// Whether a program that asks if values are contiguous before it makes them so does nothing else of the answer. To be
/// called when everything is put back; so it is again afterwards. Complexity: a call of the program, where it asks.
bool is_same_if_contiguous(const SecondCallPlan& plan);

}  // namespace fx::internal
