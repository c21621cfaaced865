#include <fxgraph/trace/attempt.h>

#include <algorithm>
#include <unordered_set>

#include <fxgraph/ir/naming.h>
#include <fxgraph/trace/calls_at_sizes.h>
#include <fxgraph/trace/cleanup.h>
#include <fxgraph/trace/dispatch.h>
#include <fxgraph/trace/input_assertions.h>
#include <fxgraph/trace/kept_constants.h>
#include <fxgraph/trace/leaf_modules.h>
#include <fxgraph/trace/proxy_impl.h>
#include <fxgraph/trace/trace_error.h>

namespace fx {

using internal::BoundTensor;
using internal::PlaceholderInputs;
using internal::Session;

namespace {

using TensorsByPath = std::vector<std::pair<std::string, torch::Tensor>>;

TensorsByPath tensors_of(const torch::nn::Module* root) {
  TensorsByPath tensors;
  if (!root) return tensors;
  for (const auto& item : root->named_parameters()) tensors.emplace_back(item.key(), item.value());
  for (const auto& item : root->named_buffers()) tensors.emplace_back(item.key(), item.value());
  return tensors;
}

TensorsByPath named_state(const std::vector<std::pair<std::string, torch::Tensor*>>& members) {
  TensorsByPath tensors;
  for (const auto& [name, tensor] : members) {
    if (!tensor->defined()) {
      throw Error(ErrorKind::invalid_argument,
                  "symbolic_trace: the member '" + name + "' is undefined before the first call; give it a value");
    }
    tensors.emplace_back(name, *tensor);
  }
  return tensors;
}

std::vector<TracedAttribute> used_attributes(const Session& session, const Graph& graph) {
  std::vector<TracedAttribute> attributes;
  NodeMap<const internal::CapturedTensor*> by_node(graph, nullptr);
  for (const internal::CapturedTensor& captured : session.captured()) {
    if (captured.attribute && !captured.attribute->is_erased()) by_node[*captured.attribute] = &captured;
  }
  for (const Node& node : graph.nodes()) {
    if (const auto* captured = by_node[node]) attributes.push_back({captured->path, captured->tensor});
  }
  return attributes;
}

bool is_example(const c10::IValue& example) {
  return !example.isTensor() || !example.toTensor().is_same(internal::unknown_example());
}

[[noreturn]] void refuse_handled(const std::string& message) {
  throw Error(ErrorKind::trace,
              "symbolic_trace: the program handles this error, and goes on as it would not without "
              "a trace: " +
                  message);
}

// A buffer keeps its size.
void refuse_other_sizes(const Session& session, const std::vector<internal::StateChange>& changes) {
  for (const internal::ReplacedBuffer& replaced : internal::replaced_buffers(session, changes)) {
    if (!internal::has_room(session, replaced))
      throw Error(ErrorKind::trace, "symbolic_trace: the buffer '" + replaced.buffer->path + "' gets another shape");
  }
}

}  // namespace

Tracer::Attempt::OpenSession::OpenSession(std::shared_ptr<Session> session) : session_(std::move(session)) {
  internal::LeftOver::watch(session_);
}

Tracer::Attempt::OpenSession::~OpenSession() { session_->close(); }

Tracer::Attempt::LeaveModule::LeaveModule(const internal::LeftOver& left_over, const OpenSession& session,
                                          internal::ModuleState& state)
    : left_over_(left_over), session_(session), state_(state) {}

Tracer::Attempt::LeaveModule::~LeaveModule() {
  session_->close();
  for (const std::shared_ptr<Session>& session : left_over_.sessions()) {
    if (session->has_proxies()) state_.leave(*session);
  }
}

Tracer::Attempt::Running::Running(Tracer& tracer, Graph& graph, const std::shared_ptr<torch::nn::Module>& root)
    : tracer_(tracer) {
  if (tracer.graph_)
    throw Error(ErrorKind::trace, "this Tracer is tracing already; use another one for a trace inside a trace");
  internal::install_dispatch();
  tracer.graph_ = &graph;
  tracer.root_ = root;
}

Tracer::Attempt::Running::~Running() {
  tracer_.graph_ = nullptr;
  tracer_.root_.reset();
  tracer_.named_.clear();
}

Tracer::Attempt::Attempt(Tracer& tracer, const internal::Callable& callable, const std::vector<c10::IValue>& examples,
                         PlaceholderInputs::Literals literals, Repeats& repeats)
    : tracer_(tracer),
      callable_(callable),
      examples_(examples),
      literals_(literals),
      repeats_(repeats),
      has_examples_(std::any_of(examples.begin(), examples.end(), is_example)),
      may_vary_(has_examples_ && !tracer.options_.sizes.is_fixed()),
      session_(std::make_shared<Session>(static_cast<internal::NodeMaker&>(tracer))),
      running_(tracer, trace_.graph, callable.root),
      attributes_(named_state(tracer.options_.state)) {
  trace_.root = root();
  for (auto& attribute : tensors_of(root().get())) attributes_.push_back(std::move(attribute));
  for (const auto& [path, tensor] : attributes_) session_->add_attribute(path, tensor);
  if (literals == PlaceholderInputs::Literals::holes) return;
  state_.emplace(root());
  if (root()) leave_module_.emplace(left_over_, session_, *state_);
  for (const auto& [name, tensor] : tracer.options_.state) state_->watch(name, *tensor);
}

std::optional<Trace> Tracer::Attempt::run() {
  if (!call_first() || !keep_constants() || !call_again()) return std::nullopt;
  raise_leaves();
  follow_mode();
  if (!generalise()) return std::nullopt;
  return finish();
}

// In the mode that is given, else in that which the root has; the n-th tensor among its inputs is `(*stand_ins)[n]`.
Tracer::Attempt::Inputs Tracer::Attempt::run_program(Session& session, Graph& graph, const Tensors* stand_ins,
                                                     std::optional<bool> training) {
  if (training) state_->switch_mode(*root(), *training);
  PlaceholderInputs inputs(session, graph, tracer_.options_.names, examples_, callable_.parameters.size(), literals_);
  if (!repeats_.sizes.examples.empty()) inputs.take_examples(repeats_.sizes.examples);
  if (stand_ins) inputs.replace_examples(*stand_ins);
  if (state_) session.know_members([this](const torch::Tensor& tensor) { return state_->had(tensor); });
  internal::RecordingScope recording(session);
  const Argument result = internal::run(callable_, inputs);
  session.end_program();
  if (!session.refused().empty()) refuse_handled(session.refused());
  session.create_node(Op::output, "output", {result}, {}, "output");
  return {inputs.bound(), inputs.given()};
}

bool Tracer::Attempt::call_first() {
  if (may_vary_) session_->follow(&log_);
  session_->record_contiguous(!repeats_.takes_layout);
  const bool is_at_other_sizes = !repeats_.sizes.examples.empty();
  try {
    inputs_ = run_program(*session_, trace_.graph);
  } catch (...) {
    refuse_registrations();
    if (state_ && !root()) internal::settle_kept_constants(*session_);
    if (!answers_wrongly() || !has_examples_) {
      if (!is_at_other_sizes) throw;
      repeats_.sizes.refuse();  // the program does not run there
    }
  }
  session_->follow(nullptr);
  refuse_registrations();
  if (is_at_other_sizes && repeats_.sizes.is_refused) return false;
  if (!answers_wrongly() || !state_) return true;
  trace_by_layout();
  return false;
}

// Tensors that the program made and keeps where nothing can be put back become what they are.
bool Tracer::Attempt::keep_constants() {
  constexpr int kMostConstants = 8;  // that a program makes one after the other
  if (!state_ || left_over_.count() <= 1) return true;
  const std::vector<internal::ProxyImpl*> elsewhere = state_->proxies_elsewhere();
  const auto constants = state_->constants(*session_, elsewhere);
  if (root() && constants.size() < elsewhere.size()) refuse_left_over();
  if (constants.empty() || repeats_.constants++ >= kMostConstants) return true;
  for (const auto& [proxy, value] : constants) proxy->become(value);
  return false;
}

bool Tracer::Attempt::call_again() {
  if (!state_) return true;
  const TraceOptions& options = tracer_.options_;
  call_plan_.emplace(internal::SecondCallPlan{
      trace_.graph, *session_, *state_, [this](Session& session, Graph& graph) { run_program(session, graph); },
      [this](const std::string& path) { return tracer_.is_free_attribute(path); }});
  keeps_something_ = root() && options.second_call && state_->has_other_members();
  if (options.second_call) updates_ = internal::compare_second_call(*call_plan_);
  state_->restore();
  if (!internal::is_same_if_contiguous(*call_plan_)) {
    trace_by_layout();
    return false;
  }
  for (const std::shared_ptr<Session>& each : left_over_.sessions()) {
    if (root() && each->has_proxies()) state_->leave(*each);
  }
  if (root() && (state_->has_left() || left_over_.count() > 1)) refuse_left_over();
  if (root() && options.follow_mode && fixed_runs_.reason().empty()) {
    const auto run_in_mode = [this](Session& session, Graph& graph, const Tensors* stand_ins,
                                    std::optional<bool> training) { run_program(session, graph, stand_ins, training); };
    mode_switch_.emplace(
        internal::ModeSwitch::Plan{*call_plan_, *root(), run_in_mode, inputs_.tensors, updates_, options.second_call});
  }
  tracer_.write_buffers(*session_, updates_);
  for (Node* node : inputs_.given) {
    if (!node->has_users()) internal::assert_given(trace_.graph, *node);
  }
  return true;
}

void Tracer::Attempt::raise_leaves() {
  // The program may have asked for the sizes of what it does not compute with.
  std::unordered_set<const Node*> parts;
  for (const BoundTensor& input : inputs_.tensors) parts.insert(input.node);
  internal::erase_unused_getitems(trace_.graph, parts);
  if (!root() || !tracer_.options_.raise_leaf_modules) return;
  const auto is_leaf = [this](const torch::nn::Module& module, const std::string& path) {
    return tracer_.is_leaf_module(module, path) && !repeats_.sizes.not_leaves.contains(path);
  };
  internal::Raised raised = internal::raise_leaf_modules(trace_.graph, *session_, *root(), is_leaf);
  trace_.modules = std::move(raised.modules);
  calls_ = std::move(raised.calls);
  if (may_vary_) internal::note_raised(calls_, log_);
  internal::erase_unused_getitems(trace_.graph, parts);
  internal::erase_unused_attributes(trace_.graph);
}

void Tracer::Attempt::follow_mode() {
  if (mode_switch_) trace_.holds_for_mode = mode_switch_->apply(trace_.graph, *session_, *root(), trace_.modules);
  if (fixed_runs_.reason().empty()) return;
  trace_.holds_for_mode = fixed_runs_.reason();
  if (!root()) trace_.mode = fixed_runs_.training();
}

bool Tracer::Attempt::generalise() {
  const std::size_t size = trace_.graph.size();
  if (may_vary_ && !inputs_.tensors.empty()) {
    const internal::SampledProgram program{
        log_,
        *session_,
        [this](Session& session, Graph& graph, const Tensors& tensors) { run_sample(session, graph, tensors); },
        attributes_,
        [this](const std::string& path) { return tracer_.is_free_attribute(path); },
        [this](Session& session) { leave(session); },
        calls_};
    const auto at_found_sizes = [&](internal::SizeGroups& groups, const auto& agrees) {
      compare_at(groups, program, agrees);
    };
    if (!internal::generalise(trace_.graph, program, *session_, inputs_.tensors, tracer_.options_.sizes, repeats_.sizes,
                              at_found_sizes)) {
      if (state_) state_->restore();
      return false;
    }
  }
  mode_switch_.reset();  // it has a session
  if (root() && state_) {
    state_->restore();
    if (state_->has_left() || left_over_.count() > 1) refuse_left_over();
  }
  // FX never sees the operators inside a leaf: they leave no gaps in the numbers.
  const bool has_gaps = !trace_.modules.empty() || trace_.graph.size() != size;
  internal::erase_unused_getitems(trace_.graph);
  if (has_gaps) name_in_order(trace_.graph, [this](const Node& node) { return tracer_.named_.contains(&node); });
  return true;
}

void Tracer::Attempt::run_sample(Session& session, Graph& graph, const Tensors& stand_ins) {
  if (state_) state_->restore();
  run_program(session, graph, &stand_ins);
  if (!updates_.empty()) refuse_other_sizes(session, state_->changes());
}

void Tracer::Attempt::leave(Session& session) {
  if (root() && state_) return state_->leave(session);
  internal::settle_kept_constants(session);
}

// What calls do after other calls, and in the other mode.
void Tracer::Attempt::compare_at(internal::SizeGroups& groups, const internal::SampledProgram& program,
                                 const std::function<bool(const internal::Sample&)>& agrees) {
  if (keeps_something_) {
    const auto call_at = [this](Session& session, Graph& graph, const Tensors& tensors) {
      run_program(session, graph, &tensors);
    };
    internal::compare_calls_at_sizes({*call_plan_, call_at, updates_, root()->name()}, program, inputs_.tensors,
                                     groups);
  }
  if (mode_switch_ && trace_.holds_for_mode.empty())
    trace_.holds_for_mode = mode_switch_->difference_at_sizes(program, inputs_.tensors, groups, agrees);
}

Trace Tracer::Attempt::finish() {
  trace_.attributes = used_attributes(*session_, trace_.graph);
  trace_.shapes = session_->shapes(trace_.graph);
  return std::move(trace_);
}

void Tracer::Attempt::trace_by_layout() {
  if (!has_examples_) throw internal::unknown_shape(nullptr, "is_contiguous()");
  repeats_.takes_layout = true;
}

void Tracer::Attempt::refuse_registrations() const {
  const std::string what = state_ ? state_->registered() : std::string();
  if (what.empty()) return;
  throw Error(ErrorKind::trace, "symbolic_trace: forward " + what + "; run the module once before it is traced");
}

void Tracer::Attempt::refuse_left_over() const {
  throw Error(
      ErrorKind::trace,
      "symbolic_trace: forward of " + root()->name() +
          " keeps a traced tensor where it cannot be put back (in a map, behind a pointer, outside of the module" +
          (has_examples_ ? "), which is now as after a call on the examples; " : "); ") +
          "return it, or keep it in a member that is a tensor or a vector of tensors");
}

}  // namespace fx
