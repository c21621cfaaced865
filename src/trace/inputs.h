// Inputs: how the parameters of a traced program become placeholders and literals.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <deque>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/trace/fields.h>

namespace fx {

/// What a parameter of a traced function is to the graph: a value (tensors, and lists, tuples and dicts of them) or a
/// literal.
enum class ParameterKind : std::uint8_t { tensor, container, floating, integer, boolean, string, other_literal };

/// A parameter of a traced function, as its C++ type tells.
struct Parameter {
  ParameterKind kind = ParameterKind::tensor;  ///< what it is to the graph
  bool optional = false;                       ///< may be left out: a std::optional
  /// Python's words for the type: `typing.List[torch.Tensor]`; empty for a plain tensor.
  std::string annotation;

  /// True for parameters that are numbers, bools or strings in C++ rather than values of the graph.
  bool is_literal() const { return kind >= ParameterKind::floating; }
  /// What patterns write on the placeholder of a literal: `float`, `int`, `bool`, `str`.
  std::string_view type_name() const;
};

namespace internal {

class Session;

/// What a kind of literals is called in patterns and in messages, and what may be given for one.
struct LiteralKind {
  ParameterKind kind;
  std::string_view type, words;
  bool (*fits)(const c10::IValue& value);
};
const LiteralKind& literal_kind(ParameterKind kind);

template <typename Type>
constexpr ParameterKind parameter_kind() {
  if constexpr (std::is_same_v<Type, at::Tensor>) {
    return ParameterKind::tensor;
  } else if constexpr (IsOptional<Type>::value) {
    return parameter_kind<typename IsOptional<Type>::value_type>();
  } else if constexpr (std::is_same_v<Type, bool>) {
    return ParameterKind::boolean;
  } else if constexpr (std::is_integral_v<Type>) {
    return ParameterKind::integer;
  } else if constexpr (std::is_floating_point_v<Type>) {
    return ParameterKind::floating;
  } else if constexpr (std::is_same_v<Type, std::string>) {
    return ParameterKind::string;
  } else if constexpr (std::is_same_v<Type, at::Scalar> || std::is_same_v<Type, c10::IntArrayRef> ||
                       IntegerList<Type>) {
    return ParameterKind::other_literal;
  } else if constexpr (StringMap<Type> || Sequence<Type> || TupleLike<Type> || std::is_same_v<Type, at::TensorList>) {
    return ParameterKind::container;
  } else if constexpr (Struct<Type>) {
    return ParameterKind::container;
  } else {
    static_assert(kUnsupported<Type>,
                  "a traced function takes tensors, numbers, strings, containers of tensors, or structs of these: see "
                  "fx::Fields");
  }
}

/// The words for `Type`, also where it is a plain tensor.
template <typename Type>
std::string type_words();

template <typename Tuple, std::size_t... I>
std::string tuple_words(std::index_sequence<I...>) {
  std::string words;
  ((words += (I == 0 ? "" : ", ") + type_words<std::decay_t<std::tuple_element_t<I, Tuple>>>()), ...);
  return "typing.Tuple[" + words + "]";
}

template <typename Type>
std::string type_words() {
  if constexpr (std::is_same_v<Type, at::Tensor>) {
    return "torch.Tensor";
  } else if constexpr (IsOptional<Type>::value) {
    return "typing.Optional[" + type_words<typename IsOptional<Type>::value_type>() + "]";
  } else if constexpr (parameter_kind<Type>() >= ParameterKind::floating) {
    if (std::is_same_v<Type, at::Scalar>) return "";
    return parameter_kind<Type>() == ParameterKind::other_literal
               ? "typing.List[int]"
               : std::string(Parameter{parameter_kind<Type>(), false, {}}.type_name());
  } else if constexpr (StringMap<Type>) {
    return "typing.Dict[str, " + type_words<typename Type::mapped_type>() + "]";
  } else if constexpr (Struct<Type>) {
    return type_words<FieldsTuple<Type>>();
  } else if constexpr (TupleLike<Type> && !Iterable<Type>) {
    return tuple_words<Type>(std::make_index_sequence<std::tuple_size_v<Type>>());
  } else {
    return "typing.List[" + type_words<typename Type::value_type>() + "]";
  }
}

template <typename Type>
Parameter describe_parameter() {
  if constexpr (std::is_same_v<Type, at::Tensor>) {
    return {};
  } else {
    return {parameter_kind<Type>(), IsOptional<Type>::value, type_words<Type>()};
  }
}

// ── Binding
// ────────────────────────────────────────────────────────────────────────────────────────────────────────────

/// One input, or a part of one.
struct InputItem {
  Node* node = nullptr;                ///< what stands for it in the graph; null for a literal
  std::optional<c10::IValue> example;  ///< what it looks like, when that is known
  Argument argument;                   ///< what it is, when the caller has arguments rather than examples
};

/// Hands each parameter of a program its value, in order.
class Inputs {
 public:
  explicit Inputs(Session& session) : session_(session) {}
  virtual ~Inputs() = default;
  Inputs(const Inputs&) = delete;
  Inputs& operator=(const Inputs&) = delete;

  Session& session() const { return session_; }
  /// How many arguments to pass to a program that needs `required` and has defaults for the others.
  virtual std::size_t count(std::size_t required) const = 0;
  /// The same for a program with these parameters: all of them where nothing is given and none needs a value.
  std::size_t count_of(const std::vector<Parameter>& parameters, std::size_t required) const;

  /// The value of the next parameter.
  template <typename Type>
  Type bind() {
    InputItem item;
    const bool is_given = next(describe_parameter<Type>(), item);
    if constexpr (std::is_default_constructible_v<Type>) {
      if (!is_given) return Type();
    } else if (!is_given) {
      refuse_none();
    }
    return value_of<Type>(item);
  }
  /// The same for a program whose parameters are not in its type. An optional one without an example is None.
  c10::IValue bind_any(const Parameter& parameter);

 protected:
  /// Fetches the next parameter; false when it is absent: None, or an optional one that is not given.
  virtual bool next(const Parameter& parameter, InputItem& item) = 0;
  virtual at::Tensor tensor(const InputItem& item) = 0;
  virtual c10::IValue literal(const InputItem& item, ParameterKind kind) = 0;
  /// Whether an optional part of a container is None, or given: the program may ask.
  virtual bool is_none(const InputItem& item) = 0;
  /// The parts of a list or tuple, of `wanted` parts unless that is kAnyLength.
  virtual std::vector<InputItem> elements(const InputItem& item, std::size_t wanted) = 0;
  /// The parts of a dict.
  virtual std::vector<std::pair<std::string, InputItem>> entries(const InputItem& item) = 0;

  static constexpr std::size_t kAnyLength = ~std::size_t{0};

 private:
  template <typename Type>
  Type literal_as(const c10::IValue& value) {
    if constexpr (std::is_same_v<Type, c10::IntArrayRef>) {
      return integer_lists_.emplace_back(value.toIntVector());
    } else if constexpr (IntegerList<Type>) {
      const std::vector<std::int64_t> list = value.toIntVector();
      return Type(list.begin(), list.end());
    } else if constexpr (std::is_same_v<Type, bool>) {
      return value.toBool();
    } else if constexpr (std::is_arithmetic_v<Type>) {
      return value.isDouble() ? static_cast<Type>(value.toDouble()) : static_cast<Type>(value.toInt());
    } else if constexpr (std::is_same_v<Type, std::string>) {
      return value.toStringRef();
    } else {
      return value.toScalar();
    }
  }

  template <typename Type, std::size_t... I>
  Type tuple_of(const std::vector<InputItem>& parts, std::index_sequence<I...>) {
    return Type{value_of<std::decay_t<std::tuple_element_t<I, Type>>>(parts[I])...};
  }

  template <typename Type>
  Type value_of(const InputItem& item) {
    if constexpr (std::is_same_v<Type, at::Tensor>) {
      return tensor(item);
    } else if constexpr (IsOptional<Type>::value) {
      if (is_none(item)) return Type();
      return value_of<typename IsOptional<Type>::value_type>(item);
    } else if constexpr (parameter_kind<Type>() >= ParameterKind::floating) {
      return literal_as<Type>(literal(item, parameter_kind<Type>()));
    } else if constexpr (StringMap<Type>) {
      Type result;
      for (const auto& [key, entry] : entries(item)) {
        if constexpr (kIsTorchDict<Type>) {
          result.insert(key, value_of<typename Type::mapped_type>(entry));
        } else {
          result.insert({key, value_of<typename Type::mapped_type>(entry)});
        }
      }
      return result;
    } else if constexpr (std::is_same_v<Type, at::TensorList>) {
      return tensor_lists_.emplace_back(value_of<std::vector<at::Tensor>>(item));
    } else if constexpr (Struct<Type>) {
      return from_fields<Type>(value_of<FieldsTuple<Type>>(item));
    } else if constexpr (TupleLike<Type>) {
      constexpr std::size_t kSize = std::tuple_size_v<Type>;
      return tuple_of<Type>(elements(item, kSize), std::make_index_sequence<kSize>());
    } else {
      Type result;
      for (const InputItem& part : elements(item, kAnyLength)) {
        result.push_back(value_of<typename Type::value_type>(part));
      }
      return result;
    }
  }

  c10::IValue any_value(const InputItem& item);
  [[noreturn]] static void refuse_none();

  Session& session_;
  std::deque<std::vector<std::int64_t>> integer_lists_;  // what IntArrayRef parameters refer to
  std::deque<std::vector<at::Tensor>> tensor_lists_;     // what TensorList parameters refer to
};

}  // namespace internal
}  // namespace fx
