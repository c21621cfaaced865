#include <fxgraph/trace/program_place.h>

#include <c10/util/Type.h>
#include <dlfcn.h>
#include <unwind.h>
#if FXGRAPH_BACKTRACE
#include <backtrace.h>
#endif

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace fx::internal {
namespace {

/// One function at an address: several where some are inlined into others.
struct Level {
  std::string function;  // with its parameters
  std::string file;      // empty when it is not known
  int line = 0;
};

#if FXGRAPH_BACKTRACE
// Of the innermost first.
std::vector<Level> levels_at(const void* address) {
  constexpr auto kIgnored = [](void*, const char*, int) {};
  static backtrace_state* const state = backtrace_create_state(nullptr, /*threaded=*/1, kIgnored, nullptr);
  if (!state) return {};
  std::vector<Level> levels;
  const auto add = [](void* data, std::uintptr_t, const char* file, int line, const char* function) {
    if (function || file)
      static_cast<std::vector<Level>*>(data)->push_back(
          {function ? c10::demangle(function) : "", file ? file : "", line});
    return 0;
  };
  const auto call = reinterpret_cast<std::uintptr_t>(address) - 1;  // the address is where the call returns to
  backtrace_pcinfo(state, call, add, kIgnored, &levels);
  // With -g1 Clang names those that were inlined alone.
  if (!levels.empty() && levels.back().function.empty()) {
    const auto name = [](void* to, std::uintptr_t, const char* symbol, std::uintptr_t, std::uintptr_t) {
      if (symbol) *static_cast<std::string*>(to) = c10::demangle(symbol);
    };
    backtrace_syminfo(state, call, name, kIgnored, &levels.back().function);
  }
  return levels;
}
#else
std::vector<Level> levels_at(const void*) { return {}; }
#endif

std::string exported_name(const void* address) {
  Dl_info info;
  return dladdr(address, &info) && info.dli_sname ? c10::demangle(info.dli_sname) : "";
}

// Whether the code is of LibTorch or of the language's libraries: nothing in it is a place in the program, and to name
// it takes a millisecond.
bool is_in_library(const void* address) {
  static constexpr std::string_view kLibraries[] = {"libtorch",   "libc10", "libc.so",   "libc-2.",
                                                    "libpthread", "libm.",  "libstdc++", "libgomp"};
  Dl_info info;
  if (!dladdr(address, &info) || !info.dli_fname) return false;
  const std::string_view path = info.dli_fname, name = path.substr(path.rfind('/') + 1);
  return std::ranges::any_of(kLibraries, [&](std::string_view known) { return name.starts_with(known); });
}

thread_local const void* program_entry = nullptr;

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

std::string without_parameters(const std::string& function) { return function.substr(0, function.find('(')); }

// Whether the file is one of this folder, by the name that the compiler was given or that it is included by.
bool is_ours(const std::string& file) {
  static const std::string here = __FILE__, folder = here.substr(0, here.rfind('/') + 1);
  return contains(file, folder) || contains(file, "/fxgraph/trace/");
}

bool is_of_program(const Level& level) {
  if (!level.file.empty()) {
    static constexpr std::array<std::string_view, 6> kNotTheProgram = {"/torch/csrc/", "/ATen/", "/c10/",
                                                                       "/torch/nn/",   "/c++/",  "/torch/include/"};
    return !level.file.starts_with("/usr/include") && !is_ours(level.file) &&
           !contains(level.function, "fx::internal::") && !contains(level.function, "fx::Tracer::") &&
           std::none_of(kNotTheProgram.begin(), kNotTheProgram.end(),
                        [&](std::string_view part) { return contains(level.file, part); });
  }
  static constexpr std::array<std::string_view, 6> kNotTheProgram = {
      "fx::", "at::", "c10::", "torch::", "std::", "testing::"};
  const std::string name = without_parameters(level.function);
  return contains(name, "::") && !name.starts_with('_') &&
         std::none_of(kNotTheProgram.begin(), kNotTheProgram.end(),
                      [&](std::string_view part) { return contains(name, part); });
}

std::string text_of(const Level& level) {
  const bool has_name = contains(level.function, "::") && !contains(level.function, "operator()") &&
                        !contains(level.function, "{lambda") && !contains(level.function, "(anonymous");
  const std::string name = has_name ? without_parameters(level.function) : "";
  if (level.file.empty()) return name;
  const std::size_t slash = level.file.rfind('/');
  const std::string line =
      level.file.substr(slash == std::string::npos ? 0 : slash + 1) + ":" + std::to_string(level.line);
  return name.empty() || contains(name, " ") ? line : line + ", " + name;
}

}  // namespace

ProgramEntry::ProgramEntry(const void* frame) : outer_(std::exchange(program_entry, frame)) {}
ProgramEntry::~ProgramEntry() { program_entry = outer_; }

// Frames lie in memory as the calls are nested: those above the entry's have called the program.
CallPlace calling_place() {
  CallPlace place;
  if (!program_entry) return place;
  _Unwind_Backtrace(
      [](_Unwind_Context* frame, void* data) {
        CallPlace& place = *static_cast<CallPlace*>(data);
        const bool is_outside = _Unwind_GetCFA(frame) > reinterpret_cast<std::uintptr_t>(program_entry);
        if (is_outside || place.count == static_cast<int>(place.frames.size())) return _URC_END_OF_STACK;
        place.frames[static_cast<std::size_t>(place.count++)] = reinterpret_cast<void*>(_Unwind_GetIP(frame));
        return _URC_NO_REASON;
      },
      &place);
  return place;
}

std::string words_for(const CallPlace& place) {
  for (int i = 1; i < place.count; ++i) {
    const void* frame = place.frames[static_cast<std::size_t>(i)];
    if (is_in_library(frame)) continue;
    std::vector<Level> levels = levels_at(frame);
    if (levels.empty()) levels.push_back({exported_name(frame), "", 0});
    for (const Level& level : levels) {
      if (is_of_program(level)) return text_of(level);
    }
  }
  return "";
}

}  // namespace fx::internal
