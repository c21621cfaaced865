#include <fxgraph/codegen/code.h>

#include <fxgraph/codegen/cpp.h>
#include <fxgraph/codegen/python.h>
#include <fxgraph/codegen/torchscript.h>

namespace fx {

std::string code(const Graph& graph, Language language, const CodeOptions& options) {
  switch (language) {
    case Language::cpp: return cpp_code(graph, options);
    case Language::torchscript: return torchscript_code(graph);
    case Language::python: break;
  }
  return python_code(graph);
}

std::optional<Language> parse_language(std::string_view name) {
  if (name == "python") return Language::python;
  if (name == "cpp") return Language::cpp;
  if (name == "torchscript") return Language::torchscript;
  return std::nullopt;
}

}  // namespace fx
