// Generaliser: makes one trace that holds for other sizes, by samples: finds what changes, explains it by sizes, and
// asserts what could not be explained. generalise() is what others call.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/trace/generalise.h>
#include <fxgraph/trace/size_explainer.h>
#include <fxgraph/trace/size_search.h>
#include <fxgraph/trace/size_writer.h>

namespace fx::internal {

class Generaliser {
 public:
  /// A number in the graph: leaf `second` of call `first`.
  using Place = std::pair<std::uint32_t, std::uint32_t>;

  Generaliser(Graph& graph, const ProbedProgram& program, const std::vector<BoundTensor>& inputs, SizeGroups& groups,
              Retrace& retrace)
      : graph_(graph),
        program_(program),
        inputs_(inputs),
        groups_(groups),
        retrace_(retrace),
        search_(program, groups) {}

  /// Runs the program at one more example of the caller's before it looks for others. Throws Error(trace) when it does
  /// something else there.
  void take_example(std::size_t nth, const std::vector<at::Tensor>& example);
  /// Throws Error(trace) when what was found does not hold for that example.
  void check_example(std::size_t nth, const std::vector<at::Tensor>& example) const;
  /// False when the program has to be traced again.
  bool run(const AtFoundSizes& at_found_sizes);
  /// Runs the program at the examples once more, after all others. False when it has to be traced again for what it has
  /// kept; throws Error(trace) when it is another program.
  bool is_same_at_examples();
  /// Of a program that was traced at other sizes: what its values are at those given.
  void take_values(Session& session) const;

 private:
  void find_expressions();
  [[noreturn]] void refuse_untold() const;
  bool slices_more();
  bool runs_as_given();
  std::optional<GroupSizes> distinguishing_sizes() const;
  bool find_changes();
  void add_size(std::uint32_t call);
  void add_questions(std::uint32_t until);
  bool explain();
  void fix_unexplained();
  bool explain_number(Place place);
  bool explain_constant(std::uint32_t call);
  std::optional<SizeExpr> size_for(const std::vector<Argument>& values);
  std::vector<SizeExpr> explanation() const;
  void fix_number(Place place);
  std::string no_rule(Place place) const;
  void give_up();
  bool asks_for_sizes() const;
  bool squeezes() const;
  void write_lengths();
  void write_ranks();
  bool agrees(const Probe& sample) const;
  void write();

  Graph& graph_;
  const ProbedProgram& program_;
  const std::vector<BoundTensor>& inputs_;
  SizeGroups& groups_;
  Retrace& retrace_;
  std::unique_ptr<Probe> given_;  // of a program that was traced at other sizes: its run at those given
  SizeSearch search_;
  SizeExplainer explainer_;
  SizePlaces places_;  // of what it knows
  // The changed numbers and tensors that are still in the graph: the first value, then one for each sample.
  std::map<Place, std::vector<Argument>> changes_;
  std::map<std::uint32_t, std::vector<at::Tensor>> constants_changed_;
  std::vector<std::pair<Place, SizeExpr>> explained_;
  std::vector<SizedConstant> constants_;
  std::optional<Place> unexplained_;                   // after explain(): a number for which there is no expression,
  std::optional<std::uint32_t> unexplained_constant_;  // or a tensor
  std::size_t next_question_ = 0;
  bool has_no_rule_ = false;  // for some number
};

}  // namespace fx::internal
