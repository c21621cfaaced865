#include <fxgraph/export/save.h>

#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>

#include <map>
#include <ostream>

#include <fxgraph/export/program_writer.h>
#include <fxgraph/run/pickle_spelling.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/output_file.h>

namespace fx {
namespace {

using caffe2::serialize::PyTorchStreamWriter;
using pt2::Json;

void write_text(PyTorchStreamWriter& archive, const std::string& name, const std::string& text) {
  archive.writeRecord(name, text.data(), text.size());
}

// Tensors that share memory share a record; one that is a small part of a large memory alone is written alone.
class PayloadWriter {
 public:
  PayloadWriter(PyTorchStreamWriter& archive, std::string folder, std::string stem)
      : archive_(archive), folder_(std::move(folder)), stem_(std::move(stem)) {}

  Json write(const std::vector<pt2::SavedTensor>& tensors) {
    std::map<const void*, int> sharers;
    for (const pt2::SavedTensor& each : tensors) ++sharers[each.tensor.storage().unsafeGetStorageImpl()];
    Json config = Json::object();
    for (const pt2::SavedTensor& each : tensors) {
      const void* storage = each.tensor.storage().unsafeGetStorageImpl();
      at::Tensor tensor = each.tensor.detach();
      if (sharers[storage] == 1) tensor = tensor.cpu().clone(at::MemoryFormat::Preserve);
      config[each.name] = {{"path_name", record_of(storage, tensor)},
                           {"is_param", each.is_parameter},
                           {"use_pickle", false},
                           {"tensor_meta", meta_of(tensor, each.tensor)}};
    }
    return {{"config", std::move(config)}};
  }

 private:
  std::string record_of(const void* storage, const at::Tensor& tensor) {
    const auto [known, fresh] = records_.try_emplace(storage, stem_ + std::to_string(records_.size()));
    if (fresh) {
      const at::Tensor held = tensor.cpu();
      archive_.writeRecord(folder_ + known->second, held.storage().data(), held.storage().nbytes());
    }
    return known->second;
  }

  static Json meta_of(const at::Tensor& written, const at::Tensor& original) {
    pt2::TensorMeta meta = pt2::meta_of_tensor(written);
    meta.device = to_device(original.device());
    meta.requires_grad = original.requires_grad();
    return pt2::write_tensor_meta(meta);
  }

  PyTorchStreamWriter& archive_;
  std::string folder_;
  std::string stem_;
  std::map<const void*, std::string> records_;
};

// Types that Python has a class of storage for; of the others (uint16, float8, complex32, ...) it reads no pickle that
// LibTorch writes, and with it not the archive.
bool has_storage_class(at::ScalarType type) {
  switch (type) {
    case at::kByte:
    case at::kChar:
    case at::kShort:
    case at::kInt:
    case at::kLong:
    case at::kHalf:
    case at::kBFloat16:
    case at::kFloat:
    case at::kDouble:
    case at::kComplexFloat:
    case at::kComplexDouble:
    case at::kBool: return true;
    default: return false;
  }
}

// The inputs of the example; nothing, which Python takes too, where it could not read them.
std::vector<char> example_of(const pt2::WrittenProgram& program) {
  c10::IValue::HashAliasedIValues parts;
  program.example.getSubValues(parts);
  for (const c10::IValue& part : parts) {
    if (part.isTensor() && part.toTensor().defined() && !has_storage_class(part.toTensor().scalar_type())) return {};
  }
  return pickled(program.example);
}

void write_archive(const pt2::WrittenProgram& program, std::ostream& out) {
  PyTorchStreamWriter archive([&out](const void* data, std::size_t size) {
    out.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
    return out ? size : 0;
  });
  constexpr std::uint64_t kZipVersion = 6;
  archive.setMinVersion(kZipVersion);
  const Json weights = PayloadWriter(archive, "data/weights/", "weight_").write(program.weights);
  write_text(archive, "data/weights/model_weights_config.json", weights.dump());
  const Json constants = PayloadWriter(archive, "data/constants/", "tensor_").write(program.constants);
  write_text(archive, "data/constants/model_constants_config.json", constants.dump());
  write_text(archive, "models/model.json", program.json.dump());
  const std::vector<char> example = example_of(program);
  archive.writeRecord("data/sample_inputs/model.pt", example.data(), example.size());
  write_text(archive, "archive_format", "pt2");
  write_text(archive, "archive_version", "0");
  write_text(archive, "byteorder", "little");
  archive.writeEndOfFile();
}

}  // namespace

void save_exported(const GraphModule& module, const std::string& path, const SaveExportedOptions& options) {
  pt2::WrittenProgram program;
  try {
    // It is run, which leaves no trace in it.
    program = pt2::ProgramWriter(const_cast<GraphModule&>(module), options).write();
  } catch (const Error& error) {
    throw Error(error.kind(), path + ": cannot be written: " + error.message(), error.node(), error.location());
  }
  write_file(path, [&](std::ostream& out) { write_archive(program, out); });
}

}  // namespace fx
