// Files of TorchScript with one byte that is another: LibTorch, which compares no checksums, reads some of them as
// another program and crashes on others.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include <fxgraph/text/parse.h>
#include <fxgraph/torchscript/export.h>
#include <fxgraph/torchscript/import.h>
#include "tests/support/error_of.h"
#include "tests/support/file_text.h"
#include "tests/support/scratch_folder.h"

namespace fx::damaged_files_test {

class DamagedFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    GraphModule module(
        parse_graph("graph():\n%x = placeholder[target=x]\n%w = get_attr[target=w]\n"
                    "%y = call_function[target=aten::mul.Tensor](args = (%x, %w))\n"
                    "%z = call_function[target=aten::add.Scalar](args = (%y, 3))\nreturn z"));
    module.register_buffer("w", torch::tensor({2.0f, 3.0f}));
    save(module, path_);
    bytes_ = testing::file_text(path_);
  }

  std::string error_with(std::size_t at) {
    std::string bytes = bytes_;
    bytes[at] ^= 1;
    std::ofstream(path_, std::ios::binary) << bytes;
    return testing::one_line_error_of([&] { load(path_); });
  }

  const testing::ScratchFolder folder_;
  const std::string path_ = folder_.path() / "damaged.pt";
  std::string bytes_;
};

TEST_F(DamagedFiles, AreRefusedAtAnyByteOfWhatIsParsed) {
  std::map<std::string, int> found;
  std::size_t tried = 0, refused = 0;
  for (std::size_t at = 0; at < bytes_.size(); at += 5) {
    const std::string error = error_with(at);
    ++tried;
    refused += error != "no error";
    const std::size_t record = error.find(": is damaged: the checksum of '");
    if (record != error.npos) ++found[error.substr(record)];
  }
  EXPECT_GT(refused, tried / 2) << "the rest is padding, dates and tensors";
  for (const char* record : {"data.pkl", "code/__torch__.py"})
    EXPECT_GT(found[": is damaged: the checksum of '" + std::string(record) + "' is wrong; copy or save it again"], 0)
        << record << " of " << ::testing::PrintToString(found);
}

}  // namespace fx::damaged_files_test
