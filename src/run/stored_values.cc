#include <fxgraph/run/stored_values.h>

#include <c10/core/CPUAllocator.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/export.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/csrc/jit/serialization/pickler.h>
#include <torch/csrc/jit/serialization/storage_context.h>
#include <torch/csrc/jit/serialization/unpickler.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include <fxgraph/run/code_check.h>
#include <fxgraph/run/pickle_check.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/program_form.h>

namespace fx {
namespace {

// Lists and dicts of anything: those of one type are written as calls of TorchScript's.
c10::IValue without_types(const c10::IValue& value) {
  if (value.isTuple()) {
    std::vector<c10::IValue> elements;
    for (const c10::IValue& each : value.toTupleRef().elements()) elements.push_back(without_types(each));
    return c10::ivalue::Tuple::create(std::move(elements));
  }
  if (value.isList()) {
    c10::List<c10::IValue> list(c10::AnyType::get());
    for (const c10::IValue& each : value.toListRef()) list.push_back(without_types(each));
    return list;
  }
  if (!value.isGenericDict()) return value;
  const auto given = value.toGenericDict();
  c10::impl::GenericDict dict(given.keyType(), c10::AnyType::get());
  for (const auto& item : given) dict.insert(item.key(), without_types(item.value()));
  return dict;
}

}  // namespace

std::vector<char> pickled(const c10::IValue& value) {
  std::string bytes;
  torch::jit::Pickler pickler([&](const char* from, std::size_t count) { bytes.append(from, count); }, nullptr, nullptr,
                              nullptr, nullptr, /*tag_aggregates=*/false);
  pickler.protocol();
  pickler.pushIValue(without_types(value));
  pickler.stop();
  std::vector<char> archive;
  caffe2::serialize::PyTorchStreamWriter writer([&](const void* from, std::size_t count) {
    const char* first = static_cast<const char*>(from);
    archive.insert(archive.end(), first, first + count);
    return count;
  });
  torch::jit::writeArchiveAndTensors("data", bytes.data(), bytes.size(), pickler.tensorData(), writer);
  writer.writeEndOfFile();
  return archive;
}

// ── Values ────────────────────────────────────────────────────────────────────────────────────────────────────────

namespace {

MemorySize memory_in(const ArchiveReader& archive, const std::string& folder) {
  return [&archive, folder](const std::string& name) {
    return archive.has(folder + name) ? std::optional(archive.size(folder + name)) : std::nullopt;
  };
}

/// LibTorch's readers make memory that cannot grow, which programs may ask of a tensor: `out=` of another size.
const c10::IValue& with_memory_that_grows(const c10::IValue& value) {
  value.visit([](const c10::IValue& each) {
    if (!each.isTensor() || !each.toTensor().defined() || !each.toTensor().has_storage()) return false;
    c10::StorageImpl& memory = *each.toTensor().storage().unsafeGetStorageImpl();
    if (memory.device_type() == c10::DeviceType::CPU && !memory.allocator()) {
      memory.set_allocator(c10::GetCPUAllocator());
      memory.set_resizable(true);
    }
    return false;
  });
  return value;
}

}  // namespace

c10::IValue stored_value(ArchiveReader& archive, const PickledClasses& classes) {
  const auto memory = [&](const std::string& name) {
    at::DataPtr bytes = c10::GetCPUAllocator()->allocate(archive.size("data/" + name));
    archive.read("data/" + name, static_cast<char*>(bytes.get()));
    return bytes;
  };
  try {
    const std::string pickle = checked_pickle(archive.text("data.pkl"), memory_in(archive, "data/"));
    std::size_t at = 0;
    // With a context, tensors of one record share its memory, as they do in Python.
    torch::jit::Unpickler unpickler(
        [&](char* to, std::size_t wanted) {
          const std::size_t given = std::min(wanted, pickle.size() - at);
          std::memcpy(to, pickle.data() + at, given);
          at += given;
          return given;
        },
        classes.type_of, classes.make, memory, c10::nullopt, /*use_storage_device=*/false,
        torch::jit::Unpickler::defaultTypeParser, std::make_shared<torch::jit::DeserializationStorageContext>());
    return with_memory_that_grows(unpickler.parse_ivalue());
  } catch (const Error& error) {
    const bool is_named = error.message().starts_with(archive.path());
    throw Error(error.kind(), (is_named ? "" : archive.path() + ": ") + error.message());
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::io, archive.path() + ": reading it takes more memory than there is");
  } catch (const std::exception& error) {
    throw Error(ErrorKind::io, archive.path() + ": cannot be unpickled (" + first_line(error) + ")");
  }
}

// ── Modules ───────────────────────────────────────────────────────────────────────────────────────────────────────

namespace {

// What libtorch says of a file that it cannot read, in words that help.
std::string reason_for(const std::string& path, const std::exception& error) {
  if (std::ifstream(path, std::ios::binary).peek() == std::ifstream::traits_type::eof()) return "it is empty";
  if (!holds_archive(path)) return "it is no zip archive";
  const std::string text = first_line(error);
  if (text.find("constants.pkl") != std::string::npos) return "it holds weights or a Python pickle, and no program";
  return text;
}

// Tensors, which LibTorch does not parse, may be large: they are taken as they are, as in .pt2.
void check_records(const std::string& path) {
  const ArchiveReader archive(path, ArchiveReader::Deflated::listed);
  caffe2::serialize::PyTorchStreamReader reader(path);
  for (const std::string& name : archive.names()) {
    if (name.starts_with("data/") || name.starts_with("constants/")) continue;
    const auto [bytes, size] = reader.getRecord(name);
    const std::string record(static_cast<const char*>(bytes.get()), size);
    archive.check(name, record);
    if (name.ends_with(".pkl")) {
      checked_pickle(record, memory_in(archive, name.substr(0, name.size() - 4) + "/"));
    } else if (name.ends_with(".py")) {
      check_code(record);
    }
  }
}

[[noreturn]] void refuse_file(const std::string& path, const std::exception& error) {
  const ProgramForm named = form_by_ending(path).value_or(ProgramForm::torchscript);
  const ProgramForm form = named == ProgramForm::text ? ProgramForm::torchscript : named;
  throw Error(ErrorKind::io, path + ": is not " + std::string(form_words(form)) + " that can be read (" +
                                 reason_for(path, error) + "); save the model with " + std::string(form_writer(form)));
}

}  // namespace

torch::jit::Module stored_module(const std::string& path) {
  std::error_code status;
  if (!std::filesystem::exists(path, status)) throw Error(ErrorKind::io, path + ": there is no such file");
  if (std::filesystem::is_directory(path, status))
    throw Error(ErrorKind::io, path + ": is a directory, not a TorchScript file");
  if (!std::ifstream(path, std::ios::binary)) throw Error(ErrorKind::io, path + ": cannot be opened for reading");
  try {
    if (!holds_archive(path)) throw std::runtime_error("it is no zip archive");
    check_records(path);
  } catch (const Error& error) {
    throw Error(error.kind(), (error.message().starts_with(path) ? "" : path + ": ") + error.message());
  } catch (const std::exception& error) {
    refuse_file(path, error);
  }
  try {
    torch::jit::Module module = torch::jit::load(path);
    with_memory_that_grows(module._ivalue());
    return module;
  } catch (const std::exception& error) {
    refuse_file(path, error);
  }
}

}  // namespace fx
