#include <fxgraph/report/size_formulas.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include <fxgraph/analysis/cost.h>
#include <fxgraph/analysis/effects.h>
#include <fxgraph/analysis/liveness.h>
#include <fxgraph/contract/called_shapes.h>
#include <fxgraph/ops/records/costs.h>

namespace fx {
namespace {

using Formula = std::optional<SizeExpr>;
using Sizes = std::map<std::string, std::int64_t>;  // by symbol

Formula plus(const Formula& a, const Formula& b) { return a && b ? Formula(*a + *b) : std::nullopt; }

/// With `(h - 1)//2 + 1` as `(h + 1)//2`, which is one name from then on: products of such stay products.
SizeExpr rounded_up(const SizeExpr& expr) {
  if (expr.operands().empty()) return expr;
  std::vector<SizeExpr> operands;
  std::ranges::transform(expr.operands(), std::back_inserter(operands), rounded_up);
  if (!expr.is_call("FloorDiv") || !operands[1].is_integer())
    return SizeExpr::call(expr.name(), std::move(operands)).simplified();
  const SizeExpr above = operands[0].is_call("Add") ? operands[0].operands().back() : SizeExpr(0);
  const bool is_less = above.is_integer() && above.value() < 0;
  const SizeExpr whole = is_less ? operands[0] + operands[1] : operands[0];
  return SizeExpr::symbol("(" + SizeExpr::call("FloorDiv", {whole, operands[1]}).str() + ")") - (is_less ? 1 : 0);
}

/// The bytes of a graph's storages, and what is live at each place. What says something else of the example than what
/// was measured there has no formula.
class LiveFormulas {
 public:
  LiveFormulas(const Graph& graph, const Shapes& shapes, const SymbolicShapes& sizes, const LivenessOptions& options,
               const Sizes& example)
      : live_(graph, shapes, options) {
    NodeMap<std::size_t> next(graph, 0);  // of a node's tensors
    std::vector<SizeExpr> bytes;
    for (const Storage& storage : live_.storages()) {
      bytes.clear();
      sizes[*storage.base].for_each_tensor([&](const TensorType& type) { bytes.push_back(bytes_of(type)); });
      std::size_t& i = next[*storage.base];
      while (i < bytes.size() && bytes[i].evaluate(example) != storage.bytes) ++i;
      storages_.push_back(i < bytes.size() ? Formula(bytes[i++]) : std::nullopt);
    }
    for (const Node& node : graph.nodes()) {
      const auto is_in = [&](const std::string& call) {
        return call == node.name() || call.starts_with(node.name() + "/");
      };
      if (std::ranges::any_of(live_.unknown(), is_in)) inside_[live_.place(node)] = std::nullopt;
      if (live_.inside(node) == 0 || inside_.contains(live_.place(node))) continue;
      const Formula needed = inside(node, shapes, sizes, options, example);
      inside_[live_.place(node)] = needed && needed->evaluate(example) == live_.inside(node) ? needed : std::nullopt;
    }
  }

  const Liveness& live() const { return live_; }
  const Formula& bytes(const Storage& storage) const {
    return storages_[static_cast<std::size_t>(&storage - live_.storages().data())];
  }
  Formula all() const {
    Formula sum = 0;
    for (const Storage& storage : live_.storages()) sum = storage.counted ? plus(sum, bytes(storage)) : sum;
    return sum;
  }
  Formula at(const Node& node) const {
    Formula sum = 0;
    for (const Storage* storage : live_.storages_at(node)) sum = plus(sum, bytes(*storage));
    const auto inside = inside_.find(live_.place(node));
    return inside == inside_.end() ? sum : plus(sum, inside->second);
  }
  /// The first node with most bytes at these sizes; null where that is not known.
  const Node* peak(const Sizes& sizes) const {
    std::vector<std::int64_t> change(live_.num_places() + 1, 0), inside(live_.num_places(), 0);
    const auto value = [&](const Formula& formula) { return formula ? formula->evaluate(sizes) : std::nullopt; };
    for (const Storage& storage : live_.storages()) {
      if (!storage.counted) continue;
      const auto bytes = value(this->bytes(storage));
      if (!bytes) return nullptr;
      change[storage.interval.begin] += *bytes;
      change[storage.interval.end + 1] -= *bytes;
    }
    for (const auto& [place, formula] : inside_) {
      const auto bytes = value(formula);
      if (!bytes) return nullptr;
      inside[place] = std::max<std::int64_t>(0, *bytes);
    }
    std::int64_t now = 0, most = 0;
    const Node* found = nullptr;
    for (std::uint32_t place = 0; place < live_.num_places(); ++place) {
      now += change[place];
      if (now + inside[place] > most) {
        most = now + inside[place];
        found = &live_.node_at(place);
      }
    }
    return found;
  }

 private:
  /// What a called module needs at its own peak beside what the call makes.
  Formula inside(const Node& node, const Shapes& shapes, const SymbolicShapes& sizes, const LivenessOptions& options,
                 const Sizes& example) const {
    const auto called = shapes_in_call(node, shapes, *options.modules);
    const auto formulas = sizes_in_call(
        node, [&](const Node& input) { return sizes[input]; }, *options.modules);
    if (!called || !formulas) return std::nullopt;
    // Graphs that are made for each question have the same nodes.
    const LiveFormulas below(*formulas->graph, shapes_of(*called, *formulas->graph), formulas->sizes,
                             {.alignment = 1, .modules = &formulas->modules}, example);
    const Node* peak = below.live().peak().node;
    Formula made = 0;
    for (const Storage& storage : live_.storages()) {
      if (storage.base == &node && storage.counted) made = plus(made, bytes(storage));
    }
    return peak && made ? plus(below.at(*peak), *made * -1) : std::nullopt;
  }
  static Shapes shapes_of(const CalledShapes& called, const Graph& graph) {
    Shapes shapes(graph);
    auto node = called.graph->nodes().begin();
    for (const Node& same : graph.nodes()) shapes[same] = called.shapes[*node++];
    return shapes;
  }

  Liveness live_;
  std::vector<Formula> storages_;
  std::map<std::uint32_t, Formula> inside_;  // by place
};

class Formulas {
 public:
  Formulas(const Graph& graph, const OpenProgram& program, const ReportInputs& known, const ReportOptions& options)
      : graph_(graph),
        program_(program),
        known_(known),
        options_(options),
        effects_(graph, {.modules = known.modules}),
        example_(example_of(program)),
        live_(graph, *known.shapes, program.shapes,
              {.count_inputs = options.count_inputs,
               .count_attributes = options.count_attributes,
               .alignment = 1,
               .effects = known.modules.effects ? &effects_ : nullptr,
               .modules = &known.modules},
              example_) {}

  Report::SizesPart make() {
    Report::SizesPart part;
    for (const OpenProgram::Size& size : program_.sizes)
      part.variables.push_back(size.said + (size.step > 1 ? " in steps of " + std::to_string(size.step) : ""));
    const auto add = [&](std::string name, const Formula& formula, bool is_bytes) {
      part.measures.push_back({std::move(name), text(formula, is_bytes)});
    };
    const Node* peak = live_.live().peak().node;
    if (peak) {
      add("peak at " + peak->name(), live_.at(*peak), true);
      add("storages", live_.all(), true);
    }
    if (const std::optional<CostFormula> cost = cost_formula(graph_, program_.shapes, known_.modules)) {
      add("MACs", cost->macs, false);
      add("flops", cost->flops, false);
      add("bytes moved", cost->bytes, true);
    }
    if (!peak) return part;
    for (const Storage* storage : live_.live().storages_at(*peak)) {
      if (part.at_peak.size() == options_.max_rows) break;
      part.at_peak.push_back({storage->base->name(), text(live_.bytes(*storage), true), tensor(*storage->base)});
    }
    for (const OpenProgram::Size& size : program_.sizes) {
      for (const bool grows : {false, true}) add_other_peak(size, grows, *peak, part);
    }
    return part;
  }

 private:
  static Sizes example_of(const OpenProgram& program) {
    Sizes sizes;
    for (const OpenProgram::Size& size : program.sizes) sizes[size.symbol] = size.example;
    return sizes;
  }

  /// Nothing where it has other symbols than the sizes that vary.
  std::string text(const Formula& formula, bool is_bytes) const {
    if (!formula) return {};
    bool is_known = true;
    formula->for_each_symbol([&](const std::string& symbol) { is_known = is_known && example_.contains(symbol); });
    if (!is_known) return {};
    const SizeExpr shown = rounded_up(formula->substituted([&](const SizeExpr& symbol) {
      const auto size = std::ranges::find(program_.sizes, symbol.name(), &OpenProgram::Size::symbol);
      return floor_div(symbol, size->step);
    }));
    // One name alone needs no brackets.
    if (!is_bytes)
      return shown.is_symbol() && shown.name()[0] == '(' ? shown.name().substr(1, shown.name().size() - 2)
                                                         : shown.str();
    constexpr std::pair<std::int64_t, const char*> kUnits[] = {
        {std::int64_t{1} << 30, " GiB"}, {std::int64_t{1} << 20, " MiB"}, {1 << 10, " KiB"}, {1, " B"}};
    for (const auto& [size, unit] : kUnits) {
      const SizeExpr in_unit = floor_div(shown, size);
      if (in_unit * size != shown) continue;
      return (in_unit.is_call("Add") ? "(" + in_unit.str() + ")" : in_unit.str()) + unit;
    }
    return {};
  }

  std::string tensor(const Node& node) const {
    const TensorType* type = program_.shapes[node].tensor();
    if (!type) return {};
    std::string said = std::string(to_string(type->dtype)) + "[";
    for (std::size_t dim = 0; dim < type->sizes.size(); ++dim) {
      const std::string size = text(type->sizes[dim], false);
      said += (dim > 0 ? ", " : "") + (size.empty() ? "?" : size);
    }
    return said + "]";
  }

  /// The first size, from the example's on, at which the peak is at another node.
  void add_other_peak(const OpenProgram::Size& size, bool grows, const Node& peak, Report::SizesPart& part) const {
    constexpr std::int64_t kLargest = std::int64_t{1} << 20;
    const auto peak_at = [&](std::int64_t value) {
      Sizes sizes = example_;
      sizes[size.symbol] = value;
      return live_.peak(sizes);
    };
    if (peak_at(size.example) != &peak) return;
    std::int64_t same = size.example, other = 0;
    while (other == 0) {
      const std::int64_t next = grows ? same * 2 : same / 2;
      if (next < 1 || next > kLargest) return;
      const Node* found = peak_at(next);
      if (!found) return;
      (found == &peak ? same : other) = next;
    }
    while (std::abs(other - same) > 1) {
      const std::int64_t middle = (same + other) / 2;
      (peak_at(middle) == &peak ? same : other) = middle;
    }
    const std::string name = size.said.substr(0, size.said.find(' '));
    const Node* node = peak_at(other);
    part.measures.push_back(
        {"peak at " + node->name() + " where " + name + (grows ? " >= " : " <= ") + std::to_string(other * size.step),
         text(live_.at(*node), true)});
  }

  const Graph& graph_;
  const OpenProgram& program_;
  const ReportInputs& known_;
  const ReportOptions& options_;
  const Effects effects_;
  const Sizes example_;
  const LiveFormulas live_;
};

}  // namespace

Report::SizesPart size_formulas(const Graph& graph, const OpenProgram& program, const ReportInputs& known,
                                const ReportOptions& options) {
  return program.sizes.empty() ? Report::SizesPart() : Formulas(graph, program, known, options).make();
}

}  // namespace fx
