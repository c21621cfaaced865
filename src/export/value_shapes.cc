#include <fxgraph/export/value_shapes.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <fxgraph/export/observed_runs.h>
#include <fxgraph/export/size_arithmetic.h>
#include <fxgraph/module/interpreter.h>
#include <fxgraph/ops/records/size_inference.h>
#include <fxgraph/run/nested_graph.h>
#include <fxgraph/run/value.h>

namespace fx::pt2 {
namespace {

using Number = std::int64_t;

constexpr Number kFarthestRun = 4096;

class Combiner {
 public:
  Combiner(const Runs& runs, const SizedInputs& inputs, const SizeRanges& ranges, std::set<std::string>* unfit)
      : fitter_(runs.choices),
        example_(runs.choices[0]),
        ranges_(ranges),
        inputs_(inputs),
        data_(runs.data()),
        unfit_(unfit) {}

  /// `known`: the values before it.
  ValueShape combine(const Node& node, const std::vector<const Observed*>& seen, const ValueShapes& known) {
    known_ = &known;
    ValueShape shape = combine(node, seen);
    shape.of_data = is_of_data(node, shape);
    shape.varies |= shape.of_data;
    return shape;
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
        shape.condition = said(node);
        shape.varies = std::ranges::any_of(seen, [&](const Observed* o) { return o->numbers != first.numbers; });
        // It may be the same in all runs by chance; what is only asserted is to be the same.
        shape.varies |= shape.condition && varies(*shape.condition) && !is_only_asserted(node);
        break;
      case ValueShape::Kind::integer:
        shape.integer = number(node, seen);
        shape.varies = !shape.integer.expr.is_integer();
        break;
      case ValueShape::Kind::floating:
        shape.floating = first.floating;
        shape.varies = std::ranges::any_of(seen, [&](const Observed* o) { return o->floating != first.floating; });
        shape.real = said(node);
        shape.varies |= shape.real && varies(*shape.real);
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
  // Numbers that data decide, or that are made of such.
  bool is_of_data(const Node& node, const ValueShape& shape) const {
    using Kind = ValueShape::Kind;
    if (shape.kind == Kind::integer) return pt2::is_of_data(shape.integer.expr) || !data_.symbol_of(node).empty();
    if (shape.kind != Kind::floating && shape.kind != Kind::boolean) return false;
    if (data_.find(node)) return true;
    return std::ranges::any_of(node.all_input_nodes(), [this](Node* input) { return (*known_)[*input].of_data; });
  }

  [[noreturn]] static void fail(const Node& node, const std::string& what) {
    throw Error(
        ErrorKind::unsupported,
        "%" + node.name() + " " + what + ", and no expression was found for it; save the program for fixed sizes",
        node.name());
  }

  // What the node's arithmetic is of the numbers before it, or the symbol of what data decide.
  std::optional<SizeExpr> said(const Node& node) const {
    if (const DataSource* source = data_.find(node)) {
      const SizeExpr symbol = SizeExpr::symbol(source->symbol);
      if (source->kind == DataSource::Kind::floating) return symbol;
      if (source->kind == DataSource::Kind::boolean) return SizeExpr::call("Equality", {symbol, SizeExpr::integer(1)});
    }
    return said_by(node, [this](const Node& value) -> std::optional<SizeExpr> {
      const ValueShape& shape = (*known_)[value];
      if (shape.kind == ValueShape::Kind::integer) return shape.integer.expr;
      if (shape.kind == ValueShape::Kind::boolean) return shape.condition;
      if (shape.kind != ValueShape::Kind::floating || shape.real || shape.varies) return shape.real;
      return SizeExpr::real(shape.floating);
    });
  }

  static bool is_only_asserted(const Node& node) {
    constexpr std::string_view kJoins[] = {"operator.and_",    "operator.or_",       "operator.not_",
                                           "operator.__not__", "aten::__and__.bool", "aten::__or__.bool",
                                           "torch.sym_not"};
    for (const Node& user : node.users()) {
      if (user.target() == "torch._assert") continue;
      const std::string name = number_operator(user.target());
      if (std::ranges::find(kJoins, std::string_view(name)) == std::end(kJoins) || !is_only_asserted(user))
        return false;
    }
    return true;
  }

  // A truth value or a float of data has no number in a run.
  bool is_of_unseen(const SizeExpr& expr) const {
    bool found = false;
    expr.for_each_symbol([&](const std::string& name) {
      found |= std::ranges::any_of(data_.all(), [&](const DataSource& source) {
        return source.symbol == name &&
               (source.kind == DataSource::Kind::boolean || source.kind == DataSource::Kind::floating);
      });
    });
    return found;
  }

  SymbolicSize number(const Node& node, const std::vector<const Observed*>& seen) {
    const std::optional<SizeExpr> expr = said(node);
    if (expr && is_of_unseen(*expr)) return {*expr, seen[0]->numbers[0]};
    return size(node, seen, 0, expr);
  }

  // `said`: what the call says of it.
  SymbolicSize size(const Node& node, const std::vector<const Observed*>& seen, std::size_t at,
                    const std::optional<SizeExpr>& said = {}) {
    std::vector<Number> numbers;
    for (const Observed* each : seen) numbers.push_back(each->numbers[at]);
    std::optional<SizeExpr> expr = fitter_.fit(numbers);
    if (said) settle(*said, numbers, expr);
    if (!expr && unfit_) {
      std::vector<std::string> symbols = fitter_.symbols_behind(numbers);
      std::erase_if(symbols, [&](const std::string& symbol) { return data_.ranges().count(symbol) != 0; });
      unfit_->insert(symbols.begin(), symbols.end());
      if (!symbols.empty()) return {SizeExpr::integer(numbers[0]), numbers[0]};
    }
    if (!expr) fail(node, "has a size that changes with the inputs");
    return {std::move(*expr), numbers[0]};
  }

  // What the call says is so for all sizes; what was found for the runs may not be: `min(n, 4)` was 4 in all of them.
  void settle(const SizeExpr& said, const std::vector<Number>& seen, std::optional<SizeExpr>& found) {
    if (said.is_real() || !fitter_.explains(said, seen)) return;
    const std::optional<Symbols> other =
        found ? where_they_differ(*found, said, example_, ranges_, inputs_.takes) : std::nullopt;
    if (found && !other) return;
    if (other && std::ranges::all_of(*other, [](const auto& each) { return each.second <= kFarthestRun; }))
      doubts.push_back(*other);
    fitter_.learn(seen, said);
    found = said;
  }

  // What is known of a value before it, as rows of sizes take it.
  static AbstractValue abstract(const ValueShape& shape) {
    switch (shape.kind) {
      case ValueShape::Kind::tensor: {
        TensorType type{shape.tensor.dtype, {}, std::nullopt};
        for (const SymbolicSize& size : shape.tensor.sizes) type.sizes.push_back(size.expr.simplified());
        return type;
      }
      case ValueShape::Kind::integer: return shape.integer.expr.simplified();
      case ValueShape::Kind::list: {
        AbstractValue::List list;
        for (const ValueShape& each : shape.elements) list.push_back(abstract(each));
        return list;
      }
      default: return {};
    }
  }

  // The sizes that the call's row says, which vary; none where it says nothing.
  std::vector<SizeExpr> said_sizes(const Node& node) const {
    const Call call = call_of(node);
    if (!call || node.all_input_nodes().empty()) return {};
    SizeFacts facts;
    for (const auto& [symbol, value] : example_) {
      const auto range = ranges_.find(symbol);
      facts.declare(symbol, range == ranges_.end() ? SizeRange{0, std::nullopt} : range->second);
    }
    AbstractValue::List arguments;
    for (std::size_t i = 0; i < call.schema().arguments.size(); ++i) {
      const Argument* argument = call.argument(i);
      arguments.push_back(argument
                              ? AbstractValue::of(*argument, [this](const Node& of) { return abstract((*known_)[of]); })
                              : AbstractValue::literal(Argument()));
    }
    FreshSymbols fresh;
    const InferredCall made = infer(call.schema(), arguments, facts, fresh);
    const TensorType* tensor = made.results.size() == 1 ? made.results[0].tensor() : nullptr;
    return tensor && fresh.empty() ? tensor->sizes : std::vector<SizeExpr>();
  }

  TensorMeta tensor(const Node& node, const std::vector<const Observed*>& seen) {
    const Observed& first = *seen[0];
    TensorMeta meta;
    meta.dtype = first.dtype;
    meta.device = first.device;
    meta.requires_grad = first.requires_grad;
    const std::size_t rank = first.numbers.size() / 2;
    const TensorMeta* const input = inputs_.input_at(node);
    std::vector<SizeExpr> said;
    if (input) {
      for (const SymbolicSize& size : input->sizes) said.push_back(size.expr);
    } else {
      said = said_sizes(node);
    }
    for (std::size_t i = 0; i < rank; ++i) {
      const bool varies_so = said.size() == rank && (input || varies(said[i]));
      meta.sizes.push_back(size(node, seen, i, varies_so ? std::optional(said[i]) : std::nullopt));
    }
    for (std::size_t i = 0; i < rank; ++i) meta.strides.push_back(stride(node, seen, i, meta.sizes));
    return meta;
  }

  // Where no expression explains all runs, what it is of the sizes in the example and in most: the product of those
  // behind it. A tensor without elements has other strides, and `reshape` gives a view where the sizes happen to allow
  // one.
  SymbolicSize stride(const Node& node, const std::vector<const Observed*>& seen, std::size_t at,
                      const std::vector<SymbolicSize>& sizes) {
    std::vector<Number> numbers;
    for (const Observed* each : seen) numbers.push_back(each->numbers[sizes.size() + at]);
    if (fitter_.fit(numbers)) return size(node, seen, sizes.size() + at);
    std::vector<SizeExpr> behind;
    Number product = 1;
    for (std::size_t i = at + 1; i < sizes.size(); ++i) {
      product *= seen[0]->numbers[i];
      if (sizes[i].expr != SizeExpr::integer(1)) behind.push_back(sizes[i].expr);
    }
    std::size_t others = 0;
    for (const Observed* each : seen) {
      Number here = 1;
      for (std::size_t i = at + 1; i < sizes.size(); ++i) here *= each->numbers[i];
      others += here != each->numbers[sizes.size() + at];
    }
    const bool is_dense = product == numbers[0] && !behind.empty() && others < seen.size() / 2;
    if (!is_dense) return size(node, seen, sizes.size() + at);
    return {behind.size() == 1 ? behind[0] : SizeExpr::call("Mul", std::move(behind)), numbers[0]};
  }

  SizeFitter fitter_;
  const Symbols& example_;
  const SizeRanges& ranges_;
  const SizedInputs& inputs_;
  const DataSizes& data_;
  std::set<std::string>* unfit_;
  const ValueShapes* known_ = nullptr;
};  // namespace fx::pt2

/// What more runs should tell apart.
struct Open {
  std::set<std::string> guessed;
  std::vector<Symbols> doubts;
};

SymbolicShapes combine_runs(const Graph& graph, const Runs& runs, const SizedInputs& inputs, const SizeRanges& ranges,
                            std::set<std::string>* unfit, Open& open) {
  Combiner combiner(runs, inputs, ranges, unfit);
  const auto combine = [&](const Graph& of, const auto& seen_of) {
    ValueShapes shapes(of);
    for (const Node& node : of.nodes()) {
      std::vector<const Observed*> values;
      for (const Seen& each : runs.seen) values.push_back(&seen_of(each)[node]);
      shapes[node] = combiner.combine(node, values, shapes);
    }
    return shapes;
  };
  SymbolicShapes shapes{combine(
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

SymbolicShapes find_value_shapes(GraphModule& module, const Graph& graph, const Symbols& sizes,
                                 const SizeRanges& ranges_of_sizes, const SizedInputs& inputs,
                                 std::set<std::string>* unfit) {
  const at::NoGradGuard no_grad;
  Runs runs(module, graph, inputs);
  Symbols example = sizes;
  SizeRanges ranges = ranges_of_sizes;
  runs.find_data(example, ranges);
  const auto range_of = [&](const std::string& symbol) {
    const auto range = ranges.find(symbol);
    return range == ranges.end() ? SizeRange() : range->second;
  };
  runs.add(example);
  for (const auto& [symbol, value] : example) runs.add_each(symbol, range_of(symbol));
  if (example.size() > 1) runs.add_all_changed();
  if (example.size() > 1) runs.add_turned_round(ranges);
  if (!runs.data().empty() && runs.choices.size() < 2) runs.add(example);
  Open open;
  SymbolicShapes shapes = combine_runs(graph, runs, inputs, ranges, unfit, open);
  if (!unfit || unfit->empty()) {
    for (const std::string& symbol : open.guessed) runs.add_more(symbol, range_of(symbol));
    if (!open.guessed.empty()) shapes = combine_runs(graph, runs, inputs, ranges, unfit, open);
    if (!open.doubts.empty() && runs.add_doubts(open.doubts))
      shapes = combine_runs(graph, runs, inputs, ranges, unfit, open);
  }
  shapes.data = runs.take_data();
  shapes.data_examples = std::move(example);
  for (const auto& [symbol, value] : sizes) shapes.data_examples.erase(symbol);
  return shapes;
}

}  // namespace fx::pt2
