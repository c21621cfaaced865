#include <fxgraph/export/guards.h>

#include <algorithm>
#include <utility>

#include <fxgraph/contract/assertions.h>
#include <fxgraph/effects/effects_of.h>
#include <fxgraph/export/input_notes.h>

namespace fx::pt2 {
namespace {

class Builder {
 public:
  explicit Builder(const SizeRanges& ranges) : ranges_(ranges) {}

  std::shared_ptr<GraphModule> build(const std::vector<CheckedInput>& inputs, const std::vector<StatedGuard>& guards,
                                     bool check_sizes) {
    std::vector<Node*> values(inputs.size());
    const auto type = [&](std::size_t i) {
      const std::string name = inputs[i].kind == CheckedInput::Kind::number ? "int" : inputs[i].type;
      if (!name.empty()) values[i]->meta().set(meta_key::kType, name);
    };
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].whole != CheckedInput::kNone) continue;
      values[i] = &graph_.placeholder(inputs[i].name);
      if (inputs[i].spec) values[i]->meta().set(kTreeNote, *inputs[i].spec);
      type(i);
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const CheckedInput& input = inputs[i];
      if (!values[i]) {
        values[i] = &graph_.call_function("operator.getitem", {*values[input.whole], input.key});
        type(i);
      }
      const bool is_size = input.kind == CheckedInput::Kind::tensor || input.kind == CheckedInput::Kind::number;
      if (check_sizes || !is_size) add(input, *values[i]);
    }
    settle();
    for (const StatedGuard& each : guards) {
      bool can_be_asked = true;
      std::map<std::string, Argument> numbers;
      each.guard.for_each_symbol([&](const std::string& symbol) {
        const AskedSize asked = AskedSize::of(symbol);
        const auto input = std::ranges::find(inputs, asked.leaf, &CheckedInput::leaf);
        const bool is_known = input != inputs.end() && has(*input, asked);
        can_be_asked = can_be_asked && is_known;
        if (!is_known || numbers.contains(symbol)) return;
        Node& value = *values[static_cast<std::size_t>(input - inputs.begin())];
        const char* question = asked.kind == "size" ? "aten::size.int" : "aten::stride.int";
        numbers[symbol] =
            asked.kind == "value" ? Argument(value) : Argument(graph_.call_function(question, {value, asked.number}));
      });
      const auto number_of = [&](const std::string& symbol) { return numbers.at(symbol); };
      if (can_be_asked) write_.add(write_.number(each.guard, number_of), "the inputs must satisfy " + each.text);
    }
    eliminate_dead_code(graph_);
    if (graph_.find_nodes(Op::call_function, Symbol("torch._assert")).empty()) return nullptr;
    graph_.output(Argument());
    return std::make_shared<GraphModule>(std::move(graph_), "GuardsFn");
  }

 private:
  /// A size in the program and the expression that it must be equal to.
  struct Size {
    Node* node;
    SizeExpr expr;
    std::string what;
  };

  static bool has(const CheckedInput& input, const AskedSize& asked) {
    if (input.kind == CheckedInput::Kind::literal) return asked.kind == "value" && input.literal.is_int();
    if (input.kind != CheckedInput::Kind::tensor) return asked.kind == "value";
    return asked.kind != "value" && asked.number < static_cast<std::int64_t>(input.tensor.sizes.size());
  }

  void add(const CheckedInput& input, Node& value) {
    if (input.kind == CheckedInput::Kind::literal) return add_literal(input, value);
    if (input.kind == CheckedInput::Kind::container) {
      const auto length = static_cast<std::int64_t>(input.length);
      return write_.add(SizeRelation::equal, graph_.call_function("builtins.len", {value}), length,
                        input.path + " must have " + std::to_string(length) + (length == 1 ? " element" : " elements"));
    }
    if (input.kind == CheckedInput::Kind::number) {
      sizes_.push_back({&value, input.number, "the input '" + input.name + "'"});
      return;
    }
    const auto rank = static_cast<std::int64_t>(input.tensor.sizes.size());
    write_.add(SizeRelation::equal, graph_.call_function("aten::dim", {value}), rank,
               "the input '" + input.name + "' must have " + std::to_string(rank) + " dimensions");
    for (std::int64_t i = 0; i < rank; ++i) {
      sizes_.push_back({&graph_.call_function("aten::size.int", {value, i}),
                        input.tensor.sizes[static_cast<std::size_t>(i)].expr,
                        "the size of the input '" + input.name + "' in dimension " + std::to_string(i)});
    }
  }

  // The graph holds for this value only: what it computes of others was decided when the program was exported.
  void add_literal(const CheckedInput& input, Node& value) {
    write_.add(SizeRelation::equal, value, input.literal,
               input.path + " must be " + to_string(input.literal) + ", for which alone the program was exported");
  }

  // Symbols that are a size themselves are known first; then those that a size is a multiple of or off by a number.
  void settle() {
    for (const Size& size : sizes_) {
      if (size.expr.is_symbol() && !symbols_.count(size.expr.name())) learn(size.expr, *size.node, size.what);
    }
    for (const Size& size : sizes_) solve(size.expr, *size.node, size.what);
    for (const Size& size : sizes_) {
      if (size.expr.is_symbol() && symbols_.at(size.expr.name()) == size.node) continue;
      write_.add(SizeRelation::equal, *size.node, value_of(size.expr, size.what),
                 size.what + " must be " + size.expr.str());
    }
  }

  void learn(const SizeExpr& symbol, Node& value, const std::string& what) {
    symbols_[symbol.name()] = &value;
    const auto found = ranges_.find(symbol.name());
    if (found == ranges_.end()) return;
    const SizeRange& range = found->second;
    const std::string must = what + " must be ";
    // Export takes none and one for sizes that never vary, and says "2 or more" of every other; programs run there,
    // too, and what tells them apart is a guard of its own. As in Python, a bound of two is not checked.
    if (range.min && *range.min > 0 && *range.min != 2)
      write_.add(SizeRelation::at_least, value, *range.min, must + "at least " + std::to_string(*range.min));
    if (range.max) write_.add(SizeRelation::at_most, value, *range.max, must + "at most " + std::to_string(*range.max));
  }

  void solve(const SizeExpr& expr, Node& value, const std::string& what) {
    if (expr.is_symbol() && !symbols_.count(expr.name())) return learn(expr, value, what);
    if (expr.kind() != SizeExpr::Kind::call || expr.operands().size() != 2) return;
    const bool first = expr.operands()[0].is_integer();
    const SizeExpr& number = expr.operands()[first ? 0 : 1];
    const SizeExpr& rest = expr.operands()[first ? 1 : 0];
    if (!number.is_integer() || is_known(rest)) return;
    if (expr.name() == "Add") {
      solve(rest, graph_.call_function("aten::sub.int", {value, number.value()}), what);
    } else if (expr.name() == "Mul" && number.value() > 0) {
      write_.add(SizeRelation::equal, graph_.call_function("aten::remainder.int", {value, number.value()}), 0,
                 what + " must be " + expr.str());
      solve(rest, graph_.call_function("aten::floordiv.int", {value, number.value()}), what);
    }
  }

  bool is_known(const SizeExpr& expr) const {
    bool known = true;
    expr.for_each_symbol([&](const std::string& name) { known &= symbols_.count(name) != 0; });
    return known;
  }

  Argument value_of(const SizeExpr& expr, const std::string& what) {
    try {
      if (is_known(expr))
        return write_.number(expr, [this](const std::string& symbol) { return Argument(symbols_.at(symbol)); });
    } catch (const Error&) {  // no arithmetic of whole numbers
    }
    throw Error(ErrorKind::unsupported,
                what + " is " + expr.str() + ", which cannot be checked; load the program with check_sizes = false");
  }

  const SizeRanges& ranges_;
  Graph graph_;
  const AssertionWriter write_{graph_};
  std::vector<Size> sizes_;
  std::map<std::string, Node*> symbols_;
};

}  // namespace

std::shared_ptr<GraphModule> make_guards(const std::vector<CheckedInput>& inputs, const SizeRanges& ranges,
                                         const std::vector<StatedGuard>& guards, bool check_sizes) {
  return Builder(ranges).build(inputs, guards, check_sizes);
}

}  // namespace fx::pt2
