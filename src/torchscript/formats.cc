// fx::load and fx::save: who reads and writes each form of a program.
#include <torch/csrc/jit/api/module.h>

#include <algorithm>
#include <ostream>

#include <fxgraph/export/guards.h>
#include <fxgraph/export/load.h>
#include <fxgraph/export/save.h>
#include <fxgraph/support/output_file.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/program_form.h>
#include <fxgraph/torchscript/export.h>
#include <fxgraph/torchscript/importer.h>

namespace fx {

namespace {

struct Format {
  ProgramForm form;
  std::shared_ptr<GraphModule> (*read)(const std::string& path, const LoadOptions& options);
  void (*write)(const GraphModule& module, const std::string& path);
};

constexpr Format kFormats[] = {
    {ProgramForm::text,
     [](const std::string& path, const LoadOptions&) { return std::make_shared<GraphModule>(load_graph_text(path)); },
     [](const GraphModule& module, const std::string& path) {
       write_file(path, [&](std::ostream& file) { file << pt2::text_of(module); });
     }},
    {ProgramForm::torchscript, &torchscript::read_file,
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
