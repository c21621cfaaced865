#include <fxgraph/rewriter/rules/measured_rules.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <unordered_map>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/matchers/matcher.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/rewriter/program/replace_pattern.h>
#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/rewriter/rules/operator_of.h>
#include <fxgraph/rewriter/rules/packed_calls.h>
#include <fxgraph/rewriter/rules/packed_rules.h>
#include <fxgraph/rewriter/rules/weights.h>
#include <fxgraph/run/plan.h>
#include <fxgraph/run/value.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/text/print.h>

namespace fx::rules {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kWorthwhile = 0.98;  // of the time of what is there
// Where neighbours keep channels last, what stays costs reorders on both sides, which its own time does not show.
constexpr double kWorthwhileInIsland = 1.1;
constexpr std::size_t kLeastRounds = 7, kMostRounds = 15;
constexpr std::chrono::seconds kBudget{4};
constexpr double kTolerance = 1e-3, kToleranceOfBfloat16 = 5e-2;  // of a place alone: wrong results are off by far more

double least_of(const std::vector<double>& seconds) { return *std::ranges::min_element(seconds); }

/// One way to compute a place.
struct Candidate {
  std::string rule;  ///< empty: as it is
  std::shared_ptr<GraphModule> program;
  std::shared_ptr<const Plan> plan{};
  std::vector<double> seconds{};

  Measured measured() const {
    std::vector<double> sorted = seconds;
    std::ranges::sort(sorted);
    const auto at = [&](double share) { return sorted[static_cast<std::size_t>(share * double(sorted.size() - 1))]; };
    return {rule.empty() ? "unchanged" : rule, at(0.25), at(0.75) - at(0.25)};
  }

  /// What decides: others on the machine make a run longer, never shorter.
  double least() const { return least_of(seconds); }
  bool is_xnnpack() const { return is_for_xnnpack(rule); }
};

/// Places that compute the same on the same shapes.
struct Kind {
  std::vector<TensorInfo> inputs;
  std::vector<c10::IValue> values;
  std::vector<Candidate> candidates;
  std::size_t places = 0;
  std::string what;
  std::size_t fastest = 0;          ///< candidate
  std::size_t choice = 0;           ///< in the result
  std::vector<Kind*> from{};        ///< for each place, who computes what enters it; null when that is no place
  std::vector<double> hand_over{};  ///< seconds: what enters is copied to where XNNPACK looks for it

  bool has_choice() const { return candidates.size() > 1; }
};

/// How the activations that enter a place lie in memory when it is measured.
enum class Layout : std::uint8_t { as_known, channels_last };

class FastestRules {
 public:
  FastestRules(RuleContext& program, Layout layout)
      : program_(program),
        rules_(program.concurrent ? without_xnnpack(program.rule.rules()) : for_these_threads(program.rule.rules())),
        layout_(layout),
        written_(program.module) {}

  PassResult run() {
    const at::NoGradGuard no_grad;
    if (layout_ == Layout::channels_last) {
      if (const Node* write = written_if_strides_say_so(program_.module.graph(), written_)) {
        refuse(*write, "the program writes to what may be a view, depending on strides, which packed kernels change");
        return std::move(result_);
      }
    }
    find_places();
    for (auto& [key, kind] : kinds_) prepare(kind);
    measure();
    decide();
    apply();
    return std::move(result_);
  }

 private:
  struct Place {
    std::vector<Node*> nodes;
    std::string key{};
  };

  // ── Where rules fit ────────────────────────────────────────────────────────────────────────────────────────────────

  void find_places() {
    for (const Rule& rule : rules_) {
      for (const Match& match : find(program_.module.graph(), rule.pattern,
                                     {.overlap = Overlap::all, .shapes = &program_.values.example()})) {
        if (std::string reason = obstacle(rule, match); !reason.empty()) {
          refuse(*match.nodes().front(), reason);
          continue;
        }
        Place& place = places_[match.nodes().front()->id()];
        if (place.nodes.size() < match.nodes().size()) place.nodes.assign(match.nodes().begin(), match.nodes().end());
      }
    }
    for (auto& [id, place] : places_) describe(place);
    std::unordered_map<const Node*, Kind*> kinds;  // look-up only
    for (const auto& [id, place] : places_) {
      const auto kind = kinds_.find(place.key);
      if (kind == kinds_.end()) continue;
      const Call call = call_of(*place.nodes.front());
      const Node* input = call.args().empty() ? nullptr : call.args()[0].node_or_null();
      kind->second.from.push_back(input ? producer_of(*input, kinds) : nullptr);
      for (const Node* node : place.nodes) kinds[node] = &kind->second;
    }
  }

  /// Whose memory the value lies in: what computes element by element writes over it.
  static Kind* producer_of(const Node& value, const std::unordered_map<const Node*, Kind*>& kinds) {
    constexpr int kMost = 16;
    const Node* at = &value;
    for (int steps = 0; at && steps < kMost; ++steps) {
      if (const auto found = kinds.find(at); found != kinds.end()) return found->second;
      const Call call = call_of(*at);
      if (!call || !call.schema().traits.pointwise || at->all_input_nodes().size() != 1 || at->num_users() != 1)
        return nullptr;
      at = at->all_input_nodes()[0];
    }
    return nullptr;
  }

  void refuse(const Node& node, const std::string& reason) {
    for (const Refusal& known : result_.refused) {
      if (known.node == node.name() && known.reason == reason) return;
    }
    if (reason != "-") result_.refused.push_back({{}, node.name(), reason});
  }

  /// "-" for a plain no.
  std::string obstacle(const Rule& rule, const Match& match) const {
    const Decision decision = rule.when ? rule.when(match) : Decision(true);
    if (!decision) return decision.reason().empty() ? "-" : decision.reason();
    std::string reason;
    for (const auto& [name, value] : match.bindings()) {
      if (name == "x" || name == "other" || name == "state") continue;
      for_each_node(value, [&](const Node& node) {
        if (match.contains(node)) return;
        if (!node.is(Op::get_attr))
          reason = "its weight is computed, not an attribute";
        else if (!written_.not_constant(node.target().str()).empty())
          reason = "the program writes to its weight";
      });
    }
    return reason;
  }

  // ── The place as a program ─────────────────────────────────────────────────────────────────────────────────────────

  /// Equal places give equal keys: names are by position.
  void describe(Place& place) {
    Graph small;
    std::vector<TensorInfo> inputs;
    GraphModule::Attributes attributes;
    std::unordered_map<const Node*, Node*> copies;  // look-up only
    std::string tensors;
    Node* last = nullptr;  // placeholder
    for (Node* node : place.nodes) {
      node->for_each_input([&](const Node& input) {
        if (copies.count(&input)) return;
        const TensorInfo* info = program_.values.example(input);
        if (input.is(Op::get_attr)) {
          const std::string path = "w" + std::to_string(attributes.size());
          const at::Tensor tensor = program_.module.attribute(path_of(input)).detach();
          attributes.emplace_back(path, tensor);
          copies[&input] = &small.get_attr(path);
          tensors += to_string(tensor_info(tensor)) + ";";
        } else if (info) {
          const auto at = last ? small.inserting_after(*last) : small.inserting_before();  // before all else
          copies[&input] = last = &small.placeholder("x" + std::to_string(inputs.size()));
          inputs.push_back(*info);
          tensors += to_string(*info) + ";";
        }
      });
      for (const Node* input : node->all_input_nodes()) {
        if (!copies.count(input)) return;  // a value without a known shape: not measured, and so not rewritten
      }
      copies[node] = &copy(small, *node, copies);
    }
    if (inputs.empty()) return;
    small.output(*copies[place.nodes.back()]);
    place.key = tensors + print_graph(small);
    Kind& kind = kinds_[place.key];
    if (kind.places++ > 0) return;
    kind.what = place.nodes.front()->name() + " " + to_string(inputs[0]);
    kind.inputs = std::move(inputs);
    kind.candidates.push_back({"", std::make_shared<GraphModule>(attributes, std::move(small))});
  }

  static Node& copy(Graph& small, const Node& node, const std::unordered_map<const Node*, Node*>& copies) {
    const auto map = [&](Node& input) { return Argument(*copies.at(&input)); };
    std::vector<Argument> args;
    std::vector<NamedArgument> kwargs;
    for (const Argument& arg : node.args()) args.push_back(map_nodes(arg, map));
    for (const auto& [name, value] : node.kwargs()) kwargs.push_back({name, map_nodes(value, map)});
    return small.create_node(node.op(), node.target(), args, kwargs, "v");
  }

  // ── Candidates ─────────────────────────────────────────────────────────────────────────────────────────────────────

  void prepare(Kind& kind) {
    for (const TensorInfo& info : kind.inputs) {
      at::Tensor value = at::randn(info.sizes, at::kFloat).to(zeros_like_info(info).options());
      if (layout_ == Layout::channels_last && value.dim() == 4)
        value = as_in_island(value.contiguous(at::MemoryFormat::ChannelsLast));
      kind.values.emplace_back(std::move(value));
    }
    GraphModule& original = *kind.candidates[0].program;
    Shapes shapes = propagate_shapes(original, kind.values);
    const c10::IValue expected = original.run(kind.values);
    for (const Rule& rule : rules_) {
      Candidate candidate{rule.name, original.clone_graph_module()};
      Shapes known = shapes;
      try {
        if (!rewrite_once(*candidate.program, RuleSet{{rule}}, {.shapes = &known}).changed()) continue;
        drop_reorders(*candidate.program);
        prepare_weights(*candidate.program);
        candidate.program->graph().lint();
        if (!(relative_difference(expected, candidate.program->run(kind.values)) <= tolerance(rule, kind))) {
          result_.refused.push_back({rule.name, kind.what, "its result differs here"});
          continue;
        }
      } catch (const std::exception& error) {
        result_.refused.push_back({rule.name, kind.what, std::string("it fails here: ") + first_line(error)});
        continue;
      }
      kind.candidates.push_back(std::move(candidate));
    }
    for (Candidate& candidate : kind.candidates) {
      ValueFacts known(propagate_shapes(*candidate.program, kind.values));
      RuleContext context{*candidate.program, program_.rule, known};
      write_in_place(context);
      candidate.plan = candidate.program->plan();
    }
  }

  static double tolerance(const Rule& rule, const Kind& kind) {
    const bool is_rounded = std::ranges::count(kind.inputs, DType::bfloat16, &TensorInfo::dtype) > 0;
    return is_rounded || rule.promise == Promise::lower_precision ? kToleranceOfBfloat16 : kTolerance;
  }

  /// As `channels-last` will: in the program they move on.
  void drop_reorders(GraphModule& module) const {
    Rewriter rewriter(module.graph());
    drop_own_strides(module, rewriter, true);
    if (layout_ != Layout::channels_last) return;
    std::vector<Node*> reorders;
    for (Node& node : module.graph().nodes()) {
      if (is_plain_contiguous(node)) reorders.push_back(&node);
    }
    for (Node* reorder : reorders) {
      rewriter.replace_all_uses_with(*reorder, *call_of(*reorder).argument("self"));
      rewriter.erase_node(*reorder);
    }
  }

  // ── Measuring ──────────────────────────────────────────────────────────────────────────────────────────────────────

  void measure() {
    const Clock::time_point start = Clock::now();
    for (std::size_t round = 0; round < kMostRounds; ++round) {
      if (round >= kLeastRounds && Clock::now() - start > kBudget) break;
      for (auto& [key, kind] : kinds_) {
        if (!kind.has_choice()) continue;
        for (std::size_t i = 0; i < kind.candidates.size(); ++i) run(kind, (i + round) % kind.candidates.size());
        if (layout_ != Layout::channels_last) continue;
        const Clock::time_point before = Clock::now();
        const at::Tensor copied = as_in_island(kind.values[0].toTensor());
        kind.hand_over.push_back(std::chrono::duration<double>(Clock::now() - before).count());
      }
    }
  }

  static void run(Kind& kind, std::size_t i) {
    Candidate& candidate = kind.candidates[i];
    std::vector<c10::IValue> inputs = kind.values;
    const Clock::time_point start = Clock::now();
    const c10::IValue result = candidate.plan->run(*candidate.program, std::move(inputs));
    candidate.seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }

  void decide() {
    // What neighbours cost each other follows from their choices, and those from it: once more, and it hardly changes.
    for (int sweep = 0; sweep < 3; ++sweep) {
      for (auto& [key, kind] : kinds_) {
        if (kind.has_choice()) kind.fastest = fastest(kind, sweep > 0);
      }
    }
    for (auto& [key, kind] : kinds_) {
      if (!kind.has_choice()) continue;
      Choice choice{kind.what, kind.places, {}, kind.fastest};
      for (const Candidate& candidate : kind.candidates) choice.measured.push_back(candidate.measured());
      kind.choice = result_.choices.size();
      result_.choices.push_back(std::move(choice));
    }
  }

  std::size_t fastest(const Kind& kind, bool with_neighbours) const {
    const auto cost = [&](std::size_t i) {
      const double neighbours = with_neighbours ? handed_over(kind, kind.candidates[i].is_xnnpack()) : 0;
      return kind.candidates[i].least() + neighbours / static_cast<double>(kind.places);
    };
    std::size_t found = 0;
    double best = cost(0) * (layout_ == Layout::channels_last ? kWorthwhileInIsland : kWorthwhile);
    for (std::size_t i = 1; i < kind.candidates.size(); ++i) {
      if (cost(i) >= best) continue;
      best = cost(i), found = i;
    }
    return found;
  }

  /// Seconds that go into copies before XNNPACK's operators, in the places of `kind` and behind them.
  double handed_over(const Kind& kind, bool is_xnnpack) const {
    if (layout_ != Layout::channels_last) return 0;
    const auto chose_xnnpack = [](const Kind& one) { return one.candidates[one.fastest].is_xnnpack(); };
    double seconds = 0;
    for (const Kind* from : kind.from) {
      if (is_xnnpack && from != &kind && !(from && chose_xnnpack(*from))) seconds += least_of(kind.hand_over);
    }
    for (const auto& [key, other] : kinds_) {
      if (is_xnnpack || !other.has_choice() || &other == &kind || !chose_xnnpack(other)) continue;
      seconds += static_cast<double>(std::ranges::count(other.from, &kind)) * least_of(other.hand_over);
    }
    return seconds;
  }

  // ── Rewriting ──────────────────────────────────────────────────────────────────────────────────────────────────────

  void apply() {
    std::unordered_map<const Node*, std::string> chosen;  // look-up only
    for (const auto& [id, place] : places_) {
      const auto kind = kinds_.find(place.key);
      if (kind != kinds_.end() && kind->second.fastest > 0)
        chosen[place.nodes.front()] = kind->second.candidates[kind->second.fastest].rule;
    }
    if (chosen.empty()) return;
    RuleSet set;
    for (const Rule& rule : rules_) {
      Rule here = rule;
      here.when = [&chosen, &rule](const Match& match) -> Decision {
        const auto found = chosen.find(match.nodes().front());
        if (found == chosen.end() || found->second != rule.name) return false;
        return rule.when ? rule.when(match) : Decision(true);
      };
      set.add(std::move(here));
    }
    const RewriteReport done = rewrite_once(program_.module, set, program_.values.driver_by_example());
    result_.applied = done.applied;
    for (const auto& [id, place] : places_) {
      if (!chosen.count(place.nodes.front()) || place.nodes.front()->is_erased()) continue;
      Choice& refused = result_.choices[kinds_.at(place.key).choice];
      if (--refused.places == 0) refused.fastest = 0;
    }
    for (const Refusal& refusal : done.refused) result_.refused.push_back(refusal);
    prepare_weights(program_.module);
  }

  RuleContext& program_;
  std::vector<Rule> rules_;
  Layout layout_;
  mutable ProgramEffects written_;         // remembers its answers
  std::map<std::uint32_t, Place> places_;  // by the id of the first node
  std::map<std::string, Kind> kinds_;
  PassResult result_;
};

}  // namespace

PassResult apply_fastest(RuleContext& program) { return FastestRules(program, Layout::as_known).run(); }

PassResult apply_fastest_to_images(RuleContext& program) { return FastestRules(program, Layout::channels_last).run(); }

}  // namespace fx::rules
