// Errors of LibTorch without the list of calls that led to them.
//
// An error that LibTorch throws names every function on the stack, which takes it milliseconds each time. Whoever asks
// an operator for a shape, or runs a program at other sizes to see whether it takes them, throws such an error away.
//
// Once per process, when it is first needed, c10::SetStackTraceFetcher() is given a function that does what LibTorch's
// does, and nothing in threads where a BriefErrors lives. A process that has set one of its own by then keeps it, and
// its errors cost what they cost; one set later takes the place of ours. LibTorch guards that function against nothing:
// a thread that throws its error at the very moment of the first trace of the process may read half of it. Who traces
// for the first time beside threads that fail makes a BriefErrors before they start.
#pragma once

namespace fx::internal {

/// While it lives, errors that LibTorch throws in this thread say what and where, but not by way of whom. They nest.
class BriefErrors {
 public:
  BriefErrors();
  ~BriefErrors();
  BriefErrors(const BriefErrors&) = delete;
  BriefErrors& operator=(const BriefErrors&) = delete;
};

}  // namespace fx::internal
