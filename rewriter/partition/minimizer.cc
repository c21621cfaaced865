#include <fxgraph/rewriter/partition/minimizer.h>

#include <algorithm>
#include <utility>

#include <fxgraph/ir/subgraph.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/rewriter/partition/course.h>
#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

std::string first_and_last(const std::vector<Node*>& nodes) {
  std::string text = "%" + nodes.front()->name();
  if (nodes.size() > 1) text += " … %" + nodes.back()->name() + " (" + std::to_string(nodes.size()) + " nodes)";
  return text;
}

constexpr double kLeastScale = 1e-6;

}  // namespace

/// A part of the program that the first way has run, and what the second starts from.
struct Minimizer::Trial {
  std::vector<Node*> nodes;
  std::size_t unit = 0;  // that it begins with
  std::vector<Node*> inputs, outputs;
  Written::Places places;
  c10::IValue result;
  std::vector<c10::IValue> given_a, given_b;  // as the ways leave them
  std::shared_ptr<GraphModule> part_a, part_b;
};

Minimizer::Minimizer(GraphModule& module, std::vector<c10::IValue> inputs, MinimizerFunctions functions)
    : module_(module),
      functions_(std::move(functions)),
      modules_(module_info(module)),
      effects_(module.graph(), {.modules = modules_}),
      written_(std::make_unique<Written>(module, effects_, modules_)),
      unit_of_(module.graph(), 0) {
  if (!functions_.run_b) throw Error(ErrorKind::invalid_argument, "Minimizer: run_b says what to compare with");
  if (!functions_.run_a) {
    functions_.run_a = [](GraphModule& part, std::vector<c10::IValue> values) { return part.run(std::move(values)); };
  }
  if (!functions_.compare) {
    functions_.compare = [](const c10::IValue& a, const c10::IValue& b) {
      return relative_difference(a, b, kLeastScale);
    };
  }
  find_units();
  first_ = std::make_unique<Course>(module, inputs, units_, effects_, *written_);
}

Minimizer::~Minimizer() = default;

// What lies between the first value in a storage that is written and the last write to it goes together.
void Minimizer::find_units() {
  std::vector<Node*> calls;
  NodeMap<std::size_t> place(module_.graph(), 0);
  for (Node& node : module_.graph().nodes()) {
    if (!node.is_callable()) continue;
    place[node] = calls.size();
    calls.push_back(&node);
  }
  std::vector<std::size_t> reach(calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) reach[i] = i;
  for (Effects::Set set = 0; set < effects_.num_sets(); ++set) {
    if (effects_.writers(set).empty()) continue;
    const std::size_t last = place[*effects_.writers(set).back()];
    std::size_t first = place[*effects_.writers(set).front()];
    for (const Node* member : effects_.members(set)) {
      if (member->is_callable()) first = std::min(first, place[*member]);
    }
    reach[first] = std::max(reach[first], last);
  }
  for (std::size_t i = 0; i < calls.size();) {
    std::size_t end = reach[i];
    for (std::size_t j = i; j <= end; ++j) end = std::max(end, reach[j]);
    for (std::size_t j = i; j <= end; ++j) unit_of_[*calls[j]] = units_.size();
    units_.emplace_back(calls.begin() + static_cast<std::ptrdiff_t>(i),
                        calls.begin() + static_cast<std::ptrdiff_t>(end + 1));
    i = end + 1;
  }
  const OrderEdges order = effects_.order_edges();
  before_.resize(units_.size());
  for (std::size_t i = 0; i < units_.size(); ++i) {
    const auto add = [&](const Node& node) {
      if (node.is_callable() && unit_of_[node] != i) before_[i].push_back(unit_of_[node]);
    };
    for (const Node* node : units_[i]) {
      node->for_each_input(add);
      for (const Node* earlier : order.before(*node)) add(*earlier);
    }
    std::ranges::sort(before_[i]);
    before_[i].erase(std::ranges::unique(before_[i]).begin(), before_[i].end());
  }
}

// ── Running a part ───────────────────────────────────────────────────────────────────────────────────────────────────

Minimizer::Trial Minimizer::first_way(const std::vector<Node*>& nodes, Course& second) const {
  Subgraph piece = extract_subgraph(module_.graph(), nodes);
  Trial trial{nodes, units_.size(), piece.inputs, piece.outputs, written_->of(nodes), {}, {}, {}, nullptr, nullptr};
  for (const Node* node : nodes) trial.unit = std::min(trial.unit, unit_of_[*node]);
  for (const Node* input : trial.inputs) {
    trial.given_a.push_back(first_->value(*input, trial.unit));
    trial.given_b.push_back(second.value(*input, trial.unit));
  }
  const GraphModule part(module_, std::move(piece.graph), "Part");
  trial.part_a = part.clone_graph_module();
  trial.part_b = part.clone_graph_module();
  first_->set_state(*trial.part_a, trial.unit);
  second.set_state(*trial.part_b, trial.unit);
  first_->set_generator(trial.unit);
  try {
    trial.result = functions_.run_a(*trial.part_a, trial.given_a);
  } catch (const std::exception& error) {
    throw Error(ErrorKind::execution,
                "Minimizer: the first way fails on " + first_and_last(nodes) + ": " + error.what(),
                nodes.front()->name());
  }
  return trial;
}

/// `second` has afterwards what this leaves.
c10::IValue Minimizer::second_way(const Trial& trial, const MinimizerFunctions::Run& run, Course& second) const {
  first_->set_generator(trial.unit);
  c10::IValue result = run(*trial.part_b, trial.given_b);
  const std::size_t next = unit_of_[*trial.nodes.back()] + 1, results = trial.outputs.size();
  const bool is_whole = results == 1 || (result.isTuple() && result.toTupleRef().elements().size() == results);
  for (std::size_t i = 0; i < results && is_whole; ++i)
    second.note(*trial.outputs[i], copy_as_it_lies(results == 1 ? result : result.toTupleRef().elements()[i]));
  for (std::size_t i = 0; i < trial.inputs.size(); ++i) {
    if (trial.places.inputs.contains(trial.inputs[i]->id()))
      second.note_input(trial.inputs[i]->id(), next, copy_as_it_lies(trial.given_b[i]));
  }
  for (const std::string& path : trial.places.paths) {
    const at::Tensor left = trial.part_b->find_attribute(path);
    if (left.defined()) second.note_state(path, next, left.detach().clone());
  }
  return result;
}

double Minimizer::difference(const Trial& trial, const c10::IValue& result) const {
  double worst = functions_.compare(trial.result, result);
  const auto add = [&](const c10::IValue& a, const c10::IValue& b) {
    const double left = relative_difference(a, b, kLeastScale);
    if (!(left <= worst)) worst = left;
  };
  for (std::size_t i = 0; i < trial.inputs.size(); ++i) {
    if (trial.places.inputs.contains(trial.inputs[i]->id())) add(trial.given_a[i], trial.given_b[i]);
  }
  for (const std::string& path : trial.places.paths) {
    if (trial.part_a->find_attribute(path).defined())
      add(trial.part_a->find_attribute(path), trial.part_b->find_attribute(path));
  }
  return worst;
}

double Minimizer::compare(const std::vector<Node*>& nodes) {
  const SameGenerator same;
  Course second(first_.get());
  const Trial trial = first_way(nodes, second);
  return difference(trial, second_way(trial, functions_.run_b, second));
}

bool Minimizer::differs_here(const std::vector<Node*>& nodes, Course& second) {
  const Trial trial = first_way(nodes, second);
  c10::IValue result;
  try {
    result = second_way(trial, functions_.run_b, second);
  } catch (const std::exception& error) {
    report_ += std::string("fails: ") + error.what() + "\n";
    return true;
  }
  const double found = difference(trial, result);
  if (found <= functions_.tolerance) {
    report_ += std::to_string(found) + "\n";
    return false;
  }
  report_ += std::to_string(found) + ", a mismatch\n";
  return true;
}

// Where units are left out in the middle, the parts between them run one after the other, each on what the one before
// has left.
bool Minimizer::differs(const Part& part, const char* what) {
  const std::vector<Node*> all = nodes_of(part);
  if (all.empty()) return false;
  const SameGenerator same;
  const std::size_t last = unit_of_[*all.back()];
  Course apart(first_.get());
  Course& second = options_.accumulate_error ? *second_ : apart;
  std::vector<Node*> piece;
  const auto piece_differs = [&] {
    if (piece.empty()) return false;
    report_ += std::string(what) + " " + first_and_last(piece) + ": ";
    return differs_here(std::exchange(piece, {}), second);
  };
  for (const std::size_t unit : part) {
    if (unit > last) break;
    if (!skipped_[unit]) {
      piece.insert(piece.end(), units_[unit].begin(), units_[unit].end());
      continue;
    }
    if (unit_of_[*all.front()] > unit) continue;
    if (piece_differs()) return true;
    second_way(first_way(units_[unit], second), functions_.run_a, second);
  }
  return piece_differs();
}

// ── Searching ────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Without those that are left out.
std::vector<Node*> Minimizer::nodes_of(const Part& part) const {
  std::vector<Node*> nodes;
  for (const std::size_t unit : part) {
    if (!skipped_[unit]) nodes.insert(nodes.end(), units_[unit].begin(), units_[unit].end());
  }
  return nodes;
}

Minimizer::Part Minimizer::units_from(std::size_t from, std::size_t to) const {
  Part part;
  for (std::size_t unit = from; unit < to; ++unit) part.push_back(unit);
  return part;
}

std::vector<Node*> Minimizer::minimize(const MinimizeOptions& options) {
  options_ = options;
  report_.clear();
  second_ = std::make_unique<Course>(first_.get());
  skipped_.assign(units_.size(), false);
  for (std::size_t i = 0; i < units_.size() && options.skip; ++i)
    skipped_[i] = std::ranges::any_of(units_[i], [&](const Node* node) { return options.skip(*node); });
  switch (options.traverse) {
    case MinimizeOptions::Traverse::sequential: return sequential();
    case MinimizeOptions::Traverse::binary: return binary();
    case MinimizeOptions::Traverse::accumulate: return accumulate();
    case MinimizeOptions::Traverse::block: return block();
    case MinimizeOptions::Traverse::graph: return graph();
  }
  return {};
}

std::vector<Node*> Minimizer::sequential() {
  std::vector<Node*> culprits;
  for (std::size_t i = 0; i < units_.size(); ++i) {
    const std::vector<Node*> nodes = nodes_of({i});
    if (!differs({i}, "node")) continue;
    culprits.insert(culprits.end(), nodes.begin(), nodes.end());
    if (!options_.find_all) break;
  }
  return culprits;
}

// Two halves that agree, of a whole that does not, are both at fault: only together do they differ.
std::vector<Node*> Minimizer::binary() {
  std::vector<Node*> culprits;
  std::vector<std::pair<std::size_t, std::size_t>> left = {{0, units_.size()}};
  bool known = false;  // that the next one differs
  while (!left.empty() && (culprits.empty() || options_.find_all)) {
    const auto [from, to] = left.back();
    left.pop_back();
    if (from == to) continue;
    if (!std::exchange(known, false) && !differs(units_from(from, to), "nodes")) continue;
    if (to - from == 1) {
      const std::vector<Node*> nodes = nodes_of(units_from(from, to));
      culprits.insert(culprits.end(), nodes.begin(), nodes.end());
      continue;
    }
    const std::size_t middle = from + (to - from) / 2;
    const bool first = differs(units_from(from, middle), "nodes"), second = differs(units_from(middle, to), "nodes");
    if (!first && !second) {
      const std::vector<Node*> nodes = nodes_of(units_from(from, to));
      culprits.insert(culprits.end(), nodes.begin(), nodes.end());
      continue;
    }
    if (second) left.emplace_back(middle, to);
    if (first) {
      left.emplace_back(from, middle);
      known = true;
    } else {
      known = second;
    }
  }
  return culprits;
}

std::vector<Node*> Minimizer::accumulate() {
  std::vector<Node*> culprits;
  std::size_t from = 0;
  for (std::size_t i = 0; i < units_.size(); ++i) {
    if (!differs(units_from(from, i + 1), "nodes")) continue;
    const std::vector<Node*> nodes = nodes_of({i});
    culprits.insert(culprits.end(), nodes.begin(), nodes.end());
    if (!options_.find_all) break;
    from = i + 1;
  }
  return culprits;
}

// The shortest run from the first unit that differs ends at the last node at fault; of it the shortest end that still
// differs begins at the first.
std::vector<Node*> Minimizer::block() {
  if (!differs(units_from(0, units_.size()), "nodes")) return {};
  std::size_t low = 1, high = units_.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (differs(units_from(0, middle), "nodes")) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  const std::size_t end = high;
  low = 0;
  high = end - 1;
  while (low < high) {
    const std::size_t middle = (low + high + 1) / 2;
    if (differs(units_from(middle, end), "nodes")) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return nodes_of(units_from(low, end));
}

/// A unit and all that it depends on.
Minimizer::Part Minimizer::all_before(std::size_t unit) const {
  std::vector<bool> needed(units_.size());
  needed[unit] = true;
  for (std::size_t i = unit + 1; i-- > 0;) {
    if (!needed[i]) continue;
    for (const std::size_t before : before_[i]) needed[before] = true;
  }
  Part part;
  for (std::size_t i = 0; i <= unit; ++i) {
    if (needed[i]) part.push_back(i);
  }
  return part;
}

// Units come after what they use, so one look from the last to the first meets each behind all that leads to it.
std::vector<Node*> Minimizer::graph() {
  std::vector<bool> asked(units_.size()), wrong(units_.size());
  const auto is_wrong = [&](std::size_t unit) {
    if (!asked[unit]) wrong[unit] = differs(all_before(unit), "what leads to");
    asked[unit] = true;
    return wrong[unit];
  };
  if (const Node* output = module_.graph().output_node()) {
    output->for_each_input([&](const Node& value) {
      if (value.is_callable()) is_wrong(unit_of_[value]);
    });
  }
  for (std::size_t i = 0; i < units_.size(); ++i) {
    const Written::Places places = written_->of(units_[i]);
    if (!places.inputs.empty() || !places.paths.empty()) is_wrong(i);  // a caller sees that, too
  }
  std::vector<std::size_t> first;
  for (std::size_t i = units_.size(); i-- > 0;) {
    if (!wrong[i]) continue;
    bool inputs_agree = true;
    for (const std::size_t before : before_[i]) inputs_agree &= !is_wrong(before);
    if (inputs_agree) first.push_back(i);
  }
  std::vector<Node*> culprits;
  for (auto unit = first.rbegin(); unit != first.rend() && (culprits.empty() || options_.find_all); ++unit) {
    const std::vector<Node*> nodes = nodes_of({*unit});
    culprits.insert(culprits.end(), nodes.begin(), nodes.end());
  }
  return culprits;
}

}  // namespace fx
