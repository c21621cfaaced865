#include <fxgraph/ops/overload_resolution.h>

#include <fxgraph/ops/argument_type.h>
#include <fxgraph/ops/call.h>

namespace fx {

namespace internal {

namespace {

using Base = SchemaType::Base;

// What conversions cost. Those of a call's arguments add up, and a call has few arguments that convert.
constexpr ConversionCost kNotViable{-1};
constexpr ConversionCost kExact{0};
constexpr ConversionCost kNatural{1};         // an int for a Scalar, an int for int[2], "cpu" for a device
constexpr ConversionCost kWiden{2};           // an int for a float
constexpr ConversionCost kUnusual{3};         // a bool for an int, a number for a complex
constexpr ConversionCost kUnpacked{4};        // a number of unknown kind for an int or a float
constexpr ConversionCost kByNumber{4, true};  // 6 for a dtype, as TorchScript stores it
constexpr ConversionCost kWrapped{16, true};  // a number for a tensor
constexpr ConversionCost kUnsure{20};         // a node of unknown kind where no tensor is wanted: it counts as a tensor
constexpr ConversionCost kWrongNode{64, true, true};

struct Conversion {
  Base have, want;
  ConversionCost cost;
};
constexpr Conversion kConversions[] = {
    {Base::integer, Base::scalar, kNatural},         {Base::floating, Base::scalar, kNatural},
    {Base::boolean, Base::scalar, kNatural},         {Base::complex, Base::scalar, kNatural},
    {Base::string, Base::device, kNatural},          {Base::integer, Base::floating, kWiden},
    {Base::boolean, Base::floating, kUnpacked},      {Base::boolean, Base::integer, kUnusual},
    {Base::integer, Base::complex, kUnusual},        {Base::floating, Base::complex, kUnusual},
    {Base::scalar, Base::floating, kUnpacked},       {Base::scalar, Base::integer, kUnpacked},
    {Base::integer, Base::dtype, kByNumber},         {Base::integer, Base::layout, kByNumber},
    {Base::integer, Base::memory_format, kByNumber}, {Base::integer, Base::tensor, kWrapped},
    {Base::floating, Base::tensor, kWrapped},        {Base::boolean, Base::tensor, kWrapped},
    {Base::complex, Base::tensor, kWrapped},         {Base::scalar, Base::tensor, kWrapped},
};

ConversionCost element_cost(Base have, Base want) {
  if (have == want) return kExact;
  if (want == Base::other) return kNatural;
  if (have == Base::other && want == Base::generator) return kNatural;  // opaque: only its text is known
  for (const Conversion& row : kConversions) {
    if (row.have == have && row.want == want) return row.cost;
  }
  return kNotViable;
}

// A value of known kind that is no literal container.
ConversionCost kind_cost(const ArgumentType& have, const SchemaType& want) {
  if (have.list && want.list) {
    return have.base == Base::other || want.base == Base::other ? kNatural : element_cost(have.base, want.base);
  }
  if (have.list) return want.base == Base::other ? kNatural : kNotViable;
  if (!want.list) return element_cost(have.base, want.base);
  if (want.fixed_size == 0) return kNotViable;
  ConversionCost cost = element_cost(have.base, want.base);
  if (cost.viable()) cost.value += kNatural.value;
  return cost;
}

ConversionCost node_cost(const Argument& argument, const SchemaType& want) {
  const ArgumentType have = argument_type(argument);
  if (!have.known) return want.is_tensor() && !want.list ? kExact : kUnsure;
  const ConversionCost cost = kind_cost(have, want);
  return cost.viable() ? cost : kWrongNode;
}

ConversionCost argument_cost(const Argument& argument, const SchemaType& want);

// The worst element decides.
ConversionCost sequence_cost(ArgumentSpan elements, const SchemaType& want) {
  if (want.base == Base::other) return kNatural;
  if (!want.list) return kNotViable;
  SchemaType element;
  element.base = want.base;
  element.optional = want.optional_elements;
  ConversionCost worst = kExact;
  for (const Argument& value : elements) {
    const ConversionCost cost = argument_cost(value, element);
    if (!cost.viable()) return kNotViable;
    if (cost.value > worst.value) worst = cost;
  }
  return worst;
}

ConversionCost argument_cost(const Argument& argument, const SchemaType& want) {
  if (want.base == Base::other && want.text == "AnyEnumType") return kNotViable;  // graphs have no such values
  if (argument.is_node()) return node_cost(argument, want);
  if (argument.is_none())
    return want.optional ? kExact : want.base == Base::other && !want.list ? kNatural : kNotViable;
  if (argument.is_sequence()) return sequence_cost(argument.elements(), want);
  return kind_cost(argument_type(argument), want);
}

std::string quoted(Symbol name) { return "'" + name.str() + "'"; }

std::string names_of(const OperatorSchema& schema) {
  std::string names;
  for (const SchemaArgument& argument : schema.arguments) {
    if (!names.empty()) names += ", ";
    names += argument.name.view();
  }
  return names.empty() ? "no arguments" : names;
}

// Which keyword does not belong, if any.
bool check_keywords(const OperatorSchema& schema, std::size_t num_args, KwargSpan kwargs, std::string* why) {
  for (std::size_t i = 0; i < kwargs.size(); ++i) {
    const Symbol name = kwargs.name(i);
    const int index = schema.index_of(name);
    if (index < 0) {
      if (why) *why = "has no argument " + quoted(name) + "; it takes " + names_of(schema);
      return false;
    }
    bool doubled = static_cast<std::size_t>(index) < std::min(num_args, schema.num_positional());
    for (std::size_t j = 0; j < i; ++j) doubled |= kwargs.name(j) == name;
    if (doubled) {
      if (why) *why = "is given argument " + quoted(name) + " twice";
      return false;
    }
  }
  return true;
}

}  // namespace

ConversionCost conversion_cost(const OperatorSchema& schema, ArgumentSpan args, KwargSpan kwargs, std::string* why) {
  const std::size_t positional = schema.num_positional();
  if (args.size() > positional && !schema.varargs) {
    if (why) {
      *why = "takes " + std::to_string(positional) + " positional argument" + (positional == 1 ? "" : "s") + ", got " +
             std::to_string(args.size());
    }
    return kNotViable;
  }
  if (!check_keywords(schema, args.size(), kwargs, why)) return kNotViable;
  ConversionCost total;
  const Call call(schema, args, kwargs);
  for (std::size_t i = 0; i < schema.arguments.size(); ++i) {
    const SchemaArgument& wanted = schema.arguments[i];
    const Argument* value = call.argument(i);
    if (!value) {
      if (why) *why = "is missing argument " + quoted(wanted.name) + " (" + wanted.type.text + ")";
      return kNotViable;
    }
    const Argument* const standard = wanted.default_value ? &*wanted.default_value : nullptr;
    if (value == standard) continue;
    const ConversionCost cost = argument_cost(*value, wanted.type);
    if (!cost.viable()) {
      if (why) {
        *why = "wants " + wanted.type.text + " for argument " + quoted(wanted.name) + ", got " +
               std::string(to_string(value->kind())) + " " + to_string(*value);
      }
      return kNotViable;
    }
    total.value += cost.value;
    total.forced |= cost.forced;
    total.wrong |= cost.wrong;
  }
  return total;
}

const OperatorSchema* best_overload(std::span<const OperatorSchema* const> overloads, ArgumentSpan args,
                                    KwargSpan kwargs, bool allow_forced) {
  const OperatorSchema* best = nullptr;
  int best_cost = 0;
  for (const OperatorSchema* schema : overloads) {
    const ConversionCost cost = conversion_cost(*schema, args, kwargs);
    if (!cost.viable() || (cost.forced && !allow_forced)) continue;
    if (best && cost.value >= best_cost) continue;
    best = schema;
    best_cost = cost.value;
    if (best_cost == 0) break;
  }
  return best;
}

}  // namespace internal

std::optional<std::string> check_call(const OperatorSchema& schema, ArgumentSpan args, KwargSpan kwargs) {
  std::string why;
  if (internal::conversion_cost(schema, args, kwargs, &why).viable()) return std::nullopt;
  return schema.target.str() + " " + why;
}

const OperatorSchema* resolve_overload(Symbol packet, ArgumentSpan args, KwargSpan kwargs, std::string* why) {
  const Symbol name(packet_of(canonical_target(packet).view()));
  const std::vector<const OperatorSchema*> overloads = overloads_of(name);
  const OperatorSchema* best = internal::best_overload(overloads, args, kwargs, true);
  if (best || !why) return best;
  *why = overloads.empty() ? "no operator " + name.str() + " is known" : "no overload of " + name.str() + " fits: ";
  for (const OperatorSchema* schema : overloads) {
    if (schema != overloads.front()) *why += "; ";
    *why += check_call(*schema, args, kwargs).value_or("");
  }
  return nullptr;
}

}  // namespace fx
