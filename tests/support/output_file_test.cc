#include <fxgraph/support/output_file.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <fxgraph/support/error.h>

#include "tests/support/file_text.h"
#include "tests/support/scratch_folder.h"

namespace fx::output_file_test {

namespace fs = std::filesystem;
using testing::file_text;

class OutputFile : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static void write(const std::string& file, const std::string& text) {
    write_file(file, [&](std::ostream& out) { out << text; });
  }
  static std::string failure(const std::string& file) {
    try {
      write(file, "text");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::io);
      return error.what();
    }
    return "";
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }

  testing::ScratchFolder folder_;
};

TEST_F(OutputFile, IsWrittenAndReplaced) {
  write(path("a"), "one");
  write(path("a"), std::string(100000, 'x'));
  EXPECT_EQ(file_text(path("a")), std::string(100000, 'x'));
  EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFile, StaysAsItWasWhenTheWriterThrows) {
  write(path("a"), "old");
  const auto broken = [](std::ostream& out) {
    out << "half";
    throw std::runtime_error("no");
  };
  EXPECT_THROW(write_file(path("a"), broken), std::runtime_error);
  EXPECT_EQ(file_text(path("a")), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFile, IsWrittenThroughALink) {
  write(path("real"), "old");
  fs::create_symlink("real", path("link"));
  write(path("link"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(file_text(path("real")), "new");
}

TEST_F(OutputFile, LinksToNothingStayAndWhatTheyPointToIsMade) {
  fs::create_directory(path("folder"));
  fs::create_symlink("folder/made", path("link"));
  fs::create_symlink("link", path("other"));
  write(path("other"), "new");
  EXPECT_TRUE(fs::is_symlink(path("other")) && fs::is_symlink(path("link")));
  EXPECT_EQ(file_text(path("folder/made")), "new");
  fs::create_symlink("loop", path("loop"));
  EXPECT_THAT(failure(path("loop")), ::testing::HasSubstr("it is a link that leads to itself"));
  EXPECT_TRUE(fs::is_symlink(path("loop")));
}

TEST_F(OutputFile, KeepsThePermissionsOfWhatItReplaces) {
  write(path("a"), "old");
  fs::permissions(path("a"), fs::perms::owner_read | fs::perms::owner_write);
  write(path("a"), "new");
  EXPECT_EQ(fs::status(path("a")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(OutputFile, FoldersAreMadeOrTheReasonIsTold) {
  make_folder(path("a/b"));
  make_folder(path("a/b"));
  EXPECT_TRUE(fs::is_directory(path("a/b")));
  write(path("file"), "text");
  try {
    make_folder(path("file"));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("file: the folder cannot be made: "));
  }
}

TEST_F(OutputFile, DevicesStayDevicesAndAFullOneIsToldAtTheEnd) {
  fs::create_symlink("/dev/null", path("null"));
  write(path("null"), "text");
  EXPECT_TRUE(fs::is_character_file(path("null")));
  fs::create_symlink("/dev/full", path("full"));
  const auto large = [](std::ostream& out) {
    for (int i = 0; i < 100000; ++i) EXPECT_TRUE(out << "0123456789") << "the stream takes everything";
  };
  EXPECT_THROW(write_file(path("full"), large), Error);
  EXPECT_THAT(failure(path("full")), ::testing::EndsWith("full: No space left on device"));
  EXPECT_TRUE(fs::is_character_file(path("full")));
}

TEST_F(OutputFile, SaysWhatIsInTheWay) {
  EXPECT_THAT(failure(path("no/file")), ::testing::HasSubstr("does not exist; create it first"));
  EXPECT_THAT(failure(folder_.path().string()), ::testing::HasSubstr("it is a folder; name a file in it"));
  EXPECT_THAT(failure(path(std::string(300, 'x'))), ::testing::HasSubstr("File name too long"));
  EXPECT_EQ(files(), 0u);
}

}  // namespace fx::output_file_test
