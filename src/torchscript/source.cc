#include <fxgraph/torchscript/source.h>

#include <c10/util/Exception.h>
#include <torch/csrc/jit/frontend/source_range.h>
#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <string_view>

namespace fx::torchscript {
namespace {

// A file's own text is Python generated when it was saved; it remembers the source it was generated from.
torch::jit::SourceRange original(const torch::jit::Node& node) {
  const torch::jit::SourceRange range = node.sourceRange();
  if (!range.source()) return range;
  try {
    const auto generated_from = range.findSourceRangeThatGenerated();
    return generated_from ? *generated_from : range;
  } catch (const c10::Error&) {  // read from the file only now, and damaged there
    return range;
  }
}

}  // namespace

SourceLocation location_of(const torch::jit::Node& node) {
  const torch::jit::SourceRange range = original(node);
  if (!range.source()) return {};
  const auto place = range.file_line_col();
  if (!place) return {};
  const auto& [file, line, column] = *place;
  static_cast<void>(column);
  return {file, static_cast<int>(line), 0};
}

std::string source_line(const torch::jit::Node& node) {
  const torch::jit::SourceRange range = original(node);
  if (!range.source() || range.source()->size() == 0) return {};
  const std::string text = range.source()->text_str().str();
  const std::size_t at = std::min(range.start(), text.size() - 1);
  std::size_t begin = at == 0 ? 0 : text.rfind('\n', at - (text[at] == '\n' ? 1 : 0));
  begin = begin == std::string::npos ? 0 : begin + (text[begin] == '\n');
  const std::size_t end = std::min(text.find('\n', begin), text.size());
  std::string_view line = std::string_view(text).substr(begin, end - begin);
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
  return std::string(line);
}

std::string demangle(const std::string& qualified_name) {
  std::string plain;
  for (std::size_t from = 0; from <= qualified_name.size();) {
    const std::size_t dot = std::min(qualified_name.find('.', from), qualified_name.size());
    const std::string_view atom = std::string_view(qualified_name).substr(from, dot - from);
    if (atom != "__torch__" && !atom.starts_with("___torch_mangle_")) {
      if (!plain.empty()) plain += '.';
      plain += atom;
    }
    from = dot + 1;
  }
  return plain;
}

std::string last_atom(const std::string& qualified_name) {
  return qualified_name.substr(qualified_name.rfind('.') + 1);
}

}  // namespace fx::torchscript
