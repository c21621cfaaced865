#include <fxgraph/trace/size_tie.h>

#include <algorithm>
#include <cctype>

#include <fxgraph/support/error.h>
#include <fxgraph/trace/size_terms.h>

namespace fx::internal {

std::vector<std::uint32_t> SizeTie::of() const {
  std::vector<std::uint32_t> groups;
  for (const Part& part : parts) {
    const auto group = static_cast<std::uint32_t>(part.number);
    if (part.op == Op::size && std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  return groups;
}

void SizeTie::replace(std::uint32_t group, std::uint32_t by) {
  for (Part& part : parts) {
    if (part.op == Op::size && part.number == group) part.number = by;
  }
}

std::int64_t SizeTie::value(const std::vector<std::int64_t>& sizes) const {
  bool is_known = true;
  const auto combine = [&](Op op, std::int64_t a, std::int64_t b) -> std::int64_t {
    switch (op) {
      case Op::add: return a + b;
      case Op::sub: return a - b;
      case Op::mul: return a * b;
      default: is_known = is_known && b != 0; return b == 0 ? 0 : floor_divide(a, b);
    }
  };
  const auto value = build<std::int64_t>([&](std::uint32_t group) { return sizes[group]; },
                                         [](std::int64_t number) { return number; }, combine);
  return is_known ? value : -1;
}

// A text, and how tightly it binds: sums 0, quotients 1, products 2, all else 3.
std::string SizeTie::str(const std::function<std::string(std::uint32_t)>& name) const {
  struct Words {
    std::string text;
    int binds;
  };
  const auto in_brackets_below = [](int binds, const Words& words) {
    return words.binds < binds ? "(" + words.text + ")" : words.text;
  };
  return build<Words>(
             [&](std::uint32_t group) {
               return Words{name(group), 3};
             },
             [](std::int64_t number) {
               return Words{std::to_string(number), 3};
             },
             [&](Op op, const Words& a, const Words& b) {
               const int binds = op == Op::floordiv ? 1 : op == Op::mul ? 2 : 0;
               const char* sign = op == Op::add ? " + " : op == Op::sub ? " - " : op == Op::mul ? " * " : " // ";
               const int left = op == Op::floordiv ? 3 : binds,
                         right = op == Op::floordiv ? 3 : binds + (op == Op::sub);
               return Words{in_brackets_below(left, a) + sign + in_brackets_below(right, b), binds};
             })
      .text;
}

namespace {

class TieParser {
 public:
  TieParser(std::string_view text, const std::vector<std::string>& names) : text_(text), names_(names) {}

  DeclaredTie parse() {
    const auto group = name();
    if (!group) fail("the name of a dimension");
    if (!take("=")) fail("'='");
    sum();
    skip();
    if (at_ != text_.size()) fail("an operator, + - * or //,");
    return {*group, {std::move(parts_)}};
  }

 private:
  using Op = SizeTie::Op;
  static constexpr int kDeepest = 64;  // brackets

  [[noreturn]] void fail(const std::string& wanted) const {
    throw Error(ErrorKind::invalid_argument, "Sizes::tied(\"" + std::string(text_) + "\"): " + wanted +
                                                 " is missing at column " + std::to_string(at_ + 1) +
                                                 "; write it as \"mask[1] = x[1] + cache[1]\"");
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view word) {
    skip();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  // The longest that fits: `x[1]` and `x[12]`, `xs[0].size(1)`.
  std::optional<std::uint32_t> name() {
    skip();
    std::optional<std::uint32_t> found;
    for (std::uint32_t i = 0; i < names_.size(); ++i) {
      const bool fits = !names_[i].empty() && text_.substr(at_, names_[i].size()) == names_[i];
      if (fits && (!found || names_[i].size() > names_[*found].size())) found = i;
    }
    if (found) at_ += names_[*found].size();
    return found;
  }
  void sum() {
    product();
    for (;;) {
      const Op op = take("+") ? Op::add : take("-") ? Op::sub : Op::size;
      if (op == Op::size) return;
      product();
      parts_.push_back({op});
    }
  }
  void product() {
    atom();
    for (;;) {
      const Op op = take("//") ? Op::floordiv : take("*") ? Op::mul : Op::size;
      if (op == Op::size) return;
      atom();
      parts_.push_back({op});
    }
  }
  void atom() {
    if (take("(")) {
      if (++depth_ > kDeepest) fail("an expression with fewer brackets");
      sum();
      --depth_;
      if (!take(")")) fail("')'");
      return;
    }
    if (const auto group = name()) {
      parts_.push_back({Op::size, *group});
      return;
    }
    std::int64_t number = 0;
    const std::size_t begin = at_;
    while (at_ < text_.size() && at_ < begin + 9 && std::isdigit(static_cast<unsigned char>(text_[at_])))
      number = 10 * number + (text_[at_++] - '0');
    if (at_ == begin) fail("a number, or a dimension of an input,");
    parts_.push_back({Op::number, number});
  }

  const std::string_view text_;
  const std::vector<std::string>& names_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::vector<SizeTie::Part> parts_;
};

}  // namespace

DeclaredTie parse_tie(std::string_view text, const std::vector<std::string>& names) {
  return TieParser(text, names).parse();
}

}  // namespace fx::internal
