#include "tests/support/any_operators.h"

#include <algorithm>

namespace fx::testing {

std::optional<Argument> value_for(const SchemaType& type, const std::vector<Node*>& tensors, Random& random) {
  using Base = SchemaType::Base;
  if (type.optional && random.chance(30)) return Argument();
  const auto one = [&]() -> std::optional<Argument> {
    switch (type.base) {
      case Base::tensor: return Argument(*random.pick(tensors));
      case Base::scalar:
      case Base::integer: return Argument(random.between(0, 3));
      case Base::floating: return Argument(0.5);
      case Base::boolean: return Argument(random.chance(50));
      case Base::dtype: return Argument(DType::float32);
      case Base::string: return Argument("none");
      default: return std::nullopt;
    }
  };
  if (!type.list) return one();
  std::vector<Argument> elements;
  for (std::size_t i = type.fixed_size ? type.fixed_size : 1 + random.below(3); i > 0; --i) {
    const std::optional<Argument> element = one();
    if (!element) return std::nullopt;
    elements.push_back(*element);
  }
  return Argument::list(elements);
}

namespace {

void add_call(Graph& graph, const OperatorSchema& schema, std::vector<Node*>& values, Random& random) {
  std::vector<Argument> args;
  std::vector<NamedArgument> kwargs;
  bool by_name = false;
  const std::vector<Node*> recent(values.end() - static_cast<std::ptrdiff_t>(std::min<std::size_t>(values.size(), 4)),
                                  values.end());
  for (const SchemaArgument& argument : schema.arguments) {
    by_name |= argument.keyword_only || random.chance(5);
    if (argument.default_value && random.chance(by_name ? 70 : 30)) {
      by_name = true;
      continue;
    }
    std::optional<Argument> value = value_for(argument.type, recent, random);
    if (!value && !argument.default_value) value = Argument();
    if (!value) {
      by_name = true;
    } else if (by_name) {
      kwargs.push_back({argument.name, *value});
    } else {
      args.push_back(*value);
    }
  }
  Node& call = graph.call_function(schema.target, args, kwargs);
  const bool list = !schema.returns.empty() && schema.returns[0].type.list;
  if (schema.returns.size() < 2 && !list) return values.push_back(&call);
  for (std::size_t i = 0; i < std::max<std::size_t>(schema.returns.size(), 2); ++i)
    if (random.chance(70)) values.push_back(&graph.call_function("operator.getitem", {call, static_cast<int>(i)}));
}

}  // namespace

Graph graph_of_any_operators(std::uint64_t seed, std::size_t calls) {
  static const std::vector<Symbol> kTargets = [] {
    std::vector<Symbol> all;
    for (const Symbol target : builtin_targets()) all.push_back(target);
    std::sort(all.begin(), all.end(), [](Symbol a, Symbol b) { return a.view() < b.view(); });
    return all;
  }();
  Random random(seed);
  std::vector<Symbol> palette;
  for (std::size_t i = 0, start = random.below(kTargets.size() - 3); i < 3; ++i) palette.push_back(kTargets[start + i]);
  for (int i = 0; i < 2; ++i) palette.push_back(random.pick(kTargets));
  Graph graph;
  std::vector<Node*> values = {&graph.placeholder("x"), &graph.placeholder("y")};
  if (random.chance(30)) values.push_back(&graph.get_attr("weight"));
  for (std::size_t i = 0; i < calls; ++i) add_call(graph, *find_overload(random.pick(palette)), values, random);
  std::vector<Argument> results;
  for (Node* value : values) {
    if (!value->has_users() && random.chance(60)) results.emplace_back(*value);
  }
  if (results.empty()) results.emplace_back(*values.back());
  graph.output(Argument::tuple(results));
  return graph;
}

Shapes any_shapes(const Graph& graph, std::uint64_t seed) {
  Random random(seed);
  Shapes shapes(graph);
  std::vector<std::int64_t> usual;
  for (std::size_t rank = random.below(4); rank > 0; --rank) usual.push_back(random.between(1, 4));
  for (const Node& node : graph.nodes()) {
    if (random.chance(5)) continue;
    TensorInfo tensor;
    tensor.dtype = random.chance(80) ? DType::float32 : DType::int64;
    if (random.chance(85)) {
      for (const std::int64_t size : usual) tensor.sizes.push_back(size);
    } else {
      for (std::size_t rank = random.below(4); rank > 0; --rank) tensor.sizes.push_back(random.between(0, 4));
    }
    if (random.chance(15)) tensor.strides.assign(tensor.sizes.rbegin(), tensor.sizes.rend());
    shapes[node] = tensor;
  }
  return shapes;
}

}  // namespace fx::testing
