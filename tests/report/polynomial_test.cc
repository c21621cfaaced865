// Polynomials are found from values on a grid, exactly.
#include <fxgraph/report/polynomial.h>

#include <gtest/gtest.h>

#include <random>

namespace fx::polynomial_test {

using Ints = std::vector<std::int64_t>;

// The value at a point by the definition.
std::int64_t value_of(const std::vector<std::pair<std::int64_t, Ints>>& terms, const Ints& point) {
  std::int64_t sum = 0;
  for (const auto& [factor, powers] : terms) {
    std::int64_t product = factor;
    for (std::size_t i = 0; i < point.size(); ++i) {
      for (std::int64_t power = 0; power < powers[i]; ++power) product *= point[i];
    }
    sum += product;
  }
  return sum;
}

TEST(Polynomials, AreFoundFromTheirValues) {
  std::mt19937 random(7);
  const auto any = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
  for (int round = 0; round < 200; ++round) {
    const auto count = static_cast<std::size_t>(any(1, 3));
    Ints first, step;
    std::vector<int> degrees;
    for (std::size_t i = 0; i < count; ++i) {
      first.push_back(any(1, 300));
      step.push_back(any(1, 40));
      degrees.push_back(any(0, 2));
    }
    std::vector<std::pair<std::int64_t, Ints>> terms(static_cast<std::size_t>(any(0, 5)));
    for (auto& [factor, powers] : terms) {
      factor = any(-1000, 100000);
      for (const int degree : degrees) powers.push_back(any(0, degree));
    }
    Ints values;
    std::size_t points = 1;
    for (const int degree : degrees) points *= static_cast<std::size_t>(degree) + 1;
    for (std::size_t point = 0; point < points; ++point) {
      Ints sizes = first;
      std::size_t rest = point;
      for (std::size_t i = count; i-- > 0;) {
        sizes[i] += static_cast<std::int64_t>(rest % static_cast<std::size_t>(degrees[i] + 1)) * step[i];
        rest /= static_cast<std::size_t>(degrees[i] + 1);
      }
      values.push_back(value_of(terms, sizes));
    }
    const Polynomial found = Polynomial::through(first, step, degrees, values);
    for (int i = 0; i < 5; ++i) {
      Ints point;
      for (std::size_t j = 0; j < count; ++j) point.push_back(any(0, 1000));
      EXPECT_EQ(found.at(point), (Fraction{value_of(terms, point), 1})) << "round " << round;
    }
  }
}

TEST(Polynomials, AreReadByPeople) {
  const std::vector<std::string> names = {"b", "t"};
  const Ints first = {1, 1}, step = {1, 1};
  const auto found = [&](const std::function<std::int64_t(std::int64_t, std::int64_t)>& value) {
    Ints values;
    for (const std::int64_t b : {1, 2}) {
      for (const std::int64_t t : {1, 2, 3}) values.push_back(value(b, t));
    }
    return Polynomial::through(first, step, std::vector<int>{1, 2}, values);
  };
  EXPECT_EQ(found([](auto b, auto t) { return 2048 * b * t * t + 1024 * b; }).str(names, 1024), "2·b·t² + b");
  EXPECT_EQ(found([](auto b, auto t) { return t - 3 * b; }).str(names), "-3·b + t");
  EXPECT_EQ(found([](auto, auto) { return 0; }).str(names), "0");
  EXPECT_EQ(found([](auto, auto t) { return t * (t + 1) / 2; }).str(names), "t²/2 + t/2");
  EXPECT_TRUE(found([](auto, auto) { return 5; }).is_constant());
  EXPECT_FALSE(found([](auto b, auto) { return 5 * b; }).is_in(2));
}

}  // namespace fx::polynomial_test
