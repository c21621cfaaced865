// Runs of a traced program that may end the process, each tried in a child process.
//
// What divides by a size, takes the last of so many, or reads the fourth of three sizes ends it; and nothing that a
// program does there stays.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <fxgraph/trace/sample.h>

namespace fx::internal {

/// How a trial went.
enum class TrialResult : char {
  untried,  ///< no need for it, or no process could be made
  ended,    ///< the process ended, or came to no end
  agrees,   ///< the program does what the graph does
  refused,  ///< an operator cannot run on these: the graph says so by itself
  threw,    ///< the program did
  differs,  ///< it came through and did something else
};

struct ChildTrial {
  std::function<std::vector<at::Tensor>()> stand_ins{};  ///< called in the child
  std::optional<std::size_t> unless{};                   ///< not tried when that trial, an earlier one, agrees
  /// Tried only when one of those trials, earlier ones, came through and did something else, ended or threw.
  std::vector<std::size_t> only_after{};
  bool is_large = false;  ///< gets a tenth of a second of the processor; when it runs out nothing is told, nor tried of
                          ///< other large ones
  bool is_spare = false;  ///< tried while there is time, however long large ones took: all of them together get some
                          ///< thousand operators, and some hundredths of a second
  bool is_beyond_us = false;  ///< not tried at all
  TrialResult result = TrialResult::untried;
  bool has_other_numbers = false;  ///< of what differs: it came through, to numbers that the graph has not
  std::string why{};               ///< it does not agree
  CallPlace place{};               ///< where in the program; to be put into words by who needs them, which is dear
};

/// What is found out of one trial, in the child.
struct TrialFinding {
  TrialResult result;
  bool has_other_numbers = false;
  std::string why{};
  CallPlace place{};
};
using JudgeTrial = std::function<TrialFinding(const std::vector<at::Tensor>& stand_ins)>;

/// Calls `judge` for each. Cost: a fork, and one more for each call that ends it, or takes more than some seconds of
/// the processor.
void try_in_children(std::vector<ChildTrial>& trials, const JudgeTrial& judge);
/// Runs the program on each. `agrees` says of a run that came through whether the numbers in the graph are those of the
/// program.
void try_in_children(const SampledProgram& program, std::vector<ChildTrial>& trials,
                     const std::function<bool(const Sample&)>& agrees);

}  // namespace fx::internal
