#include <fxgraph/export/save.h>

#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>

#include <algorithm>
#include <map>
#include <ostream>

#include <fxgraph/export/program_writer.h>
#include <fxgraph/module/written_mode.h>
#include <fxgraph/run/stored_values.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/output_file.h>

namespace fx {
namespace {

using caffe2::serialize::PyTorchStreamWriter;
using pt2::Json;

void write_text(PyTorchStreamWriter& archive, const std::string& name, const std::string& text) {
  archive.writeRecord(name, text.data(), text.size());
}

// Tensors that share memory share a record.
class PayloadWriter {
 public:
  PayloadWriter(PyTorchStreamWriter& archive, std::string folder, std::string stem)
      : archive_(archive), folder_(std::move(folder)), stem_(std::move(stem)) {}

  std::string write(const std::vector<pt2::SavedState>& tensors) {
    // Python reads a record as the first tensor of it, and gives all others that one's gradients.
    nlohmann::ordered_json config = nlohmann::ordered_json::object();
    for (const bool trained : {false, true}) {
      for (const pt2::SavedState& each : tensors) {
        if (each.tensor.requires_grad() == trained) config[each.path] = payload_of(each);
      }
    }
    return nlohmann::ordered_json{{"config", std::move(config)}}.dump();
  }

 private:
  Json payload_of(const pt2::SavedState& each) {
    return {{"path_name", record_of(each.tensor)},
            {"is_param", each.held == pt2::SavedState::Held::parameter},
            {"use_pickle", false},
            {"tensor_meta", pt2::write_tensor_meta(pt2::meta_of_tensor(each.tensor))}};
  }

  std::string record_of(const at::Tensor& tensor) {
    const c10::Storage storage = tensor.storage();
    const auto [known, fresh] =
        records_.try_emplace(storage.unsafeGetStorageImpl(), stem_ + std::to_string(records_.size()));
    if (fresh) {
      const auto count = static_cast<std::int64_t>(storage.nbytes() / tensor.element_size());
      const at::Tensor all = at::empty({0}, tensor.options()).set_(storage, 0, {count}, {1}).cpu();
      archive_.writeRecord(folder_ + known->second, all.storage().data(), all.nbytes());
    }
    return known->second;
  }

  PyTorchStreamWriter& archive_;
  std::string folder_;
  std::string stem_;
  std::map<const void*, std::string> records_;
};

// Types that Python has a class of storage for; of the others (uint16, float8, complex32, ...) it reads no pickle that
// LibTorch writes, and with it not the archive.
constexpr at::ScalarType kWithStorageClass[] = {at::kByte,   at::kChar,         at::kShort,         at::kInt,
                                                at::kLong,   at::kHalf,         at::kBFloat16,      at::kFloat,
                                                at::kDouble, at::kComplexFloat, at::kComplexDouble, at::kBool};

// The inputs of the example; nothing, which Python takes too, where it could not read them.
std::vector<char> example_of(const pt2::WrittenProgram& program) {
  c10::IValue::HashAliasedIValues parts;
  program.example.getSubValues(parts);
  for (const c10::IValue& part : parts) {
    if (!part.isTensor() || !part.toTensor().defined()) continue;
    const auto type = std::ranges::find(kWithStorageClass, part.toTensor().scalar_type());
    if (type == std::end(kWithStorageClass)) return {};
  }
  return pickled(program.example);
}

void write_archive(const pt2::WrittenProgram& program, const std::string& mode, std::ostream& out) {
  PyTorchStreamWriter archive([&out](const void* data, std::size_t size) {
    out.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
    return out ? size : 0;
  });
  constexpr std::uint64_t kZipVersion = 6;
  archive.setMinVersion(kZipVersion);
  const std::string weights = PayloadWriter(archive, "data/weights/", "weight_").write(program.weights);
  write_text(archive, "data/weights/model_weights_config.json", weights);
  const std::string constants = PayloadWriter(archive, "data/constants/", "tensor_").write(program.constants);
  write_text(archive, "data/constants/model_constants_config.json", constants);
  write_text(archive, "models/model.json", program.json.dump());
  const std::vector<char> example = example_of(program);
  archive.writeRecord("data/sample_inputs/model.pt", example.data(), example.size());
  if (!mode.empty()) write_text(archive, pt2::kModeRecord, mode);
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
  const std::string fixed = internal::mode_of_written(module, [](const torch::nn::Module&) { return false; });
  const std::string mode = fixed.empty() ? "" : (module.is_training() ? pt2::kTrainMode : pt2::kEvalMode) + fixed;
  write_file(path, [&](std::ostream& out) { write_archive(program, mode, out); });
}

}  // namespace fx
