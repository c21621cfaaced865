// Programs that ask for element types: traced with inputs of one type and run with every other that programs name, they
// do what the program does, or refuse.
#include <array>

#include "tests/trace/sizes_testing.h"

namespace fx::types_of_inputs_test {

using testing::AtSizes;
using torch::Tensor;

constexpr std::array kTraced = {torch::kFloat, torch::kDouble,        torch::kHalf,  torch::kBFloat16,
                                torch::kLong,  torch::kInt,           torch::kShort, torch::kChar,
                                torch::kByte,  torch::kComplexDouble, torch::kBool};
constexpr std::array kGiven = {torch::kFloat, torch::kDouble, torch::kHalf, torch::kLong, torch::kByte, torch::kBool};

Tensor tensor_of(torch::ScalarType type) { return (torch::arange(6).view({2, 3}) % 5).to(type); }

struct AsksForType {
  const char* name;
  Tensor (*program)(Tensor x);
  bool depends = true;  ///< false: the graph is to hold for every type that the program takes
};
void PrintTo(const AsksForType& each, std::ostream* out) { *out << each.name; }

const std::vector<AsksForType>& programs() {
  static const std::vector<AsksForType> all = {
      {"scales_whole_numbers", [](Tensor x) { return x.is_floating_point() ? x * 2 : x.to(torch::kFloat) / 255; }},
      {"scales_bytes",
       [](Tensor x) { return x.scalar_type() == torch::kByte ? x.to(torch::kFloat) / 255 : x.to(torch::kFloat); }},
      {"takes_masks", [](Tensor x) { return x.dtype() == torch::kBool ? x.to(torch::kFloat) * -9 : x * 1.0; }},
      {"takes_wide_numbers", [](Tensor x) { return x.scalar_type() == torch::kLong ? x + 1 : x.to(torch::kLong) + 2; }},
      {"makes_options", [](Tensor x) { return x + torch::ones({3}, x.options()); }},
      {"by_size", [](Tensor x) { return x.element_size() > 2 ? x * 2 : x * 3; }},
      {"parts_of_complex_numbers", [](Tensor x) { return x.is_complex() ? torch::real(x) : x; }},
      {"of_what_is_computed", [](Tensor x) { return x.sum(0).scalar_type() == torch::kLong ? x * 2 : x * 3; }},
      {"on_whole_numbers",
       [](Tensor x) { return torch::isIntegralType(x.scalar_type(), false) ? x.bitwise_and(3) : x.sum(0); }},
      {"without_gradients",
       [](Tensor x) {
         Tensor y;
         {
           const torch::NoGradGuard no_grad;
           y = x * 2;
         }
         return y * x;
       },
       false},
      {"casts", [](Tensor x) { return x.to(torch::kFloat).softmax(1); }, false},
      {"promotes", [](Tensor x) { return torch::where(x.abs() > 1, x * 2, x + 1); }, false},
      {"like", [](Tensor x) { return torch::ones_like(x) + x.new_zeros({3}); }, false},
  };
  return all;
}

class TypesOfInputs : public ::testing::TestWithParam<AsksForType> {};

bool runs(const AsksForType& each, torch::ScalarType type) {
  try {
    each.program(tensor_of(type));
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

TEST_P(TypesOfInputs, OfAnyOther) {
  const AsksForType& each = GetParam();
  for (const torch::ScalarType traced : kTraced) {
    if (!runs(each, traced)) continue;
    const auto gm = symbolic_trace(each.program, {tensor_of(traced)});
    for (const torch::ScalarType given : kGiven) {
      if (!runs(each, given)) continue;
      SCOPED_TRACE(std::string(c10::toString(traced)) + ", then " + c10::toString(given));
      const Tensor x = tensor_of(given);
      const AtSizes outcome = testing::at_sizes(*gm, [&]() -> c10::IValue { return each.program(x); }, {x});
      if (traced == given || !each.depends) {
        EXPECT_EQ(outcome, AtSizes::equal) << gm->graph();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, TypesOfInputs, ::testing::ValuesIn(programs()),
                         [](const auto& info) { return info.param.name; });

// One input decides by its type, the other has none to decide by.
TEST(TypesOfTwoInputs, OfAnyOtherMask) {
  const auto program = [](Tensor x, Tensor mask) {
    return mask.scalar_type() == torch::kBool ? x.masked_fill(mask, 0) : x + mask;
  };
  const Tensor x = torch::rand({2, 3});
  for (const torch::ScalarType traced : {torch::kBool, torch::kFloat, torch::kByte, torch::kLong}) {
    const auto gm = symbolic_trace(program, {x, tensor_of(traced)});
    for (const torch::ScalarType given : {torch::kBool, torch::kFloat, torch::kByte, torch::kLong}) {
      SCOPED_TRACE(std::string(c10::toString(traced)) + ", then " + c10::toString(given));
      const Tensor mask = tensor_of(given);
      const AtSizes outcome = testing::at_sizes(*gm, [&]() -> c10::IValue { return program(x, mask); }, {x, mask});
      EXPECT_TRUE(outcome == AtSizes::equal || traced != given);
    }
  }
}

// No input is of the type that parameters decide.
struct OfWords : torch::nn::Module {
  torch::nn::Embedding rows = register_module("rows", torch::nn::Embedding(10, 4));
  Tensor weight = register_parameter("weight", torch::rand({10, 4}));
};

TEST(TypesOfParameters, AreThoseOfTheTraceWhereTheProgramTakesThemUp) {
  const struct {
    const char* name;
    Tensor (*program)(OfWords& words, Tensor x);
    bool depends;
  } kPrograms[] = {
      {"options_of_leaf",
       [](OfWords& words, Tensor x) {
         const Tensor row = words.rows(x);
         return torch::ones({x.size(0), 4}, row.options()).cumsum(0);
       },
       true},
      {"options_of_what_a_parameter_makes",
       [](OfWords& words, Tensor x) {
         const Tensor rows = words.weight.index_select(0, x);
         return rows.mul(0) + torch::arange(4, rows.options());
       },
       true},
      {"chooses",
       [](OfWords& words, Tensor x) {
         const Tensor row = words.rows(x);
         return row.scalar_type() == torch::kFloat ? row * 2 : row * 3;
       },
       true},
      {"takes_nothing",
       [](OfWords& words, Tensor x) { return words.rows(x) + torch::full({4}, 0.5) + words.weight.index({0}); }, false},
  };
  const Tensor x = torch::tensor({1, 5, 2});
  for (const auto& [name, program, depends] : kPrograms) {
    SCOPED_TRACE(name);
    const auto words = std::make_shared<OfWords>();
    const auto gm = symbolic_trace(words, [&, run = program](Tensor ids) { return run(*words, ids); }, {x});
    const auto eager = [&, run = program]() -> c10::IValue { return run(*words, x); };
    EXPECT_EQ(testing::at_sizes(*gm, eager, {x}, 0), AtSizes::equal);
    gm->to(torch::kDouble);
    words->to(torch::kDouble);
    EXPECT_EQ(testing::at_sizes(*gm, eager, {x}, 0), depends ? AtSizes::refused : AtSizes::equal) << gm->graph();
  }
}

}  // namespace fx::types_of_inputs_test
