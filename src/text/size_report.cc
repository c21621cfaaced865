#include <fxgraph/text/size_report.h>

#include <algorithm>
#include <ostream>

#include <fxgraph/contract/contract.h>
#include <fxgraph/ir/meta.h>

namespace fx {
std::string SizeStatement::str() const {
  std::string text = dimensions;
  switch (kind) {
    case Kind::any: text += " free"; break;
    case Kind::steps: text += " free in steps of " + std::to_string(value); break;
    case Kind::fixed: text += " = " + std::to_string(value); break;
    case Kind::tied: text += " = " + expression; break;
    case Kind::noted: return text;
  }
  for (std::size_t i = 0; i < probed.size(); ++i) {
    text += i == 0 ? ", probed at " : i + 1 == probed.size() ? " and " : ", ";
    text += std::to_string(probed[i]);
  }
  return why.empty() ? text : text + ": " + why;
}

SizeReport::SizeReport(const Graph& graph) {
  for (const Node* placeholder : graph.placeholders()) {
    const Meta* meta = placeholder->find_meta();
    const auto* known = meta ? meta->get<std::vector<SizeStatement>>(meta_key::kSizes) : nullptr;
    if (known) statements_.insert(statements_.end(), known->begin(), known->end());
  }
  if (!statements_.empty()) return;
  for (const Condition& condition : Contract(graph).conditions()) {
    const auto is_size = [](const Measure& measure) { return measure.property == InputProperty::size; };
    if (std::ranges::any_of(condition.measures, is_size))
      statements_.push_back({SizeStatement::Kind::noted, condition.message(), 0, {}, {}});
  }
}

std::size_t SizeReport::count(SizeStatement::Kind kind) const {
  std::size_t count = 0;
  for (const SizeStatement& statement : statements_) {
    if (statement.kind != kind) continue;
    const std::string& names = statement.dimensions;
    count += 1 + static_cast<std::size_t>(std::count(names.begin(), names.end(), '='));
  }
  return count;
}

std::string SizeReport::str() const {
  std::string text;
  for (const SizeStatement& statement : statements_) text += statement.str() + "\n";
  return text;
}

std::ostream& operator<<(std::ostream& out, const SizeReport& report) { return out << report.str(); }

}  // namespace fx
