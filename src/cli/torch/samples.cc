#include <fxgraph/cli/torch/samples.h>

#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/unpickler.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include <fxgraph/run/pickle_spelling.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>

namespace fx::cli {

namespace {

[[noreturn]] void refuse_samples(const std::string& message) { throw Error(ErrorKind::invalid_argument, message); }

c10::IValue unpickle_file(std::istream& file) {
  caffe2::serialize::PyTorchStreamReader archive(&file);
  const auto [bytes, size] = archive.getRecord("data.pkl");
  const std::string pickle = without_single_appends({static_cast<const char*>(bytes.get()), size});
  std::size_t at = 0;
  torch::jit::Unpickler unpickler(
      [&](char* to, std::size_t wanted) {
        const std::size_t given = std::min(wanted, pickle.size() - at);
        std::memcpy(to, pickle.data() + at, given);
        at += given;
        return given;
      },
      nullptr, nullptr, [&](const std::string& name) { return std::get<0>(archive.getRecord("data/" + name)); },
      c10::nullopt);
  return unpickler.parse_ivalue();
}

std::vector<c10::IValue> elements_of_pickle(const c10::IValue& value, const std::string& path) {
  if (value.isTensor()) return {value};
  if (value.isTuple()) return value.toTupleRef().elements().vec();
  if (!value.isList()) refuse_samples(path + ": holds a " + value.tagKind() + ", not a list of samples");
  return value.toListRef().vec();
}

}  // namespace

Samples read_samples(const std::string& path) {
  if (std::filesystem::is_directory(path)) throw Error(ErrorKind::io, path + ": is a folder, not a file of samples");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorKind::io, path + ": cannot be read");
  std::vector<c10::IValue> all;
  try {
    all = elements_of_pickle(unpickle_file(file), path);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    refuse_samples(path + ": is no file of samples (" + first_line(error) +
                   "): write a list of tensors or tuples with torch.save");
  }
  if (all.empty()) refuse_samples(path + ": holds no samples");
  Samples samples;
  for (const c10::IValue& each : all) {
    if (each.isTuple()) {
      samples.push_back(each.toTupleRef().elements().vec());
    } else if (each.isList() && !each.isTensorList()) {
      samples.push_back(each.toListRef().vec());
    } else {
      samples.push_back({each});
    }
  }
  return samples;
}

}  // namespace fx::cli
