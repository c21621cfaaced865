// Reports: what the analyses found in one graph, for a terminal, a program, or a browser.
//
//   fx::Report report = fx::make_report(graph, {.shapes = &shapes});
//   std::cout << fx::to_text(report);
//
// A Report is data: names and numbers only, no pointers into the graph, so it outlives it and can be compared with an
// older one. make_report throws nothing of its own; parts that need shapes stay empty without them. Complexity: that of
// the analyses, near-linear; lists are cut at ReportOptions::max_rows (the counts beside them are not).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fxgraph/analysis/cost.h>
#include <fxgraph/analysis/dead_code.h>
#include <fxgraph/analysis/liveness.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/node_times.h>
#include <fxgraph/ir/tensor_info.h>

namespace fx {

/// What is known beside the graph. Pointers may be null and must outlive the call only.
struct ReportInputs {
  std::string name{};                       ///< of the model or file
  const Shapes* shapes = nullptr;           ///< for bytes and cost
  ModuleInfo modules{};                     ///< what is known of them; without it bytes take them for pure
  std::vector<AttributeInfo> attributes{};  ///< parameters and buffers, to find unused ones
  std::optional<Machine> machine{};         ///< for the roofline
  const NodeTimes* times = nullptr;         ///< as measured, see fx::profile
};

/// Which parts to make.
struct ReportOptions {
  /// Makes that part of the report.
  /// @{
  bool dead_code = true;
  bool liveness = true;
  bool uses = true;
  bool dominance = true;
  bool cost = true;
  /// @}
  std::size_t max_rows = 20;      ///< how long each list may be
  bool count_inputs = false;      ///< see LivenessOptions
  bool count_attributes = false;  ///< see LivenessOptions
  bool lower_peak = true;         ///< also look for an order with a lower peak
};

/// What was found, as names and numbers; see the top of this file.
struct Report {
  /// How often something is called.
  struct OpCount {
    std::string target;     ///< as the graph has it, of functions and methods
    std::size_t count = 0;  ///< calls in the graph
  };
  /// Something that the program could do without: DeadFinding as text.
  struct Finding {
    std::string kind;        ///< as to_string(DeadFinding::Kind)
    std::string name;        ///< the node's, or the path of an attribute or module
    std::string text;        ///< one line, with the reasons
    std::int64_t bytes = 0;  ///< of an attribute or module; else 0
  };
  /// What DeadCode found: how many of each kind, and the findings themselves.
  struct DeadCodePart {
    /// By DeadFinding::Kind.
    /// @{
    std::size_t dead_nodes = 0, dead_stores = 0, unused_outputs = 0, unused_inputs = 0, no_ops = 0,
                unused_attributes = 0, unused_modules = 0;
    /// @}
    std::int64_t unused_bytes = 0;    ///< of attributes and modules
    std::vector<Finding> findings{};  ///< at most ReportOptions::max_rows of each kind
    /// The findings of all kinds together.
    std::size_t total() const {
      return dead_nodes + dead_stores + unused_outputs + unused_inputs + no_ops + unused_attributes + unused_modules;
    }
  };
  /// A storage that is live at the peak.
  struct Resident {
    std::string node;        ///< the first whose value lies in it
    std::string tensor;      ///< `float32[1, 64, 112, 112]`
    std::int64_t bytes = 0;  ///< rounded up to LivenessOptions::alignment
    /// The nodes between which it lives.
    /// @{
    std::string first, last;
    /// @}
  };
  /// How much is live at once.
  struct LivenessPart {
    std::uint32_t peak_values = 0;  ///< most values that are live at once
    std::string peak_values_at;     ///< the first node where they are
    bool has_bytes = false;         ///< false: shapes are not known, what follows is empty
    std::int64_t peak_bytes = 0;    ///< most bytes that are live at once
    std::string peak_bytes_at;      ///< the first node where they are
    std::int64_t inside_bytes = 0;  ///< of the peak, what the call there needs beside the storages
    /// The calls that may need more inside: the bytes are a lower bound when there are some.
    std::vector<std::string> unknown{};
    std::vector<Resident> at_peak{};  ///< largest first
    std::size_t storages = 0;         ///< how many storages count, see LivenessOptions
    std::int64_t storage_bytes = 0;   ///< of all storages: what no reuse would take
    /// What planning every storage into one block takes, and what no plan can go below.
    /// @{
    std::int64_t plan_bytes = 0, plan_lower_bound = 0;
    /// @}
    std::int64_t best_order_bytes = 0;  ///< the peak in the best order found; peak_bytes when none is better
  };
  /// How often a value is used.
  struct Use {
    std::string node;       ///< the value
    std::size_t count = 0;  ///< distinct users, at least two
  };
  /// Who uses what.
  struct UsesPart {
    /// Values in the graph, uses of them, and values that are used once.
    /// @{
    std::size_t values = 0, uses = 0, single_use = 0;
    /// @}
    std::uint32_t depth = 0;                   ///< nodes on the longest path
    std::vector<Use> most_used{};              ///< at most ReportOptions::max_rows, most used first
    std::vector<std::string> critical_path{};  ///< by roofline time when shapes and machine are given, else by nodes
    bool critical_path_is_timed = false;       ///< true: its length is `critical_seconds`, by the roofline
    double critical_seconds = 0;               ///< 0 when it is not timed
  };
  /// What dominance says about the shape of the graph.
  struct DominancePart {
    std::uint32_t depth = 0;                 ///< of the dominator tree
    std::vector<std::string> bottlenecks{};  ///< from the start of the longest path: all its value passes these
    std::size_t regions = 0;                 ///< single-entry-single-exit, minimal
    std::size_t fusion_groups = 0;           ///< of pointwise calls
    std::size_t fused_nodes = 0;             ///< calls in all groups
    std::vector<std::vector<std::string>> largest_groups{};  ///< names of the nodes in each; largest first
  };
  /// The cost of a node, a module or the whole.
  struct CostRow {
    std::string name;    ///< node or module
    std::string target;  ///< of nodes
    /// As in NodeCost; `seconds` by the roofline, `measured` where NodeTimes were given.
    /// @{
    double macs = 0, flops = 0, intensity = 0, seconds = 0;
    std::optional<MeasuredTime> measured{};
    std::int64_t bytes = 0, parameter_bytes = 0;
    /// @}
    int depth = 0;              ///< of modules
    bool memory_bound = false;  ///< moving bytes takes longer than computing
  };
  /// What the program costs; see analysis/cost.h.
  struct CostPart {
    CostRow total{};                     ///< of the whole graph
    std::vector<std::string> unknown{};  ///< calls whose cost is not known: the sums are lower bounds
    std::string machine;                 ///< empty: `seconds` are not known
    std::vector<CostRow> nodes{};        ///< most expensive first
    std::vector<CostRow> modules{};      ///< parents before children, the whole first
  };

  /// What follows from the sizes that vary; see src/report/size_formulas.h.
  struct SizesPart {
    /// A measure and its formula.
    struct Row {
      std::string name;     ///< `peak at relu`, `peak at cat where x[0] >= 40`, `MACs`
      std::string formula;  ///< `2*x[0] KiB`; empty when something that belongs to it is not known
    };
    /// A storage that is live at the peak.
    struct Tensor {
      std::string node;    ///< the first whose value lies in it
      std::string bytes;   ///< a formula, not rounded up; empty when there is none
      std::string tensor;  ///< `float32[x[0], 64, x[2], x[3]]`; `?` is a size without a formula
    };
    std::vector<std::string> variables{};  ///< `x[0]`, `x[0] = y[0]`, `x[2] in steps of 32`; none: nothing varies
    std::vector<Row> measures{};           ///< of the whole program
    std::vector<Tensor> at_peak{};         ///< largest first
  };

  /// One measure against what it was.
  struct Measured {
    std::string name;  ///< as in the JSON: `liveness.peak_bytes`
    /// In the baseline, and now.
    /// @{
    double before = 0, after = 0;
    /// @}
    bool is_bytes = false;  ///< a number of bytes; else a count
    /// True when it grew by more than `limit`, given as a part of what it was.
    bool is_worse(double limit = 0) const { return after > before * (1 + limit); }
  };
  /// The comparison with an older report.
  struct BaselinePart {
    std::string file;                  ///< the older report
    double limit = 0;                  ///< how much a measure may grow, as a part of what it was
    std::vector<Measured> measures{};  ///< those that both reports have
    /// The measures that grew past the limit, in order.
    std::vector<const Measured*> past_limit() const;
  };

  std::string name;  ///< of the model or file
  /// How many nodes there are of each kind: `modules` are calls of modules, `attributes` reads of tensors.
  /// @{
  std::size_t nodes = 0, inputs = 0, modules = 0, attributes = 0;
  /// @}
  std::vector<OpCount> operators{};  ///< most frequent first
  /// Parts that were asked for.
  /// @{
  std::optional<DeadCodePart> dead_code{};
  std::optional<LivenessPart> liveness{};
  std::optional<UsesPart> uses{};
  std::optional<DominancePart> dominance{};
  std::optional<CostPart> cost{};
  /// @}
  std::optional<SizesPart> sizes{};        ///< set by the caller, see src/report/size_formulas.h
  std::optional<BaselinePart> baseline{};  ///< set by the caller, see src/report/baseline.h
};

/// Runs the analyses that `options` ask for; those that need shapes say nothing without them.
Report make_report(const Graph& graph, const ReportInputs& inputs = {}, const ReportOptions& options = {});

/// For a terminal, at most 120 columns wide, what matters most first.
std::string to_text(const Report& report);

/// JSON, one object; keys as the fields above, parts that were not asked for are absent. `version` is 1 and grows only
/// when a key changes its meaning or goes away.
std::string to_json(const Report& report);

/// `peak_bytes 4.69 MiB -> 5.20 MiB (+11 %)`.
std::string to_string(const Report::Measured& measure);
/// `24.1 MiB`, `512 B`.
std::string format_bytes(std::int64_t bytes);
/// `4.09 G`, `118 M`: three digits and a unit.
std::string format_count(double count);

}  // namespace fx
