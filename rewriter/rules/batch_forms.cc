// Where samples lie after operators that change the form: views, lists, numbers that are sizes.
#include <fxgraph/rewriter/rules/batch_rules.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

namespace fx::internal::batch_rules {

using Result = CallSamples::Result;

// ── Forms ──────────────────────────────────────────────────────────────────────────────────────────────────────────

Result permute(CallSamples& call, int) {
  const auto input = input_of(call);
  if (!input) return std::nullopt;
  const Argument* order = call.argument("dims");
  const auto dims = order ? CallSamples::dims(*order, input->rank) : std::nullopt;
  if (!dims) return call.no(kUnknownForm);
  SampleValue result = input->at;
  result.dim = static_cast<std::size_t>(std::ranges::find(*dims, input->at.dim) - dims->begin());
  return result;
}

Result transpose(CallSamples& call, int) {
  const auto input = input_of(call);
  if (!input) return std::nullopt;
  const auto a = CallSamples::dims(*call.argument(std::size_t{1}), input->rank);
  const auto b = CallSamples::dims(*call.argument(std::size_t{2}), input->rank);
  if (!a || !b || a->size() != 1 || b->size() != 1) return call.no(kUnknownForm);
  SampleValue result = input->at;
  if (result.dim == a->front()) {
    result.dim = b->front();
  } else if (result.dim == b->front()) {
    result.dim = a->front();
  }
  return result;
}
Result matrix_transpose(CallSamples& call, int) {
  const auto input = input_of(call);
  if (!input) return std::nullopt;
  SampleValue result = input->at;
  if (input->rank == 2) result.dim = 1 - result.dim;
  return result;
}

Result unsqueeze(CallSamples& call, int) {
  const auto input = input_of(call);
  if (!input) return std::nullopt;
  const auto put = CallSamples::dims(*call.argument("dim"), input->rank + 1);
  if (!put || put->size() != 1) return call.no(kUnknownForm);
  SampleValue result = input->at;
  if (put->front() <= result.dim) ++result.dim;
  return result;
}
Result squeeze(CallSamples& call, int) {
  const auto input = input_of(call);
  if (!input) return std::nullopt;
  const Argument* named = call.argument("dim");
  const auto dims = named ? CallSamples::dims(*named, input->rank) : std::nullopt;
  const TensorInfo* made = call.result_info();
  if (!dims || dims->size() != 1 || !made) return call.no("it drops dimension 0 of a batch of one");
  if (dims->front() == input->at.dim) return call.no("it drops dimension 0 of a batch of one");
  SampleValue result = input->at;
  if (made->sizes.size() < input->rank && dims->front() < result.dim) --result.dim;
  return result;
}

namespace {

std::optional<SampleRows> elements_from(const TensorInfo& info, std::size_t first, std::size_t end) {
  return SampleRows::of(std::span(info.sizes).subspan(first, end - first));
}

/// Elements stay in row-major order: what stands before the samples, and behind them, is divided into other dimensions.
/// `at`: where samples are in the result; `counted`: what that size is for each of them, if a number says it.
Result into_form(CallSamples& call, const BatchInput& input, std::size_t at, const SampleRows* counted) {
  const TensorInfo *before = call.info(*call.argument(std::size_t{0})), *after = call.result_info();
  if (!before || !after || at >= after->sizes.size()) return call.no(kUnknownForm);
  const auto had_before = elements_from(*before, 0, input.at.dim), has_before = elements_from(*after, 0, at);
  const auto outer = had_before && has_before ? had_before->times(input.at.outer).over(*has_before) : std::nullopt;
  if (!outer) return call.no(kMixes);
  SampleValue result = SampleValue::batched(at);
  result.outer = *outer;
  if (counted) {
    const auto rows = counted->over(*outer);
    if (!rows) return call.no(kMixes);
    result.rows = *rows;
    return result;
  }
  const auto had = elements_from(*before, input.at.dim + 1, before->sizes.size());
  const auto has = elements_from(*after, at + 1, after->sizes.size());
  const auto rows = had && has ? had->times(input.at.rows).over(*has) : std::nullopt;
  if (!rows) return call.no(kMixes);
  result.rows = *rows;
  return result;
}

/// The place where a form counts samples: the one size that does, or else -1.
Result into_form(CallSamples& call, const BatchInput& input, const Argument& form) {
  if (!form.is_sequence()) return call.no(kUnknownForm);
  std::optional<std::size_t> counts, inferred;
  for (std::size_t i = 0; i < form.elements().size(); ++i) {
    const Argument& size = form.elements()[i];
    const SampleValue value = call.value(size);
    if (!value.is_shared() && (!value.is_count() || counts)) return call.no(kOthers);
    if (value.is_count()) counts = i;
    if (size.is_int() && size.as_int() == -1) inferred = i;
  }
  if (counts) {
    const SampleValue count = call.value(form.elements()[*counts]);
    return into_form(call, input, *counts, &count.rows);
  }
  if (!inferred) return call.no(kLiteral);
  return into_form(call, input, *inferred, nullptr);
}

}  // namespace

Result reshape(CallSamples& call, int) {
  const auto input = input_of(call);
  if (!input) return std::nullopt;
  if (call.argument("dtype")) return over_last(call, 1);
  const Argument* form = call.argument(std::size_t{1});
  return form ? into_form(call, *input, *form) : call.no(kUnknownForm);
}
/// That of another tensor.
Result same_form(CallSamples& call, int) {
  const auto input = input_of(call);
  if (!input) return std::nullopt;
  const SampleValue other = call.value(std::size_t{1});
  if (!other.is_batched()) return call.no(kOtherPlaces);
  const SampleRows count = other.rows.times(other.outer);
  return into_form(call, *input, other.dim, &count);
}
Result flatten(CallSamples& call, int) {
  const auto input = input_of(call);
  if (!input) return std::nullopt;
  const Argument *start = call.argument("start_dim"), *end = call.argument("end_dim");
  const auto first = start ? CallSamples::dims(*start, input->rank) : std::nullopt;
  const auto last = end ? CallSamples::dims(*end, input->rank) : std::nullopt;
  if (!first || !last || first->size() != 1 || last->size() != 1) return call.no(kUnknownForm);
  const std::size_t from = first->front(), to = last->front();
  SampleValue result = input->at;
  if (result.dim < from) return result;
  if (result.dim > to) {
    result.dim -= to - from;
    return result;
  }
  const TensorInfo& info = *call.info(*call.argument(std::size_t{0}));
  const auto outside = elements_from(info, from, result.dim), inside = elements_from(info, result.dim + 1, to + 1);
  if (!outside || !inside) return call.no(kMixes);
  result.outer = outside->times(result.outer);
  result.rows = result.rows.times(*inside);
  result.dim = from;
  return result;
}

/// A size that counts samples makes them of what is the same for all: the dimension has one element.
Result expand(CallSamples& call, int) {
  const SampleValue self = call.value(std::size_t{0});
  const Argument* sizes = call.argument(std::size_t{1});
  const TensorInfo* before = call.info(*call.argument(std::size_t{0}));
  if (!before || !sizes || !sizes->is_sequence() || sizes->elements().size() < before->sizes.size())
    return call.no(kUnknownForm);
  const std::size_t added = sizes->elements().size() - before->sizes.size();
  std::optional<SampleValue> result;
  if (self.is_batched()) {
    result = self;
    result->dim += added;
  }
  for (std::size_t i = 0; i < sizes->elements().size(); ++i) {
    const Argument& size = sizes->elements()[i];
    const SampleValue count = call.value(size);
    if (result && self.is_batched() && i == result->dim) {
      const bool stays =
          count.is_count() ? count.rows == result->rows.times(result->outer) : size.is_int() && size.as_int() == -1;
      if (!stays) return call.no(kLiteral);
    } else if (count.is_count()) {
      if (result || (i >= added && before->sizes[i - added] != 1)) return call.no(kOtherPlaces);
      result = SampleValue::batched(i, count.rows);
    } else if (!count.is_shared()) {
      return call.no(kOthers);
    }
  }
  return result ? Result(*result) : call.no(kOthers);
}
Result expand_as(CallSamples& call, int) {
  const SampleValue self = call.value(std::size_t{0}), other = call.value(std::size_t{1});
  const TensorInfo* before = call.info(*call.argument(std::size_t{0}));
  const auto rank = call.rank(1);
  if (!before || !rank || !other.is_batched() || *rank < before->sizes.size()) return call.no(kUnknownForm);
  const std::size_t added = *rank - before->sizes.size();
  const bool fits = self.is_batched()
                        ? self.dim + added == other.dim && self.rows == other.rows && self.outer == other.outer
                        : self.is_shared() && (other.dim < added || before->sizes[other.dim - added] == 1);
  return fits ? Result(other) : call.no(kOtherPlaces);
}

// ── Lists ──────────────────────────────────────────────────────────────────────────────────────────────────────────

namespace {

/// The elements of the list, which have the samples in one place, and their rank.
std::optional<BatchInput> list_of(CallSamples& call) {
  SampleValue list = call.value(std::size_t{0});
  const TensorInfo* made = call.result_info();
  if (list.kind != SampleValue::Kind::batched || !list.each || !call.shared_from(1)) return call.no(kOtherPlaces);
  if (!made) return call.no(kUnknownForm);
  list.each = false;
  return BatchInput{list, made->sizes.size()};
}

}  // namespace

Result concatenate(CallSamples& call, int) {
  const auto list = list_of(call);
  if (!list) return std::nullopt;
  const auto dims = CallSamples::dims(*call.argument("dim"), list->rank);
  if (!dims || dims->size() != 1 || dims->front() == list->at.dim) return call.no(kAlong);
  return list->at;
}
Result stack(CallSamples& call, int) {
  const auto list = list_of(call);
  if (!list) return std::nullopt;
  const auto dims = CallSamples::dims(*call.argument("dim"), list->rank);
  if (!dims || dims->size() != 1) return call.no(kUnknownForm);
  SampleValue result = list->at;
  if (dims->front() <= result.dim) ++result.dim;
  return result;
}

namespace {

Result index_tensor(CallSamples& call, const Argument& index) {
  const auto input = input_of(call);
  if (!input) return std::nullopt;
  std::vector<Argument> parts;
  if (index.kind() == ArgumentKind::tuple) {
    parts.assign(index.elements().begin(), index.elements().end());
  } else {
    parts.push_back(index);
  }
  std::size_t from = 0, to = 0;  // dimensions of the input and of the result
  for (const Argument& part : parts) {
    const bool here = from == input->at.dim;
    if (part.is_none()) {
      ++to;
    } else if (part.is_int()) {
      if (here) return call.no("it takes one sample");
      ++from;
    } else if (part.kind() == ArgumentKind::slice) {
      const auto is_none = [](const Argument& end) { return end.is_none(); };
      if (here && !std::ranges::all_of(part.elements(), is_none)) return call.no("it takes some of the samples");
      if (here) break;
      ++from, ++to;
    } else {
      return call.no(kUnknownForm);
    }
  }
  if (from > input->at.dim) return call.no(kUnknownForm);
  SampleValue result = input->at;
  result.dim = to + (input->at.dim - from);
  return result;
}

}  // namespace

Result item(CallSamples& call, int) {
  const SampleValue list = call.value(std::size_t{0});
  const Argument* index = call.argument(std::size_t{1});
  if (!index || !call.value(std::size_t{1}).is_shared()) return call.no(kOthers);
  if (list.is_batched()) return index_tensor(call, *index);
  if (list.kind == SampleValue::Kind::batched) {
    if (!index->is_int()) return list;  // a part of the list
    SampleValue one = list;
    one.each = false;
    return one;
  }
  const auto size = static_cast<std::int64_t>(list.items.size());
  if (!index->is_int() || index->as_int() < -size || index->as_int() >= size) return call.no(kOthers);
  return list.items[static_cast<std::size_t>(index->as_int() < 0 ? index->as_int() + size : index->as_int())];
}

// ── Numbers ────────────────────────────────────────────────────────────────────────────────────────────────────────

Result size(CallSamples& call, int) {
  const auto input = input_of(call);
  if (!input) return std::nullopt;
  std::vector<SampleValue> sizes;
  for (const std::int64_t each : call.info(*call.argument(std::size_t{0}))->sizes) {
    const auto known = SampleRows::of({&each, 1});
    sizes.push_back(known ? SampleValue::number(*known) : SampleValue());
  }
  sizes[input->at.dim] = SampleValue::count(input->at.rows.times(input->at.outer));
  const Argument* named = call.argument("dim");
  if (!named) return SampleValue{.kind = SampleValue::Kind::items, .items = std::move(sizes)};
  const auto dims = CallSamples::dims(*named, input->rank);
  if (!dims || dims->size() != 1) return call.no(kUnknownForm);
  return sizes[dims->front()];
}
/// Of a tensor that is its first size; lists are as long for all.
Result length(CallSamples& call, int) {
  const SampleValue value = call.value(std::size_t{0});
  if (!value.is_batched() || value.dim != 0) return SampleValue();
  return SampleValue::count(value.rows.times(value.outer));
}
Result asks(CallSamples&, int) { return SampleValue(); }

namespace {

/// A number that is known, or counts samples.
std::optional<SampleValue> number_at(const CallSamples& call, std::size_t i) {
  const Argument* argument = call.argument(i);
  if (argument && argument->is_int() && argument->as_int() > 0) return SampleValue::number({argument->as_int()});
  const SampleValue value = call.value(i);
  return value.known || value.is_count() ? std::optional(value) : std::nullopt;
}

}  // namespace

Result times(CallSamples& call, int) {
  const auto a = number_at(call, 0), b = number_at(call, 1);
  if (!a || !b || (a->is_count() && b->is_count())) return call.no(kOthers);
  SampleValue product = a->is_count() ? *a : *b;
  product.rows = a->rows.times(b->rows);
  return product;
}
/// Only by what divides it.
Result divided(CallSamples& call, int) {
  const auto a = number_at(call, 0), b = number_at(call, 1);
  const auto rows = a && b && b->known ? a->rows.over(b->rows) : std::nullopt;
  if (!rows) return call.no(kOthers);
  SampleValue quotient = *a;
  quotient.rows = *rows;
  return quotient;
}
Result same_number(CallSamples& call, int) {
  const auto a = number_at(call, 0);
  return a ? Result(*a) : call.no(kOthers);
}

/// Zeros of the form in that argument. Of the tensor before it only the type counts.
Result filled(CallSamples& call, int form_at) {
  const auto at = static_cast<std::size_t>(form_at);
  const Argument* form = call.argument(at);
  if (!form || !form->is_sequence()) return call.no(kUnknownForm);
  if (!call.shared_from(at + 1)) return call.no(kOthers);
  std::optional<SampleValue> result;
  for (std::size_t i = 0; i < form->elements().size(); ++i) {
    const SampleValue size = call.value(form->elements()[i]);
    if (size.is_shared()) continue;
    if (result || !size.is_count()) return call.no(kOthers);
    result = SampleValue::batched(i, size.rows);
  }
  return result ? *result : SampleValue();
}

}  // namespace fx::internal::batch_rules
