#include <fxgraph/cli/many_files.h>

#include <fmt/format.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include <fxgraph/cli/options.h>
#include <fxgraph/support/output_file.h>

namespace fx::cli {

namespace {

using TemporaryFile = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// How one file went.
struct FileRun {
  int code = kFailed;
  std::string out, err;
  double seconds = 0;
  double peak_bytes = 0;
};

TemporaryFile temporary_file() {
  TemporaryFile file(std::tmpfile(), &std::fclose);
  if (!file) throw Error(ErrorKind::io, std::string("cannot make a temporary file: ") + std::strerror(errno));
  return file;
}

std::string contents(std::FILE* file) {
  std::string text;
  std::rewind(file);
  char buffer[4096];
  while (const std::size_t bytes = std::fread(buffer, 1, sizeof buffer, file)) text.append(buffer, bytes);
  return text;
}

FileRun run(const std::string& program, const std::vector<std::string>& words) {
  std::vector<char*> arguments = {const_cast<char*>(program.c_str())};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const TemporaryFile out = temporary_file(), err = temporary_file();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(out.get()), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fileno(err.get()), STDERR_FILENO);
  const auto start = std::chrono::steady_clock::now();
  pid_t child = 0;
  const int failure = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  FileRun done;
  if (failure != 0) {
    done.err = fmt::format("fxgraph: cannot start {}: {}\n", program, std::strerror(failure));
    return done;
  }
  int status = 0;
  rusage usage{};
  while (wait4(child, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  done.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  done.peak_bytes = static_cast<double>(usage.ru_maxrss) * 1024;
  done.out = contents(out.get());
  done.err = contents(err.get());
  if (WIFEXITED(status)) {
    done.code = WEXITSTATUS(status);
  } else {
    done.err +=
        fmt::format("fxgraph: {}: ended by signal {} ({})\n", words[1], WTERMSIG(status), strsignal(WTERMSIG(status)));
  }
  return done;
}

// Where each file goes: its name in the folder; nowhere without a folder.
std::vector<std::string> outputs(const std::vector<std::string>& files, const std::string& folder) {
  std::vector<std::string> places;
  std::map<std::string, std::string> taken;
  for (const std::string& file : files) {
    if (folder.empty()) {
      places.emplace_back();
      continue;
    }
    const std::string name = std::filesystem::path(file).filename().string();
    const auto [at, fresh] = taken.emplace(name, file);
    if (!fresh) {
      throw Error(ErrorKind::invalid_argument, fmt::format("{} and {} would both be saved as {}/{}; rename one of them",
                                                           at->second, file, folder, name));
    }
    places.push_back((std::filesystem::path(folder) / name).string());
  }
  return places;
}

std::vector<std::string> words_for(const std::string& file, const std::string& output, const OptimizeOptions& options) {
  std::vector<std::string> words = {"optimize", file};
  for (const std::string& rule : options.rules) words.insert(words.end(), {"--rules", rule});
  if (!options.target.empty()) words.insert(words.end(), {"--target", options.target});
  if (options.concurrent) words.emplace_back("--concurrent");
  if (options.whole_batches) words.emplace_back("--whole-batches");
  if (options.keep_sizes) words.emplace_back("--keep-sizes");
  if (!options.dtype.empty()) words.insert(words.end(), {"--dtype", options.dtype});
  if (options.threads) words.insert(words.end(), {"--threads", std::to_string(options.threads)});
  for (const std::string& input : options.inputs.shapes) words.insert(words.end(), {"--input", input});
  if (!options.inputs.values.empty()) words.insert(words.end(), {"--values", options.inputs.values});
  if (options.verify) words.emplace_back("--verify");
  if (options.json) words.insert(words.end(), {"--report", "json"});
  if (!output.empty()) words.insert(words.end(), {"-o", output});
  return words;
}

void print_json(const std::vector<std::string>& files, const std::vector<FileRun>& runs) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    nlohmann::ordered_json one = nlohmann::ordered_json::parse(runs[i].out, nullptr, false);
    if (one.is_discarded() || !one.is_object()) one = {{"file", files[i]}};
    if (runs[i].code != kDone) one["error"] = runs[i].err.substr(0, runs[i].err.find('\n'));
    one["seconds"] = runs[i].seconds;
    one["peak_memory"] = runs[i].peak_bytes;
    all.push_back(std::move(one));
  }
  fmt::print("{}\n", nlohmann::ordered_json{{"files", all}}.dump(2));
}

void print_text(const std::vector<std::string>& files, const std::vector<FileRun>& runs) {
  for (const FileRun& run : runs) fmt::print("{}{}", run.out, run.out.empty() ? "" : "\n");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    fmt::print("{:<20} {}, {}{}\n", files[i], human_seconds(runs[i].seconds), human_bytes(runs[i].peak_bytes),
               runs[i].code == kDone ? "" : ", failed");
  }
}

}  // namespace

int optimize_each(const std::string& program, const std::vector<std::string>& files, const OptimizeOptions& options,
                  unsigned jobs) {
  const std::vector<std::string> places = outputs(files, options.output);
  if (!options.output.empty()) make_folder(options.output);  // of several files
  jobs = std::clamp<unsigned>(jobs, 1, static_cast<unsigned>(files.size()));
  // Each process would else start a thread for every core.
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  if (jobs > 1) setenv("OMP_NUM_THREADS", std::to_string(std::max(1u, cores / jobs)).c_str(), 0);

  std::vector<FileRun> runs(files.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < files.size(); i = next++) {
      try {
        runs[i] = run(program, words_for(files[i], places[i], options));
      } catch (const std::exception& error) {
        runs[i].err = fmt::format("fxgraph: {}: {}\n", files[i], error.what());
      }
    }
  };
  {
    const Progress progress(fmt::format("optimizing {} files", files.size()));
    std::vector<std::thread> workers;
    for (unsigned i = 0; i < jobs; ++i) workers.emplace_back(work);
    for (std::thread& worker : workers) worker.join();
  }
  if (options.json) {
    print_json(files, runs);
  } else {
    print_text(files, runs);
  }
  for (const FileRun& run : runs) std::cerr << run.err;
  return std::ranges::all_of(runs, [](const FileRun& run) { return run.code == kDone; }) ? kDone : kFailed;
}

}  // namespace fx::cli
