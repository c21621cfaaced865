#include <fxgraph/shapes/example_note.h>

#include <ATen/ATen.h>

#include <optional>
#include <utility>
#include <vector>

#include <fxgraph/run/value.h>

namespace fx {
namespace {

constexpr const char* kExample = "example";
constexpr std::int64_t kMostNumbers = 1024;

at::Tensor note_of(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  if (!tensor.is_floating_point() && !tensor.is_complex() && tensor.numel() <= kMostNumbers)
    return tensor.detach().clone();
  at::Tensor note = at::empty({0}, tensor.options());
  note.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  return note;
}

std::optional<c10::IValue> note_of(const c10::IValue& value) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined() || tensor.layout() != at::kStrided || tensor.is_quantized()) return std::nullopt;
    return note_of(tensor);
  }
  std::vector<c10::IValue> elements;
  const auto add = [&elements](const c10::IValue& element) {
    std::optional<c10::IValue> note = note_of(element);
    if (note) elements.push_back(std::move(*note));
    return note.has_value();
  };
  if (value.isTuple()) {
    for (const c10::IValue& each : value.toTupleRef().elements()) {
      if (!add(each)) return std::nullopt;
    }
    return c10::IValue(c10::ivalue::Tuple::create(std::move(elements)));
  }
  if (value.isList()) {
    for (const c10::IValue& each : value.toListRef()) {
      if (!add(each)) return std::nullopt;
    }
    return make_list(std::move(elements));
  }
  if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict()) {
      elements.push_back(item.key());
      if (!add(item.value())) return std::nullopt;
    }
    return make_dict(elements);
  }
  const bool is_plain = value.isNone() || value.isScalar() || value.isBool() || value.isString();
  return is_plain ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<c10::IValue> example_note(const c10::IValue& example) { return note_of(example); }

void note_example(Node& placeholder, c10::IValue note) { placeholder.meta().set(kExample, std::move(note)); }

const c10::IValue* noted_example(const Node& placeholder) {
  const Meta* notes = placeholder.find_meta();
  return notes ? notes->get<c10::IValue>(kExample) : nullptr;
}

bool has_numbers(const at::Tensor& tensor) { return tensor.numel() == 0 || tensor.storage().nbytes() > 0; }

}  // namespace fx
