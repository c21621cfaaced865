#include <fxgraph/shapes/call_fit.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fxgraph/contract/arithmetic.h>
#include <fxgraph/effects/effects_of.h>
#include <fxgraph/module/interpreter.h>
#include <fxgraph/module/state_keeper.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/ops/records/operator_flags.h>
#include <fxgraph/run/value.h>
#include <fxgraph/shapes/fake_input.h>
#include <fxgraph/symbolic/size_facts.h>

namespace fx {
namespace {

using Number = std::int64_t;
using Numbers = std::vector<Number>;
using Symbols = std::map<std::string, Number>;

/// An expression of the arguments, and what it is in each run.
struct Atom {
  SizeExpr expr;
  Numbers values;
};

/// The numbers of one call's runs.
class Fit {
 public:
  Fit(const std::set<SizeExpr>& sizes, const std::vector<Symbols>& runs) {
    for (const SizeExpr& size : sizes) add(size, runs);
    const std::size_t single = atoms_.size();
    for (std::size_t i = 0; i < single; ++i) {
      add(atoms_[i].expr * atoms_[i].expr, runs);
      for (std::size_t j = 0; j < i; ++j) {
        const SizeExpr a = atoms_[i].expr, b = atoms_[j].expr;
        for (const SizeExpr& both : {a + b, a - b, a * b, min(a, b), max(a, b)}) add(both, runs);
      }
    }
  }

  std::optional<SizeExpr> find(const Numbers& seen) const {
    if (std::ranges::all_of(seen, [&](Number each) { return each == seen[0]; })) return SizeExpr(seen[0]);
    for (const Number divisor : {1, 2, 3, 4}) {
      for (const Atom& atom : atoms_) {
        if (std::optional<SizeExpr> found = quotient(atom, divisor, seen)) return found;
      }
    }
    return std::nullopt;
  }

 private:
  void add(const SizeExpr& expr, const std::vector<Symbols>& runs) {
    Atom atom{expr, {}};
    for (const Symbols& run : runs) {
      const std::optional<Number> value = expr.evaluate(run);
      if (!value) return;
      atom.values.push_back(*value);
    }
    atoms_.push_back(std::move(atom));
  }

  /// (factor·atom + shift) // divisor.
  static std::optional<SizeExpr> quotient(const Atom& atom, Number divisor, const Numbers& seen) {
    constexpr Number kMost = 8;
    const auto other = std::ranges::find_if(atom.values, [&](Number each) { return each != atom.values[0]; });
    if (other == atom.values.end()) return std::nullopt;
    const Number by = *other - atom.values[0];
    const Number change = seen[static_cast<std::size_t>(other - atom.values.begin())] - seen[0];
    if (divisor == 1 && change % by != 0) return std::nullopt;
    const Number factor = divisor == 1 ? change / by : 1;
    const Number least = divisor == 1 ? seen[0] - factor * atom.values[0] : -kMost;
    for (Number shift = least; shift <= (divisor == 1 ? least : kMost); ++shift) {
      const auto at = [&](Number value) {
        const Number above = factor * value + shift;
        return above / divisor - (above % divisor < 0 ? 1 : 0);
      };
      bool fits = true;
      for (std::size_t run = 0; run < seen.size() && fits; ++run) fits = at(atom.values[run]) == seen[run];
      if (fits) return floor_div(SizeExpr(factor) * atom.expr + SizeExpr(shift), SizeExpr(divisor));
    }
    return std::nullopt;
  }

  std::vector<Atom> atoms_;
};

void collect(const AbstractValue& value, const SizeFacts& facts, std::set<SizeExpr>& sizes,
             std::set<std::string>& symbols, bool& known) {
  const auto add = [&](const SizeExpr& size) {
    if (size.is_integer()) return;
    sizes.insert(size);
    size.for_each_symbol([&](const std::string& name) { symbols.insert(name); });
  };
  known &= value.is_known();
  if (value.tensor()) std::ranges::for_each(value.tensor()->sizes, add);
  if (value.number()) {
    add(*value.number());
    // Below zero an argument often means something else, and no run shows it.
    known &= !value.number()->is_of_data() || facts.range(*value.number()).min.value_or(-1) >= 0;
  }
  if (value.list()) {
    for (const AbstractValue& each : *value.list()) collect(each, facts, sizes, symbols, known);
  }
}

std::optional<Numbers> evaluated(const std::vector<SizeExpr>& exprs, const Symbols& at) {
  Numbers numbers;
  for (const SizeExpr& each : exprs) {
    const std::optional<Number> value = each.evaluate(at);
    if (!value) return std::nullopt;
    numbers.push_back(*value);
  }
  return numbers;
}

/// Nothing where a size has no number.
std::optional<c10::IValue> made(const AbstractValue& value, const Symbols& at) {
  if (value.literal()) return to_ivalue(*value.literal());
  if (value.number()) {
    const std::optional<Number> number = value.number()->evaluate(at);
    return number ? std::optional<c10::IValue>(*number) : std::nullopt;
  }
  if (const TensorType* type = value.tensor()) {
    const std::optional<Numbers> sizes = evaluated(type->sizes, at);
    const std::optional<Numbers> strides = type->strides ? evaluated(*type->strides, at) : std::nullopt;
    if (!sizes) return std::nullopt;
    const auto options = at::TensorOptions().dtype(to_scalar_type(type->dtype)).device(at::kMeta);
    return internal::fake_input(strides ? at::empty_strided(*sizes, *strides, options) : at::empty(*sizes, options));
  }
  if (!value.list()) return std::nullopt;
  std::vector<c10::IValue> elements;
  for (const AbstractValue& each : *value.list()) {
    std::optional<c10::IValue> element = made(each, at);
    if (!element) return std::nullopt;
    elements.push_back(std::move(*element));
  }
  return c10::ivalue::Tuple::create(std::move(elements));
}

/// The call alone: its inputs are placeholders, but for the graphs among them.
struct Alone {
  Graph graph;
  std::vector<const Node*> inputs;

  explicit Alone(const Node& node) {
    std::map<const Node*, Node*> copies;  // looked up, not gone through
    for (const Node* input : node.all_input_nodes()) {
      if (input->is(Op::get_attr)) continue;
      copies[input] = &graph.placeholder(input->name());
      inputs.push_back(input);
    }
    for (const Node* input : node.all_input_nodes()) {
      if (input->is(Op::get_attr)) copies[input] = &graph.get_attr(input->target().str());
    }
    graph.output(graph.node_copy(node, [&](Node& input) { return Argument(*copies.at(&input)); }));
  }
};

std::vector<c10::IValue> elements_of(const c10::IValue& value) {
  if (value.isTuple()) return value.toTupleRef().elements().vec();
  return value.isList() ? value.toListRef().vec() : std::vector<c10::IValue>();
}

AbstractValue fitted(const std::vector<c10::IValue>& seen, const Fit& fit) {
  const c10::IValue& first = seen[0];
  const auto fit_number = [&](const auto& number_of) {
    Numbers numbers;
    for (const c10::IValue& each : seen) numbers.push_back(number_of(each));
    return fit.find(numbers);
  };
  if (std::ranges::any_of(seen, [&](const c10::IValue& each) { return each.tagKind() != first.tagKind(); })) return {};
  if (first.isInt()) {
    const std::optional<SizeExpr> expr = fit_number([](const c10::IValue& each) { return each.toInt(); });
    return expr ? AbstractValue(*expr) : AbstractValue();
  }
  if (first.isTuple() || first.isList()) {
    std::vector<std::vector<c10::IValue>> lists;
    for (const c10::IValue& each : seen) lists.push_back(elements_of(each));
    AbstractValue::List list;
    for (std::size_t i = 0; i < lists[0].size(); ++i) {
      std::vector<c10::IValue> elements;
      for (const std::vector<c10::IValue>& each : lists) {
        if (each.size() != lists[0].size()) return {};
        elements.push_back(each[i]);
      }
      list.push_back(fitted(elements, fit));
    }
    return list;
  }
  const auto is_alike = [&](const c10::IValue& each) {
    const at::Tensor &tensor = each.toTensor(), &like = first.toTensor();
    return tensor.defined() && tensor.layout() == at::kStrided && tensor.scalar_type() == like.scalar_type() &&
           tensor.dim() == like.dim();
  };
  if (!first.isTensor() || !first.toTensor().defined() || !std::ranges::all_of(seen, is_alike)) return {};
  TensorType type{to_dtype(first.toTensor().scalar_type()), {}, std::vector<SizeExpr>()};
  for (Number dim = 0; dim < first.toTensor().dim(); ++dim) {
    const auto size = fit_number([&](const c10::IValue& each) { return each.toTensor().size(dim); });
    const auto stride = fit_number([&](const c10::IValue& each) { return each.toTensor().stride(dim); });
    if (!size) return {};
    type.sizes.push_back(*size);
    if (stride && type.strides) {
      type.strides->push_back(*stride);
    } else {
      type.strides.reset();
    }
  }
  return type;
}

/// Runs on other data, or on values that lie otherwise, would not show the same.
bool hangs_on_more(const Node& node, const std::function<const AbstractValue&(const Node&)>& value_of) {
  const Call call = call_of(node);
  const Symbol target = call ? call.schema().target : node.target();
  if (call && (data_decide_sizes(call) || has_flag(target, OperatorFlag::reads_data))) return true;
  const bool is_index = target == "aten::index.Tensor" || node.is_call(python::kGetItem);
  const bool by_strides =
      has_flag(target, OperatorFlag::raises_by_strides) || has_flag(target, OperatorFlag::differs_by_strides);
  return std::ranges::any_of(node.all_input_nodes(), [&](const Node* input) {
    const TensorType* type = value_of(*input).tensor();
    const bool is_mask = type && (type->dtype == DType::boolean || type->dtype == DType::uint8);
    return (is_index && is_mask) || (by_strides && type && !type->strides);
  });
}

}  // namespace

AbstractValue fit_call(GraphModule& module, const Node& node,
                       const std::function<const AbstractValue&(const Node&)>& value_of, const Symbols& example,
                       const SizeRanges& ranges) {
  if (hangs_on_more(node, value_of)) return {};
  const Alone alone(node);
  std::set<SizeExpr> sizes;
  std::set<std::string> symbols;
  bool known = true;
  SizeFacts facts;
  for (const auto& [symbol, range] : ranges) facts.declare(symbol, range);
  for (const Node* input : alone.inputs) collect(value_of(*input), facts, sizes, symbols, known);
  if (!known) return {};
  const NodeEffects does = effects_of(node);
  std::optional<StateKeeper> keeper;  // attributes are the module's own
  if (does.writes || does.unknown || runs_graphs(node)) keeper.emplace(module);
  std::vector<Symbols> runs;
  std::vector<c10::IValue> seen;
  const auto run = [&](const Symbols& at) {
    try {
      std::vector<c10::IValue> inputs;
      for (const Node* input : alone.inputs) {
        std::optional<c10::IValue> value = made(value_of(*input), at);
        if (!value) return false;
        inputs.push_back(std::move(*value));
      }
      seen.push_back(Interpreter(module, alone.graph).run(std::move(inputs)));
      runs.push_back(at);
      return true;
    } catch (const std::exception&) {
      return false;
    }
  };
  if (!run(example)) return {};
  for (const std::string& symbol : symbols) {
    const auto value = example.find(symbol);
    if (value == example.end()) return {};
    const auto known_range = ranges.find(symbol);
    const SizeRange range = known_range == ranges.end() ? SizeRange() : known_range->second;
    std::size_t count = 0;
    const Number known = value->second, least = range.min.value_or(2);
    const std::set<Number> others = {least,     least + 1, least + 2, known - 1,    known + 1,
                                     known + 2, known + 3, known + 5, 2 * known + 1};
    for (const Number other : others) {
      if (other == known || other < least || other > range.max.value_or(other)) continue;
      Symbols at = example;
      at[symbol] = other;
      const bool takes = run(at);
      if (!takes && least < 2) return {};  // a condition that nobody can say
      count += takes;
    }
    constexpr std::size_t kFewest = 2;
    if (count < kFewest) return {};
  }
  Symbols all = example;
  Number more = 1;
  for (const std::string& symbol : symbols) all[symbol] += ++more;
  run(all);
  return fitted(seen, Fit(sizes, runs));
}

}  // namespace fx
