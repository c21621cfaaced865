#include <fxgraph/trace/mode_switch.h>

#include <torch/nn/modules/dropout.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include <fxgraph/nn/module_tree.h>
#include <fxgraph/run/value.h>
#include <fxgraph/trace/same_calls.h>
#include <fxgraph/trace/tensor_memory.h>

namespace fx::internal {
namespace {

using torch::nn::Module;

std::shared_ptr<Module> set_mode(std::shared_ptr<Module> module, bool training) {
  set_own_mode(*module, training);
  return module;
}

template <typename Impl>
std::shared_ptr<Module> make(double p, bool inplace) {
  if constexpr (requires(torch::nn::DropoutOptions options) { Impl(options); }) {
    return std::make_shared<Impl>(torch::nn::DropoutOptions(p).inplace(inplace));
  } else {
    return std::make_shared<Impl>(p);
  }
}

// Operators whose flag says whether to drop, with the modules that call them.
struct DropoutRow {
  std::string_view target;
  bool inplace;
  std::int64_t rank;  // of the input; 0: any
  std::shared_ptr<Module> (*make)(double p, bool inplace);
};
constexpr std::array<DropoutRow, 9> kDropouts = {{
    {"aten::dropout", false, 0, make<torch::nn::DropoutImpl>},
    {"aten::dropout_", true, 0, make<torch::nn::DropoutImpl>},
    {"aten::alpha_dropout", false, 0, make<torch::nn::AlphaDropoutImpl>},
    {"aten::feature_alpha_dropout", false, 0, make<torch::nn::FeatureAlphaDropoutImpl>},
    {"aten::feature_dropout", false, 4, make<torch::nn::Dropout2dImpl>},
    {"aten::feature_dropout_", true, 4, make<torch::nn::Dropout2dImpl>},
    {"aten::feature_dropout", false, 5, make<torch::nn::Dropout3dImpl>},
    {"aten::feature_dropout_", true, 5, make<torch::nn::Dropout3dImpl>},
    {"aten::feature_dropout", false, 3, make<torch::nn::Dropout2dImpl>},
}};

const DropoutRow* row_for(Symbol target, const at::Tensor& input) {
  for (const DropoutRow& row : kDropouts) {
    if (target == row.target && (row.rank == 0 || (input.defined() && input.dim() == row.rank))) return &row;
  }
  return nullptr;
}

// The dropout modules of the root, to be called by their names where one has the probability.
class DropoutModules {
 public:
  explicit DropoutModules(const Module& root) {
    for (const auto& item : root.named_modules("", /*include_self=*/false))
      found_.push_back({item.key(), item.value()});
  }

  std::pair<std::string, std::shared_ptr<Module>> like(const std::shared_ptr<Module>& wanted) {
    const auto fits = [&](const Found& found) {
      const Module &one = *found.module, &other = *wanted;
      if (typeid(one) != typeid(other) || one.is_training() != other.is_training()) return false;
      std::ostringstream a, b;
      one.pretty_print(a);
      other.pretty_print(b);
      return a.str() == b.str();
    };
    Found* last = nullptr;
    for (Found& found : found_) {
      if (!fits(found)) continue;
      last = &found;
      if (!found.is_taken) break;
    }
    if (last) {
      last->is_taken = true;
      return {last->path, last->module};
    }
    std::string path;
    do {
      path = "_dropout" + std::to_string(next_++);
    } while (std::any_of(found_.begin(), found_.end(), [&](const Found& found) { return found.path == path; }));
    return {path, wanted};
  }

 private:
  struct Found {
    std::string path;
    std::shared_ptr<Module> module;
    bool is_taken = false;
  };
  std::vector<Found> found_;
  int next_ = 0;
};

// The argument that says whether the operator trains; nothing when it is none of those that ask.
std::optional<std::size_t> mode_argument(const Node& node) {
  if (!node.is(Op::call_function)) return std::nullopt;
  const bool norm = node.target() == "aten::batch_norm" && node.args().size() > 5 && !node.arg(3).is_none();
  const bool drops =
      node.args().size() == 3 && std::any_of(kDropouts.begin(), kDropouts.end(),
                                             [&](const DropoutRow& row) { return node.target() == row.target; });
  const std::size_t argument = norm ? 5 : 2;
  return (norm || drops) && node.arg(argument).is_bool() ? std::optional(argument) : std::nullopt;
}

// Numbers and tensors of a run that are others than at the examples, by the nodes of the trace that made them.
struct Others {
  std::map<std::pair<std::uint32_t, std::uint32_t>, Argument> numbers;
  std::map<std::uint32_t, at::Tensor> constants;

  template <typename IdOf>
  Others(const Probe& run, const IdOf& id_of) {
    for (const Probe::Change& change : run.changes()) {
      if (const auto id = id_of(change.call)) numbers.emplace(std::pair(*id, change.leaf), change.value);
    }
    for (const Probe::ChangedConstant& each : run.changed_constants()) {
      if (const auto id = id_of(each.call)) constants.emplace(*id, each.value);
    }
  }
  bool operator==(const Others& other) const {
    return numbers == other.numbers && std::ranges::equal(constants, other.constants, [](const auto& a, const auto& b) {
             return a.first == b.first && same_data(a.second, b.second);
           });
  }
};

const char* mode_name(bool training) { return training ? "train() mode" : "eval() mode"; }

}  // namespace

InMode::InMode(const SecondCallPlan& base, const RunInMode& run, bool training)
    : run_(run), training_(training), plan_(base) {
  plan_.run = [run, training](Session& session, Graph& graph) { run(session, graph, nullptr, training); };
}

bool InMode::run(bool second_call) {
  constexpr int kMostCalls = 8;  // of a program that keeps one thing after the other
  for (int i = 0; i < kMostCalls && call_once(second_call); ++i) {
  }
  return error_.empty();
}

// True when the program keeps what it has made, and is to be called again for what it does with it.
bool InMode::call_once(bool second_call) {
  plan_.state.restore();
  call_.emplace(plan_);
  log_ = TraceLog();
  call_->session->follow(&log_);
  LaterCalls later;
  try {
    call_->run();
    call_->session->follow(nullptr);
    const SecondCallPlan own{call_->graph,    call_->session,         plan_.state, plan_.run, plan_.is_free_attribute,
                             plan_.is_module, call_->graph.id_bound()};
    later = second_call ? compare_second_call(own) : end_of_only_call(own);
  } catch (const std::exception& error) {
    error_ = first_line(error);
  }
  call_->session->follow(nullptr);
  call_->end();
  plan_.state.restore();
  updates_ = std::move(later.updates);
  return later.keeps_constants;
}

void InMode::run_in(Session& session, Graph& graph, const std::vector<at::Tensor>& stand_ins) const {
  plan_.state.restore();
  run_(session, graph, &stand_ins, training_);
}

// ── The switch ────────────────────────────────────────────────────────────────────────────────────────────────────

// One that has another mode than the root, or gets it when the root is given its own again: `train` is the program's.
void ModeSwitch::find_other_modes(const Plan& plan) {
  const auto find = [&] {
    for (const auto& item : plan.root.named_modules("", /*include_self=*/false)) {
      if (other_path_.empty() && item.value()->is_training() != training_) other_path_ = item.key();
    }
  };
  find();
  plan.root.train(training_);
  find();
  plan.call.state.restore();
}

ModeSwitch::ModeSwitch(const Plan& plan) : training_(plan.root.is_training()) {
  find_other_modes(plan);
  if (!other_path_.empty()) return;
  other_ = std::make_unique<InMode>(plan.call, plan.run, !training_);
  if (other_->run(plan.second_call)) {
    compare(plan);
  } else {
    difference_ = "cannot be traced: " + other_->error();
    const bool is_of_statistics = difference_.find("Expected more than 1 ") != std::string::npos;
    if (is_of_statistics) difference_ += "; a larger example shows what it does there";
  }
}

void ModeSwitch::compare(const Plan& plan) {
  const Graph& graph = plan.call.graph;
  SameProgram comparison(graph, *plan.call.session, other_->graph(), other_->session(), {},
                         replaced_buffers(other_->session(), other_->graph(), other_->updates()));
  comparison.allow_other_mode();
  if (const std::optional<std::string> difference = comparison.find_difference())
    difference_ = "does something else: " + *difference;
  updates_others_ = !comparison.replaces_the_same(plan.updates);
  for (const OtherFlag& flag : comparison.other_flags())
    flags_.push_back({flag.node->id(), flag.argument, flag.node->target()});
  for (const Node* node : comparison.other_writes()) writes_.emplace_back(node->id(), node->target().str());
  for (const auto& [node, path] : comparison.added_writes()) added_.push_back(path);
  for (std::uint32_t i = 0; i < other_->log().size(); ++i) {
    const Node* image = comparison.image_of(*other_->log()[i].node);
    ids_.push_back(image ? std::optional(image->id()) : std::nullopt);
  }
  find_frozen(graph, comparison);
}

// Flags that are as in training where they are not, or the other way round, and stay so. To a call whose result nobody
// takes no comparison comes.
void ModeSwitch::find_frozen(const Graph& graph, const SameProgram& comparison) {
  NodeMap<bool> is_image(graph, false);
  for (const Node& node : other_->graph().nodes()) {
    if (const Node* image = comparison.image_of(node)) is_image[*image] = true;
  }
  for (const Node& node : graph.nodes()) {
    const std::optional<std::size_t> argument = mode_argument(node);
    if (!argument) continue;
    if (!is_image[node] && difference_.empty())
      difference_ = "may do something else with " + node.target().str() + ", whose result it does not use";
    const bool follows = std::ranges::any_of(flags_, [&](const Flag& flag) { return flag.node == node.id(); });
    if (!follows && node.arg(*argument).as_bool() == training_)
      frozen_.push_back({node.id(), *argument, node.target()});
  }
}

std::string ModeSwitch::here() const {
  return std::string("it was traced in ") + mode_name(training_) + ", and in the other mode ";
}

std::string ModeSwitch::apply(Graph& graph, Session& session, const Module& root, Modules& modules) const {
  const std::string here = this->here();
  if (!other_path_.empty())
    return std::string("it was traced in ") + mode_name(training_) + ", in which " + other_path_ +
           " has the other mode";
  if (!difference_.empty()) return here + "the program " + difference_;
  const auto in_module = [&](const std::string& path) {
    return std::any_of(modules.begin(), modules.end(),
                       [&](const auto& module) { return path.starts_with(module.first + "."); });
  };
  const auto still_there = [&](std::uint32_t id, Symbol target) -> Node* {
    Node* node = graph.node_by_id(id);
    return node && node->is(Op::call_function) && node->target() == target ? node : nullptr;
  };
  // What both write has been left out.
  const bool writes = std::any_of(writes_.begin(), writes_.end(),
                                  [&](const auto& write) { return still_there(write.first, Symbol(write.second)); });
  if (writes || updates_others_ || !std::all_of(added_.begin(), added_.end(), in_module))
    return here + "the program writes other parameters or buffers";
  // The module that was raised from it will do what the program never lets it do.
  for (const Flag& flag : frozen_) {
    if (!still_there(flag.node, flag.target))
      return here + "a module that it calls stays in its own mode (" + flag.target.str() + ")";
  }
  DropoutModules dropouts(root);
  for (const Flag& flag : flags_) {
    Node* node = still_there(flag.node, flag.target);
    if (!node) continue;
    const DropoutRow* row = row_for(flag.target, session.value_of(*node));
    if (!row || flag.argument != 2 || node->args().size() != 3 || !(node->arg(1).is_float() || node->arg(1).is_int()))
      return here + "%" + node->name() + " (" + flag.target.str() + ") gets another flag";
    if (node->arg(2).as_bool() != training_)
      return here + "%" + node->name() + " (" + flag.target.str() + ") does not get the flag of that mode";
    const double p = node->arg(1).is_int() ? static_cast<double>(node->arg(1).as_int()) : node->arg(1).as_float();
    const auto [path, module] = dropouts.like(set_mode(row->make(p, row->inplace), node->arg(2).as_bool()));
    const auto at = graph.inserting_before(*node);
    Node& call = graph.call_module(path, {node->arg(0)});
    session.copy_value(*node, call);
    node->replace_all_uses_with(call);
    graph.erase_node(*node);
    if (std::none_of(modules.begin(), modules.end(), [&](const auto& known) { return known.first == path; }))
      modules.emplace_back(path, module);
  }
  return {};
}

// ── Other sizes ───────────────────────────────────────────────────────────────────────────────────────────────────

// A program that does the same in both modes at the sizes of the examples need not do so at others (`if (is_training()
// && x.size(1) > 64) …`). Both modes are run once more, at the same other sizes; each must do what it does at those of
// the examples, with the same numbers as the other.
std::string ModeSwitch::difference_at_sizes(const ProbedProgram& program, const SizeGroups& groups,
                                            const std::function<bool(const Probe&)>& agrees) const {
  if (!other_ || !other_->log().asks_rank()) return {};
  const auto run = [this](Session& session, Graph& graph, const std::vector<at::Tensor>& stand_ins) {
    other_->run_in(session, graph, stand_ins);
  };
  const ProbedProgram other{.log = other_->log(),
                            .session = other_->session(),
                            .run = run,
                            .attributes = program.attributes,
                            .is_free_attribute = program.is_free_attribute,
                            .leave = program.leave,
                            .keeps_constants = program.keeps_constants,
                            .is_compared = program.is_compared,
                            .most_recordings = program.most_recordings,
                            .raised = program.raised,
                            .updates = probed_updates(other_->log(), other_->session(), other_->updates())};
  // Of calls that both modes make and the graph still has.
  using Id = std::optional<std::uint32_t>;
  const auto kept = [&](Id id) { return id && !program.log[program.log.index_of(*id)].node->is_erased() ? id : Id(); };
  const auto id_of_theirs = [&](std::uint32_t call) { return kept(ids_[call]); };
  const std::set<Id> shared(ids_.begin(), ids_.end());
  const auto id_of_own = [&](std::uint32_t call) {
    const Id id = program.log[call].node->id();
    return shared.contains(id) ? kept(id) : Id();
  };
  const std::vector<at::Tensor> stand_ins = groups.stand_ins(groups.with_derived(groups.choose(groups.free(), 0)));
  Probe own(program), theirs(other);
  if (!own.run(stand_ins) || !agrees(own)) return {};  // there is nothing to compare
  std::string difference;
  if (theirs.run(stand_ins)) {
    if (Others(own, id_of_own) == Others(theirs, id_of_theirs)) return {};
    difference = "a number that the program computes of it is another one";
  } else {
    difference = other.log.describe(theirs.failed_at()) + ": " + theirs.why();
    if (const std::string where = theirs.where(); !where.empty()) difference += " (" + where + ")";
  }
  return here() + "the program does something else at other sizes: " + difference;
}

}  // namespace fx::internal
