// What many small things came to when somebody last looked: tests compare with that, line by line. For what has no
// oracle, or one that only tells wrong from right: texts of refusals and explanations, what a cautious check lets
// through, estimates.
#pragma once

#include <string>
#include <vector>

namespace fx::testing {

/// One thing, named by what it was made of, and what was found: a line or many.
struct Recorded {
  std::string name;
  std::string found;
};

/// Expects what tests/corpus/records/`record`.txt says of each: its name and what was found, as a digest where that is
/// long. Shows the first that differ in full. With FXGRAPH_WRITE_RECORDS in the environment it writes the file instead:
/// what changed is for the eye, in the difference to the old one.
void expect_as_recorded(const std::string& record, const std::vector<Recorded>& all);

}  // namespace fx::testing
