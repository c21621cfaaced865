#include <fxgraph/testing/hostile/arguments.h>

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <limits>

namespace fx::hostile {

namespace {

using Base = SchemaType::Base;

template <std::size_t N>
bool is_one_of(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

constexpr std::array<std::string_view, 9> kDimensions = {"dim",   "dim0",    "dim1",  "axis",     "start_dim",
                                                         "axis0", "end_dim", "axis1", "chunk_dim"};
constexpr std::array<std::string_view, 4> kSomeDimensions = {"dim", "dims", "axes", "axis"};
constexpr std::array<std::string_view, 3> kSizes = {"size", "shape", "sizes"};

class CallDrawer {
 public:
  CallDrawer(Random& random, const OperatorSchema& schema, const ValueSource& source, const ArgumentOptions& options)
      : random_(random), schema_(schema), source_(source), options_(options) {}

  std::optional<DrawnCall> draw() {
    DrawnCall call;
    std::size_t given = 0;  // by position
    for (std::size_t i = 0; i < schema_.arguments.size(); ++i) {
      const SchemaArgument& parameter = schema_.arguments[i];
      std::optional<Argument> value;
      const bool chosen = !parameter.default_value || random_.chance(options_.optional_percent);
      if (chosen) value = draw(parameter);
      if (!value) {
        if (!parameter.default_value) return {};
        value = *parameter.default_value;
      } else if (i < schema_.num_positional()) {
        given = i + 1;
      }
      if (i < schema_.num_positional()) {
        call.args.push_back(*std::move(value));
      } else if (chosen) {
        call.kwargs.push_back({parameter.name, *std::move(value)});
      }
    }
    call.args.resize(given);
    return call;
  }

 private:
  std::int64_t rank() const { return first_.defined() ? first_.dim() : 0; }

  std::optional<Argument> draw(const SchemaArgument& parameter) {
    const SchemaType& type = parameter.type;
    if (type.optional && random_.chance(type.is_tensor() ? 40 : 20)) return Argument();
    if (type.is_tensor()) return type.list ? tensors(parameter) : tensor(parameter);
    if (type.list) return list(parameter);
    const std::string_view name = parameter.name.view();
    switch (type.base) {
      case Base::scalar: {
        if (source_.number && random_.chance(5)) {
          if (Node* number = source_.number()) return Argument(number);
        }
        return draw_literal(random_, options_.numbers);
      }
      case Base::integer: return integer(name);
      case Base::floating: return floating(name);
      case Base::boolean: return Argument(random_.chance(50));
      case Base::string: return string(name);
      case Base::dtype: {
        constexpr std::array kTypes = {DType::float32, DType::float32, DType::float64,
                                       DType::int64,   DType::boolean, DType::bfloat16};
        return Argument(random_.pick(kTypes));
      }
      case Base::memory_format:
        return MemoryFormat{random_.chance(50)   ? "contiguous_format"
                            : random_.chance(80) ? "preserve_format"
                                                 : "channels_last"};
      default: return {};
    }
  }

  std::optional<Argument> tensor(const SchemaArgument& parameter) {
    Node* node = source_.tensor(parameter, first_);
    if (!node) return {};
    if (!first_.defined()) first_ = source_.value_of(*node);
    return Argument(node);
  }

  std::optional<Argument> tensors(const SchemaArgument& parameter) {
    std::vector<Argument> list;
    const std::size_t count = parameter.type.fixed_size ? parameter.type.fixed_size : 1 + random_.below(3);
    for (std::size_t i = 0; i < count; ++i) {
      if (parameter.type.optional_elements && random_.chance(30)) {
        list.emplace_back();
        continue;
      }
      const auto element = tensor(parameter);
      if (!element) return {};
      list.push_back(*element);
    }
    return Argument::list(list);
  }

  std::optional<Argument> integer(std::string_view name) {
    if (is_one_of(name, kDimensions))
      return random_.between(-std::max<std::int64_t>(rank(), 1), std::max<std::int64_t>(rank(), 1) - 1);
    if (name == "n" || name == "steps") return random_.between(0, 4);
    if (name == "chunks" || name == "split_size" || name == "groups" || name == "num_groups")
      return random_.between(1, 3);
    if (name == "end" && random_.chance(50)) return std::numeric_limits<std::int64_t>::max();
    if (name == "start" && random_.chance(40)) return 0;
    if (name == "step") return random_.chance(70) ? 1 : 2;
    if (name == "index") return random_.between(-1, 1);
    return random_.between(-1, 3);
  }

  std::optional<Argument> floating(std::string_view name) {
    constexpr std::array kEpsilons = {1e-5, 0.1, 0.0, 1e-12};
    constexpr std::array kChances = {0.0, 0.5, 0.1, 1.0};
    constexpr std::array kNumbers = {0.5, 1.0, 2.0, -1.0, 0.0, -0.5, 3.0, 1e-3};
    if (name == "eps") return Argument(random_.pick(kEpsilons));
    if (name == "p" || name == "dropout_p" || name == "momentum") return Argument(random_.pick(kChances));
    if (options_.numbers == Numbers::special && random_.chance(20)) return draw_literal(random_, options_.numbers);
    return Argument(random_.pick(kNumbers));
  }

  std::optional<Argument> string(std::string_view name) {
    if (name == "rounding_mode") return Argument(random_.chance(50) ? "trunc" : "floor");
    if (name == "approximate") return Argument(random_.chance(50) ? "none" : "tanh");
    return {};
  }

  std::optional<Argument> list(const SchemaArgument& parameter) {
    const std::string_view name = parameter.name.view();
    std::vector<Argument> elements;
    if (parameter.type.base == Base::boolean) {
      for (std::size_t i = 0; i < std::max<std::size_t>(parameter.type.fixed_size, 1); ++i)
        elements.emplace_back(random_.chance(70));
      return Argument::list(elements);
    }
    if (parameter.type.base == Base::scalar || parameter.type.base == Base::floating) {
      for (std::size_t i = 1 + random_.below(3); i > 0; --i)
        elements.push_back(draw_literal(random_, options_.numbers));
      return Argument::list(elements);
    }
    if (parameter.type.base != Base::integer) return {};
    if (name == "dims" && schema_.target.view().starts_with("aten::permute")) return permutation();
    if (is_one_of(name, kSomeDimensions)) return some_dimensions();
    if (is_one_of(name, kSizes)) return sizes();
    if (name == "normalized_shape") return last_sizes();
    if (name == "split_sizes") return split();
    const std::size_t count = parameter.type.fixed_size ? parameter.type.fixed_size : 1 + random_.below(2);
    for (std::size_t i = 0; i < count; ++i) elements.emplace_back(small(name));
    return Argument::list(elements);
  }

  std::int64_t small(std::string_view name) {
    if (name == "padding" || name == "pad" || name == "output_padding" || name == "shifts")
      return random_.between(0, 1);
    if (name == "repeats" || name == "dilation") return random_.between(1, 2);
    return random_.between(1, 2);
  }

  Argument permutation() {
    std::vector<Argument> order;
    for (std::int64_t i = 0; i < rank(); ++i) order.emplace_back(i);
    for (std::size_t i = order.size(); i > 1 && random_.chance(80); --i)
      std::swap(order[i - 1], order[random_.below(i)]);
    for (Argument& dim : order) {
      if (random_.chance(20)) dim = Argument(dim.as_int() - rank());
    }
    return Argument::list(order);
  }

  Argument some_dimensions() {
    std::vector<Argument> dims;
    for (std::int64_t i = 0; i < rank(); ++i) {
      if (random_.chance(50)) dims.emplace_back(random_.chance(70) ? i : i - rank());
    }
    return Argument::list(dims);
  }

  /// Sizes with as many elements, or the tensor's own, or larger ones.
  Argument sizes() {
    std::vector<std::int64_t> sizes(first_.defined() ? first_.sizes().vec() : std::vector<std::int64_t>{2, 2});
    switch (random_.below(6)) {
      case 0: sizes = {-1}; break;
      case 1: sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(random_.below(sizes.size() + 1)), 1); break;
      case 2:
        if (!sizes.empty()) sizes[random_.below(sizes.size())] = -1;
        break;
      case 3: std::reverse(sizes.begin(), sizes.end()); break;
      case 4:
        if (sizes.size() > 1) {
          sizes[1] *= sizes[0];
          sizes.erase(sizes.begin());
        }
        break;
      default: break;
    }
    const Argument list = list_of(sizes);
    if (!source_.integer || !random_.chance(30)) return list;
    std::vector<Argument> elements(list.elements().begin(), list.elements().end());
    for (Argument& element : elements) {
      if (Node* number = source_.integer(element.as_int())) element = Argument(number);
    }
    return Argument::list(elements);
  }

  Argument last_sizes() {
    std::vector<std::int64_t> sizes(first_.defined() ? first_.sizes().vec() : std::vector<std::int64_t>{2});
    if (!sizes.empty())
      sizes.erase(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(random_.below(sizes.size())));
    return list_of(sizes);
  }

  Argument split() {
    std::vector<std::int64_t> parts;
    std::int64_t left = rank() > 0 ? first_.size(random_.chance(70) ? 0 : -1) : 1;
    while (left > 0) {
      parts.push_back(random_.between(1, left));
      left -= parts.back();
    }
    return list_of(parts);
  }

  static Argument list_of(const std::vector<std::int64_t>& numbers) {
    const std::vector<Argument> elements(numbers.begin(), numbers.end());
    return Argument::list(elements);
  }

  Random& random_;
  const OperatorSchema& schema_;
  const ValueSource& source_;
  const ArgumentOptions& options_;
  at::Tensor first_;
};

}  // namespace

Argument draw_literal(Random& random, Numbers numbers) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr std::array kIntegers = {0, 1, 1, 2, -1, 3, 6};
  constexpr std::array kFloats = {0.0, 1.0, 1.0, 0.5, 2.0, -1.5, 3.0, -0.0, 6.0};
  constexpr std::array kSpecial = {kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN(), 1e30, 1e-30};
  if (numbers == Numbers::special && random.chance(10)) return random.pick(kSpecial);
  if (random.chance(3)) return Argument(random.chance(50));
  return random.chance(50) ? Argument(random.pick(kIntegers)) : Argument(random.pick(kFloats));
}

std::optional<DrawnCall> draw_call(Random& random, const OperatorSchema& schema, const ValueSource& source,
                                   const ArgumentOptions& options) {
  return CallDrawer(random, schema, source, options).draw();
}

}  // namespace fx::hostile
