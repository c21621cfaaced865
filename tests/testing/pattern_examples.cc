#include <fxgraph/testing/pattern_examples.h>

#include <array>

#include <fxgraph/ops/schema.h>

namespace fx::internal {

namespace {

/// Literals that rules trip over.
constexpr std::array<std::int64_t, 8> kIntegers = {0, 1, -1, 2, -2, 3, 4, 7};
constexpr std::array<double, 10> kFloats = {0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 1e-5, 0.1, 7.25};

class ExampleMaker {
 public:
  ExampleMaker(const PatternData& pattern, std::mt19937_64& random) : pattern_(pattern), random_(random) {
    values_.resize(pattern.nodes.size());
    needed_.resize(pattern.nodes.size());
  }

  std::optional<Graph> make() {
    if (!choose()) return {};
    // Inputs stand first, whatever the order in which the pattern mentions them.
    for (std::uint32_t i = 0; i < pattern_.nodes.size(); ++i) {
      const PatternKind kind = pattern_.nodes[i].kind;
      if (needed_[i] && (kind == PatternKind::any || kind == PatternKind::value)) values_[i] = placeholder(i);
    }
    for (std::uint32_t i = 0; i < pattern_.nodes.size(); ++i) {
      if (needed_[i] && values_[i].is_none()) values_[i] = value(i);
    }
    std::vector<Argument> results;
    for (const std::uint32_t output : pattern_.outputs) results.push_back(values_[output]);
    graph_.output(results.size() == 1 ? results[0] : Argument::tuple(results));
    return std::move(graph_);
  }

 private:
  std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_); }
  template <typename Table>
  auto any_of(const Table& table) {
    return table[below(table.size())];
  }

  /// Decides which alternative of each choice is taken, and so which nodes there are. False when some operator has no
  /// name.
  bool choose() {
    taken_.assign(pattern_.nodes.size(), 0);
    for (const std::uint32_t root : pattern_.roots) needed_[root] = true;
    for (const std::uint32_t output : pattern_.outputs) needed_[output] = true;
    for (std::size_t i = pattern_.nodes.size(); i-- > 0;) {
      if (!needed_[i]) continue;
      const PatternNode& node = pattern_.nodes[i];
      if (node.kind == PatternKind::one_of) {
        taken_[i] = node.args[below(node.args.size())];
        needed_[taken_[i]] = true;
        continue;
      }
      if (node.kind == PatternKind::call && (!node.targets.is_finite() || node.names().empty())) return false;
      node.for_each_child([&](std::uint32_t child) { needed_[child] = true; });
    }
    return true;
  }

  Argument placeholder(std::uint32_t i) {
    const Symbol name = pattern_.nodes[i].name;
    return graph_.placeholder(name.empty() ? "input" : name.view());
  }

  Argument value(std::uint32_t i) {
    const PatternNode& node = pattern_.nodes[i];
    switch (node.kind) {
      case PatternKind::attribute:
        return graph_.get_attr(node.targets.is_finite() && !node.targets.names().empty()
                                   ? node.targets.names()[0].str()
                                   : "attribute" + std::to_string(i));
      case PatternKind::literal: return node.literal;
      case PatternKind::hole: return literal(node.hole);
      case PatternKind::sequence: {
        std::vector<Argument> elements = arguments(node);
        for (std::size_t more = node.open ? below(3) : 0; more > 0; --more) elements.push_back(extra());
        return Argument::list(elements);
      }
      case PatternKind::one_of: return values_[taken_[i]];
      case PatternKind::call: return call(node);
      default: return {};
    }
  }

  Argument extra() {
    const Graph::InsertionScope scope = graph_.inserting_before(graph_.nodes().front());
    return graph_.placeholder("extra");
  }

  Argument literal(HoleKind kind) {
    switch (kind) {
      case HoleKind::integer: return any_of(kIntegers);
      case HoleKind::floating: return any_of(kFloats);
      case HoleKind::boolean: return below(2) == 1;
      case HoleKind::string: return below(2) ? "none" : "tanh";
      case HoleKind::any: break;
    }
    switch (below(4)) {
      case 0: return any_of(kFloats);
      case 1: {
        std::vector<Argument> list;
        for (std::size_t size = below(4); size > 0; --size) list.emplace_back(any_of(kIntegers));
        return Argument::list(list);
      }
      default: return any_of(kIntegers);
    }
  }

  std::vector<Argument> arguments(const PatternNode& node) const {
    std::vector<Argument> args;
    for (const std::uint32_t arg : node.args) args.push_back(values_[arg]);
    return args;
  }

  Argument call(const PatternNode& node) {
    std::vector<Argument> args = arguments(node);
    if (node.bare) args.push_back(extra());
    const Symbol target = any_of(node.names());
    if (node.commutative && below(2) && may_swap(target)) std::swap(args[0], args[1]);
    while (!args.empty() && args.back().is_none()) args.pop_back();
    std::vector<NamedArgument> kwargs;
    for (const auto& [name, arg] : node.kwargs) kwargs.push_back({name, values_[arg]});
    draw_types(target, args);
    return graph_.create_node(node.op, target, args, kwargs);
  }

  /// Where an operator wants an element type no other literal will do: LibTorch takes any number for one, and falls
  /// over those that are none.
  void draw_types(Symbol target, std::vector<Argument>& args) {
    constexpr std::array kTypes = {DType::float32, DType::float64, DType::int64, DType::bfloat16};
    const OperatorSchema* schema = find_overload(target);
    for (std::size_t i = 0; schema && i < args.size() && i < schema->arguments.size(); ++i) {
      const bool is_type = schema->arguments[i].type.base == SchemaType::Base::dtype;
      if (is_type && !args[i].is_none() && args[i].kind() != ArgumentKind::dtype) args[i] = any_of(kTypes);
    }
  }

  static bool may_swap(Symbol target) {
    const OperatorSchema* schema = find_overload(target);
    return !schema || schema->arguments.size() < 2 || schema->arguments[0].type.text == schema->arguments[1].type.text;
  }

  const PatternData& pattern_;
  std::mt19937_64& random_;
  Graph graph_;
  std::vector<Argument> values_;
  std::vector<bool> needed_;
  std::vector<std::uint32_t> taken_;
};

}  // namespace

std::optional<Graph> example_of(const PatternData& pattern, std::mt19937_64& random) {
  return ExampleMaker(pattern, random).make();
}

std::optional<std::vector<std::int64_t>> example_sizes(const PatternData& pattern, const Node& value, NamedSizes& named,
                                                       std::mt19937_64& random) {
  const int index = pattern.find(value.target());
  const PatternNode* said = index < 0 ? nullptr : &pattern.nodes[static_cast<std::size_t>(index)];
  if (!said || !said->tensor || !said->tensor->sized || said->tensor->open >= 0) return {};
  std::vector<std::int64_t> sizes;
  for (const std::uint32_t dim : said->dims) {
    const PatternNode& size = pattern.nodes[dim];
    const auto drawn = std::uniform_int_distribution<std::int64_t>(1, 4)(random);
    sizes.push_back(size.kind == PatternKind::literal ? size.literal.as_int()
                    : size.name.empty()               ? drawn
                                                      : named.try_emplace(size.name.id(), drawn).first->second);
  }
  return sizes;
}

}  // namespace fx::internal
