// What programs are written as: FX text, TorchScript, archives of torch.export. One row each, of endings and words.
//
// Readers and writers of archives need LibTorch: fx::load and fx::save (fxgraph/torchscript) go by these forms.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fx {

/// What a program is written as.
enum class ProgramForm : std::uint8_t { text, torchscript, exported };

/// By the ending of a file's name; nothing where that names none.
std::optional<ProgramForm> form_by_ending(std::string_view path);
/// The usual ending of each, for messages: `.pt, .pt2 or .fx`.
std::string usual_endings();

/// What a file in this form is, and which function of Python writes one: `a TorchScript file`, `torch.jit.save`.
/// @{
std::string_view form_words(ProgramForm form);
std::string_view form_writer(ProgramForm form);
/// @}

/// True when an archive begins with these bytes.
inline bool begins_archive(std::string_view bytes) { return bytes.starts_with("PK\3\4"); }
/// True when the file at `path` does.
bool holds_archive(const std::string& path);
/// True when `path` names an archive with weights rather than FX text: by its content if it exists, else by its ending.
bool is_archive(const std::string& path);

}  // namespace fx
