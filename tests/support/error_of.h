// What an action is refused with.
#pragma once

#include <gtest/gtest.h>

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

/// Its text, which must be one line.
template <typename Action>
std::string one_line_error_of(Action&& action) {
  const std::string text = error_of(action);
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  return text;
}

}  // namespace fx::testing
