#include <fxgraph/trace/same_program.h>

#include <algorithm>
#include <tuple>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/trace/same_calls.h>
#include <fxgraph/trace/tensor_memory.h>

namespace fx::internal {
namespace {

// One that each call makes, and that has a gradient, was computed where nobody traces: in another thread. One that is
// written is known by itself: two that trade places may hold the same only at first.
bool same_constant(const CapturedTensor& a, const CapturedTensor& b) {
  if (a.tensor.is_same(b.tensor)) return true;
  const bool written = a.node != a.attribute || b.node != b.attribute;
  return !written && !(b.tensor.requires_grad() && !b.tensor.is_leaf()) && same_data(a.tensor, b.tensor);
}

std::string text_of(const Node& node) {
  std::string text = to_string(Argument(const_cast<Node&>(node))) + " = " + node.target().str() + "(";
  const char* comma = "";
  for (const Argument& argument : node.args()) {
    text += comma + to_string(argument);
    comma = ", ";
  }
  for (const auto& [name, value] : node.kwargs()) {
    text += comma + name.str() + "=" + to_string(value);
    comma = ", ";
  }
  if (text.size() > 160) text = text.substr(0, 157) + "...";
  return text + ")";
}

}  // namespace

const CapturedTensor* captured_at(const Session& session, Symbol path) {
  for (const CapturedTensor& captured : session.captured()) {
    if (captured.path == path.view()) return &captured;
  }
  return nullptr;
}

bool same_constants(const Session& a, const Session& b) {
  for (const CapturedTensor& captured : b.captured()) {
    if (captured.of_root || captured.path.empty()) continue;
    const CapturedTensor* other = captured_at(a, captured.path);
    if (other && !same_constant(*other, captured)) return false;
  }
  return true;
}

namespace {

// Whether the buffer could hold the value.
bool has_room(const Session& session, const CapturedTensor& buffer, const Node& value) {
  const at::Tensor now = session.value_of(value);
  return !now.defined() || (now.sizes() == buffer.tensor.sizes() && now.scalar_type() == buffer.tensor.scalar_type());
}

}  // namespace

std::vector<std::uint8_t> dependences(const Graph& graph, const Session& session,
                                      const std::vector<std::uint8_t>& earlier) {
  std::vector<std::uint8_t> result(graph.id_bound(), kNothing);
  for (const Node& node : graph.nodes()) {
    std::uint8_t& own = result[node.id()];
    if (node.is(Op::placeholder)) {
      own = kInput;
    } else if (node.is(Op::get_attr)) {
      const Node* kept = session.kept_value(node);
      const CapturedTensor* captured = kept ? nullptr : captured_at(session, node.target());
      if (kept) {
        own = earlier[kept->id()];
      } else if (captured && captured->of_root) {
        own = kAttribute;
      }
    } else {
      node.for_each_input([&](const Node& input) { own |= result[input.id()]; });
      if (node.is(Op::call_function) && effects_of(node).random) own |= kRandom;
    }
  }
  return result;
}

SameProgram::SameProgram(const Graph& first, const Session& first_session, const Graph& second,
                         const Session& second_session, std::vector<ReplacedBuffer> replaced,
                         std::vector<ReplacedBuffer> later, const ModuleState* state)
    : first_(first),
      first_session_(first_session),
      second_(second),
      second_session_(second_session),
      replaced_(std::move(replaced)),
      later_(std::move(later)),
      state_(state),
      depends_(dependences(first, first_session)),
      later_depends_(dependences(second, second_session, depends_)),
      image_(second, nullptr) {}

// What is written to values that depend on nothing is seen only through these: a program that keeps one does not make
// it again.
std::vector<const Node*> SameProgram::effects(const Graph& graph, const std::vector<std::uint8_t>& depends) {
  std::vector<const Node*> result;
  for (const Node& node : graph.nodes()) {
    if (!node.is(Op::call_function) || (keeps_values_ && depends[node.id()] == kNothing)) continue;
    const NodeEffects effects = effects_of(node);
    if (!effects.impure()) continue;
    if (!other_mode_) {
      result.push_back(&node);
    } else if (effects.writes || effects.side_effect || effects.unknown) {
      std::string path;
      if (!writes_attribute(node, path)) {
        result.push_back(&node);
      } else if (&graph == &first_) {
        other_writes_.push_back(&node);
      } else {
        added_writes_.emplace_back(&node, path);
      }
    }
  }
  return result;
}

// The first argument, where the node's result lies in its memory; else null.
const Node* forwarded_argument(const Node& node) {
  const Call call = call_of(node);
  if (call) {
    const OperatorTraits& traits = call.schema().traits;
    if (!traits.view && !traits.writes && !traits.may_copy) return nullptr;
  } else if (!node.is(Op::call_function)) {
    return nullptr;
  }
  const ArgumentSpan args = call ? call.args() : node.args();
  return args.empty() ? nullptr : args[0].node_or_null();
}

// Whether all that the node writes are tensors of the root, as statistics are; `path` is one of them.
bool SameProgram::writes_attribute(const Node& node, std::string& path) {
  bool all = true;
  for_each_written(node, [&](const Argument& written) {
    for_each_node(written, [&](const Node& target) {
      const Node* at = &target;
      while (const Node* before = forwarded_argument(*at)) at = before;
      all = all && at->is(Op::get_attr);
      if (at->is(Op::get_attr)) path = at->target().str();
    });
  });
  return all && !path.empty();
}

// ── Comparing ────────────────────────────────────────────────────────────────────────────────────────────────────────

std::optional<std::string> SameProgram::find_difference() {
  for (const Node& node : second_.nodes()) keeps_values_ = keeps_values_ || kept_by(node);
  const std::vector<const Node*> a = effects(first_, depends_);
  const std::vector<const Node*> b = effects(second_, later_depends_);
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!match(*a[i], *b[i]) || !drain()) return difference_;
  }
  if (!match(*first_.output_node(), *second_.output_node()) || !drain()) return difference_;
  if (a.size() != b.size()) {
    const bool more = b.size() > a.size();
    return std::string(more ? "it also runs " : "it does not run ") + text_of(more ? *b[a.size()] : *a[b.size()]);
  }
  if (!match_replaced() || reads_both()) return difference_;
  find_unused_updates();
  pair_writes();
  return std::nullopt;
}

bool SameProgram::match_replaced() {
  for (const ReplacedBuffer& now : replaced_) {
    const std::string& path = now.buffer->path;
    if (depends_[now.value->id()] == kNothing) continue;
    const auto again = std::find_if(later_.begin(), later_.end(),
                                    [&](const ReplacedBuffer& each) { return each.buffer->path == path; });
    if (again == later_.end()) return differ("it does not replace '" + path + "' again");
    if (!has_room(first_session_, *now.buffer, *now.value)) return differ_in_shape(path, *now.value);
    if (!match(*now.value, *again->value) || !drain()) return false;
    add_update(path, *now.value);
  }
  return true;
}

void SameProgram::add_update(const std::string& path, const Node& value) {
  const auto update = std::make_pair(path, &value);
  if (std::find(updates_.begin(), updates_.end(), update) == updates_.end()) updates_.push_back(update);
}

bool SameProgram::replaces_the_same(const std::vector<BufferUpdate>& updates) {
  std::size_t same = 0;
  for (const ReplacedBuffer& now : later_) {
    const auto update = std::find_if(updates.begin(), updates.end(),
                                     [&](const BufferUpdate& each) { return each.attribute == now.buffer->path; });
    if (update == updates.end()) {
      if (later_depends_[now.value->id()] != kNothing) return false;
    } else if (!match(*update->value, *now.value) || !drain()) {
      return false;
    } else {
      ++same;
    }
  }
  return same == updates.size();
}

// Writes of the same to the same are in both.
void SameProgram::pair_writes() {
  const auto is_paired = [this](const auto& added) {
    const auto same = std::find_if(other_writes_.begin(), other_writes_.end(), [&](const Node* write) {
      std::string path;
      return write->target() == added.first->target() && writes_attribute(*write, path) && path == added.second;
    });
    if (same == other_writes_.end()) return false;
    if (!tries(**same, *added.first)) return false;
    other_writes_.erase(same);
    return true;
  };
  std::erase_if(added_writes_, is_paired);
}

// Leaves everything as it was where they are not the same.
bool SameProgram::tries(const Node& first, const Node& second) {
  const auto before = std::make_tuple(image_, other_flags_, difference_, updates_, constants_);
  if (match(first, second) && drain()) return true;
  std::tie(image_, other_flags_, difference_, updates_, constants_) = before;
  waiting_.clear();
  return false;
}

std::vector<const Node*> SameProgram::images_of(const Node& value, const std::vector<const Node*>& kept) {
  std::vector<const Node*> images;
  for (const Node* node : kept) {
    if (image_[*node] ? image_[*node] == &value : tries(value, *node)) images.push_back(node);
  }
  return images;
}

bool SameProgram::drain() {
  while (!waiting_.empty()) {
    const auto [a, b] = waiting_.back();
    waiting_.pop_back();
    if (!match_arguments(*a, *b)) return false;
  }
  return true;
}

bool SameProgram::differ(const std::string& how) {
  if (difference_.empty()) difference_ = how;
  return false;
}

bool SameProgram::differ(const Node& first, const Node& second) {
  return differ(text_of(first) + " became " + text_of(second));
}

bool SameProgram::differ_in_shape(const std::string& path, const Node& value) {
  return differ("it replaces '" + path + "' by a tensor of another shape or type (" + text_of(value) + ")");
}

bool SameProgram::match(const Node& first, const Node& second) {
  if (image_[second]) return image_[second] == &first || differ(first, second);
  if (const Node* kept = kept_by(second)) return match_kept(first, *kept);
  image_[second] = &first;
  if (first.op() != second.op()) return differ(first, second);
  if (first.is(Op::placeholder)) {
    return first.name() == second.name() || differ(first, second);
  }
  if (first.is(Op::get_attr)) {
    const CapturedTensor* a = captured_at(first_session_, first.target());
    const CapturedTensor* b = captured_at(second_session_, second.target());
    const bool of_root = (a && a->of_root) || (b && b->of_root);
    if (of_root ? first.target() == second.target() : a && b && same_constant(*a, *b)) return true;
    if (of_root) return differ(first, second);
    return differ("a tensor that it makes without operators, or keeps, has other values (%" + first.name() + ")");
  }
  if (first.target() != second.target()) return differ(first, second);
  waiting_.emplace_back(&first, &second);
  return true;
}

// A buffer, not one of several that are read where the first call reads one, and not the buffer itself elsewhere.
bool SameProgram::may_be_updated(const std::string& path) const {
  const bool is_declared = std::any_of(replaced_.begin(), replaced_.end(),
                                       [&](const ReplacedBuffer& each) { return each.buffer->path == path; });
  return !is_declared && state_ && state_->is_buffer(path);
}

bool SameProgram::match_kept(const Node& first, const Node& kept) {
  if (&first == &kept && depends_[kept.id()] == kNothing) {
    constants_.insert(&kept);
    return true;
  }
  if (first.is(Op::get_attr)) {
    const std::string path = first.target().str();
    const CapturedTensor* buffer = captured_at(first_session_, first.target());
    const bool is_declared = std::any_of(replaced_.begin(), replaced_.end(), [&](const ReplacedBuffer& each) {
      return each.value == &kept && each.buffer->path == path;
    });
    const bool is_another = std::any_of(updates_.begin(), updates_.end(), [&](const auto& update) {
      return update.first == path && update.second != &kept;
    });
    if (buffer && !is_another && (is_declared || may_be_updated(path))) {
      if (!has_room(first_session_, *buffer, kept)) return differ_in_shape(path, kept);
      add_update(path, kept);
      return true;
    }
  }
  return differ("it uses %" + kept.name() + " (" + kept.target().str() + "), which the first call kept");
}

// What nobody needs is read in the place of a buffer, too: statistics that are there to be looked at. The two traces
// have been made alike until then.
void SameProgram::find_unused_updates() {
  for (const Node& node : second_.nodes()) {
    const Node* kept = kept_by(node);
    const Node* like = kept ? first_.node_by_id(node.id()) : nullptr;
    if (!like || !like->is(Op::get_attr) || !may_be_updated(like->target().str())) continue;
    const std::string path = like->target().str();
    const bool is_known =
        std::any_of(updates_.begin(), updates_.end(), [&](const auto& update) { return update.first == path; });
    if (!is_known && has_room(first_session_, *captured_at(first_session_, like->target()), *kept))
      add_update(path, *kept);
  }
}

// The buffer is read as it was, and in another place by what took its place.
bool SameProgram::reads_both() {
  for (const Node& node : second_.nodes()) {
    if (!node.is(Op::get_attr) || !image_[node]) continue;
    const auto update = std::find_if(updates_.begin(), updates_.end(),
                                     [&](const auto& each) { return node.target() == Symbol(each.first); });
    if (update != updates_.end()) return !differ(*image_[node], *update->second);
  }
  return false;
}

bool SameProgram::match_arguments(const Node& first, const Node& second) {
  const auto a = first.args(), b = second.args();
  const auto c = first.kwargs(), d = second.kwargs();
  if (a.size() != b.size() || c.size() != d.size()) return differ(first, second);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (other_mode_ && a[i].is_bool() && b[i].is_bool() && a[i] != b[i]) {
      other_flags_.push_back({&first, i});
    } else if (!match_argument(a[i], b[i])) {
      return differ(first, second);
    }
  }
  for (std::size_t i = 0; i < c.size(); ++i) {
    if (c[i].name != d[i].name || !match_argument(c[i].value, d[i].value)) return differ(first, second);
  }
  return true;
}

bool SameProgram::match_argument(const Argument& first, const Argument& second) {
  return same_argument(first, second, [this](const Node& a, const Node& b) { return match(a, b); });
}

std::vector<BufferUpdate> SameProgram::updates() const {
  std::vector<BufferUpdate> result;
  for (const auto& [attribute, value] : updates_) result.push_back({attribute, const_cast<Node*>(value)});
  return result;
}

}  // namespace fx::internal
