#include <fxgraph/ops/argument_type.h>

#include <algorithm>
#include <optional>
#include <vector>

#include <fxgraph/ops/python_target.h>
#include <fxgraph/ops/records/python_types.h>
#include <fxgraph/support/flat_map.h>

namespace fx::internal {

namespace {

using Base = SchemaType::Base;

ArgumentType element_of(ArgumentType kind) {
  kind.list = false;
  return kind;
}

// One question. Of nodes whose kind hangs on their inputs at most so many are looked at: further back no program
// computes a number.
constexpr std::size_t kMostNodes = 1000;
constexpr int kMostDepth = 3;  // of recursion, which remembers nothing

class Inference {
 public:
  ArgumentType argument(const Argument& value) {
    switch (value.kind()) {
      case ArgumentKind::node: return node(value.node());
      case ArgumentKind::boolean: return kBoolType;
      case ArgumentKind::integer: return kIntType;
      case ArgumentKind::floating: return kFloatType;
      case ArgumentKind::complex: return {Base::complex};
      case ArgumentKind::string: return {Base::string};
      case ArgumentKind::dtype: return {Base::dtype};
      case ArgumentKind::device: return {Base::device};
      case ArgumentKind::layout: return {Base::layout};
      case ArgumentKind::memory_format: return {Base::memory_format};
      case ArgumentKind::list:
      case ArgumentKind::tuple: return sequence(value.elements());
      default: return {};
    }
  }

 private:
  ArgumentType sequence(ArgumentSpan elements) {
    if (elements.empty()) return {Base::other, true};
    const ArgumentType first = argument(elements[0]);
    for (const Argument& element : elements.subspan(1)) {
      if (argument(element) != first) return {Base::other, true};
    }
    return {first.list ? Base::other : first.base, true, first.known};
  }

  ArgumentType node(const Node& node) {
    if (const std::optional<ArgumentType> own = without_inputs(node)) return *own;
    if (!walking_ && depth_ < kMostDepth) {  // mostly the inputs tell
      ++depth_;
      const ArgumentType kind = from_inputs(node);
      --depth_;
      return kind;
    }
    if (!known_.find(node.id()) && !walking_) walk(node);
    const ArgumentType* found = known_.find(node.id());
    return found ? *found : kUnknownType;
  }

  // Inputs first, without recursion.
  void walk(const Node& last) {
    walking_ = true;
    std::vector<const Node*> open = {&last};
    for (std::size_t looked_at = 0; !open.empty();) {
      const Node& node = *open.back();
      const std::size_t before = open.size();
      if (!known_.find(node.id()) && looked_at < kMostNodes) {
        node.for_each_input([&](const Node& input) {
          if (!known_.find(input.id()) && !without_inputs(input)) open.push_back(&input);
        });
      }
      looked_at += open.size() != before;
      if (open.size() != before) continue;
      if (!known_.find(node.id())) known_[node.id()] = from_inputs(node);
      open.pop_back();
    }
    walking_ = false;
  }

  // Nothing where the kind hangs on those of the inputs.
  static std::optional<ArgumentType> without_inputs(const Node& node) {
    if (const Meta* meta = node.find_meta()) {
      if (const auto* type = meta->get<std::string>(meta_key::kType)) {
        if (const ArgumentType* kind = annotated_type(*type)) return *kind;
      }
    }
    if (node.is(Op::call_method)) return method(node);
    if (!node.is(Op::call_function)) return kUnknownType;
    const TargetInfo& info = target_info(node.target());
    if (info.exact || (info.schema && is_default_call(*info.schema, node))) return result(*info.schema);
    if (info.schema && may_be_of_numbers(*info.schema, node)) return std::nullopt;
    if (!info.overloads->empty()) return common_result(node);
    const std::string_view name = node.target().view();
    if (const ArgumentType* kind = function_type(name)) return *kind;
    if (arithmetic_type(name) || is_item(node)) return std::nullopt;
    if (node.args().size() >= 2 && name == "builtins.getattr" && node.args()[1].is_string()) {
      const ArgumentType* kind = attribute_type(node.args()[1].as_string());
      return kind ? *kind : kUnknownType;
    }
    return common_result(node);
  }

  ArgumentType from_inputs(const Node& node) {
    if (is_item(node)) return item(node);
    if (const ArgumentType* kind = arithmetic_type(node.target().view())) return arithmetic(node, *kind);
    const auto is_number = [&](const Argument& given) { return is_number_type(argument(given)); };
    return std::ranges::all_of(node.args(), is_number) ? result(*target_info(node.target()).schema)
                                                       : common_result(node);
  }

  static bool is_item(const Node& node) { return node.args().size() >= 2 && node.target() == "operator.getitem"; }

  // What the node returns whichever overload it calls.
  static ArgumentType common_result(const Node& node) {
    const SchemaType* type = python_target(node.op(), node.target()).result;
    return type ? as_argument(*type) : kUnknownType;
  }

  static ArgumentType method(const Node& node) {
    const ArgumentType* kind = method_type(node.target().view());
    if (!kind) return common_result(node);
    const bool all_dimensions = node.args().size() + node.kwargs().size() == 1;
    return all_dimensions && (node.target() == "size" || node.target() == "stride") ? kIntListType : *kind;
  }

  // `aten::size` with one argument: by their number alone, since the arguments' kinds would lead back through the
  // graph.
  static bool is_default_call(const OperatorSchema& schema, const Node& node) {
    return !schema.arguments.empty() && schema.arguments[0].type.is_tensor() && node.kwargs().empty() &&
           node.args().size() == schema.arguments.size();
  }

  // `aten::add(Scalar a, Scalar b)`, which has no name beside the others.
  static bool may_be_of_numbers(const OperatorSchema& schema, const Node& node) {
    const auto is_number = [](const SchemaArgument& wanted) {
      return is_number_type({wanted.type.base, wanted.type.list});
    };
    return schema.arguments.size() == node.args().size() && node.kwargs().empty() && !schema.arguments.empty() &&
           std::ranges::all_of(schema.arguments, is_number);
  }

  static ArgumentType result(const OperatorSchema& schema) {
    return schema.returns.size() == 1 ? as_argument(schema.returns[0].type) : kUnknownType;
  }

  static ArgumentType as_argument(const SchemaType& type) {
    if (type.optional || (type.base == Base::other && !type.list)) return kUnknownType;
    return {type.base, type.list};
  }

  ArgumentType item(const Node& node) {
    const ArgumentType base = argument(node.args()[0]);
    if (base.base == Base::other) return kUnknownType;
    if (!base.list) return base.base == Base::tensor ? kTensorType : kUnknownType;
    return node.args()[1].is_slice() ? base : element_of(base);
  }

  ArgumentType arithmetic(const Node& node, ArgumentType of_ints) {
    ArgumentType result = of_ints;
    for (const Argument& operand : node.args()) {
      const ArgumentType kind = argument(operand);
      if (kind == kTensorType) return kTensorType;
      if (kind.list) return of_list(node, kind);
      if (!is_number_type(kind)) return kUnknownType;
      if (of_ints == kIntType && kind.base != Base::integer && kind.base != Base::boolean) result = kind;
    }
    if (result == kIntType && node.args().size() == 2 && node.target().view().ends_with("pow"))
      return power(node.args()[1]);
    return node.args().empty() ? kUnknownType : result;
  }

  // Lists add up and repeat, `l + m` and `2 * l`; compared they give a bool.
  ArgumentType of_list(const Node& node, const ArgumentType& list) {
    const std::string_view name = node.target().view();
    if (name.ends_with("mul")) return list;
    if (!name.ends_with("add")) return kUnknownType;
    ArgumentType sum = list;
    for (const Argument& operand : node.args()) {
      const ArgumentType kind = argument(operand);
      if (kind.known && !kind.list) return kUnknownType;
      if (kind != list) sum = {Base::other, true};
    }
    return sum;
  }

  // Of two ints: an int where the exponent is not negative, else a float.
  static ArgumentType power(const Argument& exponent) {
    if (exponent.is_bool()) return kIntType;
    if (!exponent.is_int()) return {Base::scalar};
    return exponent.as_int() < 0 ? kFloatType : kIntType;
  }

  FlatMap<ArgumentType> known_;  // of nodes that hang on their inputs, by id
  bool walking_ = false;
  int depth_ = 0;
};

}  // namespace

bool is_number_type(const ArgumentType& kind) {
  if (kind.list) return false;
  return kind.base == Base::integer || kind.base == Base::floating || kind.base == Base::boolean ||
         kind.base == Base::scalar || kind.base == Base::complex;
}

ArgumentType argument_type(const Argument& argument) { return Inference().argument(argument); }

}  // namespace fx::internal
