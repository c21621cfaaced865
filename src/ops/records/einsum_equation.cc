#include <fxgraph/ops/records/einsum_equation.h>

#include <algorithm>
#include <map>

namespace fx::internal {
namespace {

using Labels = EinsumEquation::Labels;

constexpr int kEllipsis = 0;

bool is_letter(char each) { return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z'); }

/// One operand's part, with one label for an ellipsis.
std::optional<Labels> labels_of(std::string_view part) {
  Labels labels;
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (part[i] == ' ') continue;
    if (is_letter(part[i])) {
      labels.push_back(part[i]);
    } else if (part.substr(i, 3) == "..." && std::ranges::find(labels, kEllipsis) == labels.end()) {
      labels.push_back(kEllipsis);
      i += 2;
    } else {
      return std::nullopt;
    }
  }
  return labels;
}

/// With those `covered` dimensions that the ellipsis stands for.
Labels written_out(const Labels& labels, std::size_t covered) {
  Labels all;
  for (const int label : labels) {
    if (label != kEllipsis) all.push_back(label);
    for (std::size_t i = label == kEllipsis ? covered : 0; i > 0; --i) all.push_back(-static_cast<int>(i));
  }
  return all;
}

}  // namespace

std::optional<EinsumEquation> EinsumEquation::read(std::string_view equation, std::span<const std::size_t> ranks) {
  const std::size_t arrow = equation.find("->");
  std::string_view left = equation.substr(0, arrow);
  EinsumEquation made;
  std::map<int, int> counts;  // how often each letter stands
  std::size_t most_covered = 0;
  for (const std::size_t rank : ranks) {
    const std::size_t end = std::min(left.find(','), left.size());
    const bool is_last = made.operands.size() + 1 == ranks.size();
    const std::optional<Labels> labels = labels_of(left.substr(0, end));
    if (!labels || is_last != (end == left.size())) return std::nullopt;
    left.remove_prefix(std::min(end + 1, left.size()));
    const bool has_ellipsis = std::ranges::find(*labels, kEllipsis) != labels->end();
    const std::size_t letters = labels->size() - has_ellipsis;
    if (letters > rank || (!has_ellipsis && letters != rank)) return std::nullopt;
    most_covered = std::max(most_covered, rank - letters);
    made.operands.push_back(written_out(*labels, rank - letters));
    for (const int label : *labels) ++counts[label];
  }
  counts.erase(kEllipsis);
  Labels output = {kEllipsis};
  if (arrow == equation.npos) {  // what stands once
    for (const auto& [letter, count] : counts) {
      if (count == 1) output.push_back(letter);
    }
  } else {
    const std::optional<Labels> labels = labels_of(equation.substr(arrow + 2));
    if (!labels) return std::nullopt;
    output = *labels;
    for (const int label : output) {
      if (label != kEllipsis && (!counts.contains(label) || std::ranges::count(output, label) > 1)) return std::nullopt;
    }
  }
  made.output = written_out(output, most_covered);
  return made;
}

}  // namespace fx::internal
