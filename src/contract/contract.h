// The contract of a program: what must hold of its inputs.
//
//   for (const fx::Condition& condition : gm->contract().conditions()) std::cout << condition << "\n";
//   // x[0] must be a multiple of 8
//   // y[1] must be equal to 2*x[1] + 1
//
// It is what the program's assertions compute. Their messages are for people: they are carried along, and nobody reads
// them. Cost: linear in the assertions, each of which is followed through kMostTerms numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/symbolic/size_facts.h>

namespace fx {

/// What may be asked of an input.
enum class InputProperty : std::uint8_t { size, rank, numel, length, dtype, device, contiguous, value };

/// A number that follows from one input: a size of it, how many dimensions it has.
struct Measure {
  std::string name;                  ///< as conditions name it: `x[1]`, `xs[0].size(1)`, `x.dim()`
  std::string input;                 ///< the placeholder's name
  std::vector<std::int64_t> part{};  ///< of a list or tuple: which element, and which of that
  InputProperty property{};          ///< what is asked
  std::int64_t dimension = 0;        ///< of a size
};

/// One condition on the inputs.
struct Condition : SizeCondition {
  std::vector<Measure> measures{};  ///< those that the two sides name, each once
  std::string reason;               ///< the message, as it is written
  const Node* assertion = nullptr;  ///< says so in the graph

  /// `x[0] must be at least 4`.
  std::string str() const;
  /// The message, behind what must hold where it does not begin with that: `x[0] must be at least 4: aten::cat …`.
  std::string message() const;
};

/// Prints str().
std::ostream& operator<<(std::ostream& out, const Condition& condition);

/// What a placeholder is called in conditions; empty where its input is none of the program.
using InputNames = std::function<std::string(const Node& placeholder)>;

/// Those of a graph that `call` runs, for which inputs of the caller's are passed on.
InputNames names_in(const Node& call, const Graph& body);

/// What must hold of a graph's inputs, in the order of its assertions.
class Contract {
 public:
  Contract() = default;
  /// Reads the assertions of `graph`. Those on values that the program computes are not among them.
  explicit Contract(const Graph& graph, const InputNames& names = &Node::name);
  /// Adds the conditions of a graph that the program's graph calls.
  void add(Contract called);

  /// Each of them.
  /// @{
  const std::vector<Condition>& conditions() const& { return conditions_; }
  std::vector<Condition> conditions() && { return std::move(conditions_); }
  /// @}
  /// One condition a line.
  std::string str() const;

 private:
  std::vector<Condition> conditions_;
};

/// The condition on inputs that an assertion is; nothing where it is none, or on something else.
std::optional<Condition> read_condition(const Node& assertion, const InputNames& names = &Node::name);

/// Erases the assertions on sizes of inputs that follow from those before them: of `h % 16 == 0` and `h % 8 == 0` the
/// second. What only they used stays, for who removes dead code. Leaves graphs alone that change sizes in place.
/// Returns how many.
std::size_t drop_implied_assertions(Graph& graph);

/// What an assertion asserts of one value: that it is `answer`.
struct AssertedAnswer {
  const Node* value;  ///< a call that asks something, a number
  Argument answer;    ///< a literal; true of what must hold, false of what must not
};
/// Nothing where it asserts something else.
std::optional<AssertedAnswer> asserted_answer(const Node& assertion);

/// What an assertion asserts, as an expression of the numbers that `name_of` gives names; nothing where another number
/// stands in it. Of more than kMostTerms numbers: nothing.
std::optional<SizeExpr> asserted(const Node& assertion, const std::function<std::string(const Node&)>& name_of);
inline constexpr int kMostTerms = 32;  ///< how many calls are looked at behind an assertion

}  // namespace fx
