// What an archive of fxgraph's says about its mode. Python leaves alone what it does not know below `extra/`.
#pragma once

#include <string>

namespace fx::pt2 {

/// A record of archives in which something depends on the mode: kTrainMode or kEvalMode, in which the program was
/// written, and why it holds for that one.
inline constexpr const char* kModeRecord = "extra/fxgraph_mode";
inline const std::string kTrainMode = "train: ";
inline const std::string kEvalMode = "eval: ";

}  // namespace fx::pt2
