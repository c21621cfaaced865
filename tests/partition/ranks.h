// Processes of a pipeline: this program once more for each rank, on the loopback address.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/file_text.h"
#include "tests/support/free_port.h"
#include "tests/support/scratch_folder.h"

extern char** environ;

namespace fx::testing {

/// What a rank is told: a variable of its environment.
inline std::string setting(const char* name, const char* otherwise = "") {
  const char* value = std::getenv(name);
  return value ? value : otherwise;
}

/// Ends a rank that failed; Ranks::said() is the sentence.
[[noreturn]] inline void end_rank(const std::string& sentence) {
  std::fprintf(stderr, "SENTENCE %s\n", sentence.c_str());
  std::fflush(stderr);
  std::_Exit(1);
}

class Ranks {
 public:
  Ranks() = default;
  ~Ranks() {
    for (const pid_t child : children_) {
      if (child > 0) kill(child, SIGKILL);
    }
    for (const pid_t child : children_) {
      if (child > 0) waitpid(child, nullptr, 0);
    }
  }

  /// Starts this program once more for each rank, to run the (disabled) tests of that suite.
  void start(const std::string& suite, int ranks, std::map<std::string, std::string> settings, int world = 0) {
    settings.insert({{"WORLD_SIZE", std::to_string(world ? world : ranks)},
                     {"MASTER_ADDR", "127.0.0.1"},
                     {"MASTER_PORT", std::to_string(free_port())},
                     {"FX_OUT", folder_.path().string()},
                     {"OMP_NUM_THREADS", "1"},
                     {"GTEST_TOTAL_SHARDS", "1"},  // this process may have a part of the tests
                     {"GTEST_SHARD_INDEX", "0"}});
    settings.emplace("FX_STAGES", std::to_string(ranks));
    for (int rank = 0; rank < ranks; ++rank) children_.push_back(spawn(suite, rank, settings));
  }

  /// Exit codes by rank; -1 for one that has not ended in time, 128 + n for one ended by signal n.
  std::vector<int> wait(double seconds, std::size_t without = ~std::size_t{0}) {
    constexpr int kLooksASecond = 100;
    std::vector<int> codes(children_.size(), -1);
    bool all = false;
    for (double looks = 0; !all && looks < seconds * kLooksASecond; ++looks) {
      all = true;
      for (std::size_t i = 0; i < children_.size(); ++i) {
        int status = 0;
        if (children_[i] > 0 && waitpid(children_[i], &status, WNOHANG) == children_[i]) {
          codes[i] = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
          children_[i] = 0;
        }
        all &= children_[i] <= 0 || i == without;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1000 / kLooksASecond));
    }
    return codes;
  }

  const std::filesystem::path& folder() const { return folder_.path(); }
  void end(int rank, int signal) { kill(children_[static_cast<std::size_t>(rank)], signal); }
  std::string said(int rank) const {
    const std::string text = file_text(folder_ / ("err" + std::to_string(rank)));
    const std::size_t at = text.find("SENTENCE ");
    return at == std::string::npos ? text : text.substr(at + 9);
  }
  c10::IValue result(int rank) const {
    const std::string bytes = file_text(folder_ / std::to_string(rank));
    return bytes.empty() ? c10::IValue() : torch::jit::pickle_load({bytes.begin(), bytes.end()});
  }

 private:
  pid_t spawn(const std::string& suite, int rank, const std::map<std::string, std::string>& settings) const {
    std::vector<std::string> words = {"RANK=" + std::to_string(rank)};
    for (const auto& [name, value] : settings) words.push_back(name + "=" + value);
    for (char** variable = environ; *variable; ++variable) words.emplace_back(*variable);
    std::vector<char*> environment;
    for (std::string& word : words) environment.push_back(word.data());
    environment.push_back(nullptr);
    std::string self = "/proc/self/exe", filter = "--gtest_filter=" + suite + ".*", brief = "--gtest_brief=1";
    std::string disabled = "--gtest_also_run_disabled_tests";
    char* arguments[] = {self.data(), filter.data(), brief.data(), disabled.data(), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    const std::string err = (folder_ / ("err" + std::to_string(rank))).string();
    posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    pid_t child = -1;
    posix_spawn(&child, self.c_str(), &actions, nullptr, arguments, environment.data());
    posix_spawn_file_actions_destroy(&actions);
    return child;
  }

  ScratchFolder folder_;
  std::vector<pid_t> children_;
};

inline void expect_all_done(const std::vector<int>& codes, const Ranks& ranks) {
  for (std::size_t i = 0; i < codes.size(); ++i) EXPECT_EQ(codes[i], 0) << i << ": " << ranks.said(static_cast<int>(i));
}

}  // namespace fx::testing
