#include <fxgraph/trace/attempt.h>

#include <algorithm>
#include <unordered_set>

#include <fxgraph/ir/naming.h>
#include <fxgraph/trace/cleanup.h>
#include <fxgraph/trace/dispatch.h>
#include <fxgraph/trace/input_assertions.h>
#include <fxgraph/trace/kept_values.h>
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

}  // namespace

Tracer::Attempt::OpenSession::OpenSession(std::shared_ptr<Session> session) : session_(std::move(session)) {}

Tracer::Attempt::OpenSession::~OpenSession() {
  session_->close();
  if (session_->has_proxies()) internal::become_values(*session_);
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
      running_(tracer, trace_.graph, callable.root) {
  trace_.root = root();
  if (!tracer.options_.more_examples.empty() && !may_vary_)
    throw Error(ErrorKind::invalid_argument,
                "more_examples are of other sizes: they need examples, and no Sizes::fixed beside them");
  if (literals != PlaceholderInputs::Literals::holes) {
    state_.emplace(root());
    for (const auto& [name, member] : tracer.options_.state) {
      for (auto& attribute : state_->watch(name, member)) attributes_.push_back(std::move(attribute));
    }
  }
  for (auto& attribute : tensors_of(root().get())) attributes_.push_back(std::move(attribute));
  for (const auto& [path, tensor] : attributes_) session_->add_attribute(path, tensor);
}

std::optional<Trace> Tracer::Attempt::run() {
  if (!call_first() || !call_again()) return std::nullopt;
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

bool Tracer::Attempt::call_again() {
  constexpr int kMostConstants = 8;  // that a program makes one after the other
  if (!state_) return true;
  const TraceOptions& options = tracer_.options_;
  call_plan_.emplace(internal::SecondCallPlan{
      trace_.graph, session_.shared(), *state_, [this](Session& session, Graph& graph) { run_program(session, graph); },
      [this](const std::string& path) { return tracer_.is_free_attribute(path); }, root() != nullptr,
      trace_.graph.id_bound()});
  const bool compares = options.second_call;
  internal::LaterCalls later =
      compares ? internal::compare_second_call(*call_plan_) : internal::end_of_only_call(*call_plan_);
  if (later.keeps_constants && repeats_.constants++ < kMostConstants) return false;
  updates_ = std::move(later.updates);
  if (root() && options.follow_mode && fixed_runs_.reason().empty()) {
    const auto run_in_mode = [this](Session& session, Graph& graph, const Tensors* stand_ins, bool training) {
      run_program(session, graph, stand_ins, training);
    };
    mode_switch_.emplace(internal::ModeSwitch::Plan{*call_plan_, *root(), run_in_mode, updates_, compares});
    if (compares && !may_vary_) internal::check_last_call(*call_plan_, updates_);
  }
  internal::make_literals_anew(trace_.graph, *session_);
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
    Tensors at;  // the inputs of the latest run
    const internal::ProbedProgram program{
        .log = log_,
        .session = *session_,
        .run =
            [&](Session& session, Graph& graph, const Tensors& tensors) {
              at = tensors;
              run_probe(session, graph, tensors);
            },
        .attributes = attributes_,
        .is_free_attribute = [this](const std::string& path) { return tracer_.is_free_attribute(path); },
        .leave = [&](Session& session) { leave(session, at); },
        .keeps_constants = [this] { return keeps_constants_; },
        .is_compared = tracer_.options_.second_call,
        .most_recordings = mode_switch_ ? std::uint64_t{12} : std::uint64_t{16},
        .raised = calls_,
        .updates = internal::probed_updates(log_, *session_, updates_)};
    const auto at_found_sizes = [&](internal::SizeGroups& groups, const auto& agrees) {
      if (mode_switch_ && trace_.holds_for_mode.empty())
        trace_.holds_for_mode = mode_switch_->difference_at_sizes(program, groups, agrees);
    };
    const internal::MoreExamples more =
        internal::tensors_of(tracer_.options_.more_examples, examples_, inputs_.tensors);
    const bool is_general = internal::generalise(trace_.graph, program, *session_, inputs_.tensors,
                                                 tracer_.options_.sizes, more, repeats_.sizes, at_found_sizes);
    if (state_) state_->restore();
    if (!is_general) return false;
  }
  mode_switch_.reset();  // it has a session
  // FX never sees the operators inside a leaf: they leave no gaps in the numbers.
  const bool has_gaps = !trace_.modules.empty() || trace_.graph.size() != size;
  internal::erase_unused_getitems(trace_.graph);
  if (has_gaps) name_in_order(trace_.graph, [this](const Node& node) { return tracer_.named_.contains(&node); });
  return true;
}

void Tracer::Attempt::run_probe(Session& session, Graph& graph, const Tensors& stand_ins) {
  if (std::exchange(keeps_others_, false)) internal::run_again(*call_plan_, updates_);
  if (state_) state_->restore();
  run_program(session, graph, &stand_ins);
}

bool Tracer::Attempt::are_examples(const Tensors& stand_ins) const {
  return std::equal(stand_ins.begin(), stand_ins.end(), inputs_.tensors.begin(), inputs_.tensors.end(),
                    [](const torch::Tensor& a, const BoundTensor& b) { return a.is_same(b.example); });
}

// What only a run at other sizes leaves behind stays traced: whoever reads it learns of it.
void Tracer::Attempt::leave(Session& session, const Tensors& stand_ins) {
  if (are_examples(stand_ins)) {
    internal::become_values(session);
  } else if (internal::become_constants(session)) {
    keeps_others_ = keeps_constants_ = true;
  }
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

}  // namespace fx
