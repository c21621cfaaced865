#include <fxgraph/contract/open_sizes.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace fx {
namespace {

std::set<std::string> symbols_in(const SizeExpr& expr) {
  std::set<std::string> symbols;
  expr.for_each_symbol([&](const std::string& name) { symbols.insert(name); });
  return symbols;
}

class OpenSizesFinder {
 public:
  OpenSizesFinder(const std::vector<TensorInfo>& examples, const SizeName& name, const ShapesOf& shapes_of)
      : examples_(examples), name_(name), shapes_of_(shapes_of) {
    for (std::size_t i = 0; i < examples.size(); ++i) {
      for (std::size_t dim = 0; dim < examples[i].sizes.size(); ++dim) example_[name(i, dim)] = examples[i].sizes[dim];
    }
  }

  OpenSizes find() {
    while (fix_some()) {
    }
    OpenSizes open;
    const SymbolicShapes shapes = shapes_of_(inputs(), ranges(kLeast)), stated = shapes_of_(inputs(), ranges(0));
    const auto stepped = [&](const SizeExpr& symbol) {
      const auto step = steps_.find(symbol.name());
      return step == steps_.end() ? symbol : SizeExpr(step->second) * symbol;
    };
    open.inputs = inputs();
    for (TensorType& input : open.inputs) {
      for (SizeExpr& size : input.sizes) {
        const SizeExpr found = shapes.facts().simplified(size);
        for (const std::string& symbol : symbols_in(found)) {
          const std::int64_t step = steps_.contains(symbol) ? steps_.at(symbol) : 1;
          SizeRange range = stated.facts().range(stated.facts().simplified(SizeExpr::symbol(symbol)));
          if (range.min) range.min = ceil_div(*range.min, step).value();
          if (range.max) range.max = floor_div(*range.max, step).value();
          if (range.min.value_or(0) > 1 || range.max) open.ranges[symbol] = range;
          if (step > 1) open.steps[symbol] = step;
        }
        size = found.substituted(stepped);
      }
      input.strides = contiguous_strides(input.sizes);
    }
    return open;
  }

 private:
  SizeExpr size_of(std::size_t input, std::size_t dim) const {
    const std::string name = name_(input, dim);
    return fixed_.contains(name) ? SizeExpr(examples_[input].sizes[dim]) : SizeExpr::symbol(name);
  }

  std::vector<TensorType> inputs() const {
    std::vector<TensorType> types;
    for (std::size_t i = 0; i < examples_.size(); ++i) {
      TensorType& type = types.emplace_back(TensorType{examples_[i].dtype, {}, {}});
      for (std::size_t dim = 0; dim < examples_[i].sizes.size(); ++dim) type.sizes.push_back(size_of(i, dim));
      type.strides = contiguous_strides(type.sizes);
    }
    return types;
  }

  static constexpr std::int64_t kLeast = 2;  // of a size that varies

  SizeRanges ranges(std::int64_t least) const {
    SizeRanges ranges;
    for (const auto& [symbol, size] : example_) {
      if (!fixed_.contains(symbol)) ranges[symbol] = {least, std::nullopt};
    }
    return ranges;
  }

  /// False when what the program asks is what the sizes are.
  bool fix_some() {
    const SymbolicShapes shapes = shapes_of_(inputs(), ranges(kLeast));
    const std::size_t before = fixed_.size();
    steps_.clear();
    if (!shapes.refused().empty()) {
      for (const auto& [symbol, size] : example_) {
        if (size < kLeast) fixed_.insert(symbol);
      }
      if (fixed_.size() == before) fix_all();
      return fixed_.size() > before;
    }
    for (const SymbolicShapes::Asked& asked : shapes.conditions()) fit(asked.condition, shapes.facts());
    return fixed_.size() > before;
  }

  /// Fixes the sizes of which the condition cannot be said otherwise: an equality that replaces no symbol, say.
  void fit(const SizeCondition& condition, const SizeFacts& facts) {
    std::set<std::string> asked = symbols_in(condition.left);
    asked.merge(symbols_in(condition.right));
    std::erase_if(asked, [&](const std::string& symbol) { return !example_.contains(symbol); });
    const auto value = [&](const SizeExpr& symbol) {
      const auto known = example_.find(symbol.name());
      return known == example_.end() ? symbol : SizeExpr(known->second);
    };
    const Answer at_example =
        SizeFacts().holds({condition.relation, condition.left.substituted(value), condition.right.substituted(value)});
    if (at_example == Answer::no) return fix_small(asked);
    if (condition.relation == SizeRelation::multiple) return fit_step(condition, asked);
    const bool is_equality = condition.relation == SizeRelation::equal;
    if (condition.relation == SizeRelation::holds || (is_equality && !holds_elsewhere(condition, facts)))
      fixed_.merge(asked);
  }

  /// Whether what is tied already makes both sides equal: products are told apart by their values at other sizes.
  bool holds_elsewhere(const SizeCondition& condition, const SizeFacts& facts) const {
    if (facts.holds(condition) == Answer::yes) return true;
    const SizeExpr difference = facts.simplified(condition.left) - facts.simplified(condition.right);
    for (const std::int64_t more : {1, 2, 5}) {
      std::map<std::string, std::int64_t> at;
      std::int64_t prime = 3;
      difference.for_each_symbol([&](const std::string& symbol) {
        const auto known = example_.find(symbol);
        if (at.emplace(symbol, (known == example_.end() ? 2 : known->second) + more * prime).second) prime += 4;
      });
      if (difference.evaluate(at).value_or(0) != 0) return false;
    }
    return true;
  }

  /// Those that are less than two in the example; all where none is.
  void fix_small(const std::set<std::string>& symbols) {
    bool any = false;
    for (const std::string& symbol : symbols) {
      if (example_.at(symbol) >= kLeast) continue;
      fixed_.insert(symbol);
      any = true;
    }
    if (!any) fix(symbols);
  }

  /// Of a product it is the last factor that is a multiple in the example.
  void fit_step(const SizeCondition& condition, const std::set<std::string>& symbols) {
    const bool is_product = condition.left.is_call("Mul");
    const std::int64_t step = condition.right.value();
    if ((!condition.left.is_symbol() && !is_product) || !condition.right.is_integer() || step < 1) return fix(symbols);
    std::int64_t factor = 1;
    std::string stepped;
    for (const SizeExpr& each : is_product ? condition.left.operands() : std::vector<SizeExpr>{condition.left}) {
      if (each.is_integer()) factor = each.value();
      if (each.is_symbol() && example_.contains(each.name())) {
        const std::int64_t wanted = step / std::gcd(step, factor);
        if (wanted == 1) return;
        if (example_.at(each.name()) % wanted == 0) stepped = each.name();
      }
    }
    if (stepped.empty()) return fix(symbols);
    std::int64_t& known = steps_.try_emplace(stepped, 1).first->second;
    known = std::lcm(known, step / std::gcd(step, factor));
  }

  void fix(const std::set<std::string>& symbols) { fixed_.insert(symbols.begin(), symbols.end()); }
  void fix_all() {
    for (const auto& [symbol, size] : example_) fixed_.insert(symbol);
  }

  const std::vector<TensorInfo>& examples_;
  const SizeName& name_;
  const ShapesOf& shapes_of_;
  std::map<std::string, std::int64_t> example_, steps_;
  std::set<std::string> fixed_;
};

}  // namespace

OpenSizes open_sizes(const std::vector<TensorInfo>& examples, const SizeName& name, const ShapesOf& shapes_of) {
  return OpenSizesFinder(examples, name, shapes_of).find();
}

}  // namespace fx
