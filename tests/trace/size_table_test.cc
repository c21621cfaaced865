// The table of docs/tracing.md that says which dimensions of the test programs are free is what their traces say.
// FXGRAPH_WRITE_SIZE_TABLE=1 writes it anew.
#include <torch/version.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "tests/support/file_text.h"
#include "tests/trace/program_checks.h"

namespace fx::size_table_test {

constexpr const char* kPage = "docs/tracing.md";
constexpr const char* kHead = "| program | examples | free | tied | in steps | fixed |\n|---|---|---|---|---|---|\n";

std::string table() {
  std::string text = kHead;
  for (const auto* programs :
       {&testing::vision_programs(), &testing::image_programs(), &testing::sequence_programs()}) {
    for (const testing::ProgramCase& program : *programs) text += testing::row_of_sizes(program) + "\n";
  }
  return text;
}

TEST(SizeTableNight, IsInTheDocuments) {
  std::string page = testing::file_text(kPage);
  const std::string wanted = table();
  const std::size_t begin = page.find(kHead), end = page.find("\n\n", begin);
  ASSERT_NE(begin, std::string::npos);
  const std::size_t length = (end == std::string::npos ? page.size() : end + 1) - begin;
  if (std::getenv("FXGRAPH_WRITE_SIZE_TABLE")) {
    std::ofstream(kPage) << page.replace(begin, length, wanted);
  } else if (TORCH_VERSION_MAJOR == 1) {
    EXPECT_EQ(page.substr(begin, length), wanted);
  } else {
    // Others leave out other slices that are whole, so that another dimension may be free.
    EXPECT_EQ(std::ranges::count(page.substr(begin, length), '\n'), std::ranges::count(wanted, '\n'));
  }
}

}  // namespace fx::size_table_test
