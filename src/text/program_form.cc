#include <fxgraph/text/program_form.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

namespace fx {

namespace {

struct FormRow {
  ProgramForm form;
  std::vector<std::string_view> endings;  // the usual one first
  std::string_view words, writer;
};

const std::vector<FormRow>& rows() {
  static const std::vector<FormRow> kRows = {
      {ProgramForm::torchscript, {".pt", ".pth", ".ts", ".torchscript"}, "a TorchScript file", "torch.jit.save"},
      {ProgramForm::exported, {".pt2"}, "an archive of torch.export", "torch.export.save"},
      {ProgramForm::text, {".fx", ".txt"}, "FX text", "print(graph)"},
  };
  return kRows;
}

const FormRow& row_of(ProgramForm form) { return *std::ranges::find(rows(), form, &FormRow::form); }

}  // namespace

std::optional<ProgramForm> form_by_ending(std::string_view path) {
  const auto ends_so = [&](std::string_view ending) { return path.ends_with(ending); };
  for (const FormRow& row : rows()) {
    if (std::ranges::any_of(row.endings, ends_so)) return row.form;
  }
  return std::nullopt;
}

std::string usual_endings() {
  std::string all;
  for (const FormRow& row : rows()) {
    const bool is_last = &row == &rows().back();
    all += (all.empty() ? "" : is_last ? " or " : ", ") + std::string(row.endings[0]);
  }
  return all;
}

std::string_view form_words(ProgramForm form) { return row_of(form).words; }
std::string_view form_writer(ProgramForm form) { return row_of(form).writer; }

bool holds_archive(const std::string& path) {
  std::string magic(4, '\0');
  std::ifstream file(path, std::ios::binary);
  return file && file.read(magic.data(), 4) && begins_archive(magic);
}

bool is_archive(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (path == "-" || (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)))
    return false;  // a look into a pipe would take the text away
  return holds_archive(path) || form_by_ending(path).value_or(ProgramForm::text) != ProgramForm::text;
}

}  // namespace fx
