#include "tests/support/random_graph.h"

#include <string_view>

namespace fx::testing {

namespace {

constexpr const char* kNames[] = {"x",  "h",   "x_1", "hidden", "x_7", "len", "Block", "attn_0", "layer1_0_conv1",
                                  "_y", "z_01"};
constexpr const char* kTypes[] = {"torch.Tensor", "f32[1, 3, 224, 224]", "typing.List[torch.Tensor]",
                                  "torch.float32[(2, s0)]", "typing.Dict[str, typing.Optional[int]]"};
constexpr const char* kStrings[] = {"floor", "none",  "it's", "a \"b\"",     "tab\tnewline\n",
                                    "",      "zeros", "%x",   "back\\slash", "é"};
constexpr double kFloats[] = {0.5, 1e-05, -2.0, 1.0, 0.1, 1e16, 3.141592653589793, -0.0, 1e300};

class Builder {
 public:
  Builder(std::uint64_t seed, const RandomGraphOptions& options) : random_(seed), options_(options) {}

  Graph build() {
    for (std::size_t i = 0; i < options_.inputs; ++i) {
      add_value(random_.chance(10) ? graph_.placeholder("arg_" + std::to_string(i), literal("nifs"[random_.below(4)]))
                                   : graph_.placeholder("arg_" + std::to_string(i)));
    }
    if (values_.empty()) add_value(graph_.get_attr("weight"));
    for (std::size_t i = 0; i < options_.nodes; ++i) call(random_.pick(*options_.vocabulary));
    finish();
    return std::move(graph_);
  }

 private:
  void add_value(Node& node) {
    if (random_.chance(options_.typed_percent)) node.meta().set(meta_key::kType, std::string(random_.pick(kTypes)));
    values_.push_back(&node);
  }

  Node& value() {
    const std::size_t count = values_.size();
    std::size_t back = 0;  // counted from the newest
    switch (options_.shape) {
      case Shape::chain: back = random_.chance(90) ? 0 : random_.below(count); break;
      case Shape::fan:
        back = random_.chance(80) ? count - 1 - random_.below(std::min<std::size_t>(count, 4)) : random_.below(count);
        break;
      case Shape::ladder: back = random_.below(std::min<std::size_t>(count, 4)); break;
      case Shape::dag: back = std::min(random_.below(count), random_.below(count)); break;
    }
    return *values_[count - 1 - back];
  }

  std::vector<Argument> some_values() {
    std::vector<Argument> elements;
    for (std::size_t i = 0, count = 1 + random_.below(4); i < count; ++i) elements.emplace_back(value());
    return elements;
  }

  Argument index() {
    switch (random_.below(5)) {
      case 0: return random_.between(-3, 3);
      case 1: return nullptr;
      case 2: return Argument::ellipsis();
      case 3: return Argument::slice(nullptr, random_.between(1, 9));
      default: break;
    }
    const Argument step = random_.chance(50) ? Argument(2) : Argument();
    return Argument::slice(random_.between(0, 2), nullptr, step);
  }

  Argument indices() {
    std::vector<Argument> elements;
    for (std::size_t i = 0, count = 1 + random_.below(3); i < count; ++i) elements.push_back(index());
    return Argument::tuple(elements);
  }

  Argument named_values() {
    std::vector<Argument> pairs;
    for (std::size_t i = 0, count = random_.below(3); i < count; ++i) {
      pairs.emplace_back(random_.chance(50) ? Argument("key_" + std::to_string(i)) : Argument(i));
      pairs.push_back(random_.chance(30) ? Argument::list(some_values()) : Argument(value()));
    }
    return Argument::dict(pairs);
  }

  Argument literal(char letter) {
    switch (letter) {
      case 'i': return random_.between(-2, 4);
      case 'I': return Argument::list({random_.between(1, 3), random_.between(1, 3)});
      case 'f': return random_.pick(kFloats);
      case 'b': return random_.chance(50);
      case 's': return random_.pick(kStrings);
      case 'd': return random_.chance(70) ? DType::float32 : random_.chance(50) ? DType::int64 : DType::boolean;
      case 'v': return random_.chance(50) ? Device{"cpu"} : Device{"cuda", static_cast<std::int32_t>(random_.below(2))};
      case 'm': return MemoryFormat{random_.chance(50) ? "channels_last" : "contiguous_format"};
      case 'n': return nullptr;
      default: return letter - '0';
    }
  }

  Argument argument(char letter) {
    switch (letter) {
      case 't': return value();
      case 'T': return Argument::list(some_values());
      case 'U': return Argument::tuple(some_values());
      case 'o': return random_.chance(40) ? Argument() : Argument(value());
      case 'S': return indices();
      case 'M': return named_values();
      default: return literal(letter);
    }
  }

  std::vector<NamedArgument> kwargs(std::string_view text) {
    std::vector<NamedArgument> made;
    while (!text.empty()) {
      const std::size_t colon = text.find(':');
      if (random_.chance(50)) made.push_back({Symbol(text.substr(0, colon)), argument(text[colon + 1])});
      text.remove_prefix(std::min(text.size(), colon + 3));  // the letter and a comma
    }
    return made;
  }

  void call(const OperatorForm& form) {
    std::vector<Argument> args;
    for (const char* letter = form.args; *letter; ++letter) args.push_back(argument(*letter));
    const std::string_view name = random_.chance(options_.named_percent) ? random_.pick(kNames) : "";
    Node& node = graph_.create_node(form.op, form.target, args, kwargs(form.kwargs), name);
    if (form.results == 1) return add_value(node);
    for (int i = 0; i < form.results; ++i) {
      if (i == 0 || random_.chance(70)) add_value(graph_.call_function("operator.getitem", {node, i}));
    }
  }

  void finish() {
    std::vector<Argument> results;
    if (options_.all_live) {
      for (Node& node : graph_.nodes()) {
        if (!node.has_users() && !node.is(Op::placeholder)) results.emplace_back(node);
      }
    } else {
      for (std::size_t i = 0, count = 1 + random_.below(3); i < count; ++i) results.emplace_back(value());
    }
    graph_.output(results.size() == 1 ? Argument(results[0]) : Argument::tuple(results));
  }

  Random random_;
  const RandomGraphOptions& options_;
  Graph graph_;
  std::vector<Node*> values_;
};

}  // namespace

const std::vector<OperatorForm>& default_vocabulary() {
  static const std::vector<OperatorForm> forms = {
      {Op::call_function, "aten::add.Tensor", "tt", "alpha:i"},
      {Op::call_function, "aten::mul.Tensor", "tt"},
      {Op::call_function, "aten::sub.Tensor", "tt", "alpha:i"},
      {Op::call_function, "aten::mul.Scalar", "tf"},
      {Op::call_function, "aten::div.Tensor_mode", "tt", "rounding_mode:s"},
      {Op::call_function, "aten::relu"},
      {Op::call_function, "aten::gelu", "t", "approximate:s"},
      {Op::call_function, "aten::sigmoid"},
      {Op::call_function, "aten::clamp", "tff"},
      {Op::call_function, "aten::matmul", "tt"},
      {Op::call_function, "aten::linear", "tto"},
      {Op::call_function, "aten::conv2d", "ttoIIIi"},
      {Op::call_function, "aten::batch_norm", "toottbffb"},
      {Op::call_function, "aten::layer_norm", "tI"},
      {Op::call_function, "aten::softmax.int", "ti", "dtype:d"},
      {Op::call_function, "aten::cat", "Ti"},
      {Op::call_function, "aten::stack", "T"},
      {Op::call_function, "aten::sum.dim_IntList", "tI", "keepdim:b,dtype:d"},
      {Op::call_function, "aten::permute", "tI"},
      {Op::call_function, "aten::to.dtype", "td"},
      {Op::call_function, "aten::zeros", "I", "dtype:d,device:v"},
      {Op::call_function, "aten::clone", "t", "memory_format:m"},
      {Op::call_function, "aten::max.dim", "ti", "keepdim:b", 2},
      {Op::call_function, "aten::split.Tensor", "ti", "", 3},
      {Op::call_function, "aten::native_layer_norm", "tIoof", "", 3},
      {Op::call_function, "operator.getitem", "tS"},
      {Op::call_function, "torch.relu"},
      {Op::call_method, "view", "tii"},
      {Op::call_method, "size", "ti"},
      {Op::call_method, "mean", "tI", "keepdim:b"},
      {Op::call_module, "features.0.conv", "t"},
      {Op::call_module, "head", "tM", "mask:o"},
      {Op::get_attr, "features.0.weight", ""},
      {Op::get_attr, "bias", ""},
  };
  return forms;
}

const std::vector<OperatorForm>& pointwise_vocabulary() {
  static const std::vector<OperatorForm> forms = {
      {Op::call_function, "aten::add.Tensor", "tt"},
      {Op::call_function, "aten::mul.Tensor", "tt"},
      {Op::call_function, "aten::relu"},
      {Op::call_function, "aten::sigmoid"},
      {Op::call_function, "aten::add.Tensor", "tt"},
      {Op::call_function, "aten::relu"},
      {Op::call_function, "aten::neg"},
      {Op::call_function, "aten::mul.Scalar", "t2"},
  };
  return forms;
}

const std::vector<OperatorForm>& copying_vocabulary() {
  static const std::vector<OperatorForm> forms = {
      {Op::call_function, "aten::add.Tensor", "tt"},
      {Op::call_function, "aten::mul.Tensor", "tt"},
      {Op::call_function, "aten::relu"},
      {Op::call_function, "aten::sigmoid"},
      {Op::call_function, "aten::cat", "T"},
      {Op::call_function, "aten::relu"},
      {Op::call_function, "aten::clone"},
      {Op::call_function, "aten::detach"},
      {Op::call_function, "aten::cat", "T"},
      {Op::get_attr, "weight", ""},
  };
  return forms;
}

const std::vector<OperatorForm>& mutating_vocabulary() {
  static const std::vector<OperatorForm> forms = {
      {Op::call_function, "aten::add.Tensor", "tt"},
      {Op::call_function, "aten::relu"},
      {Op::call_function, "aten::add_.Tensor", "tt"},
      {Op::call_function, "aten::relu_"},
      {Op::call_function, "aten::copy_", "tt"},
      {Op::call_function, "aten::zero_"},
      {Op::call_function, "aten::view", "tI"},
      {Op::call_function, "aten::transpose.int", "t01"},
      {Op::call_function, "aten::select.int", "t0i"},
      {Op::call_function, "aten::clone"},
      {Op::call_function, "aten::split.Tensor", "t2", "", 2},
      {Op::call_function, "aten::rand_like"},
      {Op::call_function, "aten::matmul", "tt"},
      {Op::call_method, "add_", "tt"},
      {Op::get_attr, "buffer", ""},
  };
  return forms;
}

Graph random_graph(std::uint64_t seed, const RandomGraphOptions& options) { return Builder(seed, options).build(); }

RandomGraphOptions random_options(std::uint64_t seed, std::size_t max_nodes) {
  Random random(seed ^ 0xFEEDull);
  RandomGraphOptions options;
  options.nodes = random.below(max_nodes + 1);
  options.inputs = random.below(5);
  options.shape = static_cast<Shape>(random.below(4));
  options.all_live = random.chance(50);
  return options;
}

Shapes random_shapes(const Graph& graph, std::uint64_t seed) {
  Random random(seed);
  Shapes shapes(graph);
  for (const Node& node : graph.nodes()) {
    if (random.chance(10)) continue;
    TensorInfo tensor;
    tensor.dtype = random.chance(70) ? DType::float32 : DType::float16;
    for (std::size_t i = random.below(4); i > 0; --i) tensor.sizes.push_back(random.between(2, 3));
    shapes[node] = tensor;
  }
  return shapes;
}

Graph chain(std::size_t blocks) {
  Graph graph;
  Node* t = &graph.placeholder("x");
  Node& y = graph.placeholder("y");
  for (std::size_t i = 0; i < blocks; ++i) {
    Node& a = graph.call_function("aten::add.Tensor", {t, y});
    Node& r = graph.call_function("aten::relu", {a});
    t = &graph.call_function("aten::mul.Tensor", {r, y});
  }
  graph.output(*t);
  return graph;
}

Graph chain_with_effects(std::size_t blocks) {
  Graph graph;
  Node* t = &graph.placeholder("x");
  Node& y = graph.placeholder("y");
  for (std::size_t i = 0; i < blocks; ++i) {
    Node& r = graph.call_function("aten::relu", {graph.call_function("aten::add.Tensor", {t, y})});
    Node& m = graph.call_function("aten::mul.Tensor", {r, y});
    Node& written = graph.call_function("aten::add_.Tensor", {m, graph.call_function("aten::rand_like", {y})});
    t = &graph.call_function("aten::view", {written, Argument::list({-1})});
  }
  graph.output(*t);
  return graph;
}

Graph fan(std::size_t width) {
  Graph graph;
  Node& x = graph.placeholder("x");
  std::vector<Argument> results;
  results.reserve(width);
  for (std::size_t i = 0; i < width; ++i) results.emplace_back(graph.call_function("aten::relu", {x}));
  graph.output(Argument::tuple(results));
  return graph;
}

Graph ladder(std::size_t rungs) {
  Graph graph;
  Node* t = &graph.placeholder("x");
  for (std::size_t i = 0; i < rungs; ++i) {
    Node& left = graph.call_function("aten::relu", {t});
    Node& right = graph.call_function("aten::sigmoid", {t});
    t = &graph.call_function("aten::add.Tensor", {left, right});
  }
  graph.output(*t);
  return graph;
}

}  // namespace fx::testing
