#include <fxgraph/ops/records/size_inference.h>

#include <algorithm>
#include <string>
#include <utility>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/records/size_rows.h>

namespace fx {
namespace internal {
namespace {

struct Undecided {
  std::string why;
  bool of_rank = false;
};
struct Refused {
  std::string why;
  bool of_types = false;
};

}  // namespace

void SizeCall::refuse(std::string why) { throw Refused{std::move(why)}; }
void SizeCall::refuse_types(DType wanted, DType found) {
  throw Refused{"expected " + std::string(to_string(wanted)) + " but found " + std::string(to_string(found)), true};
}
void SizeCall::give_up(std::string why) { throw Undecided{std::move(why)}; }
void SizeCall::give_up_rank(std::string why) { throw Undecided{std::move(why), true}; }

const AbstractValue& SizeCall::argument(std::string_view name) const {
  for (std::size_t i = 0; i < schema_.arguments.size() && i < arguments_.size(); ++i) {
    if (schema_.arguments[i].name.view() == name) return arguments_[i];
  }
  static const AbstractValue kUnknown;
  return kUnknown;
}

bool SizeCall::given(std::string_view name) const {
  for (std::size_t i = 0; i < schema_.arguments.size() && i < arguments_.size(); ++i) {
    if (schema_.arguments[i].name.view() == name) return !arguments_[i].is_none();
  }
  return false;
}

const TensorType& SizeCall::tensor(std::string_view name) const {
  const TensorType* tensor = argument(name).tensor();
  if (!tensor) give_up("nothing is known of " + std::string(name));
  return *tensor;
}

DType SizeCall::float_type(const TensorType& tensor) {
  if (!is_float(tensor.dtype)) give_up("its kernel tells");
  return tensor.dtype;
}

void SizeCall::require_type(const TensorType& tensor, DType dtype) {
  const auto is_wide = [](DType each) { return each == DType::float32 || each == DType::float64; };
  if (tensor.dtype == dtype) return;
  if (is_wide(tensor.dtype) && is_wide(dtype)) refuse_types(dtype, tensor.dtype);
  give_up("types that its kernel may refuse");
}

const TensorType& SizeCall::image(std::size_t count, std::optional<std::size_t> from) {
  const TensorType& input = tensor(schema_.index_of(Symbol("self")) >= 0 ? "self" : "input");
  require(input.sizes.size() == count + 1 || input.sizes.size() == count + 2, "an image, or a batch of them");
  for (std::size_t i = from.value_or(input.sizes.size() - count - 1); i < input.sizes.size(); ++i)
    require_at_least(input.sizes[i], 1);
  return input;
}

Sizes SizeCall::written_out(std::string_view name, std::size_t count) const {
  const AbstractValue::List* list = argument(name).list();
  if (list && list->size() == 1 && count > 1) give_up("one number for all");
  return numbers(name, count);
}

std::size_t SizeCall::rank_of_name() const {
  const std::string_view name = packet_of(schema_.target.view());
  const std::size_t at = name.find_last_of("123");
  return at == name.npos ? 0 : static_cast<std::size_t>(name[at] - '0');
}

std::vector<const TensorType*> SizeCall::tensors(std::string_view name) const {
  const AbstractValue::List* list = argument(name).list();
  if (!list) give_up("nothing is known of " + std::string(name));
  std::vector<const TensorType*> tensors;
  for (const AbstractValue& each : *list) {
    if (!each.tensor()) give_up("nothing is known of an element of " + std::string(name));
    tensors.push_back(each.tensor());
  }
  return tensors;
}

SizeExpr SizeCall::number(std::string_view name) const {
  const SizeExpr* number = argument(name).number();
  if (!number) give_up(std::string(name) + " is not known");
  return facts_.simplified(*number);
}

std::int64_t SizeCall::literal(std::string_view name) const {
  const SizeExpr value = number(name);
  if (!value.is_integer()) give_up(std::string(name) + " is no literal");
  return value.value();
}

Sizes SizeCall::numbers(std::string_view name, std::size_t count) const {
  const AbstractValue& value = argument(name);
  Sizes numbers;
  if (value.number()) {
    numbers.push_back(facts_.simplified(*value.number()));
  } else if (value.list()) {
    for (const AbstractValue& each : *value.list()) {
      if (!each.number()) give_up(std::string(name) + " is not known");
      numbers.push_back(facts_.simplified(*each.number()));
    }
  } else {
    give_up(std::string(name) + " is not known");
  }
  if (count > 0 && numbers.size() == 1) numbers.resize(count, numbers[0]);
  if (count > 0 && numbers.empty()) give_up("no " + std::string(name));
  require(count == 0 || numbers.size() == count, "as many numbers as dimensions");
  return numbers;
}

std::vector<std::int64_t> SizeCall::literals(std::string_view name, std::size_t count) const {
  std::vector<std::int64_t> literals;
  for (const SizeExpr& each : numbers(name, count)) {
    if (!each.is_integer()) give_up(std::string(name) + " is no literal");
    literals.push_back(each.value());
  }
  return literals;
}

bool SizeCall::flag(std::string_view name) const {
  const Argument* literal = argument(name).literal();
  if (!literal || !literal->is_bool()) give_up(std::string(name) + " is not known");
  return literal->as_bool();
}

std::string SizeCall::text(std::string_view name) const {
  const Argument* literal = argument(name).literal();
  if (!literal || !literal->is_string()) give_up(std::string(name) + " is not known");
  return std::string(literal->as_string());
}

DType SizeCall::dtype(std::string_view name, DType otherwise) const {
  if (!given(name)) return otherwise;
  const Argument* literal = argument(name).literal();
  if (literal && literal->kind() == ArgumentKind::dtype) return literal->as_dtype();
  give_up(std::string(name) + " is not known");
}

std::size_t SizeCall::dim(std::int64_t written, std::size_t rank) {
  const auto count = static_cast<std::int64_t>(std::max<std::size_t>(rank, 1));
  require(written >= -count && written < count, "a dimension that the tensor has");
  return static_cast<std::size_t>(written < 0 ? written + count : written);
}
std::size_t SizeCall::dim(std::string_view name, std::size_t rank) { return dim(literal(name), rank); }

std::vector<bool> SizeCall::dims(std::string_view name, std::size_t rank, bool none_is_all) {
  std::vector<bool> named(rank, false);
  const std::vector<std::int64_t> written = given(name) ? literals(name) : std::vector<std::int64_t>();
  for (const std::int64_t each : written) {
    const std::size_t at = dim(each, rank);
    if (rank == 0) continue;
    require(!named[at], "each dimension once");
    named[at] = true;
  }
  if (written.empty() && none_is_all) named.assign(rank, true);
  return named;
}

void SizeCall::require(const SizeCondition& condition) {
  const Answer answer = facts_.holds(condition);
  if (answer == Answer::no) refuse(condition.str());
  if (answer == Answer::unknown) {
    conditions_.push_back(condition);
    facts_.assume(condition);
  }
}

bool SizeCall::decide(const SizeCondition& condition) const {
  const Answer answer = facts_.holds(condition);
  if (answer == Answer::unknown) give_up("nothing tells whether " + condition.str());
  return answer == Answer::yes;
}

void SizeCall::require_any(const std::vector<SizeCondition>& conditions) {
  Sizes open;
  const SizeCondition* last = nullptr;
  for (const SizeCondition& each : conditions) {
    const Answer known = answer(each);
    if (known == Answer::yes) return;
    if (known == Answer::no) continue;
    last = &each;
    open.push_back(SizeExpr::call(each.relation == SizeRelation::equal ? "Equality" : "GreaterThan",
                                  {facts_.simplified(each.left), facts_.simplified(each.right)}));
  }
  if (!last) refuse(conditions.begin()->str());
  if (open.size() == 1) return require(*last);
  conditions_.push_back({SizeRelation::holds, SizeExpr::call("Or", std::move(open)), SizeExpr()});
}

void SizeCall::give(TensorType tensor) {
  for (SizeExpr& size : tensor.sizes) size = facts_.simplified(size);
  const Answer in_order = is_in_order(tensor.sizes.size());
  if (in_order == Answer::no) tensor.strides.reset();
  if (!tensor.strides && (in_order == Answer::yes || (in_order == Answer::unknown && gives_contiguous())))
    tensor.strides = contiguous_strides(tensor.sizes);
  results_.emplace_back(std::move(tensor));
}

void SizeCall::give_list(std::vector<TensorType> tensors) {
  AbstractValue::List list;
  for (TensorType& tensor : tensors) {
    if (!tensor.strides && gives_contiguous()) tensor.strides = contiguous_strides(tensor.sizes);
    list.emplace_back(std::move(tensor));
  }
  results_.emplace_back(std::move(list));
}

bool SizeCall::gives_contiguous() const {
  if (has_flag(schema_.target, OperatorFlag::gives_contiguous)) return true;
  return std::ranges::all_of(arguments_, [](const AbstractValue& value) {
    bool all = true;
    value.for_each_tensor([&](const TensorType& tensor) { all = all && tensor.is_contiguous(); });
    return all;
  });
}

Answer SizeCall::is_in_order(std::size_t rank) const {
  if (!given("memory_format")) return Answer::unknown;
  const Argument* format = argument("memory_format").literal();
  if (!format || format->kind() != ArgumentKind::memory_format) give_up("memory_format is not known");
  const std::string_view name = format->as_memory_format().name.view();
  if (name == "preserve_format") return Answer::unknown;
  if (name == "contiguous_format") return Answer::yes;
  require(rank == (name == "channels_last" ? 4 : 5), "as many dimensions as the memory format has");
  return Answer::no;
}

void SizeCall::give_as(Symbol target, std::span<const AbstractValue> arguments) {
  const OperatorSchema& schema = *find_overload(target);
  SizeCall call(schema, arguments, facts_, fresh_);
  size_record(target)->sizes(call);
  std::ranges::move(call.results_, std::back_inserter(results_));
  std::ranges::move(call.conditions_, std::back_inserter(conditions_));
  unsaid_ = std::move(call.unsaid_);
}

namespace {

bool can_hold(DType written, DType result) {
  if (is_complex(result) && !is_complex(written)) return false;
  if (is_float(result) && is_whole(written)) return false;
  return result == DType::boolean || written != DType::boolean;
}

}  // namespace

void SizeCall::require_written(const TensorType& written, const TensorType& result) {
  if (!can_hold(written.dtype, result.dtype)) refuse_types(written.dtype, result.dtype);
  if (written.dtype != result.dtype && !schema_.traits.pointwise) give_up("a result of another type");
  require(written.sizes.size() == result.sizes.size(), "a result of the sizes of what is written");
  for (std::size_t i = 0; i < written.sizes.size(); ++i) {
    // A size that broadcasting leaves open says nothing of what is written.
    const SizeExpr& size = result.sizes[i];
    if (!size.is_symbol() || !SizeExpr::is_data_symbol(size.name())) require_equal(written.sizes[i], size);
  }
}

InferredCall SizeCall::finished() && {
  for (std::size_t i = 0; i < results_.size() && i < schema_.returns.size(); ++i) {
    const std::optional<std::size_t> at = schema_.written_argument(i);
    if (!at) continue;
    const TensorType *written = arguments_[*at].tensor(), *result = results_[i].tensor();
    if (is_out(*at) && written && result) {  // it takes the sizes of the result
      if (!can_hold(written->dtype, result->dtype)) refuse_types(written->dtype, result->dtype);
      results_[i] =
          TensorType{written->dtype, result->sizes, written->sizes == result->sizes ? written->strides : std::nullopt};
    }
    if (schema_.is_inplace_view()) continue;
    if (written && result) require_written(*written, *result);
    results_[i] = arguments_[*at];
  }
  InferredCall made{InferredCall::Outcome::known, std::move(results_), std::move(conditions_)};
  made.unsaid = std::move(unsaid_);
  return made;
}

}  // namespace internal

SizeExpr FreshSymbols::next(SizeFacts& facts, SizeRange range) {
  std::string name;
  do name = "u" + std::to_string(count_++);
  while (facts.knows(name));
  facts.declare(name, range);
  return SizeExpr::symbol(std::move(name));
}

bool has_size_row(const OperatorSchema& schema) { return internal::size_record(schema.target) != nullptr; }

/// What is written keeps its form, whatever it is written with.
static void keep_written(const OperatorSchema& schema, std::span<const AbstractValue> arguments, InferredCall& made) {
  if (!schema.traits.pointwise || schema.returns.empty()) return;
  std::vector<AbstractValue> results;
  for (std::size_t i = 0; i < schema.returns.size(); ++i) {
    const std::optional<std::size_t> at = schema.written_argument(i);
    if (!at || schema.arguments[*at].keyword_only || !arguments[*at].tensor()) return;
    results.push_back(arguments[*at]);
  }
  made.outcome = InferredCall::Outcome::known;
  made.results = std::move(results);
  made.unsaid = std::exchange(made.why, {});
}

InferredCall infer(const OperatorSchema& schema, std::span<const AbstractValue> arguments, SizeFacts& facts,
                   FreshSymbols& fresh) {
  InferredCall made;
  const internal::OperatorRecord* row = internal::size_record(schema.target);
  if (!row) {
    made.why = schema.target.str() + " has no row";
    return made;
  }
  internal::SizeCall call(schema, arguments, facts, fresh);
  try {
    row->sizes(call);
    made = std::move(call).finished();
  } catch (internal::Undecided& undecided) {
    made.conditions = call.conditions();
    made.of_rank = undecided.of_rank;
    made.why = schema.target.str() + ": " + undecided.why;
    keep_written(schema, arguments, made);
    return made;
  } catch (internal::Refused& refused) {
    made.outcome = InferredCall::Outcome::refused;
    made.of_types = refused.of_types;
    made.why = schema.target.str() + ": " + refused.why;
    return made;
  }
  if (made.results.size() != schema.returns.size()) {
    made = {};
    made.why = schema.target.str() + " gives another number of results";
    return made;
  }
  return made;
}

}  // namespace fx
