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

/// A list with the type that programs have for it: Python's file does not say.
c10::IValue typed(const c10::IValue& value) {
  if (!value.isList() || value.isTensorList()) return value;
  const std::vector<c10::IValue> elements = value.toListRef().vec();
  const auto all = [&](auto&& is) { return !elements.empty() && std::ranges::all_of(elements, is); };
  const auto list_of = [&](auto list) {
    using Element = typename decltype(list)::value_type;
    for (const c10::IValue& element : elements) list.push_back(element.to<Element>());
    return c10::IValue(std::move(list));
  };
  if (all([](const c10::IValue& element) { return element.isTensor(); })) return list_of(c10::List<at::Tensor>());
  if (all([](const c10::IValue& element) { return element.isInt(); })) return list_of(c10::List<std::int64_t>());
  if (all([](const c10::IValue& element) { return element.isDouble(); })) return list_of(c10::List<double>());
  if (all([](const c10::IValue& element) { return element.isBool(); })) return list_of(c10::List<bool>());
  return value;
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
