// Trying every operator of LibTorch's dispatcher, in processes of their own: some end the process that calls them with
// arguments that they do not check, some spoil its memory.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Logging.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fxgraph/ops/schema.h>
#include <fxgraph/support/symbol.h>

namespace fx::testing {

// Of each operator; most arguments do not go together.
inline int tries() {
  const char* wanted = std::getenv("FXGRAPH_FACTS_TRIES");
  return wanted ? std::atoi(wanted) : 8;
}

inline std::vector<Symbol> dispatcher_operators() {
  std::vector<Symbol> targets;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    // LibTorch's own tests of its dispatcher are left out.
    if (!name.name.starts_with("aten::") || name.name.starts_with("aten::_test_") || name.name == "aten::_foobar")
      continue;
    targets.emplace_back(name.overload_name.empty() ? name.name : name.name + "." + name.overload_name);
  }
  std::sort(targets.begin(), targets.end());
  return targets;
}

/// One call of an operator: nothing when it cannot be made, else what is wrong with it, empty when nothing is.
using Attempt = std::function<std::optional<std::string>(const OperatorSchema& schema, std::uint64_t seed)>;

struct Findings {
  std::size_t ran = 0;
  std::vector<std::string> wrong, crashed;
};

/// Lines for the parent: the operator that is tried, `+` when it ran, `!` with what is wrong.
inline void try_operators(const std::vector<Symbol>& targets, std::size_t from, std::size_t to, const Attempt& attempt,
                          std::FILE* out) {
  c10::SetStackTraceFetcher([] { return std::string(); });
  for (std::size_t i = from; i < to; ++i) {
    std::fprintf(out, "@%zu\n", i);
    std::fflush(out);  // the next may be the last that is heard
    alarm(5);          // some do not end
    const OperatorSchema* schema = find_overload(targets[i]);
    if (!schema) continue;
    bool ran = false;
    std::string wrong;
    for (int n = 0; n < tries() && wrong.empty(); ++n) {
      const auto outcome = attempt(*schema, std::hash<std::string>()(targets[i].str()) + static_cast<unsigned>(n));
      ran |= outcome.has_value();
      if (outcome) wrong = *outcome;
    }
    if (ran) std::fprintf(out, "+%zu\n", i);
    std::replace(wrong.begin(), wrong.end(), '\n', ' ');
    if (!wrong.empty()) std::fprintf(out, "!%s\n", wrong.c_str());
  }
}

/// Each process tries so many operators; after one that has ended it, the next has a new one.
inline Findings in_children(const std::vector<Symbol>& targets, std::size_t batch, const Attempt& attempt) {
  Findings findings;
  for (std::size_t from = 0; from < targets.size();) {
    const std::size_t to = std::min(from + batch, targets.size());
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    const pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      std::FILE* out = fdopen(ends[1], "w");
      if (!std::freopen("/dev/null", "w", stderr)) _exit(2);
      try {
        try_operators(targets, from, to, attempt, out);
      } catch (...) {  // not on into the tests of this process
        std::fflush(out);
        _exit(3);
      }
      std::fflush(out);
      _exit(0);
    }
    close(ends[1]);
    std::FILE* in = fdopen(ends[0], "r");
    std::array<char, 4096> line;
    std::size_t last = from;
    while (std::fgets(line.data(), line.size(), in)) {
      if (line[0] == '@') last = std::strtoull(line.data() + 1, nullptr, 10);
      if (line[0] == '+') ++findings.ran;
      if (line[0] == '!') findings.wrong.emplace_back(line.data() + 1);
    }
    std::fclose(in);
    int status = 0;
    waitpid(child, &status, 0);
    const bool ended_well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!ended_well) findings.crashed.push_back(targets[last].str());
    from = ended_well ? to : last + 1;
  }
  return findings;
}

}  // namespace fx::testing
