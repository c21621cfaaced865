#include <fxgraph/ir/target.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace fx {

namespace {

// Python's keywords and builtins, and what generated code imports. Sorted.
constexpr std::array kReserved = std::to_array<std::string_view>({
    "ArithmeticError",
    "AssertionError",
    "AttributeError",
    "BaseException",
    "BlockingIOError",
    "BrokenPipeError",
    "BufferError",
    "BytesWarning",
    "ChildProcessError",
    "ConnectionAbortedError",
    "ConnectionError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "DeprecationWarning",
    "EOFError",
    "Ellipsis",
    "EncodingWarning",
    "EnvironmentError",
    "Exception",
    "False",
    "FileExistsError",
    "FileNotFoundError",
    "FloatingPointError",
    "FutureWarning",
    "GeneratorExit",
    "IOError",
    "ImportError",
    "ImportWarning",
    "IndentationError",
    "IndexError",
    "InterruptedError",
    "IsADirectoryError",
    "KeyError",
    "KeyboardInterrupt",
    "LookupError",
    "MemoryError",
    "ModuleNotFoundError",
    "NameError",
    "None",
    "NoneType",
    "NotADirectoryError",
    "NotImplemented",
    "NotImplementedError",
    "OSError",
    "OverflowError",
    "PendingDeprecationWarning",
    "PermissionError",
    "ProcessLookupError",
    "RecursionError",
    "ReferenceError",
    "ResourceWarning",
    "RuntimeError",
    "RuntimeWarning",
    "StopAsyncIteration",
    "StopIteration",
    "SyntaxError",
    "SyntaxWarning",
    "SystemError",
    "SystemExit",
    "TabError",
    "TimeoutError",
    "True",
    "TypeError",
    "UnboundLocalError",
    "UnicodeDecodeError",
    "UnicodeEncodeError",
    "UnicodeError",
    "UnicodeTranslateError",
    "UnicodeWarning",
    "UserWarning",
    "ValueError",
    "Warning",
    "ZeroDivisionError",
    "__build_class__",
    "__debug__",
    "__doc__",
    "__import__",
    "__loader__",
    "__name__",
    "__package__",
    "__spec__",
    "abs",
    "aiter",
    "all",
    "and",
    "anext",
    "any",
    "as",
    "ascii",
    "assert",
    "async",
    "await",
    "bin",
    "bool",
    "break",
    "breakpoint",
    "builtins",
    "bytearray",
    "bytes",
    "callable",
    "chr",
    "class",
    "classmethod",
    "compile",
    "complex",
    "continue",
    "copyright",
    "credits",
    "def",
    "del",
    "delattr",
    "device",
    "dict",
    "dir",
    "divmod",
    "elif",
    "else",
    "enumerate",
    "eval",
    "except",
    "exec",
    "exit",
    "filter",
    "finally",
    "float",
    "for",
    "format",
    "from",
    "frozenset",
    "fx_pytree",
    "getattr",
    "global",
    "globals",
    "hasattr",
    "hash",
    "help",
    "hex",
    "id",
    "if",
    "import",
    "in",
    "inf",
    "input",
    "int",
    "is",
    "isinstance",
    "issubclass",
    "iter",
    "lambda",
    "len",
    "license",
    "list",
    "locals",
    "map",
    "math",
    "max",
    "memoryview",
    "min",
    "nan",
    "next",
    "nonlocal",
    "not",
    "object",
    "oct",
    "open",
    "operator",
    "or",
    "ord",
    "pass",
    "pow",
    "print",
    "property",
    "pytree",
    "quit",
    "raise",
    "range",
    "repr",
    "return",
    "reversed",
    "round",
    "self",
    "set",
    "setattr",
    "slice",
    "sorted",
    "staticmethod",
    "str",
    "sum",
    "super",
    "torch",
    "try",
    "tuple",
    "type",
    "vars",
    "while",
    "with",
    "yield",
    "zip",
});
static_assert(std::ranges::is_sorted(kReserved));

std::string compute_canonical(std::string_view target) {
  if (target.starts_with("_operator.")) return std::string(target.substr(1));
  if (target.starts_with("torch.ops.")) {
    const std::string_view rest = target.substr(10);
    const std::size_t dot = rest.find('.');
    if (dot == std::string_view::npos || dot + 1 == rest.size()) return std::string(target);
    std::string canonical = std::string(rest.substr(0, dot)) + "::" + std::string(rest.substr(dot + 1));
    return compute_canonical(canonical);
  }
  if (target.find("::") != std::string_view::npos) {
    while (target.ends_with(".default")) target.remove_suffix(8);
  }
  return std::string(target);
}

// FX: the function's own name, or the target with the underscores of magic methods stripped; then snake case.
std::string compute_stem(std::string_view target) {
  if (const std::size_t colons = target.find("::"); colons != std::string_view::npos) {
    target = packet_of(target).substr(colons + 2);
  } else if (target.starts_with("torch.") || target.starts_with("operator.") || target.starts_with("builtins.") ||
             target.starts_with("math.")) {
    target = target.substr(target.rfind('.') + 1);
  }
  if (target.starts_with("__") && target.ends_with("__")) {
    target.remove_prefix(2);
    target.remove_suffix(std::min<std::size_t>(2, target.size()));
  }
  return to_identifier(to_snake_case(target));
}

}  // namespace

Symbol canonical_target(Symbol target) {
  auto& cache = internal::symbol_entry(target).canonical_target;
  if (const std::uint32_t id = cache.load(std::memory_order_acquire)) return Symbol::from_id(id);
  const Symbol canonical(compute_canonical(target.view()));
  cache.store(canonical.id(), std::memory_order_release);
  return canonical;
}

Symbol name_stem(Symbol target) { return compute_stem(target.view()); }

std::string_view packet_of(std::string_view target) {
  const std::size_t colons = target.find("::");
  if (colons == std::string_view::npos) return target;
  return target.substr(0, target.find('.', colons));
}

void format_target(std::string& out, Symbol target) {
  const std::string_view text = target.view();
  const std::size_t colons = text.find("::");
  if (colons == std::string_view::npos) {
    out += text;
    return;
  }
  const std::string_view name = text.substr(colons + 2);
  out.append("torch.ops.").append(text.substr(0, colons)).append(1, '.').append(name);
  if (name.find('.') == std::string_view::npos) out += ".default";
}

std::string target_text(Symbol target) {
  std::string out;
  format_target(out, target);
  return out;
}

std::string to_identifier(std::string_view text) {
  std::string name;
  bool gap = false;
  for (const char c : text) {
    const bool ok = std::isalnum(static_cast<unsigned char>(c)) || c == '_';
    if (ok) {
      name += c;
    } else if (!gap) {
      name += '_';
    }
    gap = !ok;
  }
  if (name.empty()) return "_unnamed";
  if (std::isdigit(static_cast<unsigned char>(name.front()))) name.insert(0, 1, '_');
  return name;
}

bool is_identifier(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && letter(text.front()) &&
         std::ranges::all_of(text, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

std::string to_snake_case(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (i > 0 && std::isupper(c) && std::islower(static_cast<unsigned char>(text[i - 1]))) out += '_';
    out += static_cast<char>(std::tolower(c));
  }
  return out;
}

bool is_reserved_name(std::string_view name) { return std::ranges::binary_search(kReserved, name); }

}  // namespace fx
