// What a rewrite did, and what it did not do and why.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace fx {

/// Why a rewrite ended.
enum class RewriteStop : std::uint8_t {
  complete,       ///< everything was tried once
  fixed_point,    ///< nothing is left that any rule applies to
  max_rewrites,   ///< the limit on rewrites was reached
  max_time,       ///< the limit on time was reached
  search_budget,  ///< a search used up its budget: matches may be missing
};
/// Returns the words that reports have for it, as in `stopped by the limit on rewrites`.
std::string_view to_string(RewriteStop stop);

/// A match that was not rewritten.
struct Refusal {  ///< the name of the rule
  std::string rule;
  std::string node;    ///< the node to look at
  std::string reason;  ///< names the other nodes concerned
};

/// What became of one rule.
struct RuleReport {
  std::string rule;                  ///< the name of the rule
  std::size_t tried = 0;             ///< places where a match could start
  std::size_t matched = 0;           ///< places where the pattern fits
  std::size_t refused = 0;           ///< places where the rewrite would have changed more than it may
  std::size_t filtered = 0;          ///< declined by a filter, a condition, or the replacement itself
  std::size_t applied = 0;           ///< matches that were rewritten
  std::chrono::nanoseconds time{0};  ///< spent on this rule's searches and rewrites
};

/// What a rewrite did, rule by rule.
struct RewriteReport {
  std::size_t applied = 0;                   ///< matches that were rewritten, by all rules
  std::vector<Refusal> refused;              ///< in the order in which they were met
  std::vector<RuleReport> rules;             ///< one for each rule, in the order of the set
  RewriteStop stop = RewriteStop::complete;  ///< why it ended
  /// The calls that became other operators so that a rewrite could take place: of modules, and those that wrote in
  /// place. By the names that they had.
  std::vector<std::string> written_out;

  /// True when anything was rewritten.
  bool changed() const { return applied > 0; }
  /// Notes more that was written out.
  void add_written_out(const std::vector<std::string>& names) {
    written_out.insert(written_out.end(), names.begin(), names.end());
  }
  /// Adds what another rewrite did; rules of one name are summed.
  void add(const RewriteReport& other);
};

/// One line: `applied 12; refused 1 (matmul_3: its value is also used by add_7)`, at most five refusals, and how it
/// stopped when it was a limit.
std::ostream& operator<<(std::ostream& out, const RewriteReport& report);

}  // namespace fx
