// fx::load and fx::save: who reads and writes each form of a program.
#include <ATen/Context.h>
#include <torch/csrc/jit/api/module.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <ostream>

#include <fxgraph/export/load.h>
#include <fxgraph/export/save.h>
#include <fxgraph/run/stored_values.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>
#include <fxgraph/support/output_file.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include <fxgraph/text/program_form.h>
#include <fxgraph/torchscript/export.h>
#include <fxgraph/torchscript/import.h>

namespace fx {

namespace {

// As torch.backends.quantized.engine spells it.
std::string name_of(at::QEngine engine) {
  std::string name = at::toString(engine);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

// Quantized layers are packed when they are loaded, by the engine that is set; another one may take what it refuses.
// Returns that one's name; empty when there is none.
std::string engine_that_reads(const std::string& path) {
  at::Context& context = at::globalContext();
  const at::QEngine set = context.qEngine();
  std::string found;
  for (const at::QEngine engine : at::Context::supportedQEngines()) {
    if (engine == set || engine == at::QEngine::NoQEngine || !found.empty()) continue;
    context.setQEngine(engine);
    try {
      stored_module(path);
      found = name_of(engine);
    } catch (const std::exception&) {  // then it is something else
    }
  }
  context.setQEngine(set);
  return found;
}

torch::jit::Module read_module(const std::string& path) {
  try {
    return stored_module(path);
  } catch (const Error& error) {
    const std::string engine = std::filesystem::exists(path) ? engine_that_reads(path) : std::string();
    if (engine.empty()) throw;
    throw Error(ErrorKind::unsupported, path + ": its quantized layers were packed for the engine " + engine +
                                            ", and " + name_of(at::globalContext().qEngine()) +
                                            ", which is set, refuses them; set torch.backends.quantized.engine = '" +
                                            engine + "' before loading, or quantize with --backend auto");
  }
}

std::shared_ptr<GraphModule> read_torchscript(const std::string& path, const LoadOptions& options) {
  const torch::jit::Module module = read_module(path);
  try {
    return from_torchscript(module, options);
  } catch (const Error& error) {
    throw Error(error.kind(), path + ": " + error.message(), error.node(), error.location());
  } catch (const c10::Error& error) {  // what LibTorch reads late, and is not what it says
    throw Error(ErrorKind::io,
                path + ": is a damaged TorchScript file (" + first_line(error) + "); save the model again");
  } catch (const std::bad_alloc&) {  // a damaged length says as much
    throw Error(ErrorKind::io, path +
                                   ": reading it takes more memory than there is; if it is not as large as that, it is "
                                   "damaged: save the model again");
  }
}

struct Format {
  ProgramForm form;
  std::shared_ptr<GraphModule> (*read)(const std::string& path, const LoadOptions& options);
  void (*write)(const GraphModule& module, const std::string& path);
};

constexpr Format kFormats[] = {
    {ProgramForm::text,
     [](const std::string& path, const LoadOptions&) { return std::make_shared<GraphModule>(load_graph_text(path)); },
     [](const GraphModule& module, const std::string& path) {
       write_file(path, [&](std::ostream& file) { file << print_graph(module.graph()); });
     }},
    {ProgramForm::torchscript, &read_torchscript,
     [](const GraphModule& module, const std::string& path) {
       const torch::jit::Module script = to_torchscript(module);
       // To a stream: archives saved by name carry that name inside.
       write_file(path, [&](std::ostream& file) { script.save(file); });
     }},
    {ProgramForm::exported, [](const std::string& path, const LoadOptions&) { return load_exported(path); },
     [](const GraphModule& module, const std::string& path) { save_exported(module, path); }},
};

const Format& format_of(ProgramForm form) { return *std::ranges::find(kFormats, form, &Format::form); }

}  // namespace

ProgramForm form_of_file(const std::string& path) {
  if (is_exported_program(path)) return ProgramForm::exported;
  const bool is_text = form_by_ending(path) == ProgramForm::text && !holds_archive(path);
  return is_text ? ProgramForm::text : ProgramForm::torchscript;
}

std::shared_ptr<GraphModule> load(const std::string& path, const LoadOptions& options) {
  return format_of(form_of_file(path)).read(path, options);
}

void save(const GraphModule& module, const std::string& path) {
  format_of(form_by_ending(path).value_or(ProgramForm::torchscript)).write(module, path);
}

// Declared where no writer is known: docs/decisions/save-is-linked.md.
void GraphModule::save(const std::string& file) const { fx::save(*this, file); }

}  // namespace fx
