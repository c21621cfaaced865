// Where in its source a traced program is.
//
// A place is cheap to note and dear to put into words: the debug information of the program is read once, when a
// message needs it first (milliseconds to a second). Without debug information the function is named where the program
// exports its names, else nothing.
#pragma once

#include <array>
#include <string>

namespace fx::internal {

struct CallPlace {
  std::array<void*, 48> frames;
  int count = 0;
};

/// While it lives, this thread runs the traced program: what called it is no place in the program.
class ProgramEntry {
 public:
  explicit ProgramEntry(const void* frame = __builtin_frame_address(0));
  ~ProgramEntry();
  ProgramEntry(const ProgramEntry&) = delete;
  ProgramEntry& operator=(const ProgramEntry&) = delete;

 private:
  const void* outer_;
};

/// Where the traced program is now; nowhere in a thread that the tracer has not called it in.
CallPlace calling_place();
/// `net.cc:42, Net::forward`: the innermost function at the place that is neither LibTorch's nor ours. Empty when it is
/// not known. Any thread may ask.
std::string words_for(const CallPlace& place);

}  // namespace fx::internal
