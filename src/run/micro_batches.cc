#include <fxgraph/run/micro_batches.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <string>

#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

/// A list or tuple like `like` with other elements.
c10::IValue with_elements(const c10::IValue& like, std::vector<c10::IValue> elements) {
  if (like.isTuple()) return c10::ivalue::Tuple::create(std::move(elements));
  c10::impl::GenericList list(like.toList().elementType());
  for (c10::IValue& element : elements) list.push_back(std::move(element));
  return list;
}

}  // namespace

std::optional<std::int64_t> MicroBatches::to_cut(const std::vector<c10::IValue>& values) const {
  if (size <= 0 || values.size() != inputs.size()) return std::nullopt;
  std::int64_t batch = -1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (inputs[i].empty()) continue;
    if (!values[i].isTensor() || !values[i].toTensor().defined()) return std::nullopt;
    const auto fits = [](std::int64_t wanted, std::int64_t has) { return wanted < 0 || wanted == has; };
    if (!std::ranges::equal(inputs[i], values[i].toTensor().sizes(), fits)) return std::nullopt;
    const std::int64_t samples = values[i].toTensor().size(0);
    if (batch >= 0 && samples != batch) return std::nullopt;
    batch = samples;
  }
  return batch > size ? std::optional(batch) : std::nullopt;
}

std::vector<c10::IValue> MicroBatches::part(const std::vector<c10::IValue>& values, std::int64_t batch, std::size_t i,
                                            std::size_t parts) const {
  std::vector<c10::IValue> cut_values = values;
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (!inputs[k].empty()) cut_values[k] = cut(values[k], batch, i, parts);
  }
  return cut_values;
}

std::int64_t batch_of(const c10::IValue& value) {
  if (value.isTensor()) {
    return value.toTensor().defined() && value.toTensor().dim() > 0 ? value.toTensor().size(0) : -1;
  }
  return value.isTuple() || value.isList() ? batch_of(elements_of(value)) : -1;
}

std::int64_t batch_of(const std::vector<c10::IValue>& values) {
  for (const c10::IValue& value : values) {
    if (const std::int64_t batch = batch_of(value); batch >= 0) return batch;
  }
  return -1;
}

void check_batch(std::int64_t batch, std::size_t parts) {
  if (parts == 0) throw Error(ErrorKind::invalid_argument, "there must be at least one micro-batch");
  if (parts == 1 || batch >= static_cast<std::int64_t>(parts)) return;
  throw Error(ErrorKind::invalid_argument, "a batch of " + std::to_string(std::max<std::int64_t>(batch, 0)) +
                                               " cannot be cut into " + std::to_string(parts) + " micro-batches");
}

std::pair<std::int64_t, std::int64_t> part_of(std::int64_t batch, std::size_t i, std::size_t parts) {
  const auto at = static_cast<std::int64_t>(i), count = static_cast<std::int64_t>(parts);
  const std::int64_t begin = batch * at / count;
  return {begin, batch * (at + 1) / count - begin};
}

c10::IValue cut(const c10::IValue& value, std::int64_t batch, std::size_t i, std::size_t parts) {
  if (parts == 1) return value;
  if (value.isTensor()) {
    if (batch_of(value) != batch) return value;
    const auto [begin, size] = part_of(batch, i, parts);
    return value.toTensor().narrow(0, begin, size);
  }
  if (!holds_tensors(value) || !(value.isTuple() || value.isList())) return value;
  std::vector<c10::IValue> elements = elements_of(value);
  for (c10::IValue& element : elements) element = cut(element, batch, i, parts);
  return with_elements(value, std::move(elements));
}

c10::IValue join(const std::vector<c10::IValue>& parts, std::int64_t batch) {
  const c10::IValue& first = parts.front();
  if (parts.size() == 1) return first;
  if (first.isTuple() || (first.isList() && holds_tensors(first))) {
    std::vector<std::vector<c10::IValue>> rows;
    for (const c10::IValue& part : parts) rows.push_back(elements_of(part));
    std::vector<c10::IValue> elements;
    for (std::size_t i = 0; i < rows.front().size(); ++i) {
      std::vector<c10::IValue> column;
      for (const std::vector<c10::IValue>& row : rows) {
        if (row.size() != rows.front().size()) {
          throw Error(ErrorKind::invalid_argument,
                      "the program returns lists of another length for each micro-batch: run it as one micro-batch");
        }
        column.push_back(row[i]);
      }
      elements.push_back(join(column, batch));
    }
    return with_elements(first, std::move(elements));
  }
  std::vector<at::Tensor> tensors;
  const std::int64_t rows = std::max<std::int64_t>(batch_of(first), 0), size = part_of(batch, 0, parts.size()).second;
  for (const c10::IValue& part : parts) {
    if (!part.isTensor() || batch_of(part) < 0) {
      throw Error(ErrorKind::invalid_argument,
                  "a result of the program is no tensor with a batch: run it as one micro-batch");
    }
    const std::int64_t samples = part_of(batch, tensors.size(), parts.size()).second;
    // So many rows a sample, in all parts the same.
    if (rows % size != 0 || batch_of(part) * size != rows * samples) {
      throw Error(ErrorKind::invalid_argument, "the first dimension of a result is not the batch: it is " +
                                                   std::to_string(batch_of(part)) + " for " + std::to_string(samples) +
                                                   " of " + std::to_string(batch) +
                                                   " samples; run the program as one micro-batch");
    }
    tensors.push_back(part.toTensor());
  }
  return at::cat(tensors, 0);
}

bool holds_tensors(const c10::IValue& value) {
  if (value.isTensor()) return false;
  const auto inside = [](const c10::IValue& element) { return element.isTensor() || holds_tensors(element); };
  if (value.isTuple()) return std::ranges::any_of(value.toTupleRef().elements(), inside);
  if (value.isList()) return std::ranges::any_of(value.toListRef(), inside);
  if (!value.isGenericDict()) return false;
  for (const auto& entry : value.toGenericDict()) {
    if (inside(entry.value())) return true;
  }
  return false;
}

}  // namespace fx
