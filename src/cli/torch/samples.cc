#include <fxgraph/cli/torch/samples.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/run/stored_values.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>
#include <fxgraph/support/output_file.h>

namespace fx::cli {

namespace {

[[noreturn]] void refuse_samples(const std::string& message) { throw Error(ErrorKind::invalid_argument, message); }

std::vector<c10::IValue> elements_of_pickle(const c10::IValue& value, const std::string& path, const char* what,
                                            const char* cure) {
  if (value.isTensor()) return {value};
  if (value.isTuple()) return value.toTupleRef().elements().vec();
  if (!value.isList()) {
    refuse_samples(path + ": holds a " + value.tagKind() + ", not a list of " + what + "; write " + cure +
                   " with torch.save");
  }
  return value.toListRef().vec();
}

/// What the file holds, taken apart.
std::vector<c10::IValue> read_elements(const std::string& path, const char* what, const char* cure) {
  if (std::filesystem::is_directory(path)) throw Error(ErrorKind::io, path + ": is a folder, not a file of " + what);
  if (!std::ifstream(path)) throw Error(ErrorKind::io, path + ": cannot be read");
  try {
    ArchiveReader archive(path);
    return elements_of_pickle(stored_value(archive), path, what, cure);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::io) throw;
    refuse_samples(path + ": is no file of " + what + " (" + error.message() + "): write " + cure + " with torch.save");
  }
}

c10::TypePtr type_of(const c10::IValue& value) { return value.isTensor() ? c10::TensorType::get() : value.type(); }

/// The type that all have; any where they have none in common.
c10::TypePtr common_type(const std::vector<c10::IValue>& values) {
  if (values.empty()) return c10::AnyType::get();
  const c10::TypePtr first = type_of(values[0]);
  const bool alike = std::ranges::all_of(values, [&](const c10::IValue& each) { return *type_of(each) == *first; });
  return alike ? first : c10::AnyType::get();
}

/// Lists and dicts with the types that programs have for them: Python's file does not say.
c10::IValue typed(const c10::IValue& value) {
  std::vector<c10::IValue> parts, keys;
  if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict()) {
      keys.push_back(item.key());
      parts.push_back(typed(item.value()));
    }
    c10::impl::GenericDict dict(common_type(keys), common_type(parts));
    for (std::size_t i = 0; i < keys.size(); ++i) dict.insert(keys[i], parts[i]);
    return keys.empty() ? value : dict;
  }
  if (!value.isList() && !value.isTuple()) return value;
  for (const c10::IValue& each : value.isTuple() ? value.toTupleRef().elements().vec() : value.toListRef().vec())
    parts.push_back(typed(each));
  if (value.isTuple()) return c10::ivalue::Tuple::create(std::move(parts));
  if (parts.empty()) return value;
  c10::impl::GenericList list(common_type(parts));
  for (const c10::IValue& part : parts) list.push_back(part);
  return list;
}

}  // namespace

std::vector<c10::IValue> read_inputs(const std::string& path) {
  std::vector<c10::IValue> inputs = read_elements(path, "inputs", "a tuple of tensors and numbers");
  for (c10::IValue& input : inputs) input = typed(input);
  return inputs;
}

void write_value(const std::string& path, const c10::IValue& value) {
  // Copies: a file keeps one dtype for each storage.
  write_file(path, [&](std::ostream& file) {
    const std::vector<char> bytes = pickled(copy_of(value));
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  });
}

Samples read_samples(const std::string& path) {
  const std::vector<c10::IValue> all = read_elements(path, "samples", "a list of tensors or tuples");
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
