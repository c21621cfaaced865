// SecondCall: a program that has just been traced is called again, to see whether it does the same.
//
// Nothing is put back between the calls, so what the program keeps from one to the next (a counter, a cache, a flag, a
// static, random numbers of C++) shows itself: as another operator, another number, another constant, or as a traced
// value of the first call. Such a value is no difference where it depends on nothing (a mask, a table of positions), or
// where it is read in the place of a buffer.
//
// Where no example says what a value is, the first call is told no type, the second float: who asks shows it, too.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fxgraph/trace/kept_values.h>
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
  Graph& graph;                      ///< of the first call, as it was recorded when calls are compared
  std::shared_ptr<Session> session;  ///< of the first call
  ModuleState& state;                ///< as it was before the first call
  RunOnce run;
  std::function<bool(const std::string&)> is_free_attribute;
  bool is_module = false;   ///< what it keeps is somebody's to use afterwards
  std::uint32_t bound = 0;  ///< of node ids in `graph`, as it was recorded
};

/// One call of a program with a graph of its own, which shares nothing with other calls but the root's tensors.
class SeparateCall final : public NodeMaker {
 public:
  explicit SeparateCall(const SecondCallPlan& plan);
  ~SeparateCall() override;
  SeparateCall(const SeparateCall&) = delete;
  SeparateCall& operator=(const SeparateCall&) = delete;
  void run();
  /// What the program has kept of it becomes ordinary tensors: buffers, where `updates` say so, else values. Returns a
  /// node of which the value cannot be told, or null.
  const Node* end(const std::vector<KeptUpdate>& updates = {});

  Node& create_node(Op op, Symbol target, ArgumentSpan args, KwargSpan kwargs, std::string_view name) override;
  bool is_free_attribute(const std::string& path) const override;

  Graph graph;
  std::shared_ptr<Session> session;

 private:
  const SecondCallPlan& plan_;
};

/// What later calls of a program show.
struct LaterCalls {
  std::vector<BufferUpdate> updates;  ///< that make the graph do what the program does with its buffers
  /// The program keeps what it made once: it is to be traced again, for what it does with that.
  bool keeps_constants = false;
};

/// Throws Error(trace) saying what the second call does otherwise and why that cannot be recorded; or what it keeps
/// whose value cannot be told. Afterwards all that was watched is put back, and of what the calls kept nothing is
/// traced.
LaterCalls compare_second_call(const SecondCallPlan& plan);
/// The same for a program that is called once only.
LaterCalls end_of_only_call(const SecondCallPlan& plan);

/// Calls the program once more on the examples, so that it keeps what it keeps after such a call.
void run_again(const SecondCallPlan& plan, const std::vector<BufferUpdate>& updates);
/// Throws Error(trace) when a call of the program, after all others, is another one than the first.
void check_last_call(const SecondCallPlan& plan, const std::vector<BufferUpdate>& updates);

}  // namespace fx::internal
