// The values of a hostile program while it is made: what may be an argument of the next call.
// Internal to testing/hostile.
#pragma once

#include <optional>
#include <random>
#include <string_view>
#include <vector>

#include <fxgraph/ops/schema.h>
#include <fxgraph/testing/hostile/generator.h>

namespace fx::hostile {

/// Thrown where a call cannot be made of what there is.
struct NoSuchCall {};

class Values {
 public:
  Values(std::uint64_t seed, const DrawOptions& options) : options_(options), random_(seed), examples_(seed) {}

 protected:
  /// What most tensors of one program look like, so that they go together.
  void choose_theme();
  void note_type(at::ScalarType type);
  TensorForm draw_form();
  /// What a placeholder of a motif asks for by its name.
  std::optional<TensorForm> form_called(std::string_view name) const;
  Node& keep(Node& node, const c10::IValue& value);
  Node& input(const TensorForm& form);
  /// One more that callers leave out: a number, or None.
  void input_with_default();
  /// Adds a set of inputs in which one size, wherever it stands, is another.
  void add_other_sizes();
  /// A whole number of the program that is `value` here, or null.
  Node* number_that_is(std::int64_t value);
  /// A weight of its own, one under a second name, or a row of another.
  Node& weight(const TensorForm& form);
  /// One more that reads the memory of a weight otherwise; throws where that cannot be.
  void read_otherwise();
  /// A weight and an input that nothing reads.
  void leave_unread();
  /// A value that is there: mostly a late one.
  Node* pick();
  /// Another get_attr of a weight.
  Node* again(const Weight& weight);
  /// A value of this form, or a new one.
  Node& of_form(const TensorForm& form, unsigned weight_percent);
  Node* value_for(const SchemaArgument& parameter, const at::Tensor& first);
  const c10::IValue& value_of(const Node& node) const { return values_[node.id()]; }
  at::Tensor tensor_of(const Node& node) const { return value_of(node).toTensor(); }

  Node& keep_weight(Weight made, const at::Tensor& tensor);
  std::string weight_name();
  /// Whether what is drawn is to be one of those things that a saved form may forget.
  bool is_odd() { return options_.odd_percent > 0 && random_.chance(options_.odd_percent); }

  const DrawOptions& options_;
  Random random_;
  std::mt19937_64 examples_;
  HostileProgram program_;
  at::ScalarType type_ = at::kFloat;
  std::int64_t n_ = 2;
  std::size_t rank_ = 2;
  std::vector<c10::IValue> values_;
  std::vector<TensorForm> forms_;  // of the inputs
  std::vector<Node*> pool_, numbers_;
  std::vector<at::Tensor> weights_;  // as program_.weights
};

}  // namespace fx::hostile
