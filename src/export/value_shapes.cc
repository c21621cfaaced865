#include <fxgraph/export/value_shapes.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <fxgraph/export/packing.h>
#include <fxgraph/export/size_arithmetic.h>
#include <fxgraph/module/interpreter.h>
#include <fxgraph/module/state_keeper.h>
#include <fxgraph/run/nested_graph.h>
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

/// What was seen of the nodes of a program and of the graphs that it calls.
struct Seen {
  explicit Seen(const Graph& graph) : values(graph) {}
  NodeMap<Observed> values;
  std::map<const Graph*, NodeMap<Observed>> nested;
};

class Recorder : public Interpreter, private NestedGraphRunner {
 public:
  Recorder(GraphModule& module, const Graph& graph) : Interpreter(module, graph), seen(graph) {}

  Value run_node(const Node& node) override {
    Value value = Interpreter::run_node(node);
    seen.values[node] = observe(value);
    return value;
  }

  // Graphs that this run may not come to are run, too: both sides of a cond, a loop's body.
  Value call_function(const Target& target, const Args& args, const Kwargs& kwargs) override {
    if (target == "higher_order::cond" && args.size() == 4) {
      for (const std::size_t side : {1, 2}) nested_graph(args[side]).call(copies({args[3]}));
    } else if (target == "higher_order::while_loop" && args.size() >= 3) {
      for (const std::size_t part : {0, 1}) nested_graph(args[part]).call(copies(Args(args.begin() + 2, args.end())));
    }
    return Interpreter::call_function(target, args, kwargs);
  }

  Seen seen;

 private:
  static Args copies(const Args& packs) {
    Args all;
    for (const Value& pack : packs) {
      for (const Value& value : elements_of(pack))
        all.push_back(value.isTensor() ? Value(value.toTensor().clone()) : value);
    }
    return all;
  }

  c10::IValue run(const OwningModule& module, std::vector<c10::IValue> inputs) override {
    auto* inner = dynamic_cast<GraphModule*>(&const_cast<OwningModule&>(module));
    if (!inner) throw Error(ErrorKind::unsupported, "a graph among the arguments is not a GraphModule's");
    Recorder recorder(*inner, inner->graph());
    Value result = static_cast<Interpreter&>(recorder).run(std::move(inputs));
    for (auto& [graph, values] : recorder.seen.nested) seen.nested.try_emplace(graph, std::move(values));
    seen.nested.try_emplace(&inner->graph(), std::move(recorder.seen.values));
    return result;
  }
};

// Further values of a symbol, near and one far enough that a division of the size shows.
std::vector<Number> other_values(Number value, const SizeRange& range) {
  constexpr std::size_t kEnough = 4;
  constexpr Number kFar = 4096;
  const Number most = range.max.value_or(INT64_MAX), least = std::max<Number>(range.min.value_or(2), 2);
  std::vector<Number> others;
  const auto add = [&](Number other) {
    if (other != value && other <= most && other >= least && std::ranges::find(others, other) == others.end())
      others.push_back(other);
  };
  for (const Number offset : {Number(1), Number(2), std::min(value, kFar) + 1, Number(5), Number(3), Number(4),
                              Number(-1), Number(-2), -value / 2}) {
    if (others.size() < kEnough) add(value + offset);
  }
  // The smallest: what is cut to some size (`x[:, :50]`) is shorter there.
  add(least);
  return others;
}

/// Runs the program for choices of symbols.
class Runs {
 public:
  Runs(GraphModule& module, const Graph& graph, const SizedInputs& inputs)
      : module_(module), graph_(graph), inputs_(inputs) {}

  void add(const Symbols& symbols) {
    Recorder recorder(module_, graph_);
    static_cast<Interpreter&>(recorder).run(inputs_.make(symbols));
    seen.push_back(std::move(recorder.seen));
    choices.push_back(symbols);
  }

  // A program may end at sizes that are far: a table of positions that is too short. Two further values must be left.
  void add_each(const std::string& symbol, const SizeRange& range) {
    constexpr std::size_t kFewest = 2;
    const std::vector<Number> values = other_values(choices[0].at(symbol), range);
    std::size_t failed = 0;
    for (const Number value : values) {
      Symbols here = choices[0];
      here[symbol] = value;
      if (!inputs_.takes(here)) continue;
      try {
        add(here);
      } catch (const std::exception&) {
        if (values.size() - ++failed < kFewest) throw;
      }
    }
  }

  // So many that one division explains them.
  void add_more(const std::string& symbol, const SizeRange& range) {
    for (const Number offset : {3, 4, 6, 7, 8, 9, 11, 13, 15, 16, 31, 32, 33, 64}) {
      Symbols here = choices[0];
      const Number other = here[symbol] += offset;
      if (other > range.max.value_or(INT64_MAX) || !inputs_.takes(here)) continue;
      if (std::ranges::find(choices, here) != choices.end()) continue;
      try {
        add(here);
      } catch (const std::exception&) {  // too far
      }
    }
  }

  // True when one was added.
  bool add_doubts(const std::vector<Symbols>& doubts) {
    constexpr std::size_t kMost = 8;
    const std::size_t before = choices.size();
    for (const Symbols& here : doubts) {
      if (choices.size() - before == kMost) break;
      if (!inputs_.takes(here) || std::ranges::find(choices, here) != choices.end()) continue;
      try {
        add(here);
      } catch (const std::exception&) {  // no size that the program takes
      }
    }
    return choices.size() > before;
  }

  void add_all_changed() {
    Symbols all = choices[0];
    for (std::size_t i = 1; i < choices.size(); ++i) {
      for (const auto& [symbol, value] : choices[i]) {
        // The second of its values, where there is one: sums of first ones look like products.
        if (value != choices[0].at(symbol) && std::abs(value - choices[0].at(symbol)) <= 2) all[symbol] = value;
      }
    }
    Number odd = 0;
    for (auto& [symbol, value] : all) {
      if (odd++ % 2 == 1 && value - 1 > choices[0].at(symbol)) --value;
    }
    if (inputs_.takes(all)) add(all);
  }

  const std::function<bool(const Symbols&)>& takes() const { return inputs_.takes; }

  std::vector<Seen> seen;
  std::vector<Symbols> choices;

 private:
  GraphModule& module_;
  const Graph& graph_;
  const SizedInputs& inputs_;
};

class Combiner {
 public:
  Combiner(const Runs& runs, const SizeRanges& ranges, std::set<std::string>* unfit)
      : fitter_(runs.choices), example_(runs.choices[0]), ranges_(ranges), takes_(runs.takes()), unfit_(unfit) {}

  /// `known`: the values before it.
  ValueShape combine(const Node& node, const std::vector<const Observed*>& seen, const ValueShapes& known) {
    known_ = &known;
    return combine(node, seen);
  }

  ValueShape combine(const Node& node, const std::vector<const Observed*>& seen) {
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

  const SizeFitter& fitter() const { return fitter_; }

  std::vector<Symbols> doubts;  ///< where what the runs suggest is not what the program says

 private:
  [[noreturn]] static void fail(const Node& node, const std::string& what) {
    throw Error(
        ErrorKind::unsupported,
        "%" + node.name() + " " + what + ", and no expression was found for it; save the program for fixed sizes",
        node.name());
  }

  SymbolicSize size(const Node& node, const std::vector<const Observed*>& seen, std::size_t at) {
    std::vector<Number> numbers;
    for (const Observed* each : seen) numbers.push_back(each->numbers[at]);
    std::optional<SizeExpr> expr = fitter_.fit(numbers);
    if (seen[0]->kind == ValueShape::Kind::integer) settle_number(node, numbers, expr);
    if (!expr && unfit_) {
      const std::vector<std::string> symbols = fitter_.symbols_behind(numbers);
      unfit_->insert(symbols.begin(), symbols.end());
      if (!symbols.empty()) return {SizeExpr::integer(numbers[0]), numbers[0]};
    }
    if (!expr) fail(node, "has a size that changes with the inputs");
    return {std::move(*expr), numbers[0]};
  }

  // What the call says is so for all sizes; what was found for the runs may not be: `min(n, 4)` was 4 in all of them.
  void settle_number(const Node& node, const std::vector<Number>& seen, std::optional<SizeExpr>& found) {
    const std::optional<SizeExpr> said = said_by(node, [this](const Node& value) {
      const ValueShape& shape = (*known_)[value];
      return shape.kind == ValueShape::Kind::integer ? std::optional(shape.integer.expr) : std::nullopt;
    });
    if (!said || !fitter_.explains(*said, seen)) return;
    const std::optional<Symbols> other =
        found ? where_they_differ(*found, *said, example_, ranges_, takes_) : std::nullopt;
    if (found && !other) return;
    if (other) doubts.push_back(*other);
    fitter_.learn(seen, *said);
    found = said;
  }

  TensorMeta tensor(const Node& node, const std::vector<const Observed*>& seen) {
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

  SizeFitter fitter_;
  const Symbols& example_;
  const SizeRanges& ranges_;
  const std::function<bool(const Symbols&)>& takes_;
  std::set<std::string>* unfit_;
  const ValueShapes* known_ = nullptr;
};

/// What more runs should tell apart.
struct Open {
  std::set<std::string> guessed;
  std::vector<Symbols> doubts;
};

ProgramShapes combine_runs(const Graph& graph, const Runs& runs, const SizeRanges& ranges, std::set<std::string>* unfit,
                           Open& open) {
  Combiner combiner(runs, ranges, unfit);
  const auto combine = [&](const Graph& of, const auto& seen_of) {
    ValueShapes shapes(of);
    for (const Node& node : of.nodes()) {
      std::vector<const Observed*> values;
      for (const Seen& each : runs.seen) values.push_back(&seen_of(each)[node]);
      shapes[node] = combiner.combine(node, values, shapes);
    }
    return shapes;
  };
  ProgramShapes shapes{combine(
                           graph, [](const Seen& seen) -> const auto& { return seen.values; }),
                       {}};
  for (const auto& [nested, values] : runs.seen[0].nested) {
    const Graph* key = nested;
    shapes.nested.emplace(key, combine(
                                   *key, [key](const Seen& seen) -> const auto& { return seen.nested.at(key); }));
  }
  open = {combiner.fitter().guessed(), std::move(combiner.doubts)};
  return shapes;
}

}  // namespace

ProgramShapes find_value_shapes(GraphModule& module, const Graph& graph, const Symbols& example,
                                const SizeRanges& ranges, const SizedInputs& inputs, std::set<std::string>* unfit) {
  const at::NoGradGuard no_grad;
  const StateKeeper keeper(module);
  Runs runs(module, graph, inputs);
  runs.add(example);
  for (const auto& [symbol, value] : example) {
    const auto range = ranges.find(symbol);
    runs.add_each(symbol, range == ranges.end() ? SizeRange() : range->second);
  }
  if (example.size() > 1) runs.add_all_changed();
  Open open;
  ProgramShapes shapes = combine_runs(graph, runs, ranges, unfit, open);
  if (unfit && !unfit->empty()) return shapes;
  for (const std::string& symbol : open.guessed) {
    const auto range = ranges.find(symbol);
    runs.add_more(symbol, range == ranges.end() ? SizeRange() : range->second);
  }
  if (!open.guessed.empty()) shapes = combine_runs(graph, runs, ranges, unfit, open);
  if (!open.doubts.empty() && runs.add_doubts(open.doubts)) shapes = combine_runs(graph, runs, ranges, unfit, open);
  return shapes;
}

}  // namespace fx::pt2
