#include <fxgraph/rewriter/report.h>

#include <algorithm>
#include <array>
#include <ostream>

namespace fx {

std::string_view to_string(RewriteStop stop) {
  static constexpr std::array<std::string_view, 5> kNames = {"complete", "fixed point", "limit on rewrites",
                                                             "limit on time", "search budget"};
  return kNames[static_cast<std::size_t>(stop)];
}

void RewriteReport::add(const RewriteReport& other) {
  applied += other.applied;
  refused.insert(refused.end(), other.refused.begin(), other.refused.end());
  add_written_out(other.written_out);
  if (other.stop >= RewriteStop::max_rewrites || stop < RewriteStop::max_rewrites) stop = other.stop;
  for (const RuleReport& rule : other.rules) {
    const auto same =
        std::find_if(rules.begin(), rules.end(), [&](const RuleReport& known) { return known.rule == rule.rule; });
    if (same == rules.end()) {
      rules.push_back(rule);
      continue;
    }
    same->tried += rule.tried;
    same->matched += rule.matched;
    same->refused += rule.refused;
    same->filtered += rule.filtered;
    same->applied += rule.applied;
    same->time += rule.time;
  }
}

std::ostream& operator<<(std::ostream& out, const RewriteReport& report) {
  constexpr std::size_t kShown = 5;
  out << "applied " << report.applied;
  if (!report.refused.empty()) {
    out << "; refused " << report.refused.size() << " (";
    for (std::size_t i = 0; i < std::min(kShown, report.refused.size()); ++i) {
      out << (i > 0 ? "; " : "") << report.refused[i].node << ": " << report.refused[i].reason;
    }
    if (report.refused.size() > kShown) out << "; …";
    out << ")";
  }
  if (!report.written_out.empty()) {
    out << "; wrote out " << report.written_out.size() << " (";
    for (std::size_t i = 0; i < std::min(kShown, report.written_out.size()); ++i)
      out << (i > 0 ? ", " : "") << report.written_out[i];
    out << (report.written_out.size() > kShown ? ", …)" : ")");
  }
  if (report.stop >= RewriteStop::max_rewrites) out << "; stopped by the " << to_string(report.stop);
  return out;
}

}  // namespace fx
