// Values that somebody sent: whatever bytes come, no tensor reaches outside of its memory, and nothing crashes.
#include <fxgraph/run/stored_values.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/run/pickle_check.h>
#include "tests/support/error_of.h"
#include "tests/support/night.h"
#include "tests/support/zip_of.h"

namespace fx::stored_values_test {

using ::testing::HasSubstr;
using torch::Tensor;
using namespace std::string_literals;

// ── Pickles, operation by operation ───────────────────────────────────────────────────────────────────────────────

std::string bytes_of(std::uint64_t value, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}
std::string text(const std::string& value) { return "X" + bytes_of(value.size(), 4) + value; }
std::string number(std::int64_t value) {
  return value >= INT32_MIN && value <= INT32_MAX ? "J" + bytes_of(static_cast<std::uint64_t>(value), 4)
                                                  : "\x8a\x08"s + bytes_of(static_cast<std::uint64_t>(value), 8);
}
std::string global(const std::string& module, const std::string& name) { return "c" + module + "\n" + name + "\n"; }
std::string tuple(const std::vector<std::string>& parts) {
  std::string made = "(";
  for (const std::string& part : parts) made += part;
  return made + "t";
}
std::string numbers(const std::vector<std::int64_t>& values) {
  std::vector<std::string> parts;
  for (const std::int64_t value : values) parts.push_back(number(value));
  return tuple(parts);
}
std::string memory(std::int64_t elements, const std::string& type = "FloatStorage", const std::string& key = "0") {
  return tuple({text("storage"), global("torch", type), text(key), text("cpu"), number(elements)}) + "Q";
}
std::string tensor(std::int64_t elements, std::int64_t offset, const std::vector<std::int64_t>& sizes,
                   const std::vector<std::int64_t>& strides, const std::string& key = "0") {
  return global("torch._utils", "_rebuild_tensor_v2") +
         tuple({memory(elements, "FloatStorage", key), number(offset), numbers(sizes), numbers(strides), "\x89"s,
                global("collections", "OrderedDict") + ")R"}) +
         "R";
}
std::string pickle_of(const std::string& value) { return "\x80\x02"s + value + "."; }

// A record of twelve floats.
std::string archive_of(const std::string& pickle) {
  return testing::zip_of(
      {{"data.pkl", pickle}, {"data/0", std::string(48, '\1')}, {"data/1", std::string(48, '\1')}, {"version", "3\n"}});
}

std::string outcome_of(const std::string& pickle) {
  return testing::one_line_error_of([&] {
    ArchiveReader archive("sent.pt", archive_of(pickle));
    stored_value(archive);
  });
}

TEST(StoredValues, TensorsLieInsideOfTheirMemory) {
  EXPECT_EQ(outcome_of(pickle_of(tensor(12, 0, {3, 4}, {4, 1}))), "no error");
  EXPECT_EQ(outcome_of(pickle_of(tensor(12, 11, {5}, {0}))), "no error");
  EXPECT_EQ(outcome_of(pickle_of(tensor(12, 12, {0, 7}, {1, 1}))), "no error");
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  struct Row {
    std::string value;
    const char* says;
  };
  const Row rows[] = {
      {tensor(12, 0, {13}, {1}), "reaches outside of its memory, which has 12 elements"},
      {tensor(12, 1, {3, 4}, {4, 1}), "reaches outside"},
      {tensor(12, 0, {4}, {4}), "reaches outside"},
      {tensor(12, -1, {3}, {1}), "reaches outside"},
      {tensor(12, 13, {0}, {1}), "reaches outside"},
      {tensor(12, 0, {-1}, {1}), "sizes that are no positive numbers"},
      {tensor(12, 0, {3}, {-1}), "strides that are no positive numbers"},
      {tensor(12, 0, {3, 4}, {1}), "other numbers of sizes and strides"},
      {tensor(12, 0, {kHuge, kHuge}, {0, 0}), "reaches outside"},
      {tensor(12, 0, {kHuge}, {kHuge}), "reaches outside"},
      {tensor(12, kHuge, {3}, {kHuge}), "reaches outside"},
      {tensor(13, 0, {3}, {1}), "is to have 13 elements, and has 12"},
      {tensor(kHuge, 0, {3}, {1}), "and has 12"},
      {tensor(-1, 0, {0}, {1}), "is to have -1 elements"},
      {memory(7, "DoubleStorage"), "is to have 7 elements, and has 6"},
      {memory(1, "FloatStorage", "9"), "memory '9' is to have 1 elements, and has 0"},
      {memory(1, "StrangeStorage"), "torch.StrangeStorage, which is not known"},
  };
  for (const Row& row : rows) {
    EXPECT_THAT(outcome_of(pickle_of(row.value)), HasSubstr(row.says));
    for (const std::string& inside : {tuple({row.value}), "](" + row.value + "e", "}(" + text("k") + row.value + "u"})
      EXPECT_THAT(outcome_of(pickle_of(inside)), HasSubstr(row.says));
  }
}

TEST(StoredValues, TensorsOfOneRecordShareItsMemory) {
  ArchiveReader archive("sent.pt",
                        archive_of(pickle_of(tuple({tensor(12, 0, {3, 4}, {4, 1}), tensor(12, 2, {3}, {2})}))));
  const c10::IValue value = stored_value(archive);
  const Tensor first = value.toTupleRef().elements()[0].toTensor(),
               second = value.toTupleRef().elements()[1].toTensor();
  first.fill_(7);
  EXPECT_TRUE(second.equal(torch::full({3}, 7.0f)));
  second.resize_({40}).zero_();
  EXPECT_EQ(second.sum().item<float>(), 0);
  EXPECT_THAT(outcome_of(pickle_of(tuple({tensor(1, 0, {1}, {1}), tensor(12, 0, {12}, {1})}))),
              HasSubstr("a tensor's memory '0' is to have two sizes"));
}

TEST(StoredValues, ValuesOfEnumsAreNamedByTheirClass) {
  EXPECT_NO_THROW(checked_pickle(pickle_of(global("__torch__.mine", "Color") + number(1) + "R"), {}));
  EXPECT_THAT(testing::error_of([] {
                checked_pickle(pickle_of(global("torch._utils", "_rebuild_tensor_v2") + number(1) + "R"), {});
              }),
              HasSubstr("arguments that is no tuple"));
  EXPECT_THAT(
      testing::error_of([] { checked_pickle(pickle_of(global("__torch__.mine", "Color") + number(1) + "R}b"), {}); }),
      HasSubstr("gives a state to what is no object"));
}

TEST(StoredValues, QuantizedTensorsHaveAScaleForEachChannel) {
  const auto of_scales = [](std::int64_t scales, std::int64_t axis) {
    const std::string parameters = tuple({global("torch", "per_channel_affine"), tensor(12, 0, {scales}, {1}, "1"),
                                          tensor(12, 0, {scales}, {1}, "1"), number(axis)});
    return pickle_of(global("torch._utils", "_rebuild_qtensor") +
                     tuple({memory(12, "QInt8Storage"), number(0), numbers({3, 4}), numbers({4, 1}), parameters,
                            "\x89"s, global("collections", "OrderedDict") + ")R"}) +
                     "R");
  };
  for (const auto& [scales, axis] : {std::pair{4, 0}, {3, 1}, {3, 2}, {3, -1}})
    EXPECT_THAT(outcome_of(of_scales(scales, axis)), HasSubstr("not as many scales and zero points as channels"));
}

TEST(StoredValues, PicklesTakeOnlyWhatIsThere) {
  std::string deep, deep_tuple = "N";
  for (int i = 0; i < 100000; ++i) deep += "](", deep_tuple += "\x85";
  for (int i = 0; i < 100000; ++i) deep += "e";
  std::string type(100000, '[');
  const std::pair<std::string, const char*> rows[] = {
      {"", "cut short"},
      {"\x80\x02", "cut short"},
      {pickle_of(""), "takes a value that is not there"},
      {pickle_of("K\1K\2"), "ends with more than one value"},
      {pickle_of("e"), "a mark that is not there"},
      {pickle_of("t"), "a mark that is not there"},
      {pickle_of("]K\1\x85"
                 "a(a"),
       "takes a value that is not there"},
      {pickle_of("K\1(K\2e"), "neither a list nor a dict"},
      {pickle_of("}(K\1u"), "a key without a value"},
      {pickle_of("h\7"), "a remembered value that is not there"},
      {pickle_of("Nr\xff\xff\xff\x7f"), "remembers more values"},
      {pickle_of("N)R"), "calls what is no function"},
      {pickle_of("NNb"), "gives a state to what is no object"},
      {pickle_of("\x95"), "the operation 149"},
      {pickle_of("NQ"), "that is no tuple"},
      {pickle_of(")Q"), "something else than memory"},
      {pickle_of("X\xff\xff\xff\xff"
                 "a"),
       "cut short"},
      {pickle_of("]q\0(h\0e"s), "contains itself"},
      {pickle_of("]q\0\x85q\1h\0(h\1e\x86"s), "contains itself"},
      {pickle_of(deep), "more than 512 deep"},
      {pickle_of(deep_tuple), "more than 512 deep"},
      {pickle_of(global("torch.jit._pickle", "restore_type_tag") + tuple({"]", text(type)}) + "R"),
       "more than 512 brackets"},
  };
  for (const auto& [pickle, says] : rows) EXPECT_THAT(outcome_of(pickle), HasSubstr(says));
}

TEST(StoredValues, ListsMayBeShared) { EXPECT_EQ(outcome_of(pickle_of("]q\0(K\1eh\0h\0\x87"s)), "no error"); }

// ── Any other byte ────────────────────────────────────────────────────────────────────────────────────────────────

void read_all(const c10::IValue& value) {
  c10::IValue::HashAliasedIValues parts;
  value.getSubValues(parts);
  for (const c10::IValue& part : parts) {
    if (!part.isTensor() || !part.toTensor().defined() || !part.toTensor().has_storage()) continue;
    const Tensor& tensor = part.toTensor();
    std::int64_t last = tensor.storage_offset();
    for (std::int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
    if (tensor.numel() > 0) {
      EXPECT_LE(static_cast<std::size_t>(last + 1) * tensor.itemsize(), tensor.storage().nbytes());
    }
    if (!tensor.is_quantized()) tensor.sum();
  }
}

TEST(StoredValues, AnyByteMayBeAnotherOne) {
  c10::Dict<std::string, Tensor> dict;
  dict.insert("k", torch::rand({2, 3}));
  const c10::IValue values[] = {
      torch::rand({3, 4}).t(),
      c10::ivalue::Tuple::create({c10::List<Tensor>({torch::rand({5}), torch::rand({2}).to(torch::kDouble)}), dict,
                                  c10::List<std::int64_t>({1, 2}), "words", 2.5, true, c10::IValue()}),
      torch::quantize_per_channel(torch::rand({3, 4}), torch::ones({3}), torch::zeros({3}, torch::kLong), 0,
                                  torch::kQInt8),
      torch::rand({3, 4}).to_sparse(),
  };
  std::size_t read = 0, refused = 0;
  for (const c10::IValue& value : values) {
    const std::vector<char> bytes = pickled(value);
    ArchiveReader valid("valid.pt", {bytes.begin(), bytes.end()});
    testing::Records records;
    std::size_t at_pickle = 0;
    for (const std::string& name : valid.names()) {
      if (name == "data.pkl") at_pickle = records.size();
      records.emplace_back(name, std::string(valid.size(name), '\0'));
      valid.read(name, records.back().second.data());
    }
    std::string& pickle = records[at_pickle].second;
    for (std::size_t at = 0; at < pickle.size(); ++at) {
      const char before = pickle[at];
      for (const int other : {before ^ 1, before ^ 0x40, before ^ 0x80, 0, 0x7f, 0xff, int{'('}, int{'.'}}) {
        pickle[at] = static_cast<char>(other);
        try {
          ArchiveReader archive("sent.pt", testing::zip_of(records));
          read_all(stored_value(archive));
          ++read;
        } catch (const Error& error) {
          EXPECT_THAT(error.what(), HasSubstr("sent.pt"));
          ++refused;
        }
      }
      pickle[at] = before;
    }
  }
  EXPECT_GT(read, 100U);
  EXPECT_GT(refused, 1000U);
}

}  // namespace fx::stored_values_test
