#include <fxgraph/export/value_shapes.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include <fxgraph/contract/arithmetic.h>
#include <fxgraph/contract/symbolic_shapes.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/shapes/call_fit.h>
#include <fxgraph/shapes/shape_prop.h>

namespace fx::pt2 {
namespace {

using Number = std::int64_t;

/// What rows and calls made alone say of all values, in the graphs that the program calls too.
class Inference {
 public:
  Inference(GraphModule& module, const Graph& graph, const ProgramValues& seen, const SizedInputs& inputs,
            const Symbols& example, const SizeRanges& ranges)
      : module_(module), seen_(seen), inputs_(inputs), example_(example), ranges_(ranges) {
    // As torch.export has it: a size that varies is two or more. Numbers are none.
    std::set<std::string> numbers;
    for (const DataSource& source : seen.data.all()) {
      if (source.kind == DataSource::Kind::integer) numbers.insert(source.symbol);
    }
    for (const Node* placeholder : graph.placeholders()) {
      const AbstractValue input = inputs.input_at(*placeholder);
      if (input.number() && input.number()->is_symbol()) numbers.insert(input.number()->name());
    }
    for (const auto& [symbol, value] : example) {
      SizeRange& range = ranges_[symbol];
      if (!numbers.contains(symbol)) range.min = std::max<Number>(2, range.min.value_or(2));
    }
  }

  /// Of `graph`, whose placeholders have these values.
  SymbolicShapes infer(const Graph& graph, std::vector<AbstractValue> inputs) {
    ShapeSources sources = shape_sources(module_);
    sources.ranges = ranges_;
    sources.refine = [this](const Node& node, AbstractValue value) { return refined(node, std::move(value)); };
    sources.other = [this](const UndecidedCall& call) { return undecided(call); };
    return SymbolicShapes(graph, std::move(inputs), sources);
  }

  std::map<const Graph*, SymbolicShapes> nested;  // looked up, not gone through

 private:
  AbstractValue refined(const Node& node, AbstractValue value) const {
    AbstractValue input = inputs_.input_at(node);
    if (input.is_known()) return input;
    const DataSource* source = seen_.data.find(node);
    if (!source) return value;
    const SizeExpr symbol = SizeExpr::symbol(source->symbol);
    if (source->kind != DataSource::Kind::rows) return AbstractValue(symbol);
    // The rows of the results are the source's symbol, whatever the operator's row called it.
    const AbstractValue::List* list = value.list();
    AbstractValue::List results = list ? *list : AbstractValue::List{std::move(value)};
    for (const DataSource::Place& place : source->places) {
      const TensorType* tensor = place.element < results.size() ? results[place.element].tensor() : nullptr;
      if (!tensor || place.dim >= static_cast<Number>(tensor->sizes.size())) continue;
      TensorType named = *tensor;
      named.sizes[static_cast<std::size_t>(place.dim)] = symbol;
      named.strides.reset();
      results[place.element] = std::move(named);
    }
    return list ? AbstractValue(std::move(results)) : std::move(results[0]);
  }

  AbstractValue undecided(const UndecidedCall& call) {
    if (call.node.target().view().starts_with("higher_order::")) {
      AbstractValue result = of_nested(call);
      if (result.is_known()) return result;
    }
    return fit_call(
        module_, call.node, [&](const Node& node) -> const AbstractValue& { return call.values[node]; }, example_,
        ranges_);
  }

  /// What is computed by a graph that is an argument, from those that follow it; of a branch only what all have alike.
  AbstractValue of_nested(const UndecidedCall& call) {
    std::vector<const Graph*> graphs;
    AbstractValue::List operands;
    for (const Argument& argument : call.node.args()) {
      const Node* node = argument.node_or_null();
      const auto body = node && node->is(Op::get_attr)
                            ? std::dynamic_pointer_cast<GraphModule>(module_.find_submodule(node->target().str()))
                            : nullptr;
      if (body) {
        graphs.push_back(&body->graph());
        operands.clear();
      } else {
        const AbstractValue value = AbstractValue::of(argument, [&](const Node& each) { return call.values[each]; });
        if (value.list()) {
          operands.insert(operands.end(), value.list()->begin(), value.list()->end());
        } else {
          operands.push_back(value);
        }
      }
    }
    AbstractValue result;
    for (const Graph* graph : graphs) {
      std::vector<AbstractValue> inputs = taken(*graph, operands);
      const SymbolicShapes& values = nested.insert_or_assign(graph, infer(*graph, std::move(inputs))).first->second;
      const Node* output = graph->output_node();
      const AbstractValue& made = output ? values[*output] : AbstractValue();
      result = graph == graphs[0] || call.node.target() == "higher_order::while_loop" ? made : alike(result, made);
    }
    const std::string_view name = call.node.target().view();
    return name == "higher_order::map_impl" || name.ends_with("scan") ? AbstractValue() : result;
  }

  /// A graph that is called for each row takes the operands without their first dimension.
  std::vector<AbstractValue> taken(const Graph& graph, const AbstractValue::List& operands) const {
    const auto seen = seen_.nested.find(&graph);
    std::vector<AbstractValue> inputs;
    for (const Node* placeholder : graph.placeholders()) {
      AbstractValue value = inputs.size() < operands.size() ? operands[inputs.size()] : AbstractValue();
      const TensorType* tensor = value.tensor();
      const std::size_t rank = seen == seen_.nested.end() ? 0 : seen->second[*placeholder].tensor.sizes.size();
      if (tensor && seen != seen_.nested.end() && tensor->sizes.size() == rank + 1)
        value = TensorType{tensor->dtype, {tensor->sizes.begin() + 1, tensor->sizes.end()}, {}};
      inputs.push_back(std::move(value));
    }
    return inputs;
  }

  static AbstractValue alike(const AbstractValue& a, const AbstractValue& b) {
    const TensorType *first = a.tensor(), *second = b.tensor();
    if (first && second && first->sizes == second->sizes) return a;
    if (a.number() && b.number() && *a.number() == *b.number()) return a;
    if (!a.list() || !b.list() || a.list()->size() != b.list()->size()) return {};
    AbstractValue::List both;
    for (std::size_t i = 0; i < a.list()->size(); ++i) both.push_back(alike((*a.list())[i], (*b.list())[i]));
    return both;
  }

  GraphModule& module_;
  const ProgramValues& seen_;
  const SizedInputs& inputs_;
  const Symbols& example_;
  SizeRanges ranges_;
};

/// Puts together what was inferred of a value and what it was in the example.
class Combiner {
 public:
  Combiner(const DataSizes& data, const Symbols& example, std::set<std::string>* unfit)
      : data_(data), example_(example), unfit_(unfit) {}

  /// Makes what was seen of all nodes of a graph what it is at other sizes.
  void combine(const Graph& graph, ValueShapes& shapes, const SymbolicShapes* inferred) {
    known_ = &shapes;
    for (const Node& node : graph.nodes()) {
      ValueShape& shape = shapes[node];
      combine(node, shape, inferred ? (*inferred)[node] : AbstractValue());
      shape.of_data = is_of_data(node, shape);
      shape.varies |= shape.of_data;
    }
  }

 private:
  using Kind = ValueShape::Kind;

  void combine(const Node& node, ValueShape& shape, const AbstractValue& inferred) {
    switch (shape.kind) {
      case Kind::tensor: combine(node, shape.tensor, inferred.tensor()); break;
      case Kind::boolean:
        shape.condition = said(node);
        // What is only asserted is to be the same.
        shape.varies = shape.condition && shape.condition->varies() && !is_only_asserted(node);
        break;
      case Kind::integer:
        shape.integer = number(node, shape.integer.example, inferred);
        shape.varies = !shape.integer.expr.is_integer();
        break;
      case Kind::floating:
        shape.real = said(node);
        shape.varies = shape.real && shape.real->varies();
        break;
      case Kind::list: {
        const AbstractValue::List* list = inferred.list();
        const bool has = list && list->size() == shape.elements.size();
        for (std::size_t i = 0; i < shape.elements.size(); ++i)
          combine(node, shape.elements[i], has ? (*list)[i] : AbstractValue());
        break;
      }
      default: break;
    }
  }

  // Numbers that data decide, or that are made of such.
  bool is_of_data(const Node& node, const ValueShape& shape) const {
    if (shape.kind == Kind::integer) return shape.integer.expr.is_of_data() || !data_.symbol_of(node).empty();
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
    for (const Node& user : node.users()) {
      const std::string_view joins = arithmetic_of(user.target());
      const bool is_joined = (joins == "And" || joins == "Or" || joins == "Not") && is_only_asserted(user);
      if (!is_joined && user.target() != "torch._assert") return false;
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

  SymbolicSize number(const Node& node, Number seen, const AbstractValue& inferred) {
    const std::optional<SizeExpr> expr = said(node);
    if (expr && is_of_unseen(*expr)) return {*expr, seen};
    if (expr && expr->evaluate(example_) == seen) return {*expr, seen};
    return size(node, seen, inferred.number(), inferred.literal() != nullptr);
  }

  /// `expr`: what was inferred. `is_fixed`: no size decides it.
  SymbolicSize size(const Node& node, Number seen, const SizeExpr* expr, bool is_fixed = false) {
    if (expr && (expr->is_integer() ? expr->value() == seen : expr->evaluate(example_) == seen)) return {*expr, seen};
    std::set<std::string> symbols;
    for (const Node* input : node.all_input_nodes()) add_symbols((*known_)[*input], symbols);
    if (is_fixed || symbols.empty()) return {SizeExpr(seen), seen};
    std::erase_if(symbols, [&](const std::string& symbol) { return data_.ranges().contains(symbol); });
    if (!unfit_ || symbols.empty()) fail(node, "has a size that changes with the inputs");
    unfit_->insert(symbols.begin(), symbols.end());
    return {SizeExpr(seen), seen};
  }

  static void add_symbols(const ValueShape& shape, std::set<std::string>& symbols) {
    const auto add = [&](const SizeExpr& expr) {
      expr.for_each_symbol([&](const std::string& symbol) { symbols.insert(symbol); });
    };
    for (const SymbolicSize& size : shape.tensor.sizes) add(size.expr);
    add(shape.integer.expr);
    if (shape.real) add(*shape.real);
    if (shape.condition) add(*shape.condition);
    for (const ValueShape& each : shape.elements) add_symbols(each, symbols);
  }

  void combine(const Node& node, TensorMeta& meta, const TensorType* type) {
    if (type && type->sizes.size() != meta.sizes.size()) type = nullptr;
    for (std::size_t i = 0; i < meta.sizes.size(); ++i)
      meta.sizes[i] = size(node, meta.sizes[i].example, type ? &type->sizes[i] : nullptr);
    for (std::size_t i = 0; i < meta.strides.size(); ++i) {
      SymbolicSize& stride = meta.strides[i];
      if (type && type->strides) stride.expr = (*type->strides)[i];
      const bool is_known = type && type->strides && stride.expr.evaluate(example_) == stride.example;
      if (is_known) continue;
      // In order, as they are in the example.
      set_strides(meta);
      break;
    }
  }

  const DataSizes& data_;
  const Symbols& example_;
  std::set<std::string>* unfit_;
  const ValueShapes* known_ = nullptr;
};

}  // namespace

ProgramValues find_values(GraphModule& module, const Graph& graph, const Symbols& sizes,
                          const SizeRanges& ranges_of_sizes, const SizedInputs& inputs, std::set<std::string>* unfit) {
  const at::NoGradGuard no_grad;
  Symbols example = sizes;
  SizeRanges ranges = ranges_of_sizes;
  ProgramValues values = observe(module, graph, inputs, example, ranges);
  Inference inference(module, graph, values, inputs, example, ranges);
  const SymbolicShapes inferred = inference.infer(graph, {});
  Combiner combiner(values.data, example, unfit);
  combiner.combine(graph, values.values, &inferred);
  for (auto& [nested, shapes] : values.nested) {
    const auto known = inference.nested.find(nested);
    combiner.combine(*nested, shapes, known == inference.nested.end() ? nullptr : &known->second);
  }
  return values;
}

namespace {

// From the last dimension on.
std::vector<std::size_t> dims_in_order(std::size_t rank) {
  std::vector<std::size_t> order(rank);
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

// No two elements of it lie in one place.
bool may_be_written(const TensorMeta& meta) {
  std::vector<std::size_t> order = dims_in_order(meta.sizes.size());
  std::ranges::sort(order, {}, [&](std::size_t dim) { return meta.strides[dim].example; });
  std::int64_t last = 0;
  for (const std::size_t dim : order) {
    if (meta.sizes[dim].example < 2) continue;
    if (meta.strides[dim].example <= last) return false;
    last += (meta.sizes[dim].example - 1) * meta.strides[dim].example;
  }
  return true;
}

}  // namespace

void set_strides(TensorMeta& meta) {
  std::vector<std::size_t> order = dims_in_order(meta.sizes.size());
  const auto is_dense = [&] {
    std::int64_t expected = 1;
    for (const std::size_t dim : order) {
      if (meta.sizes[dim].example != 1 && meta.strides[dim].example != expected) return false;
      expected *= meta.sizes[dim].example;
    }
    return true;
  };
  if (!is_dense()) {
    std::ranges::stable_sort(order, {}, [&](std::size_t dim) { return meta.strides[dim].example; });
    if (!is_dense()) order = dims_in_order(meta.sizes.size());
  }
  SizeExpr stride = SizeExpr::integer(1);
  std::int64_t example = 1;
  for (const std::size_t dim : order) {
    meta.strides[dim] = {stride, example};
    stride = stride * meta.sizes[dim].expr;
    example *= meta.sizes[dim].example;
  }
}

void lay_out(TensorMeta& meta, const std::optional<TensorMeta>& given) {
  bool is_given = given.has_value();
  for (std::size_t dim = 0; is_given && dim < meta.sizes.size(); ++dim)
    is_given = meta.sizes[dim].expr.is_integer() && meta.sizes[dim].example == given->sizes[dim].example;
  if (is_given && may_be_written(*given)) {
    meta.strides = given->strides;
  } else {
    set_strides(meta);
  }
}

}  // namespace fx::pt2
