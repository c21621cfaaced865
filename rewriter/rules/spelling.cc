#include <fxgraph/rewriter/rules/spelling.h>

#include <array>
#include <utility>

namespace fx::rules {

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kWords = {{
    {"$add", "{aten::add.Tensor, aten::add.Scalar}"},
    {"$sub", "{aten::sub.Tensor, aten::sub.Scalar}"},
    {"$mul", "{aten::mul.Tensor, aten::mul.Scalar}"},
    {"$div", "{aten::div.Tensor, aten::div.Scalar}"},
}};

}  // namespace

std::string spelled(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    bool replaced = false;
    for (const auto& [word, meaning] : kWords) {
      if (!text.substr(at).starts_with(word)) continue;
      result += meaning;
      at += word.size();
      replaced = true;
    }
    if (!replaced) result += text[at++];
  }
  return result;
}

Argument list_of(const std::vector<std::int64_t>& numbers) {
  return Argument::list(std::vector<Argument>(numbers.begin(), numbers.end()));
}

bool is_floating(DType type) {
  return type == DType::float16 || type == DType::bfloat16 || type == DType::float32 || type == DType::float64;
}

bool is_floating(const Match& match, std::string_view name) {
  const TensorInfo* info = match.info(name);
  return info && is_floating(info->dtype);
}

bool may_be_floating(const Match& match, std::string_view name) {
  return !match.info(name) || is_floating(match, name);
}

bool same_type(const Match& match, std::string_view a, std::string_view b) {
  return match.info(a) && match.info(b) && match.info(a)->dtype == match.info(b)->dtype;
}

}  // namespace fx::rules
