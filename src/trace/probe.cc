#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/trace/probe.h>
#include <fxgraph/trace/same_program.h>

#include <cmath>

#include <fxgraph/effects/in_place.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/run/value.h>
#include <fxgraph/shapes/brief_errors.h>
#include <fxgraph/trace/tensor_memory.h>

namespace fx::internal {
namespace {

// What indexing ends with where all slices were left out.
bool is_alias(Symbol target) {
  static const Symbol kAlias("aten::alias");
  return target == kAlias;
}

// `table.index({Slice(m, n)})` calls no slice where these are all that there is.
bool is_slice(Symbol target, ArgumentSpan arguments) {
  static const Symbol kSlice("aten::slice.Tensor");
  return target == kSlice && arguments.size() == 5 && arguments[0].is_node() && arguments[1].is_int() &&
         arguments[1].as_int() >= 0 && arguments[2].is_int() && arguments[3].is_int() && arguments[4] == Argument(1);
}

// Ends a sample. Not an std::exception: programs that handle those are not to handle this.
struct EndOfProbe {};

bool same_number(const Argument& a, const Argument& b) {
  if (a == b) return true;
  return a.is_float() && b.is_float() && std::isnan(a.as_float()) && std::isnan(b.as_float());
}

std::string short_text(const Argument& argument) {
  std::string text = to_string(argument);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

// What the program itself has said, where an error of ours is around it.
std::string reason_of(const std::exception& error) {
  try {
    std::rethrow_if_nested(error);
  } catch (const std::exception& inner) {
    return first_line(inner);
  } catch (...) {
  }
  return first_line(error);
}

}  // namespace

ProbedUpdates probed_updates(const TraceLog& log, const Session& session, const std::vector<BufferUpdate>& updates) {
  ProbedUpdates result;
  for (const BufferUpdate& update : updates)
    result.emplace_back(log.index_of(*update.value), tensor_at(session, update.attribute));
  return result;
}

Probe::~Probe() {
  if (session_) session_->close();
}

bool Probe::run(const std::vector<at::Tensor>& stand_ins, std::uint32_t last, const std::vector<OtherType>& types,
                Root root) {
  const BriefErrors brief;
  last_ = last;
  types_may_differ_ = !types.empty();
  session_ = std::make_shared<Session>(static_cast<NodeMaker&>(*this), program_.session.engine());
  session_->record_contiguous(program_.session.records_contiguous());
  if (root == Root::of_other_type) session_->read_as(types);
  // A run that ended early may have left a part of the program frozen.
  for (const CapturedTensor& before : program_.session.captured()) {
    if (before.of_root && before.tensor.requires_grad() != before.required_grad)
      before.tensor.set_requires_grad(before.required_grad);
  }
  for (const auto& [path, tensor] : program_.attributes) session_->add_attribute(path, tensor);
  session_->follow(this);
  try {
    program_.run(*session_, graph_, stand_ins);
    if (!ended_ && nodes_.size() != program_.log.size()) differs("the program ends early");
    if (!ended_) reached_ = true;
    if (reached_) check_updates();
  } catch (const EndOfProbe&) {
  } catch (const std::exception& error) {
    if (!ended_) end_by_error(reason_of(error));
  } catch (...) {
    if (!ended_) end_by_error("the program throws what is no std::exception");
  }
  session_->follow(nullptr);
  session_->close();
  has_left_ = session_->has_proxies();
  if (has_left_) leave();
  if (reached_) compare_constants();
  return reached_;
}

// The graph writes these values to buffers, which keep their sizes.
void Probe::leave() {
  std::vector<KeptUpdate> updates;
  for (const auto& [call, buffer] : program_.updates) {
    if (call >= nodes_.size() || !nodes_[call]) continue;
    updates.push_back({nodes_[call], buffer});
  }
  become_buffers(*session_, updates);
  program_.leave(*session_);
}

void Probe::check_updates() {
  for (const auto& [call, buffer] : program_.updates) {
    const at::Tensor value = value_of(call);
    if (!value.defined() || value.sizes() == buffer.sizes()) continue;
    reached_ = false;
    failed_at_ = call;
    why_ = "a buffer that the program replaces gets another shape";
    return;
  }
}

void Probe::end_by_error(const std::string& why) {
  ended_ = threw_ = true;
  failed_at_ = static_cast<std::uint32_t>(nodes_.size());
  if (!operator_refused_) why_ = why;
}

void Probe::differs(const std::string& how) {
  ended_ = true;
  failed_at_ = static_cast<std::uint32_t>(nodes_.size());
  why_ = how;
  place_ = calling_place();
  throw EndOfProbe();
}

void Probe::refused(const std::exception& why) {
  operator_refused_ = true;
  why_ = first_line(why);
  place_ = calling_place();
}

bool Probe::may_be_whole(std::uint32_t at) const {
  return at < program_.log.size() && is_slice(program_.log[at].target, program_.log.arguments(at));
}

// What stands in the place of a call: itself, or what a slice that was not called would have sliced.
std::uint32_t Probe::standing_for(std::uint32_t call) const {
  const auto found = whole_.find(call);
  return found == whole_.end() ? call : found->second;
}

// A write into a slice that was not called is one to what it would have sliced, and what is read of that afterwards is
// its result.
bool Probe::is_now(std::uint32_t before, std::uint32_t now) const {
  if (before == now) return true;
  const auto found = written_.find(now);
  return found != written_.end() && found->second == before;
}

void Probe::pass_whole_slice() {
  const auto at = static_cast<std::uint32_t>(nodes_.size());
  const ArgumentSpan arguments = program_.log.arguments(at);
  const std::uint32_t of = standing_for(program_.log.index_of(arguments[0].node()));
  const at::Tensor value =
      nodes_[of] ? session_->value_of(*nodes_[of]) : program_.session.value_of(*program_.log[of].node);
  const std::int64_t dim = arguments[1].as_int();
  if (!value.defined() || dim >= value.dim()) return;
  constexpr std::uint32_t kStart = 2, kEnd = 3;
  if (arguments[kStart] != Argument(0)) changes_.push_back({at, kStart, Argument(0)});
  if (value.size(dim) != arguments[kEnd].as_int()) changes_.push_back({at, kEnd, Argument(value.size(dim))});
  whole_.emplace(at, of);
  nodes_.push_back(nodes_[of]);
}

// As many as must have been left out before this call: for an alias those of one expression, each of the one before.
void Probe::pass_whole_slices(const TracedCall& call) {
  const TraceLog& log = program_.log;
  for (std::size_t before = ~std::size_t{0}; before != nodes_.size();) {
    before = nodes_.size();
    const auto at = static_cast<std::uint32_t>(before);
    const bool is_read_later = may_be_whole(at + 1) && log[at].op == Op::get_attr && log[at].target != call.target &&
                               log.index_of(log.arguments(at + 1)[0].node()) == at;
    if (is_read_later) {
      unread_.emplace(log[at].target, at);
      nodes_.push_back(nullptr);
    }
    const auto slice = static_cast<std::uint32_t>(nodes_.size());
    if (!may_be_whole(slice)) return;
    // That of another dimension may be left out before one that is not.
    if (log[slice].target == call.target && log.arguments(slice)[1] == call.arguments[1]) return;
    const bool is_next = slice > 0 && log.index_of(log.arguments(slice)[0].node()) == slice - 1;
    if (is_alias(call.target) && whole_.contains(slice - 1) && !is_next) return;
    pass_whole_slice();
  }
}

void Probe::making(const TracedCall& call) {
  if (ended_) throw EndOfProbe();
  if (const auto unread = unread_.find(call.target); call.op == Op::get_attr && unread != unread_.end()) {
    late_ = unread->second;
    unread_.erase(unread);
    return;
  }
  pass_whole_slices(call);
  const auto at = static_cast<std::uint32_t>(nodes_.size());
  const TraceLog& log = program_.log;
  if (is_alias(call.target) && !whole_.empty() && (at == log.size() || !is_alias(log[at].target))) {
    late_ = index_by_id_[call.arguments[0].node().id()];
    return;
  }
  if (at == log.size()) differs("the program goes on with " + call.target.str());
  const TraceLog::Call& before = log[at];
  if (before.op != call.op || before.target != call.target) {
    slices_more_ = is_slice(call.target, call.arguments);
    differs(call.target.str() + " runs instead of " + before.target.str());
  }
  const ArgumentSpan arguments = log.arguments(at);
  if (arguments.size() != call.arguments.size()) differs(call.target.str() + " has another number of arguments");
  leaf_ = 0;
  // What an assertion says names its input, and nodes of samples have no names.
  const std::size_t count = call.target == python::kAssert ? 1 : arguments.size();
  for (std::size_t i = 0; i < count; ++i) compare(arguments[i], call.arguments[i]);
}

// The program may take by number what is not there: it is not to see a shorter list.
void Probe::returns_list(std::size_t length) {
  const auto at = static_cast<std::uint32_t>(nodes_.size() - 1);
  const TraceLog::Call& before = program_.log[at];
  if (before.list_length == length) return end_after(at);
  nodes_.pop_back();  // it is this call that differs
  differs(before.target.str() + " returns " + std::to_string(length) + " tensors instead of " +
          std::to_string(before.list_length));
}

void Probe::compare(const Argument& before, const Argument& now) {
  if (before.kind() != now.kind()) differs("an argument is " + short_text(now) + " instead of " + short_text(before));
  if (now.is_node()) {
    if (!is_now(standing_for(program_.log.index_of(before.node())), index_by_id_[now.node().id()]))
      differs("an argument is the result of another call");
    ++leaf_;
    return;
  }
  if (now.is_container() && now.kind() != ArgumentKind::complex) {
    const ArgumentSpan a = before.elements(), b = now.elements();
    if (a.size() != b.size())
      differs("a list has " + std::to_string(b.size()) + " elements instead of " + std::to_string(a.size()));
    for (std::size_t i = 0; i < a.size(); ++i) compare(a[i], b[i]);
    return;
  }
  if (!same_number(before, now)) {
    const bool may_differ = now.is_int() || now.is_float() || (types_may_differ_ && now.kind() == ArgumentKind::dtype);
    if (!may_differ) differs("an argument is " + short_text(now) + " instead of " + short_text(before));
    changes_.push_back({static_cast<std::uint32_t>(nodes_.size()), leaf_, now});
  }
  ++leaf_;
}

Node& Probe::create_node(Op op, Symbol target, ArgumentSpan args, KwargSpan kwargs, std::string_view) {
  static const std::string kName = "n";
  return graph_.create_node(op, target, args, kwargs, kName);
}

void Probe::made(Node& node) {
  if (node.id() >= index_by_id_.size()) index_by_id_.resize(node.id() + 1 + index_by_id_.size() / 2);
  if (late_) {
    index_by_id_[node.id()] = *late_;
    nodes_[*late_] = &node;
    late_.reset();
    return;
  }
  index_by_id_[node.id()] = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back(&node);
  const auto at = static_cast<std::uint32_t>(nodes_.size() - 1);
  if (const Call call = whole_.empty() ? Call() : call_of(node); call && writes_first(call.schema())) {
    const Node* into = program_.log.arguments(at)[0].node_or_null();
    const auto sliced = into ? whole_.find(program_.log.index_of(*into)) : whole_.end();
    if (sliced != whole_.end()) written_.emplace(at, sliced->second);
  }
  if (program_.log[at].list_length == 0) end_after(at);  // else when its length is known
}

void Probe::end_after(std::uint32_t call) {
  if (call < last_) return;
  ended_ = reached_ = true;
  place_ = calling_place();
  throw EndOfProbe();
}

void Probe::compare_constants() {
  for (const CapturedTensor& captured : session_->captured()) {
    if (captured.of_root || !captured.attribute) continue;
    const std::uint32_t call = index_by_id_[captured.attribute->id()];
    const CapturedTensor* before = captured_at(program_.session, captured.path);
    if (before && !before->of_root && !same_data(before->tensor, captured.tensor))
      changed_constants_.push_back({call, captured.tensor});
  }
}

at::Tensor Probe::value_of(std::uint32_t i) const { return nodes_[i] ? session_->value_of(*nodes_[i]) : at::Tensor(); }

at::IntArrayRef Probe::sizes_of(std::uint32_t i) const {
  const at::Tensor value = value_of(i);
  return value.defined() ? value.sizes() : at::IntArrayRef();
}

}  // namespace fx::internal
