// Each element of the result by itself: sizes broadcast, types by one of a few words.
#include <algorithm>
#include <array>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/records/size_rows.h>

namespace fx::internal {
namespace pointwise_rows {
namespace {

// Of what type the result is. Packets of aten, without the underscore of those in place; sorted.
constexpr auto kBoolean = std::to_array<std::string_view>(
    {"eq",       "ge",         "greater",     "greater_equal", "gt",         "isclose",
     "isfinite", "isinf",      "isnan",       "isneginf",      "isposinf",   "le",
     "less",     "less_equal", "logical_and", "logical_not",   "logical_or", "logical_xor",
     "lt",       "ne",         "not_equal",   "signbit"});
// Whole numbers make floats.
constexpr auto kFloat = std::to_array<std::string_view>(
    {"acos",         "acosh",        "arccos",        "arccosh",       "arcsin",        "arcsinh",       "arctan",
     "arctan2",      "arctanh",      "asin",          "asinh",         "atan",          "atan2",         "atanh",
     "copysign",     "cos",          "cosh",          "deg2rad",       "digamma",       "div",           "divide",
     "erf",          "erfc",         "erfinv",        "exp",           "exp2",          "expm1",         "i0",
     "lgamma",       "log",          "log10",         "log1p",         "log2",          "logit",         "rad2deg",
     "reciprocal",   "rsqrt",        "sigmoid",       "sin",           "sinc",          "sinh",          "special_erf",
     "special_erfc", "special_exp2", "special_expit", "special_expm1", "special_log1p", "special_xlogy", "sqrt",
     "tan",          "tanh",         "true_divide",   "xlogy"});
// What operands of several types have in common.
constexpr auto kPromoted = std::to_array<std::string_view>(
    {"__and__",    "__lshift__",  "__or__",    "__xor__",   "add",       "bitwise_and", "bitwise_not",
     "bitwise_or", "bitwise_xor", "clamp",     "clamp_max", "clamp_min", "clip",        "floor_divide",
     "fmax",       "fmin",        "fmod",      "hypot",     "maximum",   "minimum",     "mul",
     "multiply",   "pow",         "remainder", "rsub",      "sub",       "subtract"});
// As they are; those of other types than floats are left to the kernels.
constexpr auto kOfFloats = std::to_array<std::string_view>(
    {"abs",         "absolute",    "ceil",  "celu",       "clone",       "elu",       "fill",     "fix",
     "floor",       "frac",        "gelu",  "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu",
     "log_sigmoid", "masked_fill", "mish",  "nan_to_num", "neg",         "negative",  "positive", "relu",
     "relu6",       "round",       "selu",  "sgn",        "sign",        "silu",      "softplus", "softshrink",
     "square",      "threshold",   "trunc", "zero"});
// Of those, the ones that take whole numbers, but no bool.
constexpr auto kOfNumbers =
    std::to_array<std::string_view>({"abs", "absolute", "clone", "neg", "negative", "relu", "sgn", "sign", "square"});

template <std::size_t count>
bool is_among(const std::array<std::string_view, count>& packets, std::string_view packet) {
  return std::ranges::find(packets, packet) != packets.end();
}

std::string_view name_of(const SizeCall& c) {
  std::string_view name = packet_of(c.schema().target.view());
  name.remove_prefix(std::min(name.find("::") + 2, name.size()));
  if (name.ends_with("_") && !name.ends_with("__")) name.remove_suffix(1);
  return name;
}

bool is_bitwise(std::string_view packet) { return packet.starts_with("bitwise_") || packet.starts_with("__"); }

/// What a packet refuses of numbers and types that others of its kind take.
void check(const SizeCall& c, std::string_view packet, DType dtype) {
  const auto is_number = [&](std::string_view name, ArgumentKind kind) {
    const Argument* literal = c.argument(name).literal();
    return literal && literal->kind() == kind;
  };
  if (packet.ends_with("shift__") && (!is_whole(dtype) || dtype == DType::boolean))
    SizeCall::give_up("its kernel tells");
  if (is_bitwise(packet)) c.require(is_whole(dtype), "whole numbers");
  if (packet == "hypot" && is_whole(dtype)) SizeCall::give_up("its kernel tells");
  if (packet == "clamp" || packet == "clip") c.require(c.given("min") || c.given("max"), "a bound");
  if (packet == "isclose" && c.flag("equal_nan") && c.self().sizes != c.tensor("other").sizes)
    SizeCall::give_up("sizes that broadcast");
  if (packet == "isclose" && c.self().dtype != c.tensor("other").dtype)
    SizeCall::refuse_types(c.self().dtype, c.tensor("other").dtype);
  if (packet == "pow" && is_whole(dtype) && c.argument("exponent").number())
    c.require(c.literal("exponent") >= 0, "no negative power of a whole number");
  if (const TensorType* value = c.argument("value").tensor()) c.require(value->sizes.empty(), "a value of one number");
  if (is_number("alpha", ArgumentKind::boolean)) SizeCall::give_up("arithmetic of bool");
  if (is_number("alpha", ArgumentKind::floating)) c.require(!is_whole(dtype), "a whole factor of whole numbers");
  if (!packet.ends_with("sub") && packet != "subtract") return;
  const auto is_bool = [&](std::string_view name) {
    const TensorType* tensor = c.argument(name).tensor();
    return is_number(name, ArgumentKind::boolean) || (tensor && tensor->dtype == DType::boolean);
  };
  if (is_bool("self") || is_bool("other")) SizeCall::give_up("arithmetic of bool");
}

bool takes_part(std::string_view name) {
  constexpr auto kNumbers = std::to_array<std::string_view>({"self", "other", "exponent", "min", "max"});
  return is_among(kNumbers, name);
}

DType type_of(const SizeCall& c, std::string_view packet) {
  if (is_among(kBoolean, packet)) return DType::boolean;
  std::vector<const AbstractValue*> operands;
  for (std::size_t i = 0; i < c.arguments().size(); ++i) {
    const SchemaArgument& argument = c.schema().arguments[i];
    const bool is_operand = argument.type.is_tensor() || (takes_part(argument.name.view()) && !argument.type.list);
    if (is_operand && !c.is_out(i) && !c.arguments()[i].is_none()) operands.push_back(&c.arguments()[i]);
  }
  if (is_among(kFloat, packet)) {
    const bool rounds = c.given("rounding_mode");
    const DType dtype = c.promoted(operands);
    if (rounds && dtype == DType::boolean) SizeCall::give_up("arithmetic of bool");
    return rounds ? dtype : as_float(dtype);
  }
  if (is_among(kOfFloats, packet)) {
    const DType self = c.self().dtype;
    const bool takes = is_float(self) || (is_among(kOfNumbers, packet) && is_whole(self) && self != DType::boolean);
    if (!takes) SizeCall::give_up("its kernel tells");
    return self;
  }
  const DType dtype = c.promoted(operands);
  if (dtype == DType::boolean && !is_bitwise(packet)) SizeCall::give_up("arithmetic of bool");
  return dtype;
}

void pointwise(SizeCall& c) {
  const std::string_view packet = name_of(c);
  Sizes sizes;
  for (std::size_t i = 0; i < c.arguments().size(); ++i) {
    const TensorType* tensor = c.arguments()[i].tensor();
    if (!tensor || c.is_out(i)) continue;
    if (is_complex(tensor->dtype)) SizeCall::give_up("complex numbers");
    if (!(is_whole(tensor->dtype) || is_float(tensor->dtype))) SizeCall::give_up("quantized numbers");
    sizes = c.broadcast(sizes, tensor->sizes);
  }
  const DType dtype = type_of(c, packet);
  check(c, packet, dtype);
  c.give(std::move(sizes), dtype);
}

// (condition, self, other)
void where(SizeCall& c) {
  const TensorType& condition = c.tensor("condition");
  const TensorType *self = c.argument("self").tensor(), *other = c.argument("other").tensor();
  if (condition.dtype != DType::boolean || (self && other && self->dtype != other->dtype))
    SizeCall::give_up("types that are promoted");
  Sizes sizes = condition.sizes;
  for (const TensorType* each : {self, other}) {
    if (each) sizes = c.broadcast(sizes, each->sizes);
  }
  c.give(std::move(sizes), c.promoted({"self", "other"}));
}

// (self, tensor1, tensor2, value)
void three(SizeCall& c) {
  const TensorType &self = c.self(), &a = c.tensor("tensor1"), &b = c.tensor("tensor2");
  if (!is_float(self.dtype) || self.dtype != a.dtype || self.dtype != b.dtype) SizeCall::give_up("types");
  c.give(c.broadcast(self.sizes, c.broadcast(a.sizes, b.sizes)), self.dtype);
}

// (self, end, weight)
void lerp(SizeCall& c) {
  const TensorType &self = c.self(), &end = c.tensor("end");
  const TensorType* weight = c.argument("weight").tensor();
  if (!is_float(self.dtype) || self.dtype != end.dtype || (weight && weight->dtype != self.dtype))
    SizeCall::give_up("types");
  const Sizes both = c.broadcast(self.sizes, end.sizes);
  c.give(weight ? c.broadcast(both, weight->sizes) : both, self.dtype);
}

// As its input is: what is dropped, what is scaled by weights that broadcast.
void same(SizeCall& c) {
  const AbstractValue& first = c.arguments()[0];
  if (!first.tensor()) SizeCall::give_up("nothing is known of its input");
  c.give(TensorType{first.tensor()->dtype, first.tensor()->sizes, std::nullopt});
}

void dropout(SizeCall& c) {
  if (!is_float(c.arguments()[0].tensor() ? c.arguments()[0].tensor()->dtype : DType::int64))
    SizeCall::give_up("its kernel tells");
  const bool of_channels = packet_of(c.schema().target.view()).find("feature") != std::string_view::npos;
  if (of_channels && c.arguments()[0].tensor()->sizes.size() < 2) SizeCall::give_up("no channels to drop");
  if (c.argument("p").tensor()) SizeCall::float_type(c.tensor("p"));
  if (c.argument("p").tensor()) c.require_expands(c.tensor("p").sizes, c.self().sizes);
  same(c);
}

// (input, p, train): and which elements are kept
void masked_dropout(SizeCall& c) {
  dropout(c);
  if (c.tensor("input").numel() == SizeExpr(0)) SizeCall::give_up("nothing to keep");
  c.give(c.tensor("input").sizes, DType::boolean);
}

// (self, src)
void copy(SizeCall& c) {
  if (is_complex(c.tensor("src").dtype)) SizeCall::give_up("complex numbers");
  c.require_expands(c.tensor("src").sizes, c.self().sizes);
  same(c);
}

void triangle(SizeCall& c) {
  c.require(c.self().sizes.size() >= 2, "matrices");
  same(c);
}

// (self, dtype, …) of any overload
void converted(SizeCall& c) {
  const TensorType& self = c.self();
  c.give(self.sizes, c.given("other") ? c.tensor("other").dtype : c.dtype("dtype", self.dtype));
}

constexpr SizeRow kRows[] = {
    {"where", where},
    {"addcmul", three},
    {"addcdiv", three},
    {"lerp", lerp},
    {"copy", copy},
    {"native_dropout", masked_dropout},
    {"dropout", dropout},
    {"feature_dropout", dropout},
    {"alpha_dropout", dropout},
    {"feature_alpha_dropout", dropout},
    {"bernoulli", dropout},
    {"tril", triangle},
    {"triu", triangle},
    {"to", converted},
    {"type_as", converted},
    {"_to_copy", converted},
};

}  // namespace
}  // namespace pointwise_rows

std::span<const SizeRow> pointwise_size_rows() {
  static const auto rows = [] {
    std::vector<SizeRow> all(std::begin(pointwise_rows::kRows), std::end(pointwise_rows::kRows));
    for (const std::span<const std::string_view> table :
         {std::span<const std::string_view>(pointwise_rows::kBoolean),
          std::span<const std::string_view>(pointwise_rows::kFloat),
          std::span<const std::string_view>(pointwise_rows::kPromoted),
          std::span<const std::string_view>(pointwise_rows::kOfFloats)}) {
      for (const std::string_view packet : table) all.push_back({packet, pointwise_rows::pointwise});
    }
    return all;
  }();
  return rows;
}

}  // namespace fx::internal
