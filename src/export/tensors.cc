#include <fxgraph/export/tensors.h>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/jit/api/compilation_unit.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>

#include <fxgraph/contract/arithmetic.h>
#include <fxgraph/export/data_sizes.h>
#include <fxgraph/export/literals.h>
#include <fxgraph/run/stored_values.h>
#include <fxgraph/run/value.h>

namespace fx::pt2 {
namespace {

constexpr int kStrided = 7;  // the schema's number of the layout

std::int64_t fixed(const SymbolicSize& size) {
  if (!size.expr.is_integer()) malformed("a weight has the size " + size.expr.str());
  if (size.expr.value() < 0) malformed("a weight has the size " + size.expr.str());
  return size.expr.value();
}

// Elements from the start of the record that the tensor reaches; nothing on overflow.
std::optional<std::int64_t> reach(const TensorMeta& meta) {
  if (meta.storage_offset < 0) malformed("a weight begins where sizes say, or before its record");
  std::int64_t last = meta.storage_offset, numel = 1;
  for (std::size_t i = 0; i < meta.sizes.size(); ++i) {
    const std::int64_t size = fixed(meta.sizes[i]), stride = fixed(meta.strides[i]);
    if (size == 0) return meta.storage_offset;
    std::int64_t step = 0;
    if (__builtin_mul_overflow(size - 1, stride, &step) || __builtin_add_overflow(last, step, &last) ||
        __builtin_mul_overflow(numel, size, &numel))
      return std::nullopt;
  }
  if (last == INT64_MAX) return std::nullopt;
  return last + 1;
}

class Reader {
 public:
  Reader(ArchiveReader& archive, std::string folder, std::string model)
      : archive_(archive), folder_("data/" + folder + "/"), model_(std::move(model)) {}

  // `legacy`: where releases before 2.8 kept all of them, as torch.save writes a dict.
  StoredTensors read(const std::string& config, const std::string& legacy) {
    if (archive_.has(folder_ + model_ + ".pt")) return read_dict(folder_ + model_ + ".pt");
    if (!archive_.has(folder_ + config) && archive_.has(legacy)) return read_dict(legacy);
    const Json json = Json::parse(archive_.text(folder_ + config), nullptr, /*allow_exceptions=*/false);
    StoredTensors all;
    for (const auto& [name, payload] : member(json, "config").items()) {
      const bool is_parameter = boolean_of(member(payload, "is_param"));
      const at::Tensor tensor = read_payload(name, payload);
      if (is_parameter && tensor.is_leaf() && boolean_of(member(member(payload, "tensor_meta"), "requires_grad")))
        tensor.set_requires_grad(true);
      all.emplace(name, StoredTensor{tensor, is_parameter});
    }
    return all;
  }

 private:
  at::Tensor read_payload(const std::string& name, const Json& payload) {
    const std::string record = folder_ + string_of(member(payload, "path_name"));
    if (boolean_of(member(payload, "use_pickle"))) {
      const c10::IValue value = unpickle(record);
      if (!value.isTensor())
        throw Error(ErrorKind::unsupported, "the constant '" + name + "' is no tensor, and only tensors are read");
      return value.toTensor();
    }
    const Json& json = member(payload, "tensor_meta");
    const auto [known, fresh] = tensors_.try_emplace({record, json.dump()});
    if (fresh) known->second = make(name, record, read_tensor_meta(json));
    return known->second;
  }

  at::Tensor make(const std::string& name, const std::string& record, const TensorMeta& meta) {
    if (!is_available(meta.dtype)) {
      throw Error(ErrorKind::unsupported, "the tensor '" + name + "' is of the type torch." +
                                              std::string(to_string(meta.dtype)) +
                                              ", which this LibTorch does not have");
    }
    const auto element = static_cast<std::int64_t>(element_size(meta.dtype));
    const std::optional<std::int64_t> elements = reach(meta);
    const auto bytes = static_cast<std::int64_t>(archive_.size(record));
    if (!elements || *elements > bytes / element)
      malformed("the tensor '" + name + "' reaches past its record '" + record + "'");
    std::vector<std::int64_t> sizes, strides;
    for (const SymbolicSize& size : meta.sizes) sizes.push_back(fixed(size));
    for (const SymbolicSize& stride : meta.strides) strides.push_back(fixed(stride));
    at::Tensor made = at::empty({0}, at::TensorOptions().dtype(to_scalar_type(meta.dtype)));
    made.set_(storage_of(record), meta.storage_offset, sizes, strides);
    if (meta.device.type != "cpu") made = made.to(device_of(name, meta.device));
    return made;
  }

  static c10::Device device_of(const std::string& name, const Device& device) {
    try {
      const c10::Device wanted = to_torch_device(device);
      at::empty({0}, at::TensorOptions().device(wanted));
      return wanted;
    } catch (const std::exception&) {
      throw Error(ErrorKind::unsupported, "the tensor '" + name + "' lives on " + to_string(device) +
                                              ", which is not there; move the program to the CPU before exporting it");
    }
  }

  c10::Storage storage_of(const std::string& record) {
    const auto [known, fresh] = storages_.try_emplace(record);
    if (fresh) {
      const at::Tensor bytes = at::empty({static_cast<std::int64_t>(archive_.size(record))}, at::kByte);
      archive_.read(record, static_cast<char*>(bytes.data_ptr()));
      known->second = bytes.storage();
    }
    return known->second;
  }

  // torch.nn.Parameter in a pickle is a call of torch._utils._rebuild_parameter, which no LibTorch has: an object that
  // holds the call's arguments (the tensor, requires_grad, hooks).
  static c10::StrongTypePtr parameter_class(const c10::QualifiedName& name) {
    if (name.qualifiedName() != "torch._utils._rebuild_parameter") {
      throw Error(ErrorKind::unsupported,
                  "it holds a " + name.qualifiedName() + ", and only tensors and parameters are read");
    }
    static const auto unit = std::make_shared<torch::jit::CompilationUnit>();
    static const c10::ClassTypePtr type = [] {
      c10::ClassTypePtr made = c10::ClassType::create(c10::QualifiedName("__torch__.Parameter"), unit);
      made->addAttribute("arguments", c10::AnyType::get());
      return made;
    }();
    return {unit, type};
  }
  static c10::intrusive_ptr<c10::ivalue::Object> parameter_object(const c10::StrongTypePtr& type,
                                                                  c10::IValue arguments) {
    auto made = c10::ivalue::Object::create(type, 1);
    made->setSlot(0, std::move(arguments));
    return made;
  }
  // The tensor of such an object; what else it is stays what it is.
  static c10::IValue parameter_of(const c10::IValue& value) {
    if (!value.isObject()) return value;
    const c10::IValue arguments = value.toObjectRef().getSlot(0);
    if (!arguments.isTuple() || arguments.toTupleRef().size() < 2 || !arguments.toTupleRef().elements()[0].isTensor() ||
        !arguments.toTupleRef().elements()[1].isBool())
      malformed("a parameter has no tensor");
    const at::Tensor tensor = arguments.toTupleRef().elements()[0].toTensor().detach();
    return tensor.set_requires_grad(arguments.toTupleRef().elements()[1].toBool() && tensor.is_floating_point());
  }

  c10::IValue unpickle(const std::string& record) {
    std::string bytes(archive_.size(record), '\0');
    archive_.read(record, bytes.data());
    ArchiveReader inside(record, std::move(bytes));
    try {
      return stored_value(inside, {&parameter_class, &parameter_object});
    } catch (const Error& error) {
      malformed(error.message());
    }
  }

  StoredTensors read_dict(const std::string& record) {
    StoredTensors all;
    if (archive_.size(record) == 0) return all;
    const c10::IValue value = unpickle(record);
    if (!value.isGenericDict()) malformed("the record '" + record + "' holds no dict");
    for (const auto& item : value.toGenericDict()) {
      const c10::IValue held = parameter_of(item.value());
      if (!item.key().isString() || !held.isTensor()) {
        throw Error(ErrorKind::unsupported, "the record '" + record + "' holds something else than tensors");
      }
      const at::Tensor tensor = held.toTensor();
      const bool is_parameter = item.value().isObject() || tensor.requires_grad();
      all.emplace(item.key().toStringRef(), StoredTensor{is_parameter ? tensor : tensor.detach(), is_parameter});
    }
    return all;
  }

  ArchiveReader& archive_;
  std::string folder_;
  std::string model_;
  std::map<std::string, c10::Storage> storages_;
  std::map<std::pair<std::string, std::string>, at::Tensor> tensors_;
};

// The numbers of the example again and again.
at::Tensor repeated(const at::Tensor& numbers, at::IntArrayRef sizes) {
  const std::int64_t count = std::accumulate(sizes.begin(), sizes.end(), std::int64_t(1), std::multiplies<>());
  if (numbers.numel() == 0) return at::zeros(sizes, numbers.options());
  const std::int64_t times = (count + numbers.numel() - 1) / numbers.numel();
  return numbers.reshape({-1}).repeat({times}).slice(0, 0, count).reshape(sizes);
}

}  // namespace

SymbolicSize read_symbolic_size(const Json& json) {
  const auto [kind, value] = variant_of(json);
  if (kind == "as_int") return {SizeExpr::integer(integer_of(value)), integer_of(value)};
  if (kind != "as_expr") malformed("a size is '" + kind + "'");
  SymbolicSize size{SizeExpr::parse(string_of(member(value, "expr_str")))};
  if (const Json* hint = find_member(value, "hint")) {
    if (const Json* example = find_member(*hint, "as_int")) size.example = integer_of(*example);
  }
  return size;
}

TensorMeta read_tensor_meta(const Json& json) {
  TensorMeta meta;
  meta.dtype = read_literal("as_scalar_type", member(json, "dtype"))->as_dtype();
  for (const Json& size : array_of(member(json, "sizes"))) meta.sizes.push_back(read_symbolic_size(size));
  for (const Json& stride : array_of(member(json, "strides"))) meta.strides.push_back(read_symbolic_size(stride));
  if (meta.sizes.size() != meta.strides.size()) malformed("a tensor has other numbers of sizes and strides");
  if (const Json* offset = find_member(json, "storage_offset")) {
    const SizeExpr expr = read_symbolic_size(*offset).expr;
    meta.storage_offset = expr.is_integer() ? expr.value() : TensorMeta::kVaries;
  }
  meta.requires_grad = boolean_of(member(json, "requires_grad"));
  meta.device = read_literal("as_device", member(json, "device"))->as_device();
  if (integer_of(member(json, "layout")) != kStrided)
    throw Error(ErrorKind::unsupported, "a tensor of the program is sparse; only strided ones are read");
  return meta;
}

StoredTensors read_weights(ArchiveReader& archive, const std::string& model) {
  return Reader(archive, "weights", model).read(model + "_weights_config.json", "serialized_state_dict.pt");
}

StoredTensors read_constants(ArchiveReader& archive, const std::string& model) {
  return Reader(archive, "constants", model).read(model + "_constants_config.json", "serialized_constants.pt");
}

Json write_size(const SymbolicSize& size) {
  if (size.expr.is_integer()) return {{"as_int", size.expr.value()}};
  // What data decide has no example: with one, Python would take it for a size of the inputs.
  return write_expression(size.expr, size.expr.is_of_data() ? Json() : Json{{"as_int", size.example}});
}

Json write_expression(const SizeExpr& expr, Json example) {
  return {{"as_expr", {{"expr_str", expr.dump()}, {"hint", std::move(example)}}}};
}

TensorMeta meta_of_tensor(const at::Tensor& tensor) {
  TensorMeta meta;
  meta.dtype = to_dtype(tensor.scalar_type());
  meta.device = to_device(tensor.device());
  meta.requires_grad = tensor.requires_grad();
  meta.storage_offset = tensor.storage_offset();
  for (std::int64_t i = 0; i < tensor.dim(); ++i) {
    meta.sizes.push_back({SizeExpr::integer(tensor.size(i)), tensor.size(i)});
    meta.strides.push_back({SizeExpr::integer(tensor.stride(i)), tensor.stride(i)});
  }
  return meta;
}

at::Tensor made_like(const at::Tensor& example, at::IntArrayRef sizes, at::IntArrayRef strides,
                     const at::TensorOptions& options) {
  std::vector<std::int64_t> own = sizes.vec();  // without what is the same memory again, which nobody may write
  for (std::size_t dim = 0; dim < own.size(); ++dim)
    own[dim] = strides[dim] == 0 ? std::min<std::int64_t>(own[dim], 1) : own[dim];
  const at::Tensor made = at::empty_strided(own, strides, options);
  if (example.defined()) {
    at::Tensor numbers = example.sizes() == sizes ? example : repeated(example, sizes);
    for (std::int64_t dim = 0; dim < numbers.dim(); ++dim)
      numbers = numbers.narrow(dim, 0, own[static_cast<std::size_t>(dim)]);
    made.copy_(numbers);
  } else if (!made.is_floating_point() && !made.is_complex()) {
    made.zero_();
  } else {
    // Numbers without a pattern, the same each time: matrices of them have inverses.
    constexpr std::uint64_t kSeed = 1;
    const auto drawn = made.element_size() == 1 ? options.dtype(at::kFloat) : options;  // nobody draws floats of 8 bits
    made.copy_(at::rand(own, at::make_generator<at::CPUGeneratorImpl>(kSeed), drawn.device(at::kCPU)));
  }
  if (made.sizes() == sizes) return made;
  return at::empty({0}, options).set_(made.storage(), 0, sizes, strides);  // no view: detach_ refuses those
}

Json write_tensor_meta(const TensorMeta& meta) {
  Json sizes = Json::array(), strides = Json::array();
  for (const SymbolicSize& size : meta.sizes) sizes.push_back(write_size(size));
  for (const SymbolicSize& stride : meta.strides) strides.push_back(write_size(stride));
  const Json dtype = write_literal(Argument(meta.dtype));
  if (dtype.is_null()) {
    throw Error(ErrorKind::unsupported,
                "torch.export has no words for the element type " + std::string(to_string(meta.dtype)));
  }
  return {{"dtype", dtype.begin().value()},
          {"sizes", std::move(sizes)},
          {"requires_grad", meta.requires_grad},
          {"device", write_literal(Argument(meta.device)).begin().value()},
          {"strides", std::move(strides)},
          {"storage_offset", {{"as_int", meta.storage_offset}}},
          {"layout", kStrided}};
}

}  // namespace fx::pt2
