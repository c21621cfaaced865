// Files of TorchScript that somebody made: their checksums are right, and what they say is not.
#include <caffe2/serialize/inline_container.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fstream>
#include <sstream>

#include <fxgraph/torchscript/import.h>
#include "tests/support/error_of.h"
#include "tests/support/night.h"
#include "tests/support/random.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/zip_of.h"

namespace fx::hostile_files_test {

using ::testing::HasSubstr;

// Parameters, buffers, constants, lists of tensors, a quantized and a packed one.
testing::Records valid_records() {
  torch::jit::Module module("Net");
  module.register_parameter("w", torch::rand({3, 4}), false);
  module.register_buffer("b", torch::rand({4}).expand({3, 4}));
  module.register_buffer("q", torch::quantize_per_channel(torch::rand({3, 4}), torch::ones({3}),
                                                          torch::zeros({3}, torch::kLong), 0, torch::kQInt8));
  module.register_attribute("all", c10::ListType::ofTensors(),
                            c10::List<torch::Tensor>({torch::rand({2}), torch::rand({5})}));
  module.define(
      "def forward(self, x):\n  return (x + self.w + self.b + self.q.dequantize()).sum() + self.all[0].sum()\n");
  std::stringstream file;
  module.save(file);
  caffe2::serialize::PyTorchStreamReader reader(&file);
  testing::Records records;
  for (const std::string& name : reader.getAllRecords()) {
    const auto [bytes, size] = reader.getRecord(name);
    records.emplace_back(name, std::string(static_cast<const char*>(bytes.get()), size));
  }
  return records;
}

std::string load_of(const testing::Records& records) {
  const testing::ScratchFolder folder;
  const std::string path = folder / "sent.pt";
  std::ofstream(path, std::ios::binary) << testing::zip_of(records);
  return testing::one_line_error_of([&] {
    const auto module = load(path);
    for (const auto& item : module->named_buffers()) {
      const torch::Tensor& tensor = item.value();
      std::int64_t last = tensor.storage_offset();
      for (std::int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
      EXPECT_LE(static_cast<std::size_t>(last + 1) * tensor.itemsize(), tensor.storage().nbytes()) << item.key();
    }
  });
}

TEST(HostileFiles, AValidOneLoads) { EXPECT_EQ(load_of(valid_records()), "no error"); }

// A byte of what is unpickled: each is refused in one line, or makes tensors that lie inside of their memory.
TEST(HostileFiles, AnyByteOfItsPicklesMayBeAnotherOne) {
  const testing::Records valid = valid_records();
  std::size_t refused = 0, tried = 0;
  testing::Random random(7);
  for (std::size_t record = 0; record < valid.size(); ++record) {
    if (!valid[record].first.ends_with(".pkl")) continue;
    for (std::size_t at = 0; at < valid[record].second.size(); ++at) {
      for (const int other : {valid[record].second[at] ^ 1, 0x7f, 0}) {
        if (random.below(10) >= testing::by_night(10)) continue;
        testing::Records records = valid;
        records[record].second[at] = static_cast<char>(other);
        ++tried;
        const std::string error = load_of(records);
        if (error == "no error") continue;
        ++refused;
        EXPECT_THAT(error, HasSubstr("sent.pt"));
      }
    }
  }
  EXPECT_GT(tried, 100U);
  EXPECT_GT(refused, tried / 4);
}

TEST(HostileFiles, TextsThatAreNestedTooDeepAreRefused) {
  for (const char* bracket : {"(", "[", "{"}) {
    testing::Records records = valid_records();
    for (auto& [name, content] : records) {
      if (!name.ends_with(".py")) continue;
      for (int i = 0; i < 100000; ++i) content += bracket;
    }
    EXPECT_THAT(load_of(records), HasSubstr("more than 512 brackets"));
  }
}

TEST(HostileFiles, AClassThatSetsANameWithoutATypeIsRefused) {
  testing::Records records = valid_records();
  for (auto& [name, content] : records) {
    const std::size_t at = content.find("__parameters__ =");
    if (name.ends_with(".py") && at != std::string::npos) content.replace(at, 14, "__para__");
  }
  EXPECT_THAT(load_of(records), HasSubstr("a class in its code sets '__para__' without a type"));
}

}  // namespace fx::hostile_files_test
