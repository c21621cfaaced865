// Canonical expressions against the trees that they were made of, at all small sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/symbolic/size_expr.h>
#include <fxgraph/symbolic/size_text.h>

#include "tests/support/error_of.h"
#include "tests/symbolic/random_expr.h"

namespace fx::size_expr_test {

const SizeExpr h = SizeExpr::symbol("h"), w = SizeExpr::symbol("w");

TEST(SizeExpr, PrintsAsPeopleWriteIt) {
  struct Case {
    SizeExpr expr;
    const char* text;
  };
  for (const Case& c : {Case{2 * h + 4, "2*h + 4"},
                        Case{floor_div(2 * h + 4, 2), "h + 2"},
                        Case{floor_div(h - 1, 2) + 1, "(h - 1)//2 + 1"},
                        Case{floor_div(h + 1, 2), "(h - 1)//2 + 1"},
                        Case{floor_div(floor_div(h - 1, 2), 2), "(h - 1)//4"},
                        Case{h - 2 * w + 1, "h - 2*w + 1"},
                        Case{-1 * h, "-h"},
                        Case{ceil_div(h, 3), "(h - 1)//3 + 1"},
                        Case{(h + w) * (h - w), "h*h - w*w"},
                        Case{floor_div(4 * h * w, 2 * h), "2*w"},
                        Case{floor_mod(3 * h + 7, 2), "(h + 1)%2"},
                        Case{max(h, h + 1) - w, "h - w + 1"},
                        Case{max(max(h, 2), max(w, 7)), "Max(h, w, 7)"},
                        Case{floor_div(6 * h + 6 * w, h + w), "6"},
                        Case{floor_div(h * w * 2 + h + 2 * w + 1, 2 * w + 1), "h + 1"},
                        Case{floor_mod(h * h - w * w, h + w), "0"},
                        Case{h + floor_mod(SizeExpr(8) - floor_mod(h, 8), 8), "8*((h - 1)//8) + 8"},
                        Case{floor_div(h + floor_mod(h, 2), 2), "(h - 1)//2 + 1"},
                        Case{h - floor_mod(h, 4), "4*(h//4)"},
                        Case{5 + h + w + floor_mod(h, 2), "w + 2*((h - 1)//2) + 7"},
                        Case{SizeExpr(7) - 9, "-2"}})
    EXPECT_EQ(c.expr.str(), c.text);
}

TEST(SizeExpr, IsWhatItsTreeIsAtAllSmallSizes) {
  testing::RandomExpr random(7);
  std::size_t known = 0;
  for (int i = 0; i < 100000; ++i) {
    const SizeExpr tree = random.tree(1 + i % 5);
    const SizeExpr canonical = tree.simplified();
    ASSERT_EQ(canonical.simplified(), canonical) << tree;
    for (int point = 0; point < 8; ++point) {
      const std::map<std::string, std::int64_t> at = random.point(12);
      const std::optional<std::int64_t> wanted = tree.evaluate(at);
      if (!wanted) continue;  // divided by zero
      ++known;
      ASSERT_EQ(canonical.evaluate(at), wanted) << tree << " was made " << canonical;
    }
  }
  EXPECT_GT(known, 500000U);
}

TEST(SizeExpr, IsReadAsItIsWritten) {
  testing::RandomExpr random(8);
  for (int i = 0; i < 2000; ++i) {
    const SizeExpr tree = random.tree(1 + i % 5);
    ASSERT_EQ(SizeExpr::parse(tree.dump()), tree);
    ASSERT_EQ(SizeExpr::parse(tree.simplified().dump()), tree.simplified());
  }
}

std::optional<NameInText> letter(std::string_view text) {
  if (text.empty() || !std::isalpha(static_cast<unsigned char>(text[0]))) return std::nullopt;
  return NameInText{1, SizeExpr::symbol(std::string(text.substr(0, 1)))};
}

TEST(SizeExpr, IsReadAsPeopleWriteIt) {
  testing::RandomExpr random(5);
  for (int i = 0; i < 5000; ++i) {
    const SizeExpr tree = i % 2 ? random.tree(4) : random.linear(), read = read_size(tree.str(), letter);
    for (int point = 0; point < 10; ++point) {
      const auto at = random.point(9);
      ASSERT_EQ(tree.evaluate(at), read.evaluate(at)) << tree << " is read as " << read;
    }
  }
  const struct {
    const char *text, *read;
  } kTexts[] = {{"a + b*2 - 3", "a + b*2 - 3"},
                {" ( a+b ) // 4 % 3", "((a + b)//4)%3"},
                {"not a == 1 and b >= 2 or c != 0", "not a == 1 and b >= 2 or c != 0"},
                {"not (a == 1 and b < 2)", "not (a == 1 and b < 2)"},
                {"torch.sym_min(a, 3) <= max(b, c, 2)", "Min(a, 3) <= Max(b, c, 2)"}};
  for (const auto& [text, read] : kTexts) EXPECT_EQ(read_size(text, letter).str(), read);
}

TEST(SizeExpr, SaysWhatIsMissing) {
  const struct {
    std::string text, missing;
  } kTexts[] = {{"", "a number or a name is missing at column 1"},
                {"a +", "a number or a name is missing at column 4"},
                {"a ** 2", "an operator is missing at column 3"},
                {"a / 2", "an operator is missing at column 3"},
                {"(a", "')' is missing at column 3"},
                {"min(a)", "',' is missing at column 6"},
                {"2.5*a", "a whole number is missing at column 1"},
                {"99999999999999999999", "a number or a name is missing at column 1"},
                {"a < b < c", "an operator is missing at column 7"},
                {std::string(5000, '('), "an expression with fewer brackets is missing at column 102"},
                {std::string(5000, '-'), "an expression with fewer brackets is missing at column 102"},
                {std::string(30000, ' '), "a shorter text is missing at column 1"}};
  for (const auto& [text, missing] : kTexts) {
    const std::string said = testing::error_of([&text = text] { read_size(text, letter); });
    EXPECT_EQ(said, missing) << text.substr(0, 20);
  }
}

TEST(SizeExpr, IsReadHoweverLongItIs) {
  std::string sum = "a";
  for (int i = 0; i < 4000; ++i) sum += i % 2 ? " - 1" : " + 2";
  EXPECT_EQ(read_size(sum, letter).evaluate({{"a", 7}}), 2007);
  std::string quotients = "a";
  for (int i = 0; i < 4000; ++i) quotients += "//2";
  EXPECT_THAT(testing::error_of([&] { read_size(quotients, letter); }), ::testing::HasSubstr("a shorter expression"));
}

TEST(SizeExpr, LeavesWhatDoesNotFit) {
  const SizeExpr most = INT64_MAX, least = INT64_MIN;
  for (const SizeExpr& each : {most + 1, least - 1, most * 2, least * -1, floor_div(least, -1), h * most * 2 - h * 4,
                               floor_mod(least, -1), (h + most) + 1}) {
    EXPECT_EQ(each.evaluate({{"h", 5}}), std::nullopt) << each;
    EXPECT_EQ(each.simplified(), each);
  }
  EXPECT_EQ(floor_div(h * most, most).evaluate({{"h", 1}}), 1);
}

TEST(SizeExpr, DoesNotMultiplyOutWithoutEnd) {
  SizeExpr sum = 1, product = 1;
  for (int i = 0; i < 20; ++i) {
    sum = sum + SizeExpr::symbol("s" + std::to_string(i));
    product = product * sum;
  }
  std::map<std::string, std::int64_t> ones;
  for (int i = 0; i < 20; ++i) ones["s" + std::to_string(i)] = 0;
  EXPECT_EQ(product.evaluate(ones), 1);
}

}  // namespace fx::size_expr_test
