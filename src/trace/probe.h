// Probe: a traced program run again on inputs of other sizes, compared call by call with its first trace.
//
// A sample that does something else than the first trace ends at once: it costs what it has run. Numbers may differ;
// they are kept. Nothing of the first trace changes.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fxgraph/trace/placeholder_inputs.h>
#include <fxgraph/trace/program_place.h>
#include <fxgraph/trace/session.h>
#include <fxgraph/trace/trace_log.h>

namespace fx::internal {

/// Runs the traced program in a session, the n-th tensor among its inputs replaced by `stand_ins[n]`.
using RunProgram = std::function<void(Session& session, Graph& graph, const std::vector<at::Tensor>& stand_ins)>;

struct BufferUpdate;
struct RaisedCall;

/// Values that a program puts in the place of buffers: the call that makes one, and the buffer.
using ProbedUpdates = std::vector<std::pair<std::uint32_t, at::Tensor>>;
ProbedUpdates probed_updates(const TraceLog& log, const Session& session, const std::vector<BufferUpdate>& updates);

/// What of the first trace the samples share.
struct ProbedProgram {
  const TraceLog& log;
  const Session& session;  ///< of the first trace
  RunProgram run;
  const std::vector<std::pair<std::string, at::Tensor>>& attributes;  ///< of the root
  std::function<bool(const std::string&)> is_free_attribute;
  std::function<void(Session& session)> leave;  ///< a call is over, and its session closed
  std::function<bool()> keeps_constants;        ///< whether runs at other sizes left some
  bool is_compared;                             ///< a run that is another program at the examples is refused
  std::uint64_t most_recordings;                ///< how many times the operators of the first trace all runs may take
  const std::vector<RaisedCall>& raised;        ///< of leaf modules
  ProbedUpdates updates{};
};

class Probe final : private TraceFollower, private NodeMaker {
 public:
  static constexpr std::uint32_t kToTheEnd = ~std::uint32_t{0};

  /// A number that is another one than in the first trace.
  struct Change {
    std::uint32_t call;
    std::uint32_t leaf;  ///< its place among the leaves of the call's arguments
    Argument value;
  };
  /// A tensor that the program made without operators, and that is another one than in the first trace.
  struct ChangedConstant {
    std::uint32_t call;  ///< its get_attr
    at::Tensor value;
  };

  explicit Probe(const ProbedProgram& program) : program_(program) {}
  ~Probe() override;

  /// Runs the program until call `last` is the same as in the first trace. True when it is. With other types, types may
  /// differ as numbers may; the root's floating-point tensors have them, too, unless they are to keep theirs.
  enum class Root : std::uint8_t { of_other_type, as_it_is };
  bool run(const std::vector<at::Tensor>& stand_ins, std::uint32_t last = kToTheEnd,
           const std::vector<OtherType>& types = {}, Root root = Root::of_other_type);

  /// After a run that failed: the call that did not come, why in words, and the place in the program.
  std::uint32_t failed_at() const { return failed_at_; }
  const std::string& why() const { return why_; }
  const CallPlace& place() const { return place_; }
  std::string where() const { return words_for(place_); }
  /// True when an operator cannot run on these sizes: a graph of it says so by itself.
  bool operator_refused() const { return operator_refused_; }
  /// True when the program has thrown, be it for that; false when it ran on, but not as before.
  bool threw() const { return threw_; }
  /// True when what differs is a slice that the first trace, to which it was all that there is, does not have.
  bool slices_more() const { return slices_more_; }

  bool came_through() const { return reached_; }
  /// How many calls it has made.
  std::size_t num_calls() const { return nodes_.size(); }
  /// Whether the program has kept traced tensors.
  bool has_left() const { return has_left_; }
  const std::vector<Change>& changes() const { return changes_; }
  const std::vector<ChangedConstant>& changed_constants() const { return changed_constants_; }
  /// What call `i` returned, without data; undefined when it is not one tensor.
  at::Tensor value_of(std::uint32_t i) const;
  /// Its sizes; empty when it is not one tensor.
  at::IntArrayRef sizes_of(std::uint32_t i) const;

 private:
  void making(const TracedCall& call) override;
  void made(Node& node) override;
  void returns_list(std::size_t length) override;
  void asked(const Node&) override {}
  void refused(const std::exception& why) override;
  Node& create_node(Op op, Symbol target, ArgumentSpan args, KwargSpan kwargs, std::string_view name) override;
  bool is_free_attribute(const std::string& path) const override { return program_.is_free_attribute(path); }

  void pass_whole_slices(const TracedCall& call);
  bool may_be_whole(std::uint32_t at) const;
  void pass_whole_slice();
  std::uint32_t standing_for(std::uint32_t call) const;
  bool is_now(std::uint32_t before, std::uint32_t now) const;
  void compare(const Argument& before, const Argument& now);
  void end_after(std::uint32_t call);
  void leave();
  void check_updates();
  void end_by_error(const std::string& why);
  [[noreturn]] void differs(const std::string& how);
  void compare_constants();

  const ProbedProgram& program_;
  Graph graph_;
  std::shared_ptr<Session> session_;
  std::vector<Node*> nodes_;
  std::vector<std::uint32_t> index_by_id_;
  std::map<std::uint32_t, std::uint32_t> whole_;    // slices that were not called, and what they would have sliced
  std::map<std::uint32_t, std::uint32_t> written_;  // writes into them, and what those would have sliced
  std::map<Symbol, std::uint32_t> unread_;          // attributes of which only they were taken so far
  std::optional<std::uint32_t> late_;               // the call for which the node that is being made stands
  std::uint32_t last_ = kToTheEnd;
  std::uint32_t leaf_ = 0;
  bool ended_ = false;  // a program may catch what ends it: then every further call ends it again
  bool reached_ = false;
  std::uint32_t failed_at_ = 0;
  std::string why_;
  CallPlace place_;
  bool types_may_differ_ = false;
  bool operator_refused_ = false;
  bool threw_ = false;
  bool slices_more_ = false;
  bool has_left_ = false;
  std::vector<Change> changes_;
  std::vector<ChangedConstant> changed_constants_;
};

}  // namespace fx::internal
