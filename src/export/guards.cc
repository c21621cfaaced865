#include <fxgraph/export/guards.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <fxgraph/contract/assertions.h>
#include <fxgraph/contract/contract.h>
#include <fxgraph/effects/effects_of.h>
#include <fxgraph/effects/inlining.h>
#include <fxgraph/support/error.h>
#include <fxgraph/symbolic/size_text.h>
#include <fxgraph/text/print.h>

namespace fx::pt2 {
namespace {

constexpr std::string_view kOfADimension[] = {"size", "stride"};
constexpr std::string_view kOfAll[] = {"dim", "numel"};

/// Reads what is asked of an input, at the beginning of a text.
class AskedReader {
 public:
  explicit AskedReader(std::string_view text) : text_(text) {}

  std::optional<AskedSize> read(const GuardPath& leaf_of) {
    if (!take("L")) return std::nullopt;
    std::vector<GuardStep> path;
    while (take("[")) {
      path.push_back(step());
      if (!take("]")) return std::nullopt;
    }
    const std::optional<std::size_t> leaf = is_read_ ? leaf_of(path) : std::nullopt;
    if (!leaf) return std::nullopt;
    if (!take(".")) return AskedSize{"value", *leaf};
    for (const std::string_view kind : kOfAll) {
      if (take(std::string(kind) + "()")) return AskedSize{std::string(kind), *leaf};
    }
    for (const std::string_view kind : kOfADimension) {
      if (!take(std::string(kind) + "()[")) continue;
      AskedSize asked{std::string(kind), *leaf, number()};
      return take("]") && is_read_ ? std::optional(asked) : std::nullopt;
    }
    return std::nullopt;
  }
  std::size_t length() const { return at_; }

 private:
  GuardStep step() {
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') return {"", number()};
    const std::size_t end = text_.find(quote, at_ + 1);
    is_read_ = is_read_ && end != std::string_view::npos;
    if (!is_read_) return {};
    GuardStep found{std::string(text_.substr(at_ + 1, end - at_ - 1))};
    at_ = end + 1;
    return found;
  }
  std::int64_t number() {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    is_read_ = is_read_ && error == std::errc() && value >= 0;
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }
  bool take(std::string_view token) {
    const bool is_there = text_.substr(at_).starts_with(token);
    if (is_there) at_ += token.size();
    return is_there;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool is_read_ = true;
};

/// `Min` is `torch.sym_min` in Python.
SizeExpr in_python(const SizeExpr& guard) {
  if (guard.operands().empty()) return guard;
  std::vector<SizeExpr> operands;
  std::ranges::transform(guard.operands(), std::back_inserter(operands), in_python);
  const std::string& name = guard.name();
  return SizeExpr::call(name == "Min" ? "torch.sym_min" : name == "Max" ? "torch.sym_max" : name, std::move(operands));
}

// `x[1]['scale']`, as the caller has it.
std::string path_of(const Node& part) {
  if (part.is(Op::placeholder)) return part.target().str();
  return path_of(part.arg(0).node()) + "[" + to_string(part.arg(1)) + "]";
}

class GuardsBuilder {
 public:
  GuardsBuilder(const std::vector<CheckedInput>& inputs, const SizeRanges& ranges) : inputs_(inputs), ranges_(ranges) {}

  std::shared_ptr<GraphModule> build(const std::vector<StatedGuard>& reasons, const std::vector<StatedGuard>& guards,
                                     bool check_sizes) {
    for (const CheckedInput& input : inputs_) {
      if (input.node->is(Op::placeholder)) take(input, graph_.placeholder(input.node->name()));
    }
    for (const CheckedInput& input : inputs_) {
      if (!input.node->is(Op::placeholder)) {
        Node& whole = *values_.at(&input.node->arg(0).node());
        take(input, graph_.call_function("operator.getitem", {whole, input.node->arg(1)}));
      }
      for (const StatedGuard& each : reasons) {
        if (input.value && rank_asked(each.guard) == input.leaf) state(each);
      }
      if (check_sizes || !input.value || input.value->literal) add(input);
    }
    for (const StatedGuard& each : reasons) {
      if (!rank_asked(each.guard)) state(each);
    }
    settle();
    for (const StatedGuard& each : guards) state(each);
    drop_implied_assertions(graph_);
    eliminate_dead_code(graph_);
    if (graph_.find_nodes(Op::call_function, Symbol("torch._assert")).empty()) return nullptr;
    graph_.output(Argument());
    return std::make_shared<GraphModule>(std::move(graph_), "GuardsFn");
  }

 private:
  /// What is asked of an input, and what it must be in the archive's symbols.
  struct Size {
    SizeExpr asked;
    SizeExpr expr;
    std::string what;
  };

  void take(const CheckedInput& input, Node& value) {
    values_[input.node] = &value;
    const std::string type = input.value && input.value->number ? "int" : input.type;
    if (input.spec && value.is(Op::placeholder)) value.meta().set(kTreeNote, *input.spec);
    if (!type.empty()) value.meta().set(meta_key::kType, type);
  }

  static bool has(const CallValue& value, const AskedSize& asked) {
    if (value.literal) return asked.kind == "value" && value.literal->is_int();
    if (!value.tensor) return asked.kind == "value";
    const bool is_of_all = std::ranges::find(kOfAll, asked.kind) != std::end(kOfAll);
    return is_of_all || (asked.kind != "value" && asked.number < std::ssize(value.tensor->sizes));
  }

  /// The value whose number of dimensions is all that a guard asks for.
  static std::optional<std::size_t> rank_asked(const SizeExpr& guard) {
    std::set<std::string> symbols;
    guard.for_each_symbol([&](const std::string& symbol) { symbols.insert(symbol); });
    const AskedSize asked = symbols.size() == 1 ? AskedSize::of(*symbols.begin()) : AskedSize();
    return asked.kind == "dim" ? std::optional(asked.leaf) : std::nullopt;
  }

  bool can_be_asked(const std::string& symbol) const {
    const AskedSize asked = AskedSize::of(symbol);
    const auto input = std::ranges::find(inputs_, asked.leaf, &CheckedInput::leaf);
    return input != inputs_.end() && has(*input->value, asked);
  }

  // What cannot be asked of the inputs is left out.
  void state(const StatedGuard& stated) {
    bool all = true;
    stated.guard.for_each_symbol([&](const std::string& symbol) { all = all && can_be_asked(symbol); });
    if (all) state(condition_of(stated.guard), stated.message);
  }

  void state(const SizeCondition& condition, const std::string& message) {
    condition.for_each_symbol([&](const std::string& symbol) { ask(symbol); });
    write_.add(
        condition, [&](const std::string& symbol) { return numbers_.at(symbol); }, message);
  }

  /// Once: the number that a symbol stands for.
  void ask(const std::string& symbol) {
    if (numbers_.contains(symbol)) return;
    const AskedSize asked = AskedSize::of(symbol);
    Node& value = *values_.at(std::ranges::find(inputs_, asked.leaf, &CheckedInput::leaf)->node);
    numbers_[symbol] = asked.kind == "value"    ? Argument(value)
                       : asked.kind == "size"   ? graph_.call_function("aten::size.int", {value, asked.number})
                       : asked.kind == "stride" ? graph_.call_function("aten::stride.int", {value, asked.number})
                       : asked.kind == "dim"    ? graph_.call_function("aten::dim", {value})
                                                : graph_.call_function("aten::numel", {value});
  }

  void add(const CheckedInput& input) {
    Node& value = *values_.at(input.node);
    if (input.spec) {
      const auto length = static_cast<std::int64_t>(input.spec->children.size());
      return write_.add(
          SizeRelation::equal, graph_.call_function("builtins.len", {value}), length,
          path_of(*input.node) + " must have " + std::to_string(length) + (length == 1 ? " element" : " elements"));
    }
    // The graph holds for this value only: what it computes of others was decided when the program was exported.
    if (const std::optional<Argument>& literal = input.value->literal)
      return write_.add(
          SizeRelation::equal, value, *literal,
          path_of(*input.node) + " must be " + to_string(*literal) + ", for which alone the program was exported");
    const std::string name = "the input '" + input.node->name() + "'";
    if (input.value->number) {
      sizes_.push_back({AskedSize{"value", input.leaf}.symbol(), input.value->number->expr, name});
      return;
    }
    const std::vector<SymbolicSize>& sizes = input.value->tensor->sizes;
    const auto rank = std::ssize(sizes);
    state({SizeRelation::equal, AskedSize{"dim", input.leaf}.symbol(), rank},
          name + " must have " + std::to_string(rank) + " dimensions");
    for (std::int64_t i = 0; i < rank; ++i) {
      sizes_.push_back({AskedSize{"size", input.leaf, i}.symbol(), sizes[static_cast<std::size_t>(i)].expr,
                        "the size of " + name + " in dimension " + std::to_string(i)});
    }
  }

  // Symbols that are a size themselves are known first; then those that a size is a multiple of or off by a number.
  void settle() {
    for (const Size& size : sizes_) {
      if (size.expr.is_symbol()) learn(size.expr, size.asked, size.what);
    }
    for (const Size& size : sizes_) solve(size.expr, size.asked, size);
    for (const Size& size : sizes_) {
      const std::optional<SizeExpr> value = in_what_is_asked(size.expr);
      if (!value || !AssertionWriter::can_write(*value))
        throw Error(ErrorKind::unsupported, size.what + " is " + size.expr.str() +
                                                ", which cannot be checked; load the program with check_sizes = false");
      if (*value != size.asked)
        state({SizeRelation::equal, size.asked, *value}, size.what + " must be " + size.expr.str());
    }
  }

  void learn(const SizeExpr& symbol, const SizeExpr& value, const std::string& what) {
    const auto range = ranges_.find(symbol.name());
    if (!symbols_.emplace(symbol.name(), value).second || range == ranges_.end()) return;
    const auto& [min, max] = range->second;
    const std::string must = what + " must be ";
    // Export takes none and one for sizes that never vary, and says "2 or more" of every other; programs run there,
    // too, and what tells them apart is a guard of its own. As in Python, a bound of two is not checked.
    if (min && *min > 0 && *min != 2)
      state({SizeRelation::at_least, value, *min}, must + "at least " + std::to_string(*min));
    if (max) state({SizeRelation::at_most, value, *max}, must + "at most " + std::to_string(*max));
  }

  void solve(const SizeExpr& expr, const SizeExpr& value, const Size& size) {
    if (expr.is_symbol()) return learn(expr, value, size.what);
    if (expr.kind() != SizeExpr::Kind::call || expr.operands().size() != 2) return;
    const bool first = expr.operands()[0].is_integer();
    const SizeExpr& number = expr.operands()[first ? 0 : 1];
    const SizeExpr& rest = expr.operands()[first ? 1 : 0];
    if (!number.is_integer() || in_what_is_asked(rest)) return;
    if (expr.is_call("Add")) {
      solve(rest, value - number, size);
    } else if (expr.is_call("Mul") && number.value() > 0) {
      state({SizeRelation::multiple, value, number}, size.what + " must be " + expr.str());
      solve(rest, floor_div(value, number), size);
    }
  }

  /// Nothing where some symbol is not known.
  std::optional<SizeExpr> in_what_is_asked(const SizeExpr& expr) const {
    bool is_known = true;
    expr.for_each_symbol([&](const std::string& name) { is_known = is_known && symbols_.contains(name); });
    if (!is_known) return std::nullopt;
    return expr.substituted([&](const SizeExpr& symbol) { return symbols_.at(symbol.name()); });
  }

  const std::vector<CheckedInput>& inputs_;
  const SizeRanges& ranges_;
  Graph graph_;
  const AssertionWriter write_{graph_};
  std::map<const Node*, Node*> values_;  // of the program's; looked up, not gone through
  std::map<std::string, Argument> numbers_;
  std::vector<Size> sizes_;
  std::map<std::string, SizeExpr> symbols_;  // the archive's
};

}  // namespace

SizeExpr AskedSize::symbol() const {
  const std::string name = "L['flat_args'][" + std::to_string(leaf) + "]";
  if (kind == "value") return SizeExpr::symbol(name);
  const bool is_of_all = std::ranges::find(kOfAll, kind) != std::end(kOfAll);
  return SizeExpr::symbol(name + "." + kind + "()" + (is_of_all ? "" : "[" + std::to_string(number) + "]"));
}

AskedSize AskedSize::of(std::string_view symbol) {
  return AskedReader(symbol)
      .read([](const std::vector<GuardStep>& path) { return static_cast<std::size_t>(path.at(1).index); })
      .value();
}

std::optional<SizeExpr> parse_guard(std::string_view text, const GuardPath& leaf_of) {
  try {
    return read_size(text, [&](std::string_view rest) -> std::optional<NameInText> {
      AskedReader reader(rest);
      const std::optional<AskedSize> asked = reader.read(leaf_of);
      return asked ? std::optional(NameInText{reader.length(), asked->symbol()}) : std::nullopt;
    });
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string guard_text(const SizeExpr& guard) { return in_python(guard).str(); }

SizeExpr guard_of(const SizeCondition& condition) {
  const auto& [relation, left, right] = condition;
  if (relation == SizeRelation::holds) return left;
  if (relation == SizeRelation::multiple)
    return SizeExpr::call("Equality", {SizeExpr::call("PythonMod", {left, right}), SizeExpr(0)});
  return SizeExpr::call(std::string(function_of(relation)), {left, right});
}

std::shared_ptr<GraphModule> make_guards(const std::vector<CheckedInput>& inputs, const SizeRanges& ranges,
                                         const std::vector<StatedGuard>& reasons,
                                         const std::vector<StatedGuard>& guards, bool check_sizes) {
  return GuardsBuilder(inputs, ranges).build(reasons, guards, check_sizes);
}

std::string text_of(const GraphModule& module) {
  const auto checks_at = [&](const Node&, const std::string& path) -> std::shared_ptr<const Graph> {
    const auto checks = path == kGuards ? module.find_submodule(path) : nullptr;
    const auto graph_module = std::dynamic_pointer_cast<GraphModule>(checks);
    return graph_module ? std::make_shared<const Graph>(graph_module->graph().clone()) : nullptr;
  };
  return print_graph(inline_calls(module.graph(), checks_at).graph);
}

}  // namespace fx::pt2
