// What becomes of an archive that may be hostile: loaded and run in a process of its own, with little memory and time.
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>

#include "tests/pt2/archives.h"
#include "tests/pt2/damaged.h"

namespace fx::testing {

/// One of the two is empty.
struct Attempt {
  std::string refusal{};  ///< what loading was refused with
  std::string fault{};    ///< a crash, a hang, an allocation without bound, a message that is none
};

// Beside what the process has: loading an archive of some kilobytes takes little; running it may take what BLAS keeps
// for itself, which waits for ever where it does not get it. The address sanitizer has no room within such limits.
constexpr rlim_t kMostToLoad = rlim_t{64} << 20, kMostToRun = rlim_t{512} << 20;
constexpr rlim_t kMostSeconds = 20;

inline void limit_memory([[maybe_unused]] rlim_t most) {
#ifndef __SANITIZE_ADDRESS__
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit memory{pages * 4096 + most, RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &memory);
#endif
}

inline void limit_this_process() {
  limit_memory(kMostToLoad);
  const rlimit seconds{kMostSeconds, kMostSeconds}, no_dump{0, 0};
  setrlimit(RLIMIT_CPU, &seconds);
  setrlimit(RLIMIT_CORE, &no_dump);
}

/// Loads the archive and runs what is loaded on the inputs that were recorded with `name`. Returns what it was refused
/// with; whatever the program does with the inputs is right, but that it returns or throws.
inline std::string loaded_and_run(const std::string& path, const std::string& name) {
  std::shared_ptr<GraphModule> module;
  try {
    module = load_exported(path);
    module->graph().lint();
  } catch (const Error& error) {
    return error.what();
  }
  limit_memory(kMostToRun);
  try {
    at::manual_seed(0);
    module->run(pack_inputs(*module, recorded_inputs(name)));
  } catch (const std::exception&) {
  }
  return "";
}

/// What a process of its own leaves of `work()`'s line; its end, where it is none of its own.
inline Attempt in_process(const std::function<std::string()>& work) {
  int ends[2];
  if (pipe(ends) != 0) return {.fault = "there is no pipe"};
  const pid_t child = fork();
  if (child == 0) {
    limit_this_process();
    std::string line;
    try {
      line = "+" + work();
    } catch (const std::exception& error) {  // other than an Error
      line = std::string("-") + error.what();
    }
    _exit(write(ends[1], line.data(), std::min<std::size_t>(line.size(), 4000)) > 0 ? 0 : 1);
  }
  close(ends[1]);
  std::string line(4096, '\0');
  line.resize(static_cast<std::size_t>(std::max<ssize_t>(0, read(ends[0], line.data(), line.size()))));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return {.fault = std::string("ended by a signal: ") + strsignal(WTERMSIG(status))};
  if (!line.starts_with('+')) return {.fault = "threw what is no Error: " + line};
  return {.refusal = line.substr(1)};
}

inline Attempt attempted(const std::string& bytes, const std::string& name) {
  const ScratchFolder scratch;
  const std::string path = scratch / "hostile.pt2";
  std::ofstream(path, std::ios::binary) << bytes;
  Attempt attempt = in_process([&] { return loaded_and_run(path, name); });
  const std::string& line = attempt.refusal;
  if (line.empty()) return attempt;
  if (!line.starts_with(path)) attempt.fault = "does not name the file: " + line;
  if (line.find('\n') != std::string::npos) attempt.fault = "has several lines: " + line;
  if (line.find("alloc") != std::string::npos) attempt.fault = "wanted more memory than there is: " + line;
  return attempt;
}

}  // namespace fx::testing
