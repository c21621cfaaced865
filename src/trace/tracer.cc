#include <fxgraph/trace/tracer.h>

#include <algorithm>

#include <fxgraph/ir/naming.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/module/fixed_runs.h>
#include <fxgraph/ops/schema.h>
#include <fxgraph/trace/caller.h>
#include <fxgraph/trace/calls_at_sizes.h>
#include <fxgraph/trace/cleanup.h>
#include <fxgraph/trace/dispatch.h>
#include <fxgraph/trace/generalise.h>
#include <fxgraph/trace/input_assertions.h>
#include <fxgraph/trace/kept_constants.h>
#include <fxgraph/trace/leaf_modules.h>
#include <fxgraph/trace/left_over.h>
#include <fxgraph/trace/mode_switch.h>
#include <fxgraph/trace/proxy_impl.h>
#include <fxgraph/trace/trace_error.h>

namespace fx {
namespace {

using internal::Session;

// Closes the session however the trace ends.
class OpenSession {
 public:
  explicit OpenSession(std::shared_ptr<Session> session) : session_(std::move(session)) {
    internal::LeftOver::watch(session_);
  }
  ~OpenSession() { session_->close(); }
  Session& operator*() const { return *session_; }
  Session* operator->() const { return session_.get(); }

 private:
  std::shared_ptr<Session> session_;
};

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

// By the declaration alone, as FX does: what a batch norm does to its statistics is not declared.
void refuse_writes(Symbol target, ArgumentSpan args) {
  const OperatorSchema* schema = find_schema(target);
  if (!schema) return;
  for (const SchemaArgument& argument : schema->arguments) {
    if (!argument.alias.writes) continue;
    const Node* node = args.empty() ? nullptr : args[0].node_or_null();
    throw Error(ErrorKind::trace,
                target_text(target) + (node ? " on %" + node->name() : "") + " writes its argument `" +
                    argument.name.str() +
                    "`, which check_mutable_operations forbids; use the operator that returns a new tensor",
                node ? node->name() : "");
  }
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

[[noreturn]] void refuse_registration(const std::string& what) {
  throw Error(ErrorKind::trace, "symbolic_trace: forward " + what + "; run the module once before it is traced");
}

[[noreturn]] void refuse_left_over(const torch::nn::Module& root, bool has_examples) {
  throw Error(
      ErrorKind::trace,
      "symbolic_trace: forward of " + root.name() +
          " keeps a traced tensor where it cannot be put back (in a map, behind a pointer, outside of the module" +
          (has_examples ? "), which is now as after a call on the examples; " : "); ") +
          "return it, or keep it in a member that is a tensor or a vector of tensors");
}

// What a trace of a module leaves in it, however it ends.
class LeaveModule {
 public:
  LeaveModule(const internal::LeftOver& left_over, const OpenSession& session, internal::ModuleState& state)
      : left_over_(left_over), session_(session), state_(state) {}
  ~LeaveModule() {
    session_->close();
    for (const std::shared_ptr<Session>& session : left_over_.sessions()) {
      if (session->has_proxies()) state_.leave(*session);
    }
  }
  LeaveModule(const LeaveModule&) = delete;
  LeaveModule& operator=(const LeaveModule&) = delete;

 private:
  const internal::LeftOver& left_over_;
  const OpenSession& session_;
  internal::ModuleState& state_;
};

}  // namespace

struct Tracer::Repeats {
  int constants = 0;          // how often it kept one where the trace cannot put anything back
  bool takes_layout = false;  // it asks for layouts, not just for contiguous()
  internal::Retrace sizes{};  // at those of the examples it leaves slices out
};

Trace Tracer::trace_callable(const internal::Callable& callable, std::vector<c10::IValue> examples,
                             internal::PlaceholderInputs::Literals literals) {
  Repeats repeats;
  for (;;) {
    if (std::optional<Trace> trace = try_trace(callable, examples, literals, repeats)) return std::move(*trace);
  }
}

// Nothing when the program has to be traced again; `repeats` then says so.
std::optional<Trace> Tracer::try_trace(const internal::Callable& callable, const std::vector<c10::IValue>& examples,
                                       internal::PlaceholderInputs::Literals literals, Repeats& repeats) {
  constexpr int kMostConstants = 8;  // that a program makes one after the other
  if (graph_)
    throw Error(ErrorKind::trace, "this Tracer is tracing already; use another one for a trace inside a trace");
  internal::install_dispatch();
  Trace trace;
  trace.root = callable.root;
  const internal::LeftOver left_over;
  OpenSession session(std::make_shared<Session>(static_cast<internal::NodeMaker&>(*this)));
  struct Running {
    Tracer& tracer;
    ~Running() {
      tracer.graph_ = nullptr;
      tracer.root_.reset();
      tracer.named_.clear();
    }
  } running{*this};
  graph_ = &trace.graph;
  root_ = callable.root;
  TensorsByPath attributes = named_state(options_.state);
  for (auto& attribute : tensors_of(root_.get())) attributes.push_back(std::move(attribute));
  for (const auto& [path, tensor] : attributes) session->add_attribute(path, tensor);
  std::optional<internal::ModuleState> state;
  std::optional<LeaveModule> leave_module;
  std::optional<internal::ModeSwitch> mode_switch;
  std::vector<internal::BufferUpdate> updates;
  if (literals == internal::PlaceholderInputs::Literals::specialise) {
    state.emplace(root_);
    if (root_) leave_module.emplace(left_over, session, *state);
    for (const auto& [name, tensor] : options_.state) state->watch(name, *tensor);
  }
  internal::TraceLog log;
  const bool has_examples = std::any_of(examples.begin(), examples.end(), [](const c10::IValue& example) {
    return !example.isTensor() || !example.toTensor().is_same(internal::unknown_example());
  });
  const bool may_vary = has_examples && !options_.sizes.is_fixed();
  if (may_vary) session->follow(&log);
  session->record_contiguous(!repeats.takes_layout);

  std::vector<Node*> given;
  const auto run_program = [&](Session& target, Graph& graph, const std::vector<torch::Tensor>* stand_ins,
                               std::optional<bool> training = {}) {
    if (training) state->switch_mode(*root_, *training);
    internal::PlaceholderInputs inputs(target, graph, options_.names, examples, callable.parameters.size(), literals);
    if (!repeats.sizes.examples.empty()) inputs.take_examples(repeats.sizes.examples);
    if (stand_ins) inputs.replace_examples(*stand_ins);
    if (state) target.know_members([&](const torch::Tensor& tensor) { return state->had(tensor); });
    internal::RecordingScope recording(target);
    const Argument result = internal::run(callable, inputs);
    target.end_program();
    if (!target.refused().empty()) refuse_handled(target.refused());
    target.create_node(Op::output, "output", {result}, {}, "output");
    if (!stand_ins) given = inputs.given();
    return inputs.bound();
  };
  const auto answers_wrongly = [&] { return session->records_contiguous() && session->takes_layout(); };
  const auto registered = [&] { return state ? state->registered() : std::string(); };
  const auto run_first = [&]() -> std::vector<internal::BoundTensor> {
    try {
      return run_program(*session, trace.graph, nullptr);
    } catch (...) {
      if (const std::string what = registered(); !what.empty()) refuse_registration(what);
      if (state && !root_) internal::settle_kept_constants(*session);
      if (answers_wrongly() && has_examples) return {};
      if (repeats.sizes.examples.empty()) throw;
      repeats.sizes.refuse();  // the program does not run there
      return {};
    }
  };
  const internal::FixedRuns fixed_runs;
  const bool was_retraced = !repeats.sizes.examples.empty();
  const std::vector<internal::BoundTensor> inputs = run_first();
  session->follow(nullptr);
  if (const std::string what = registered(); !what.empty()) refuse_registration(what);
  if (was_retraced && repeats.sizes.is_refused) return std::nullopt;
  const std::vector<Node*> optional_inputs = given;
  const auto trace_by_layout = [&] {
    if (!has_examples) throw internal::unknown_shape(nullptr, "is_contiguous()");
    repeats.takes_layout = true;
  };
  if (answers_wrongly() && literals == internal::PlaceholderInputs::Literals::specialise) {
    trace_by_layout();
    return std::nullopt;
  }
  if (state && left_over.count() > 1) {
    const std::vector<internal::ProxyImpl*> elsewhere = state->proxies_elsewhere();
    const auto constants = state->constants(*session, elsewhere);
    if (root_ && constants.size() < elsewhere.size()) refuse_left_over(*root_, has_examples);
    if (!constants.empty() && repeats.constants++ < kMostConstants) {
      for (const auto& [proxy, value] : constants) proxy->become(value);
      return std::nullopt;
    }
  }
  std::optional<internal::SecondCallPlan> call_plan;
  bool keeps_something = false;
  if (state) {
    const auto run_again = [&](Session& target, Graph& graph) { run_program(target, graph, nullptr); };
    const auto is_free = [this](const std::string& path) { return is_free_attribute(path); };
    call_plan.emplace(internal::SecondCallPlan{trace.graph, *session, *state, run_again, is_free});
    const internal::SecondCallPlan& plan = *call_plan;
    keeps_something = root_ && options_.second_call && state->has_other_members();
    if (options_.second_call) updates = internal::compare_second_call(plan);
    state->restore();
    if (!internal::is_same_if_contiguous(plan)) {
      trace_by_layout();
      return std::nullopt;
    }
    for (const std::shared_ptr<Session>& each : left_over.sessions()) {
      if (root_ && each->has_proxies()) state->leave(*each);
    }
    if (root_ && (state->has_left() || left_over.count() > 1)) refuse_left_over(*root_, has_examples);
    if (root_ && options_.follow_mode && fixed_runs.reason().empty()) {
      mode_switch.emplace(internal::ModeSwitch::Plan{plan, *root_, run_program, inputs, updates, options_.second_call});
    }
    write_buffers(*session, updates);
    for (Node* node : optional_inputs) {
      if (!node->has_users()) internal::assert_given(trace.graph, *node);
    }
  }
  // The program may have asked for the sizes of what it does not compute with.
  std::unordered_set<const Node*> parts;
  for (const internal::BoundTensor& input : inputs) parts.insert(input.node);
  internal::erase_unused_getitems(trace.graph, parts);
  std::vector<internal::RaisedCall> calls;
  if (root_ && options_.raise_leaf_modules) {
    const auto is_leaf = [&](const torch::nn::Module& module, const std::string& path) {
      return is_leaf_module(module, path) && !repeats.sizes.not_leaves.contains(path);
    };
    internal::Raised raised = internal::raise_leaf_modules(trace.graph, *session, *root_, is_leaf);
    trace.modules = std::move(raised.modules);
    calls = std::move(raised.calls);
    if (may_vary) internal::note_raised(calls, log);
    internal::erase_unused_getitems(trace.graph, parts);
    internal::erase_unused_attributes(trace.graph);
  }
  if (mode_switch) trace.holds_for_mode = mode_switch->apply(trace.graph, *session, *root_, trace.modules);
  if (!fixed_runs.reason().empty()) {
    trace.holds_for_mode = fixed_runs.reason();
    if (!root_) trace.mode = fixed_runs.training();
  }
  const std::size_t size = trace.graph.size();
  if (may_vary && !inputs.empty()) {
    const auto run_sample = [&](Session& target, Graph& graph, const std::vector<torch::Tensor>& stand_ins) {
      if (state) state->restore();
      run_program(target, graph, &stand_ins);
      if (!updates.empty()) refuse_other_sizes(target, state->changes());
    };
    const auto is_free = [this](const std::string& path) { return is_free_attribute(path); };
    const auto leave = [&](Session& target) {
      if (root_ && state) return state->leave(target);
      internal::settle_kept_constants(target);
    };
    const internal::SampledProgram program{log, *session, run_sample, attributes, is_free, leave, calls};
    const auto at_found_sizes = [&](internal::SizeGroups& groups, const auto& agrees) {
      const auto call_at = [&](Session& target, Graph& graph, const auto& tensors) {
        run_program(target, graph, &tensors);
      };
      if (keeps_something)
        internal::compare_calls_at_sizes({*call_plan, call_at, updates, root_->name()}, program, inputs, groups);
      if (mode_switch && trace.holds_for_mode.empty())
        trace.holds_for_mode = mode_switch->difference_at_sizes(program, inputs, groups, agrees);
    };
    if (!internal::generalise(trace.graph, program, *session, inputs, options_.sizes, repeats.sizes, at_found_sizes)) {
      if (state) state->restore();
      return std::nullopt;
    }
  }
  mode_switch.reset();  // it has a session
  if (state && root_) {
    state->restore();
    if (state->has_left() || left_over.count() > 1) refuse_left_over(*root_, has_examples);
  }
  const bool has_grown = trace.graph.size() != size;
  internal::erase_unused_getitems(trace.graph);
  // FX never sees the operators inside a leaf: they leave no gaps in the numbers.
  if (!trace.modules.empty() || has_grown)
    name_in_order(trace.graph, [this](const Node& node) { return named_.contains(&node); });
  trace.attributes = used_attributes(*session, trace.graph);
  trace.shapes = session->shapes(trace.graph);
  return trace;
}

bool Tracer::is_free_attribute(const std::string& path) const {
  if (!root_) return true;
  return !root_->named_parameters(false).contains(path) && !root_->named_buffers(false).contains(path) &&
         !root_->named_children().contains(path);
}

Node& Tracer::create_node(Op op, Symbol target, ArgumentSpan args, KwargSpan kwargs, std::string_view name) {
  if (options_.check_mutable_operations && op == Op::call_function) refuse_writes(target, args);
  Node& node = graph_->create_node(op, target, args, kwargs, name);
  if (!name.empty()) named_.insert(&node);
  if (options_.record_stack_traces) node.meta().set(meta_key::kStackTrace, internal::stack_of_calls());
  return node;
}

bool Tracer::is_leaf_module(const torch::nn::Module& module, const std::string&) const {
  static constexpr std::string_view kNamespace = "torch::nn::";
  const std::string name = module.name();
  if (!name.starts_with(kNamespace)) return false;
  for (const char* container : {"Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"}) {
    if (name.find(container) != std::string::npos) return false;
  }
  return true;
}

std::string Tracer::path_of_module(const torch::nn::Module& module) const {
  if (root_) {
    if (root_.get() == &module) return "";
    for (const auto& item : root_->named_modules()) {
      if (item.value().get() == &module) return item.key();
    }
  }
  throw Error(ErrorKind::not_found, "path_of_module: the module of type " + module.name() +
                                        " is not registered below the root; register it with register_module");
}

}  // namespace fx
