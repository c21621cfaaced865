// SameProgram: whether two traces of one program compute the same, and if not, what differs.
//
// Compared is what can be seen: the results, the operators that write, draw or check, in their order, and all that
// these need. In the second trace a get_attr may stand for a value that the first call computed and the program kept
// (Session::follow_call). It is the same as that value where the value depends on nothing; and the same as a buffer in
// whose place it is read: an update of that buffer.
//
// Cost: linear in the two graphs. Nothing recurses over them.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/trace/module_state.h>
#include <fxgraph/trace/second_call.h>
#include <fxgraph/trace/session.h>

namespace fx::internal {

/// The tensor that has this path; null when there is none.
const CapturedTensor* captured_at(const Session& session, Symbol path);
/// The tensor itself, which must be there.
inline const at::Tensor& tensor_at(const Session& session, const std::string& path) {
  return captured_at(session, Symbol(path))->tensor;
}
/// Whether the constants that both captured, by their paths, have the same data.
bool same_constants(const Session& a, const Session& b);

/// A tensor of the root in whose place a call has put another one.
struct ReplacedBuffer {
  const CapturedTensor* buffer;
  const Node* value;
};
/// Those of the members that the caller has named; `replaced` is what the call in `session` left in them.
std::vector<ReplacedBuffer> replaced_buffers(const Session& session,
                                             const std::vector<ModuleState::Replaced>& replaced);
/// The nodes that a later call, whose ids are those of `graph`, makes of the updates.
std::vector<ReplacedBuffer> replaced_buffers(const Session& session, const Graph& graph,
                                             const std::vector<BufferUpdate>& updates);
/// Whether two calls make the same nodes, so that their ids are the same; of the same that the calls before them kept.
bool is_alike(const Graph& a, const Session& of_a, const Graph& b, const Session& of_b);

/// What values depend on that other calls may find changed: nothing, or some of these.
enum Dependence : std::uint8_t { kNothing = 0, kInput = 1, kAttribute = 2, kRandom = 4 };
/// Of the nodes of `graph` by their ids; `earlier` are those of the call that this one keeps values of.
std::vector<std::uint8_t> dependences(const Graph& graph, const Session& session,
                                      const std::vector<std::uint8_t>& earlier = {});

/// A flag that the second trace gives another value.
struct OtherFlag {
  const Node* node;  ///< of the first
  std::size_t argument;
};

class SameProgram {
 public:
  /// `replaced` is what the first call replaced, `later` what the second one did; `state` says what buffers are.
  SameProgram(const Graph& first, const Session& first_session, const Graph& second, const Session& second_session,
              std::vector<ReplacedBuffer> replaced = {}, std::vector<ReplacedBuffer> later = {},
              const ModuleState* state = nullptr);

  /// Takes the second trace for one in the other mode: flags may differ, and what is written to tensors of the root.
  void allow_other_mode() { other_mode_ = true; }
  const std::vector<OtherFlag>& other_flags() const { return other_flags_; }
  /// The writes to tensors of the root that only one of the traces has: nodes of the first, nodes with paths of the
  /// second.
  const std::vector<const Node*>& other_writes() const { return other_writes_; }
  const std::vector<std::pair<const Node*, std::string>>& added_writes() const { return added_writes_; }

  /// What the second does otherwise, in words; nothing when it does the same.
  std::optional<std::string> find_difference();
  /// After that: the node of the first trace that one of the second is; null for what nobody needs.
  const Node* image_of(const Node& second) const { return image_[second]; }
  /// After that: the buffers that the program replaces, with the nodes of the first trace that are their new values.
  std::vector<BufferUpdate> updates() const;
  /// After that: what the second trace has in the place of one of these values, among its own nodes that are `kept`.
  std::vector<const Node*> images_of(const Node& value, const std::vector<const Node*>& kept);
  /// After that: nodes of the first trace that depend on nothing, and that the second found kept.
  const std::set<const Node*>& constants() const { return constants_; }
  /// After that: whether the second trace replaces these buffers of the first one, no others, and by the same.
  bool replaces_the_same(const std::vector<BufferUpdate>& updates);

 private:
  std::vector<const Node*> effects(const Graph& graph, const std::vector<std::uint8_t>& dependences);
  static bool writes_attribute(const Node& node, std::string& path);
  bool match(const Node& first, const Node& second);
  bool match_kept(const Node& first, const Node& kept);
  bool match_arguments(const Node& first, const Node& second);
  bool match_argument(const Argument& first, const Argument& second);
  bool match_replaced();
  bool may_be_updated(const std::string& path) const;
  void find_unused_updates();
  bool reads_both();
  bool tries(const Node& first, const Node& second);
  void add_update(const std::string& path, const Node& value);
  bool drain();
  void pair_writes();
  bool differ(const std::string& how);
  bool differ(const Node& first, const Node& second);
  bool differ_in_shape(const std::string& path, const Node& value);
  const Node* kept_by(const Node& second) const { return second_session_.kept_value(second); }

  const Graph& first_;
  const Session& first_session_;
  const Graph& second_;
  const Session& second_session_;
  const std::vector<ReplacedBuffer> replaced_, later_;  // by the first call, by the second
  const ModuleState* const state_;
  const std::vector<std::uint8_t> depends_, later_depends_;
  NodeMap<const Node*> image_;  // of the second's nodes in the first
  std::vector<std::pair<const Node*, const Node*>> waiting_;
  std::vector<std::pair<std::string, const Node*>> updates_;
  std::set<const Node*> constants_;  // look-up only
  std::string difference_;
  bool keeps_values_ = false;
  bool other_mode_ = false;
  std::vector<OtherFlag> other_flags_;
  std::vector<const Node*> other_writes_;
  std::vector<std::pair<const Node*, std::string>> added_writes_;
};

}  // namespace fx::internal
