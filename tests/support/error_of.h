// What an action is refused with.
#pragma once

#include <string>

#include <fxgraph/support/error.h>

namespace fx::testing {

/// Runs `action` and returns the error that it throws; one of kind `io`, "no error", when it throws none.
template <typename Action>
Error error_thrown_by(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::io, "no error");
}

/// Its text alone.
template <typename Action>
std::string error_of(Action&& action) {
  return error_thrown_by(action).what();
}

}  // namespace fx::testing
