// Matches as they print, for tests that compare many.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include <fxgraph/matchers/match.h>

namespace fx::testing {

inline std::vector<std::string> texts_of(const std::vector<Match>& matches) {
  std::vector<std::string> texts;
  for (const Match& match : matches) {
    std::ostringstream text;
    text << match;
    texts.push_back(text.str());
  }
  return texts;
}

}  // namespace fx::testing
