// Ranks and types of inputs that rules went by.
//
// A rule that reads how many dimensions a value has, or its type, says something about every call of the program,
// though it has both from the example. Where the program as it was takes inputs of another rank or type, what is made
// of it asserts the example's.
//
// Cost: up to a propagation of shapes for each input and each other form that is tried. Thread-safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/contract/contract.h>
#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/module/graph_module.h>

namespace fx::rules {

/// The operators that ask for what is asserted of an input.
inline constexpr const char *kRankQuestion = "aten::dim", *kTypeQuestion = "prim::dtype";

/// True when the program asserts something of that property of the input.
bool is_asserted(const Node& input, InputProperty property);

class InputForms {
 public:
  using OthersOf = std::vector<TensorInfo> (*)(const TensorInfo&);
  /// What a rule may go by of an input.
  struct Form {
    InputProperty property;
    const char* question;  ///< the operator that asks for it
    std::int64_t answer;   ///< the example's
    std::string text;      ///< of the answer, behind `must be`
    OthersOf others;       ///< of another form, of each tensor as many
  };

  /// Keeps the program as it is now, before the rules. `inputs` are the example's, which the program takes.
  InputForms(GraphModule& module, const std::vector<TensorInfo>& inputs);

  /// Asserts the rank of each input of which the program took others; `rule` went by it.
  void assert_ranks(std::string_view rule);
  /// The same of types.
  void assert_types(std::string_view rule);

 private:
  bool takes(const std::vector<TensorInfo>& inputs) const;
  /// Another form of the input, of it alone or of all that are like it.
  bool takes_another(std::size_t input, OthersOf others_of) const;
  void assert_all(Form (*form_of)(const TensorInfo&), std::string_view rule);

  GraphModule& module_;
  const std::vector<TensorInfo>& inputs_;
  std::shared_ptr<GraphModule> before_;
};

}  // namespace fx::rules
