// Samples as Python writes them: lists and dicts of one element are pickled in operations of their own.
#include <fxgraph/cli/torch/samples.h>
#include <fxgraph/run/pickle_check.h>
#include <fxgraph/run/stored_values.h>

#include <caffe2/serialize/inline_container.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>
#include <torch/torch.h>

#include <fstream>

#include "tests/cli/program_testing.h"
#include "tests/support/error_of.h"
#include "tests/support/scratch_folder.h"

namespace fx::cli::samples_test {

using ::testing::HasSubstr;
using namespace std::string_literals;

TEST(PickledSamples, OneElementIsSpeltAsMany) {
  const std::pair<std::string, std::string> cases[] = {
      {"\x80\x02]q\x00K\x01"s + "a."s, "\x80\x02]q\x00(K\x01"s + "e."s},
      {"\x80\x02]q\x00]q\x01K\x07"s + "aa."s, "\x80\x02]q\x00(]q\x01(K\x07"s + "ee."s},
      {"\x80\x02}q\x00X\x01\x00\x00\x00xq\x01K\x02s."s, "\x80\x02}q\x00(X\x01\x00\x00\x00xq\x01K\x02u."s},
      {"\x80\x02]q\x00K\x01K\x02\x86q\x01"s + "a."s, "\x80\x02]q\x00(K\x01K\x02\x86q\x01"s + "e."s},
      {"\x80\x02](]q\x00(K\x01K\x02"s + "e]K\x03"s + "ae."s, "\x80\x02](]q\x00(K\x01K\x02"s + "e](K\x03"s + "ee."s},
      {"\x80\x02(]K\x01"s + "at."s, "\x80\x02(](K\x01"s + "et."s},
      {"\x80\x02]q\x00(K\x01K\x02"s + "e."s, "\x80\x02]q\x00(K\x01K\x02"s + "e."s},  // nothing to do
  };
  for (const auto& [given, expected] : cases) EXPECT_EQ(checked_pickle(given, {}), expected);
}

// torch.load takes no classes of TorchScript where it is to load weights only, which it is by default.
TEST(PickledSamples, WhatIsWrittenNamesNoClasses) {
  const torch::Tensor x = torch::rand({2, 3});
  c10::Dict<std::string, torch::Tensor> dict;
  dict.insert("k", x);
  const c10::IValue value = c10::ivalue::Tuple::create(
      {c10::List<torch::Tensor>({x, x}), dict, c10::List<std::int64_t>({1, 2}), c10::List<double>({0.5}), true, x});
  const std::vector<char> bytes = pickled(value);
  EXPECT_THAT(std::string(bytes.begin(), bytes.end()), ::testing::Not(HasSubstr("torch.jit")));
  const c10::IValue again = torch::pickle_load(bytes);
  const auto& elements = again.toTupleRef().elements();
  ASSERT_EQ(elements.size(), 6u);
  EXPECT_TRUE(elements[0].toListRef()[1].toTensor().equal(x));
  EXPECT_TRUE(elements[1].toGenericDict().at("k").toTensor().equal(x));
  EXPECT_EQ(elements[2].toListRef()[1].toInt(), 2);
  EXPECT_EQ(elements[3].toListRef()[0].toDouble(), 0.5);
  EXPECT_TRUE(elements[4].toBool());
}

TEST(PickledSamples, ContainersHaveTheTypesOfWhatTheyHold) {
  const testing::ScratchFolder folder;
  c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
  dict.insert("a", std::vector<std::int64_t>{1, 2});
  dict.insert("b", std::vector<std::int64_t>{});
  c10::impl::GenericDict numbers(c10::IntType::get(), c10::IntType::get());
  numbers.insert(std::int64_t{1}, std::int64_t{2});
  const std::string file = (folder / "y.pt").string();
  write_value(file, c10::ivalue::Tuple::create({dict, numbers, std::vector<std::string>{"x"}, torch::ones({2})}));
  const std::vector<c10::IValue> read = read_inputs(file);
  EXPECT_EQ(read.at(1).type()->annotation_str(), "Dict[int, int]");
  EXPECT_EQ(read.at(2).type()->annotation_str(), "List[str]");
  EXPECT_TRUE(read.at(0).toGenericDict().at("a").isIntList());
}

// LibTorch's pickler forgets that a tensor is a conjugate, or negative, in name only.
TEST(PickledSamples, ConjugatesAreWrittenInFull) {
  const testing::ScratchFolder folder;
  const torch::Tensor x = torch::complex(torch::ones({3}), torch::arange(3.0f));
  const std::string file = (folder / "y.pt").string();
  write_value(file, c10::ivalue::Tuple::create(x.conj(), torch::imag(x.conj())));
  const std::vector<c10::IValue> again = read_inputs(file);
  EXPECT_TRUE(again.at(0).toTensor().equal(x.conj()));
  EXPECT_TRUE(again.at(1).toTensor().equal(-torch::arange(3.0f)));
}

/// What torch.save([tensor]) pickles, nested so deep in lists of one.
void save_as_python(const std::string& file, const torch::Tensor& tensor, int depth) {
  std::string pickle = "\x80\x02"s;
  for (int i = 0; i < depth; ++i) pickle += "]q"s + static_cast<char>(20 + i);
  const auto size = [](std::int64_t n) { return "K"s + static_cast<char>(n); };
  pickle +=
      "ctorch._utils\n_rebuild_tensor_v2\nq\x01((X\x07\x00\x00\x00storageq\x02"
      "ctorch\nFloatStorage\nq\x03X\x01\x00\x00\x00"
      "0q\x04X\x03\x00\x00\x00"
      "cpuq\x05"s +
      size(tensor.numel()) + "tq\x06QK\x00"s + size(tensor.size(0)) + size(tensor.size(1)) + "\x86q\x07"s +
      size(tensor.stride(0)) + size(tensor.stride(1)) + "\x86q\x08\x89"s + "ccollections\nOrderedDict\nq\x09)Rq\x0a"s +
      "tq\x0bRq\x0c"s;
  pickle += std::string(static_cast<std::size_t>(depth), 'a') + ".";
  caffe2::serialize::PyTorchStreamWriter archive(file);
  archive.writeRecord("data.pkl", pickle.data(), pickle.size());
  archive.writeRecord("data/0", tensor.data_ptr(), tensor.nbytes());
  archive.writeEndOfFile();
}

TEST(PickledSamples, OneTensorInAList) {
  const fx::testing::ScratchFolder folder;
  const torch::Tensor tensor = torch::randn({2, 3});
  for (const int depth : {0, 1, 2}) {
    const std::string file = (folder / ("samples" + std::to_string(depth) + ".pt")).string();
    save_as_python(file, tensor, depth);
    const Samples samples = read_samples(file);
    ASSERT_EQ(samples.size(), 1u);
    ASSERT_EQ(samples[0].size(), 1u);
    EXPECT_TRUE(torch::equal(samples[0][0].toTensor(), tensor));
  }
}

TEST(PickledSamples, WhatIsNoFileOfSamples) {
  const fx::testing::ScratchFolder folder;
  EXPECT_THAT(fx::testing::error_of([&] { read_samples(folder.path().string()); }), HasSubstr("is a folder"));
  EXPECT_THAT(fx::testing::error_of([&] { read_samples((folder / "none").string()); }), HasSubstr("cannot be read"));
  std::ofstream((folder / "text.pt").string()) << "text";
  EXPECT_THAT(fx::testing::error_of([&] { read_samples((folder / "text.pt").string()); }),
              HasSubstr("no file of samples"));
}

// A list of images, as detection takes them: what shapes cannot say, in every command.
class ValuesOfAFile : public fx::testing::Program {};
TEST_F(ValuesOfAFile, AreForEveryCommand) {
  torch::jit::Module module("Pile");
  module.register_parameter("w", torch::full({3}, 2.0f), /*is_buffer=*/false);
  module.define(
      "def forward(self, images: List[Tensor]):\n  rows = []\n  for image in images:\n"
      "    rows.append(image.relu() * self.w)\n  return torch.cat(rows)\n");
  module.save(path("pile.pt"));
  const torch::Tensor one = torch::randn({2, 3}), two = torch::randn({4, 3});
  write_value(path("inputs.pt"), c10::ivalue::Tuple::create(c10::List<torch::Tensor>({one, two})));
  const std::string file = " " + path("pile.pt"), values = " --values " + path("inputs.pt");
  const std::string commands[] = {"show" + file,
                                  "lint" + file,
                                  "diff" + file + file,
                                  "match" + file + " --pattern 'aten::relu(x)'",
                                  "report" + file + " --liveness --cost --measure",
                                  "rewrite" + file +
                                      " --pattern 'aten::relu(x)' --replacement 'aten::clamp_min(x, 0)' --verify -o " +
                                      path("clamped.pt"),
                                  "optimize" + file + " --verify -o " + path("optimized.pt"),
                                  "convert" + file + " -o " + path("converted.pt"),
                                  "draw" + file + " -o " + path("pile.svg")};
  for (const std::string& command : commands) {
    EXPECT_NE(run(command).code, 0) << command << " without inputs";
    const fx::testing::Result result = run(command + values);
    EXPECT_EQ(result.code, 0) << command << '\n' << result.err;
  }
  const torch::Tensor expected = torch::cat({one, two}).relu() * 2;
  for (const char* name : {"pile.pt", "clamped.pt", "optimized.pt", "converted.pt"}) {
    ASSERT_EQ(run("run " + path(name) + values + " -o " + path("y.pt")).code, 0) << name;
    EXPECT_TRUE(read_inputs(path("y.pt")).at(0).toTensor().allclose(expected)) << name;
  }
  const fx::testing::Result both = run("show" + file + values + " --input 2x3");
  EXPECT_EQ(both.code, 2);
  const fx::testing::Result formulas = run("report" + file + values + " --formulas");
  EXPECT_THAT(formulas.err, HasSubstr("--formulas needs shapes to begin with"));
}

}  // namespace fx::cli::samples_test
