#include <fxgraph/export/guard_text.h>

#include <fxgraph/support/error.h>
#include <fxgraph/symbolic/size_text.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace fx::pt2 {
namespace {

constexpr std::string_view kKinds[] = {"size", "stride"};

/// Reads what is asked of an input, at the beginning of a text.
class AskedReader {
 public:
  explicit AskedReader(std::string_view text) : text_(text) {}

  std::optional<AskedSize> read(const GuardPath& leaf_of) {
    if (!take("L")) return std::nullopt;
    std::vector<GuardStep> path;
    while (take("[")) {
      path.push_back(step());
      if (!take("]")) return std::nullopt;
    }
    const std::optional<std::size_t> leaf = is_read_ ? leaf_of(path) : std::nullopt;
    if (!leaf) return std::nullopt;
    if (!take(".")) return AskedSize{"value", *leaf};
    for (const std::string_view kind : kKinds) {
      if (!take(std::string(kind) + "()[")) continue;
      AskedSize asked{std::string(kind), *leaf, number()};
      return take("]") && is_read_ ? std::optional(asked) : std::nullopt;
    }
    return std::nullopt;
  }
  std::size_t length() const { return at_; }

 private:
  GuardStep step() {
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') return {"", number()};
    const std::size_t end = text_.find(quote, at_ + 1);
    is_read_ = is_read_ && end != std::string_view::npos;
    if (!is_read_) return {};
    GuardStep found{std::string(text_.substr(at_ + 1, end - at_ - 1))};
    at_ = end + 1;
    return found;
  }
  std::int64_t number() {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    is_read_ = is_read_ && error == std::errc() && value >= 0;
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }
  bool take(std::string_view token) {
    const bool is_there = text_.substr(at_).starts_with(token);
    if (is_there) at_ += token.size();
    return is_there;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool is_read_ = true;
};

/// `Min` is `torch.sym_min` in Python.
SizeExpr in_python(const SizeExpr& guard) {
  if (guard.operands().empty()) return guard;
  std::vector<SizeExpr> operands;
  std::ranges::transform(guard.operands(), std::back_inserter(operands), in_python);
  const std::string& name = guard.name();
  return SizeExpr::call(name == "Min" ? "torch.sym_min" : name == "Max" ? "torch.sym_max" : name, std::move(operands));
}

}  // namespace

SizeExpr AskedSize::symbol() const {
  const std::string name = "L['flat_args'][" + std::to_string(leaf) + "]";
  return SizeExpr::symbol(kind == "value" ? name : name + "." + kind + "()[" + std::to_string(number) + "]");
}

AskedSize AskedSize::of(std::string_view symbol) {
  return AskedReader(symbol)
      .read([](const std::vector<GuardStep>& path) { return static_cast<std::size_t>(path.at(1).index); })
      .value();
}

std::optional<SizeExpr> parse_guard(std::string_view text, const GuardPath& leaf_of) {
  try {
    const SizeExpr guard = read_size(text, [&](std::string_view rest) -> std::optional<NameInText> {
      AskedReader reader(rest);
      const std::optional<AskedSize> asked = reader.read(leaf_of);
      return asked ? std::optional(NameInText{reader.length(), asked->symbol()}) : std::nullopt;
    });
    return guard;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string guard_text(const SizeExpr& guard) { return in_python(guard).str(); }

}  // namespace fx::pt2
