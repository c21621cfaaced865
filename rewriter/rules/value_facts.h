// ValueFacts: what rules may know of the values of a program.
//
// There are two tables. What holds in every call is asked through TensorFacts, and who changes the program by it
// requires what it asked. What the example shows is for choices that are right in every call: which of two equal forms
// is faster, or what to measure.
//
// Thread-safety: none.
#pragma once

#include <string>
#include <utility>

#include <fxgraph/ir/tensor_facts.h>
#include <fxgraph/rewriter/driver.h>
#include <fxgraph/rewriter/fact_guard.h>

namespace fx::rules {

/// An input that the program takes in the example's form alone by now.
struct HeldInput {
  std::string input;  ///< its name
  std::string form;   ///< `of 4 dimensions`, or `torch.float32`
  std::string rule;   ///< that went by it first
};

/// See the top of this file. Of a program that runs on one example alone both tables are one, and nobody answers.
class ValueFacts : public FactGuard {
 public:
  ValueFacts() = default;  ///< of which nothing is known
  /// Of a program that runs on one example.
  explicit ValueFacts(Shapes example) : example_(std::move(example)) {}

  /// What holds in every call: answers are noted in `asked`.
  TensorFacts info(const Node& value, FactLog& asked) {
    return {std::as_const(in_every_call())[value].tensor(), value, &asked};
  }
  /// What the example shows; null where it shows no tensor.
  const TensorInfo* example(const Node& value) const { return example_[value].tensor(); }
  /// All that the example shows.
  const Shapes& example() const { return example_; }

  /// For drivers: what conditions and patterns read is required.
  DriverOptions driver() { return driver(in_every_call(), *this); }
  /// The same of the example, of which sizes that differ from call to call may be read as TensorFacts::example alone.
  virtual DriverOptions driver_by_example() { return driver(); }

  std::string require(std::string_view, std::span<const Fact>) override { return {}; }
  void stands_for(const Node& made, const Node& old) override {
    example_[made] = ValueInfo(std::as_const(example_)[old]);
  }
  /// A rule has made the value of this type.
  virtual void set_type(const Node& value, DType type) { example_[value].tensors.at(0).dtype = type; }
  /// A rule has made something else of the value.
  virtual void forget(const Node& value) { example_[value] = {}; }

 protected:
  /// Options with this table and guard.
  static DriverOptions driver(Shapes& shapes, FactGuard& guard) {
    DriverOptions options;
    options.shapes = &shapes;
    options.guard = &guard;
    return options;
  }
  /// Returns the table of what holds in every call.
  virtual Shapes& in_every_call() { return example_; }

  Shapes example_;  ///< what the example shows
};

}  // namespace fx::rules
