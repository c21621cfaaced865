#include <fxgraph/export/load.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <functional>

#include <fxgraph/export/input_notes.h>
#include <fxgraph/export/program_reader.h>
#include <fxgraph/run/archive.h>
#include <fxgraph/run/value.h>

namespace fx {
namespace {

constexpr const char* kOldProgram = "serialized_exported_program.json";

std::string quoted_list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

// Names of an archive may hold anything.
std::string in_one_line(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return std::iscntrl(c); }, ' ');
  return text;
}

// As it was saved: where the mode decides about other things than flags, those do not tell it.
void set_mode(GraphModule& module, const std::string& mode) {
  for (const std::string& prefix : {pt2::kTrainMode, pt2::kEvalMode}) {
    if (!mode.starts_with(prefix)) continue;
    module.fix_mode({});
    module.train(prefix == pt2::kTrainMode);
    module.fix_mode(mode.substr(prefix.size()));
  }
}

// The program's name in the archive; releases before 2.8 wrote one without a name.
std::string choose_model(const ArchiveReader& archive, const std::string& wanted) {
  constexpr std::string_view kFolder = "models/", kEnding = ".json";
  std::vector<std::string> models;
  bool compiled = false;
  for (const std::string& name : archive.names()) {
    compiled |= name.starts_with("data/aotinductor/");
    if (!name.starts_with(kFolder) || !name.ends_with(kEnding)) continue;
    models.push_back(name.substr(kFolder.size(), name.size() - kFolder.size() - kEnding.size()));
    if (models.back() == wanted) return wanted;
  }
  if (models.empty() && compiled)
    throw Error(ErrorKind::unsupported,
                "holds a model that AOTInductor compiled, and no program; save it with "
                "torch.export.save");
  if (models.empty()) throw Error(ErrorKind::io, "holds no exported program");
  if (!wanted.empty()) {
    throw Error(ErrorKind::not_found, "has no program '" + wanted + "'; it has " + quoted_list(models));
  }
  if (models.size() > 1) {
    throw Error(ErrorKind::invalid_argument,
                "has several programs (" + quoted_list(models) + "); say which with ExportedOptions::model");
  }
  return models[0];
}

std::shared_ptr<GraphModule> read_archive(ArchiveReader& archive, const ExportedOptions& options) {
  const bool old = archive.has(kOldProgram);
  const std::string model = old ? "model" : choose_model(archive, options.model);
  const pt2::Json program = pt2::Json::parse(archive.text(old ? kOldProgram : "models/" + model + ".json"), nullptr,
                                             /*allow_exceptions=*/false);
  if (program.is_discarded()) pt2::malformed("the program is no JSON");
  std::shared_ptr<GraphModule> made =
      pt2::ProgramReader(program, pt2::read_weights(archive, model), pt2::read_constants(archive, model), options)
          .read();
  if (archive.has(pt2::kModeRecord)) set_mode(*made, in_one_line(archive.text(pt2::kModeRecord)));
  return made;
}

}  // namespace

std::vector<c10::IValue> pack_inputs(const GraphModule& module, const std::vector<c10::IValue>& values) {
  std::size_t next = 0;
  const auto take = [&]() -> const c10::IValue& {
    if (next == values.size()) {
      throw Error(ErrorKind::invalid_argument,
                  "the program takes more than " + std::to_string(values.size()) + " values");
    }
    return values[next++];
  };
  std::vector<c10::IValue> inputs;
  for (const Node* placeholder : module.graph().placeholders()) {
    const Meta* notes = placeholder->find_meta();
    const auto* spec = notes ? notes->get<pt2::TreeSpec>(pt2::kTreeNote) : nullptr;
    inputs.push_back(spec ? spec->pack_values(take) : take());
  }
  if (next == values.size()) return inputs;
  throw Error(ErrorKind::invalid_argument, "the program takes " + std::to_string(next) + " values, " +
                                               std::to_string(values.size()) + " were given");
}

bool is_exported_program(const std::string& path) noexcept { return ArchiveReader::is_exported_program(path); }

std::shared_ptr<GraphModule> load_exported(const std::string& path, const ExportedOptions& options) {
  std::error_code status;
  if (!std::filesystem::exists(path, status)) throw Error(ErrorKind::io, path + ": there is no such file");
  if (std::filesystem::is_directory(path, status))
    throw Error(ErrorKind::io, path + ": is a directory, not an archive");
  ArchiveReader archive(path);
  try {
    return read_archive(archive, options);
  } catch (const Error& error) {
    if (error.message().starts_with(path + ":")) throw;
    throw Error(error.kind(), path + ": " + in_one_line(error.message()), error.node(), error.location());
  } catch (const std::exception& error) {
    throw Error(ErrorKind::io, path + ": cannot be read (" + first_line(error) + ")");
  }
}

}  // namespace fx
