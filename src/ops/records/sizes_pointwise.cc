// Each element of the result by itself: sizes broadcast, types by one of a few words.
#include <algorithm>
#include <array>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/records/size_rows.h>

namespace fx::internal {
namespace pointwise_rows {
namespace {

/// Of what type the result is.
enum class Result {
  boolean,
  floats,     ///< whole numbers make floats
  promoted,   ///< what operands of several types have in common
  of_floats,  ///< as it is; of other types than floats the kernels tell
  of_numbers  ///< as it is; of bool the kernels tell
};

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

DType type_of(const SizeCall& c, std::string_view packet, Result result) {
  if (result == Result::boolean) return DType::boolean;
  std::vector<const AbstractValue*> operands;
  for (std::size_t i = 0; i < c.arguments().size(); ++i) {
    const SchemaArgument& argument = c.schema().arguments[i];
    const bool is_operand = argument.type.is_tensor() || (takes_part(argument.name.view()) && !argument.type.list);
    if (is_operand && !c.is_out(i) && !c.arguments()[i].is_none()) operands.push_back(&c.arguments()[i]);
  }
  if (result == Result::floats) {
    const bool rounds = c.given("rounding_mode");
    const DType dtype = c.promoted(operands);
    if (rounds && dtype == DType::boolean) SizeCall::give_up("arithmetic of bool");
    return rounds ? dtype : as_float(dtype);
  }
  if (result != Result::promoted) {
    const DType self = c.self().dtype;
    const bool takes = is_float(self) || (result == Result::of_numbers && is_whole(self) && self != DType::boolean);
    if (!takes) SizeCall::give_up("its kernel tells");
    return self;
  }
  const DType dtype = c.promoted(operands);
  if (dtype == DType::boolean && !is_bitwise(packet)) SizeCall::give_up("arithmetic of bool");
  return dtype;
}

template <Result result>
void pointwise(SizeCall& c) {
  const std::string_view packet = name_of(c);
  std::vector<const TensorType*> operands;
  for (std::size_t i = 0; i < c.arguments().size(); ++i) {
    const TensorType* tensor = c.arguments()[i].tensor();
    if (!tensor || c.is_out(i)) continue;
    if (is_complex(tensor->dtype)) SizeCall::give_up("complex numbers");
    if (!(is_whole(tensor->dtype) || is_float(tensor->dtype))) SizeCall::give_up("quantized numbers");
    operands.push_back(tensor);
  }
  Sizes sizes = c.common_sizes(operands);
  const DType dtype = type_of(c, packet, result);
  check(c, packet, dtype);
  c.give(std::move(sizes), dtype);
}

// (condition, self, other)
void where(SizeCall& c) {
  const TensorType& condition = c.tensor("condition");
  const TensorType *self = c.argument("self").tensor(), *other = c.argument("other").tensor();
  if (condition.dtype != DType::boolean || (self && other && self->dtype != other->dtype))
    SizeCall::give_up("types that are promoted");
  std::vector<const Sizes*> sizes = {&condition.sizes};
  for (const TensorType* each : {self, other}) {
    if (each) sizes.push_back(&each->sizes);
  }
  c.give(c.broadcast(sizes), c.promoted({"self", "other"}));
}

// (self, tensor1, tensor2, value)
void three(SizeCall& c) {
  const TensorType &self = c.self(), &a = c.tensor("tensor1"), &b = c.tensor("tensor2");
  if (!is_float(self.dtype) || self.dtype != a.dtype || self.dtype != b.dtype) SizeCall::give_up("types");
  const TensorType* const operands[] = {&self, &a, &b};
  c.give(c.common_sizes(operands), self.dtype);
}

// (self, end, weight)
void lerp(SizeCall& c) {
  const TensorType &self = c.self(), &end = c.tensor("end");
  const TensorType* weight = c.argument("weight").tensor();
  if (!is_float(self.dtype) || self.dtype != end.dtype || (weight && weight->dtype != self.dtype))
    SizeCall::give_up("types");
  const TensorType* const operands[] = {&self, &end, weight};
  c.give(c.common_sizes(std::span(operands).first(weight ? 3 : 2)), self.dtype);
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

using enum OperatorFlag;
constexpr auto boolean = pointwise<Result::boolean>, floats = pointwise<Result::floats>,
               promoted = pointwise<Result::promoted>, of_floats = pointwise<Result::of_floats>,
               of_numbers = pointwise<Result::of_numbers>;

constexpr OperatorRecord kRows[] = {
    {"where", where, sizes_of_data, nullptr, nullptr, "self"},
    {"addcmul", three, keeps_channels_last},
    {"addcdiv", three},
    {"lerp", lerp},
    {"copy", copy},
    {"native_dropout", masked_dropout},
    {"dropout", dropout, keeps_type | copies_in_order, cost::each_output<0>, &no_op::drops_nothing},
    {"feature_dropout alpha_dropout feature_alpha_dropout", dropout, copies_in_order, nullptr, &no_op::drops_nothing},
    {"bernoulli", dropout},
    {"tril triu", triangle},
    {"to", converted, {}, nullptr, &no_op::keeps_type},
    {"type_as", converted},
    {"_to_copy", converted, keeps_channels_last},
    {"eq ge greater greater_equal gt isclose isfinite isinf isnan isneginf isposinf le less less_equal logical_and "
     "logical_not logical_or logical_xor lt ne not_equal signbit",
     boolean},
    {"acos acosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh copysign cos cosh "
     "deg2rad digamma divide erf erfc erfinv exp2 expm1 i0 lgamma log log10 log1p log2 logit rad2deg reciprocal sin "
     "sinc sinh special_erf special_erfc special_exp2 special_expit special_expm1 special_log1p special_xlogy tan "
     "true_divide xlogy",
     floats},
    {"div", floats, keeps_channels_last, nullptr, &no_op::divides_by_one},
    {"exp rsqrt sigmoid sqrt tanh", floats, keeps_type | keeps_channels_last},
    {"__and__ __lshift__ __or__ __xor__ bitwise_and bitwise_not bitwise_or bitwise_xor clip floor_divide fmax fmin "
     "fmod hypot multiply remainder rsub subtract",
     promoted},
    {"add", promoted, keeps_channels_last, nullptr, &no_op::adds_zero},
    {"clamp clamp_max clamp_min", promoted, keeps_type | keeps_channels_last},
    {"maximum minimum", promoted, keeps_channels_last},
    {"mul", promoted, keeps_channels_last, nullptr, &no_op::times_one},
    {"pow", promoted, keeps_channels_last, nullptr, &no_op::to_the_one},
    {"sub", promoted, keeps_channels_last, nullptr, &no_op::subtracts_zero},
    {"abs", of_numbers, keeps_channels_last},
    {"absolute negative sgn sign square", of_numbers},
    {"ceil celu fill fix floor frac hardshrink log_sigmoid masked_fill nan_to_num positive round selu softshrink "
     "threshold trunc zero",
     of_floats},
    {"clone", of_numbers, keeps_type | copies_in_order, cost::each_output<0>},
    {"elu gelu hardsigmoid hardswish hardtanh mish silu softplus", of_floats, keeps_channels_last},
    {"leaky_relu", of_floats, keeps_type | keeps_channels_last},
    {"neg", of_numbers, keeps_type | keeps_channels_last},
    {"relu", of_numbers, keeps_type | keeps_channels_last | rectifies, nullptr, &no_op::rectified_before},
    {"relu6", of_floats, keeps_type | keeps_channels_last | rectifies},
};

}  // namespace
}  // namespace pointwise_rows

std::span<const OperatorRecord> pointwise_operators() { return pointwise_rows::kRows; }

}  // namespace fx::internal
