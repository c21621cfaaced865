// `fxgraph`: starts without LibTorch and hands over to `fxgraph-torch` when a command needs it.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include <fxgraph/cli/model.h>
#include <fxgraph/cli/options.h>

namespace {

constexpr std::array<std::string_view, 6> kTorchCommands = {"convert",  "run",   "optimize",
                                                            "quantize", "rules", "pipeline"};
constexpr std::array<std::string_view, 5> kTorchOptions = {"--input", "--library", "--values", "--verify", "--version"};

// A look at the words is enough: a needless hand-over costs half a second, never a wrong answer.
bool needs_torch(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word(argv[i]);
    if (i == 1 && std::ranges::find(kTorchCommands, word) != kTorchCommands.end()) return true;
    if (std::ranges::any_of(kTorchOptions, [&](std::string_view option) { return word.starts_with(option); }))
      return true;
    if (i > 1 && word == "-" && std::string_view(argv[1]) == "lint") return true;  // can be read once
    if (!word.starts_with("-") && fx::is_archive(std::string(word))) return true;
  }
  return false;
}

void hand_over(char** argv) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return;
  for (const char* place : {"fxgraph-torch", "../libexec/fxgraph/fxgraph-torch"}) {
    const std::filesystem::path program = self.parent_path() / place;
    if (std::filesystem::exists(program, error)) execv(program.c_str(), argv);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (needs_torch(argc, argv)) hand_over(argv);  // returns only when there is none
  return fx::cli::run_program(argc, argv, nullptr, [argv] { hand_over(argv); });
}
