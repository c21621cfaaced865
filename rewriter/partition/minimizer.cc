#include <fxgraph/rewriter/partition/minimizer.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/analysis/subgraph.h>
#include <fxgraph/module/interpreter.h>
#include <fxgraph/module/module_effects.h>
#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

/// Notes a copy of every value as it is when it is made.
class Noting : public Interpreter {
 public:
  Noting(GraphModule& module, NodeMap<c10::IValue>& values) : Interpreter(module), values_(values) {}
  Value run_node(const Node& node) override {
    Value value = Interpreter::run_node(node);
    if (!node.is(Op::output)) values_[node] = copy_of(value);
    return value;
  }

 private:
  NodeMap<c10::IValue>& values_;
};

std::string names(const std::vector<Node*>& nodes) {
  std::string text = "%" + nodes.front()->name();
  if (nodes.size() > 1) text += " … %" + nodes.back()->name() + " (" + std::to_string(nodes.size()) + " nodes)";
  return text;
}

}  // namespace

Minimizer::Minimizer(GraphModule& module, std::vector<c10::IValue> inputs, MinimizerFunctions functions)
    : module_(module),
      inputs_(std::move(inputs)),
      functions_(std::move(functions)),
      values_a_(module.graph()),
      values_b_(module.graph()) {
  if (!functions_.run_b) throw Error(ErrorKind::invalid_argument, "Minimizer: run_b says what to compare with");
  const MinimizerFunctions::Run plain = [](GraphModule& part, std::vector<c10::IValue> values) {
    return part.run(std::move(values));
  };
  if (!functions_.run_a) functions_.run_a = plain;
  if (!functions_.compare) {
    functions_.compare = [](const c10::IValue& a, const c10::IValue& b) { return relative_difference(a, b, 1e-6); };
  }
  const auto copy = module.clone_graph_module();  // running may write to buffers
  NodeMap<c10::IValue> values(copy->graph());
  Noting(*copy, values).run(copies_of(inputs_));
  auto theirs = copy->graph().nodes().begin();
  for (const Node& node : module.graph().nodes()) {
    values_a_[node] = values_b_[node] = values[*theirs];
    ++theirs;
  }
  find_units();
}

// What lies between the first value in a storage that is written and the last write to it goes together.
void Minimizer::find_units() {
  const Effects effects(module_.graph(), {.modules = module_effects(module_)});
  std::vector<Node*> calls;
  NodeMap<std::size_t> place(module_.graph(), 0);
  for (Node& node : module_.graph().nodes()) {
    if (!node.is_callable()) continue;
    place[node] = calls.size();
    calls.push_back(&node);
  }
  std::vector<std::size_t> reach(calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) reach[i] = i;
  for (Effects::Set set = 0; set < effects.num_sets(); ++set) {
    if (effects.writers(set).empty()) continue;
    const std::size_t last = place[*effects.writers(set).back()];
    std::size_t first = place[*effects.writers(set).front()];
    for (const Node* member : effects.members(set)) {
      if (member->is_callable()) first = std::min(first, place[*member]);
    }
    reach[first] = std::max(reach[first], last);
  }
  for (std::size_t i = 0; i < calls.size();) {
    std::size_t end = reach[i];
    for (std::size_t j = i; j <= end; ++j) end = std::max(end, reach[j]);
    units_.emplace_back(calls.begin() + static_cast<std::ptrdiff_t>(i),
                        calls.begin() + static_cast<std::ptrdiff_t>(end + 1));
    i = end + 1;
  }
}

double Minimizer::compare(const std::vector<Node*>& nodes) {
  Subgraph piece = extract_subgraph(module_.graph(), nodes);
  GraphModule part(module_, std::move(piece.graph), "Part");
  std::vector<c10::IValue> a, b;
  for (const Node* input : piece.inputs) {
    a.push_back(copy_of(values_a_[*input]));
    b.push_back(copy_of(options_.accumulate_error ? values_b_[*input] : values_a_[*input]));
  }
  const auto copy = part.clone_graph_module();
  const c10::IValue result_a = functions_.run_a(part, std::move(a));
  const c10::IValue result_b = functions_.run_b(*copy, std::move(b));
  if (options_.accumulate_error) {
    const bool one = piece.outputs.size() == 1;
    for (std::size_t i = 0; i < piece.outputs.size(); ++i)
      values_b_[*piece.outputs[i]] = copy_of(one ? result_b : result_b.toTupleRef().elements().at(i));
  }
  return functions_.compare(result_a, result_b);
}

bool Minimizer::differs(const std::vector<Node*>& nodes, const char* what) {
  if (nodes.empty()) return false;
  report_ += std::string(what) + " " + names(nodes) + ": ";
  try {
    const double difference = compare(nodes);
    const bool mismatch = !(difference <= functions_.tolerance);
    report_ += std::to_string(difference) + (mismatch ? ", a mismatch\n" : "\n");
    return mismatch;
  } catch (const std::exception& error) {
    report_ += std::string("fails: ") + error.what() + "\n";
    return true;
  }
}

std::vector<Node*> Minimizer::nodes_of(std::size_t from, std::size_t to) const {
  std::vector<Node*> nodes;
  for (std::size_t i = from; i < to; ++i) {
    for (Node* node : units_[i]) {
      if (!options_.skip || !options_.skip(*node)) nodes.push_back(node);
    }
  }
  return nodes;
}

std::vector<Node*> Minimizer::minimize(const MinimizeOptions& options) {
  options_ = options;
  report_.clear();
  values_b_ = values_a_;
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
    const std::vector<Node*> nodes = nodes_of(i, i + 1);
    if (!differs(nodes, "node")) continue;
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
    if (!std::exchange(known, false) && !differs(nodes_of(from, to), "nodes")) continue;
    if (to - from == 1) {
      const std::vector<Node*> nodes = nodes_of(from, to);
      culprits.insert(culprits.end(), nodes.begin(), nodes.end());
      continue;
    }
    const std::size_t middle = from + (to - from) / 2;
    const bool first = differs(nodes_of(from, middle), "nodes"), second = differs(nodes_of(middle, to), "nodes");
    if (!first && !second) {
      const std::vector<Node*> nodes = nodes_of(from, to);
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
    if (!differs(nodes_of(from, i + 1), "nodes")) continue;
    const std::vector<Node*> nodes = nodes_of(i, i + 1);
    culprits.insert(culprits.end(), nodes.begin(), nodes.end());
    if (!options_.find_all) break;
    from = i + 1;
  }
  return culprits;
}

// The shortest run from the first unit that differs ends at the last node at fault; of it the shortest end that still
// differs begins at the first.
std::vector<Node*> Minimizer::block() {
  if (!differs(nodes_of(0, units_.size()), "nodes")) return {};
  std::size_t low = 1, high = units_.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (differs(nodes_of(0, middle), "nodes")) {
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
    if (differs(nodes_of(middle, end), "nodes")) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return nodes_of(low, end);
}

std::vector<std::size_t> Minimizer::units_before(std::size_t unit, const NodeMap<std::size_t>& unit_of) const {
  std::vector<std::size_t> before;
  for (const Node* node : units_[unit]) {
    node->for_each_input([&](const Node& input) {
      if (input.is_callable() && unit_of[input] != unit) before.push_back(unit_of[input]);
    });
  }
  std::ranges::sort(before);
  before.erase(std::ranges::unique(before).begin(), before.end());
  return before;
}

/// The nodes of a unit and of all that it depends on.
std::vector<Node*> Minimizer::all_before(std::size_t unit, const NodeMap<std::size_t>& unit_of) const {
  std::vector<bool> needed(units_.size());
  needed[unit] = true;
  std::vector<Node*> nodes;
  for (std::size_t i = unit + 1; i-- > 0;) {
    if (!needed[i]) continue;
    for (const std::size_t before : units_before(i, unit_of)) needed[before] = true;
  }
  for (std::size_t i = 0; i <= unit; ++i) {
    const std::vector<Node*> some = needed[i] ? nodes_of(i, i + 1) : std::vector<Node*>();
    nodes.insert(nodes.end(), some.begin(), some.end());
  }
  return nodes;
}

// Units come after what they use, so one look from the last to the first meets each behind all that leads to it.
std::vector<Node*> Minimizer::graph() {
  NodeMap<std::size_t> unit_of(module_.graph(), 0);
  for (std::size_t i = 0; i < units_.size(); ++i) {
    for (const Node* node : units_[i]) unit_of[*node] = i;
  }
  std::vector<bool> asked(units_.size()), wrong(units_.size());
  const auto is_wrong = [&](std::size_t unit) {
    if (!asked[unit]) wrong[unit] = differs(all_before(unit, unit_of), "what leads to");
    asked[unit] = true;
    return wrong[unit];
  };
  if (const Node* output = module_.graph().output_node()) {
    output->for_each_input([&](const Node& value) {
      if (value.is_callable()) is_wrong(unit_of[value]);
    });
  }
  std::vector<std::size_t> first;
  for (std::size_t i = units_.size(); i-- > 0;) {
    if (!wrong[i]) continue;
    bool inputs_agree = true;
    for (const std::size_t before : units_before(i, unit_of)) inputs_agree &= !is_wrong(before);
    if (inputs_agree) first.push_back(i);
  }
  std::vector<Node*> culprits;
  for (auto unit = first.rbegin(); unit != first.rend() && (culprits.empty() || options_.find_all); ++unit) {
    const std::vector<Node*> nodes = nodes_of(*unit, *unit + 1);
    culprits.insert(culprits.end(), nodes.begin(), nodes.end());
  }
  return culprits;
}

}  // namespace fx
