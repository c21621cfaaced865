// What a name and the bytes behind it say of how a program is written.
#include <fxgraph/text/program_form.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/scratch_folder.h"

namespace fx::program_form_test {

TEST(ProgramForm, IsInTheEndingOfAName) {
  for (const char* name : {"net.pt", "net.pth", "a.b/net.ts", "net.torchscript"})
    EXPECT_EQ(form_by_ending(name), ProgramForm::torchscript) << name;
  EXPECT_EQ(form_by_ending("net.pt2"), ProgramForm::exported);
  for (const char* name : {"net.fx", "net.pt.txt"}) EXPECT_EQ(form_by_ending(name), ProgramForm::text) << name;
  for (const char* name : {"net", "net.onnx", "pt", "", "-"}) EXPECT_FALSE(form_by_ending(name)) << name;
  EXPECT_EQ(usual_endings(), ".pt, .pt2 or .fx");
}

TEST(ProgramForm, IsInTheContentBeforeTheName) {
  const testing::ScratchFolder folder;
  const auto write = [&](const char* name, const std::string& bytes) {
    std::ofstream(folder / name, std::ios::binary) << bytes;
    return (folder / name).string();
  };
  EXPECT_TRUE(is_archive(write("archive.fx", "PK\3\4 and so on")));
  EXPECT_TRUE(is_archive(write("no_archive.pt", "graph():")));
  EXPECT_FALSE(holds_archive((folder / "no_archive.pt").string()));
  EXPECT_FALSE(is_archive(write("short", "PK")));
  EXPECT_FALSE(is_archive(write("text", "graph():")));
  EXPECT_FALSE(is_archive("-"));
  std::filesystem::create_directory(folder / "folder.pt");
  EXPECT_FALSE(is_archive((folder / "folder.pt").string()));
  EXPECT_TRUE(is_archive("not_there.pt2"));
}

}  // namespace fx::program_form_test
