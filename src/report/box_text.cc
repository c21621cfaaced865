#include <fxgraph/report/box_text.h>

#include <algorithm>

namespace fx {

namespace {

constexpr double kLetter = 7.4, kSmallLetter = 6.5;  // wider than 12 and 10.5 pixels of any common font need
constexpr std::size_t kMaxLetters = 30, kMaxLabel = 40;

/// Whether a byte begins a letter of UTF-8.
bool begins_letter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

double letters(std::string_view text) {
  return static_cast<double>(std::count_if(text.begin(), text.end(), begins_letter));
}

/// The first and the last letters of a long text.
std::string cut(const std::string& text, std::size_t length) {
  if (letters(text) <= static_cast<double>(length)) return text;
  std::size_t head = length / 2, tail = text.size() - (length - length / 2 - 1);
  while (head > 0 && !begins_letter(text[head])) --head;
  while (tail < text.size() && !begins_letter(text[tail])) ++tail;
  return text.substr(0, head) + "…" + text.substr(tail);
}

void drop_prefix(std::string_view& text, std::string_view prefix) {
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
}

std::string short_target(const Node& node) {
  std::string_view text = node.target().view();
  drop_prefix(text, "torch.ops.");
  drop_prefix(text, "aten::");
  drop_prefix(text, "aten.");
  if (text.ends_with(".default")) text.remove_suffix(8);
  return cut(std::string(text), kMaxLetters);
}

std::string sizes(const TensorInfo& tensor) {
  std::string text;
  for (const auto size : tensor.sizes) text += (text.empty() ? "" : "×") + std::to_string(size);
  return text;
}

}  // namespace

double BoxText::width() const {
  return std::max({64.0, letters(name) * kLetter + 20, letters(below) * kSmallLetter + 18});
}

BoxText box_text(const Node& node, const Shapes* shapes) {
  BoxText text{cut(node.name(), kMaxLetters), {}};
  if (!node.is(Op::placeholder) && !node.is(Op::output)) text.below = short_target(node);
  std::string as_name = text.below;
  std::replace(as_name.begin(), as_name.end(), '.', '_');
  if (as_name == node.name()) text.below.clear();
  const auto* tensors = shapes ? &(*shapes)[node].tensors : nullptr;
  const std::string below = tensors && !tensors->empty() ? sizes(tensors->front()) : std::string();
  text.below += (text.below.empty() || below.empty() ? "" : " · ") + below;
  return text;
}

std::string short_label(const std::vector<Outline::Group>& groups, std::uint32_t group) {
  const std::string& label = groups[group].label;
  if (groups[group].parent < 0) return label.empty() ? "all" : label;
  const Outline::Group& parent = groups[static_cast<std::size_t>(groups[group].parent)];
  const bool is_inside = !groups[group].is_stage && !parent.is_stage && !parent.label.empty();
  return cut(is_inside ? label.substr(parent.label.size() + 1) : label, kMaxLabel);
}

double title_width(const std::string& label) { return std::max(190.0, letters(label) * kLetter + 40); }

}  // namespace fx
