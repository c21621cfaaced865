#include <fxgraph/export/value_shapes.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <fxgraph/module/interpreter.h>
#include <fxgraph/module/state_keeper.h>
#include <fxgraph/run/value.h>

namespace fx::pt2 {
namespace {

using Number = std::int64_t;

/// One run: the value of every node, numbers and shapes only.
struct Observed {
  ValueShape::Kind kind = ValueShape::Kind::none;
  DType dtype = DType::float32;
  Device device{};
  bool requires_grad = false;
  std::vector<Number> numbers;  ///< sizes, then strides, then the offset; of an int itself
  double floating = 0;
  std::vector<Observed> elements;
};

Observed observe(const c10::IValue& value) {
  Observed seen;
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined()) return seen;
    seen.kind = ValueShape::Kind::tensor;
    seen.dtype = to_dtype(tensor.scalar_type());
    seen.device = to_device(tensor.device());
    seen.requires_grad = tensor.requires_grad() && tensor.is_leaf();
    if (tensor.layout() != at::kStrided) {
      seen.kind = ValueShape::Kind::other;
      return seen;
    }
    seen.numbers = tensor.sizes().vec();
    seen.numbers.insert(seen.numbers.end(), tensor.strides().begin(), tensor.strides().end());
  } else if (value.isBool()) {
    seen.kind = ValueShape::Kind::boolean;
    seen.numbers = {value.toBool()};
  } else if (value.isInt()) {
    seen.kind = ValueShape::Kind::integer;
    seen.numbers = {value.toInt()};
  } else if (value.isDouble()) {
    seen.kind = ValueShape::Kind::floating;
    seen.floating = value.toDouble();
  } else if (value.isTuple() || value.isList()) {
    seen.kind = ValueShape::Kind::list;
    if (value.isTuple()) {
      for (const c10::IValue& each : value.toTupleRef().elements()) seen.elements.push_back(observe(each));
    } else {
      for (const c10::IValue& each : value.toListRef()) seen.elements.push_back(observe(each));
    }
  } else if (!value.isNone()) {
    seen.kind = ValueShape::Kind::other;
  }
  return seen;
}

class Recorder : public Interpreter {
 public:
  Recorder(GraphModule& module, const Graph& graph) : Interpreter(module, graph), seen(graph) {}
  Value run_node(const Node& node) override {
    Value value = Interpreter::run_node(node);
    seen[node] = observe(value);
    return value;
  }
  NodeMap<Observed> seen;
};

/// Finds expressions of symbols from what was seen in every run.
class Fitter {
 public:
  explicit Fitter(std::vector<Symbols> runs) : runs_(std::move(runs)) {}

  std::optional<SizeExpr> fit(const std::vector<Number>& seen) const {
    if (std::ranges::all_of(seen, [&](Number each) { return each == seen[0]; })) return SizeExpr::integer(seen[0]);
    if (std::optional<SizeExpr> sum = fit_sum(seen)) return sum;
    return fit_division(seen);
  }

 private:
  bool explains(const SizeExpr& expr, const std::vector<Number>& seen) const {
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (expr.evaluate(runs_[i]) != seen[i]) return false;
    }
    return true;
  }

  // Runs: the example, then three for each symbol with the others as in the example.
  struct Change {
    std::string symbol;
    Number by;
    Number seen_by;
  };
  std::vector<Change> changes(const std::vector<Number>& seen) const {
    std::vector<Change> all;
    for (std::size_t i = 1; i < runs_.size(); ++i) {
      std::vector<Change> here;
      for (const auto& [symbol, value] : runs_[i]) {
        if (value != runs_[0].at(symbol)) here.push_back({symbol, value - runs_[0].at(symbol), seen[i] - seen[0]});
      }
      if (here.size() == 1) all.push_back(here[0]);
    }
    return all;
  }

  static SizeExpr times(Number factor, SizeExpr expr) {
    return factor == 1 ? expr : SizeExpr::call("Mul", {SizeExpr::integer(factor), std::move(expr)});
  }
  static SizeExpr plus(std::vector<SizeExpr> terms, Number constant) {
    if (constant != 0) terms.push_back(SizeExpr::integer(constant));
    if (terms.empty()) return SizeExpr::integer(0);
    return terms.size() == 1 ? terms[0] : SizeExpr::call("Add", std::move(terms));
  }

  // c + Σ aᵢ·sᵢ, or c·s·t + …: the slopes come from runs that change one symbol.
  std::optional<SizeExpr> fit_sum(const std::vector<Number>& seen) const {
    std::map<std::string, Number> slopes;
    for (const Change& change : changes(seen)) {
      if (change.seen_by % change.by != 0) return std::nullopt;
      const auto [known, fresh] = slopes.try_emplace(change.symbol, change.seen_by / change.by);
      if (!fresh && known->second != change.seen_by / change.by) return std::nullopt;
    }
    std::vector<SizeExpr> terms;
    Number constant = seen[0];
    for (const auto& [symbol, slope] : slopes) {
      if (slope == 0) continue;
      terms.push_back(times(slope, SizeExpr::symbol(symbol)));
      constant -= slope * runs_[0].at(symbol);
    }
    if (SizeExpr sum = plus(terms, constant); explains(sum, seen)) return sum;
    return fit_product(seen, slopes);
  }

  // k·s·t (·…): every slope is the rest of the product.
  std::optional<SizeExpr> fit_product(const std::vector<Number>& seen,
                                      const std::map<std::string, Number>& slopes) const {
    std::vector<SizeExpr> factors;
    Number product = 1;
    for (const auto& [symbol, slope] : slopes) {
      if (slope == 0) continue;
      factors.push_back(SizeExpr::symbol(symbol));
      product *= runs_[0].at(symbol);
    }
    if (product == 0 || seen[0] % product != 0) return std::nullopt;
    if (seen[0] / product != 1) factors.insert(factors.begin(), SizeExpr::integer(seen[0] / product));
    SizeExpr expr = SizeExpr::call("Mul", std::move(factors));
    return explains(expr, seen) ? std::optional(expr) : std::nullopt;
  }

  // k·⌊(s + c) / d⌋ + e of one symbol.
  std::optional<SizeExpr> fit_division(const std::vector<Number>& seen) const {
    std::string symbol;
    for (const Change& change : changes(seen)) {
      if (change.seen_by == 0) continue;
      if (!symbol.empty() && symbol != change.symbol) return std::nullopt;
      symbol = change.symbol;
    }
    if (symbol.empty()) return std::nullopt;
    const Number start = runs_[0].at(symbol);
    for (const Number divisor : {2, 3, 4, 5, 6, 7, 8, 16, 32, 64}) {
      for (Number shift = 0; shift < divisor; ++shift) {
        for (const Number factor : {1, 2, 3, 4, 8, 16, 32, 64}) {
          const SizeExpr part =
              times(factor,
                    SizeExpr::call("FloorDiv", {plus({SizeExpr::symbol(symbol)}, shift), SizeExpr::integer(divisor)}));
          const SizeExpr expr = plus({part}, seen[0] - factor * ((start + shift) / divisor));
          if (explains(expr, seen)) return expr;
        }
      }
    }
    return std::nullopt;
  }

  std::vector<Symbols> runs_;
};

// The example, each symbol alone at three further values, and all of them changed.
std::vector<Symbols> choose_runs(const Symbols& example, const std::map<std::string, SizeRange>& ranges) {
  std::vector<Symbols> runs{example};
  if (example.empty()) return runs;
  Symbols all = example;
  Number odd = 1;
  for (const auto& [symbol, value] : example) {
    const auto found = ranges.find(symbol);
    const Number most = found != ranges.end() && found->second.max ? *found->second.max : INT64_MAX;
    const Number least = found != ranges.end() && found->second.min ? std::max<Number>(*found->second.min, 2) : 2;
    std::vector<Number> others;
    for (const Number offset : {1, 2, 5, 3, 4, -1, -2}) {
      if (value + offset <= most && value + offset >= least && others.size() < 3) others.push_back(value + offset);
    }
    for (const Number other : others) {
      runs.push_back(example);
      runs.back()[symbol] = other;
    }
    if (!others.empty()) all[symbol] = others[static_cast<std::size_t>(odd++) % others.size()];
  }
  runs.push_back(all);
  return runs;
}

class Combiner {
 public:
  explicit Combiner(Fitter fitter) : fitter_(std::move(fitter)) {}

  ValueShape combine(const Node& node, const std::vector<const Observed*>& seen) const {
    const Observed& first = *seen[0];
    ValueShape shape;
    shape.kind = first.kind;
    for (const Observed* each : seen) {
      if (each->kind != first.kind || each->numbers.size() != first.numbers.size() ||
          each->elements.size() != first.elements.size())
        fail(node, "is another kind of value at other sizes");
    }
    switch (first.kind) {
      case ValueShape::Kind::tensor: shape.tensor = tensor(node, seen); break;
      case ValueShape::Kind::boolean:
        shape.boolean = first.numbers[0] != 0;
        shape.varies = std::ranges::any_of(seen, [&](const Observed* o) { return o->numbers != first.numbers; });
        break;
      case ValueShape::Kind::integer:
        shape.integer = size(node, seen, 0);
        shape.varies = !shape.integer.expr.is_integer();
        break;
      case ValueShape::Kind::floating:
        shape.floating = first.floating;
        shape.varies = std::ranges::any_of(seen, [&](const Observed* o) { return o->floating != first.floating; });
        break;
      case ValueShape::Kind::list:
        for (std::size_t i = 0; i < first.elements.size(); ++i) {
          std::vector<const Observed*> inner;
          for (const Observed* each : seen) inner.push_back(&each->elements[i]);
          shape.elements.push_back(combine(node, inner));
        }
        break;
      default: break;
    }
    return shape;
  }

 private:
  [[noreturn]] static void fail(const Node& node, const std::string& what) {
    throw Error(
        ErrorKind::unsupported,
        "%" + node.name() + " " + what + ", and no expression was found for it; save the program for fixed sizes",
        node.name());
  }

  SymbolicSize size(const Node& node, const std::vector<const Observed*>& seen, std::size_t at) const {
    std::vector<Number> numbers;
    for (const Observed* each : seen) numbers.push_back(each->numbers[at]);
    std::optional<SizeExpr> expr = fitter_.fit(numbers);
    if (!expr) fail(node, "has a size that changes with the inputs");
    return {std::move(*expr), numbers[0]};
  }

  TensorMeta tensor(const Node& node, const std::vector<const Observed*>& seen) const {
    const Observed& first = *seen[0];
    TensorMeta meta;
    meta.dtype = first.dtype;
    meta.device = first.device;
    meta.requires_grad = first.requires_grad;
    const std::size_t rank = first.numbers.size() / 2;
    for (std::size_t i = 0; i < rank; ++i) meta.sizes.push_back(size(node, seen, i));
    for (std::size_t i = 0; i < rank; ++i) meta.strides.push_back(size(node, seen, rank + i));
    return meta;
  }

  Fitter fitter_;
};

}  // namespace

ValueShapes find_value_shapes(GraphModule& module, const Graph& graph, const Symbols& example,
                              const std::map<std::string, SizeRange>& ranges,
                              const std::function<std::vector<c10::IValue>(const Symbols&)>& inputs) {
  const at::NoGradGuard no_grad;
  const StateKeeper keeper(module);
  const std::vector<Symbols> runs = choose_runs(example, ranges);
  std::vector<NodeMap<Observed>> seen;
  for (const Symbols& run : runs) {
    Recorder recorder(module, graph);
    recorder.run(inputs(run));
    seen.push_back(std::move(recorder.seen));
  }
  const Combiner combiner{Fitter(runs)};
  ValueShapes shapes(graph);
  for (const Node& node : graph.nodes()) {
    std::vector<const Observed*> values;
    for (const NodeMap<Observed>& each : seen) values.push_back(&each[node]);
    shapes[node] = combiner.combine(node, values);
  }
  return shapes;
}

}  // namespace fx::pt2
