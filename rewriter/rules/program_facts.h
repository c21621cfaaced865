// ProgramFacts: what optimize() knows of the values of a program that changes under it, and answers for.
//
//   fx::rules::ProgramFacts facts(*gm, inputs);
//   fx::rewrite_to_fixed_point(*gm, rules, facts.driver());
//   facts.assert_required();
//
// Sizes that differ from call to call are hidden, so what is read of sizes holds wherever types and ranks do. A rule
// that went by a type or a rank is answered for like this: the program as the first rule that asks finds it is worked
// out for inputs of other types and ranks. Where it refuses them, or the value is as it was read, the fact is proven.
// Where not, the inputs are held to the example's form, which is asserted.
//
// Cost: a propagation of shapes the first time, afterwards of what has changed; for a fact that needs it one pass of
// SymbolicShapes for each other form of each input. Thread-safety: none.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fxgraph/contract/contract.h>
#include <fxgraph/contract/symbolic_shapes.h>
#include <fxgraph/module/graph_module.h>
#include <fxgraph/rewriter/rules/batch.h>
#include <fxgraph/rewriter/rules/value_facts.h>
#include <fxgraph/shapes/shape_prop.h>

namespace fx::rules {

/// The operators that ask for what is asserted of an input.
inline constexpr const char *kRankQuestion = "aten::dim", *kTypeQuestion = "prim::dtype";

/// The inputs of which a program asserts something of that property, by name.
std::set<std::string> asserted_inputs(const Graph& graph, InputProperty property);

/// See the top of this file.
class ProgramFacts : public ValueFacts {
 public:
  /// `inputs` are the example's; without any nothing is known. With `keeps_sizes` a rule that would hold the program
  /// to a form is refused.
  ProgramFacts(GraphModule& module, const std::vector<TensorInfo>& inputs, bool keeps_sizes = false);

  /// Works out what is new since the last time.
  void find();
  /// Where the program computes across the samples of a batch, if it does: of inputs of any sizes, or else of any
  /// number of samples of the example's. `shapes` become those of the sizes asked last.
  std::optional<AcrossSamples> across_samples(Shapes& shapes);

  /// True when inputs are known and the program takes them.
  bool known() const { return !inputs_.empty() && unknown_because_.empty(); }
  /// Why it does not.
  const std::string& unknown_because() const { return unknown_because_; }
  /// How many nodes' shapes were asked for, over all.
  std::size_t worked_out() const { return worked_out_; }

  DriverOptions driver_by_example() override { return ValueFacts::driver(example_, by_example_); }
  void prepare() override;
  std::string require(std::string_view rule, std::span<const Fact> facts) override;
  void stands_for(const Node& made, const Node& old) override;
  void set_type(const Node& value, DType type) override;
  void forget(const Node& value) override;

  /// Asserts what was required since the last time; no driver may be at work.
  void assert_required();
  /// All that was asserted so far and still is: an undone change takes its assertions along.
  std::vector<HeldInput> held() const;

 protected:
  Shapes& in_every_call() override;

 private:
  /// Answers like ProgramFacts, and refuses sizes of the example that differ from call to call.
  struct ByExample : FactGuard {
    explicit ByExample(ProgramFacts& all) : facts(all) {}
    void prepare() override { facts.prepare(); }
    std::string require(std::string_view rule, std::span<const Fact> asked) override;
    void stands_for(const Node& made, const Node& old) override { facts.stands_for(made, old); }
    ProgramFacts& facts;
  };
  /// Inputs in another form, and what the program makes of them.
  struct Form {
    std::vector<std::size_t> inputs;  ///< that are not as in the example
    SymbolicShapes shapes;
  };
  using Held = std::pair<FactKind, std::size_t>;  // dtype or rank of an input

  void propagate();
  void run();
  void forget_changing_forms();
  const std::vector<Form>& other_forms(FactKind kind);
  bool holds(const Fact& fact, const Form& form);
  const TensorType* in_form(const Node& value, const Form& form) const;
  bool is_held(FactKind kind, std::size_t input) const;
  static std::string form_of(FactKind kind, const TensorInfo& info);

  GraphModule& module_;
  std::vector<TensorInfo> inputs_;
  bool keeps_sizes_;
  ByExample by_example_{*this};

  ShapeProp propagated_;
  bool must_run_ = false;  // meta tensors do not do for this program
  std::size_t worked_out_ = 0;
  std::string unknown_because_;
  Shapes known_;           // in every call
  bool is_marked_ = true;  // known_ is of example_

  std::shared_ptr<GraphModule> before_;                         // the program before the first rule that asked
  NodeMap<const Node*> was_;                                    // in that program
  NodeMap<bool> typed_;                                         // by a rule
  std::optional<std::vector<Form>> other_types_, other_ranks_;  // that it takes
  std::map<Held, std::string> required_;                        // and the rule that went by it
  std::map<Held, std::string> asserted_;                        // the same
};

}  // namespace fx::rules
