// A replacement, prepared for one pattern: checked once, then built for each match without looking anything up.
// Internal to rewriter/.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/matchers/pattern.h>
#include <fxgraph/rewriter/replacement.h>

namespace fx::internal {

/// Where an argument of a node to be made, or a result, comes from.
struct TemplateArgument {
  enum class Kind : std::uint8_t { literal, capture, made, container };
  Kind kind = Kind::literal;
  std::uint32_t index = 0;  ///< of the pattern node, or of the template node
  Argument value;           ///< the literal, or the container of nodes of the replacement graph

  friend bool operator==(const TemplateArgument& a, const TemplateArgument& b) {
    return a.kind == b.kind && a.index == b.index && a.value == b.value;
  }
};

/// A node to be made, with the arguments that are the same in each match, and where the others come from.
struct TemplateNode {
  /// An argument that each match fills in.
  struct Blank {
    std::uint32_t at;  ///< among the positional arguments; from there on among those by keyword
    TemplateArgument source;
  };
  Op op;
  Symbol target;
  std::string name;  ///< candidate; empty: named after the target
  std::vector<Argument> args;
  std::vector<NamedArgument> kwargs;
  std::vector<Blank> blanks;
  const Meta* meta = nullptr;

  Argument& argument(std::uint32_t at) { return at < args.size() ? args[at] : kwargs[at - args.size()].value; }
};

class ReplacementPlan {
 public:
  /// Checks that inputs are bound and that results agree. `commutes`: operands may be found in either order whatever
  /// the pattern says. Throws Error(invalid_argument) when they do not.
  ReplacementPlan(const PatternData& pattern, const Replacement& replacement, bool commutes = false);

  bool is_function() const { return replacement_.graph() == nullptr; }
  /// The pattern nodes whose values the replacement takes.
  const std::vector<std::uint32_t>& captures() const { return captures_; }
  /// The pattern nodes that stand for parameters: they go with the match unless something else uses them.
  const std::vector<std::uint32_t>& parameters() const { return parameters_; }
  bool has_impure_nodes() const { return impure_; }
  /// True when it calls operators without schemas, which are taken at their author's word.
  bool has_trusted_nodes() const { return trusted_; }
  bool draws_random() const { return random_; }
  bool has_side_effects() const { return side_effects_; }
  /// The pattern nodes that the replacement writes to, directly.
  const std::vector<std::uint32_t>& written_captures() const { return written_; }
  /// True when a result may be, or share storage with, something that the replacement takes.
  bool may_alias() const { return may_alias_; }

  /// True when a result may lie in memory as the inputs do where the pattern's was laid out by its operator, or the
  /// other way round.
  bool may_change_layout() const { return changes_layout_; }
  /// True when a result may be computed of the same values in another order: of several that lie differently the first
  /// decides how it lies.
  bool may_reorder_operands() const { return reorders_; }

  /// The nodes to be made. Who builds fills in a copy of them, match after match.
  const std::vector<TemplateNode>& nodes() const { return nodes_; }
  /// Makes the nodes at the insertion point; `made` gets them in order, `results` what stands for the pattern's.
  void build(const Match& match, Rewriter& rewriter, std::vector<TemplateNode>& nodes, std::vector<Node*>& made,
             std::vector<Argument>& results) const;

 private:
  TemplateArgument source_of(const Argument& value) const;
  TemplateNode template_of(const Node& node) const;
  std::uint32_t capture_of(const Node& placeholder, std::size_t position) const;
  [[noreturn]] void refuse_unbound(Symbol input) const;
  void read_graph();
  void read_effects();
  void read_layouts(bool commutes);
  std::optional<std::vector<std::uint32_t>> pattern_operands(std::uint32_t result) const;
  std::vector<std::uint32_t> replacement_operands(const TemplateArgument& result) const;
  void check_results() const;
  void fill(Argument& argument, const TemplateArgument& source, const Match& match,
            const std::vector<Node*>& made) const;

  const PatternData& pattern_;
  Replacement replacement_;
  std::vector<TemplateNode> nodes_;
  std::vector<TemplateArgument> results_;
  std::vector<TemplateArgument> by_id_;  // of the replacement graph's nodes
  std::vector<std::uint32_t> captures_;
  std::vector<std::uint32_t> parameters_;
  std::vector<std::uint32_t> written_;
  bool trusted_ = false;
  bool impure_ = false;
  bool random_ = false;
  bool side_effects_ = false;
  bool may_alias_ = false;
  bool changes_layout_ = false;
  bool reorders_ = false;
};

}  // namespace fx::internal
