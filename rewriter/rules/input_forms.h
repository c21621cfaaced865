// Ranks and types of inputs that rules went by.
//
// A rule that reads how many dimensions a value has, or its type, says something about every call of the program,
// though it has both from the example. Where the program as it was takes inputs of another rank or type, what is made
// of it asserts the example's.
//
// Cost: up to a propagation of shapes for each input and each other form that is tried. Thread-safety: none.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/module/graph_module.h>

namespace fx::rules {

class InputForms {
 public:
  /// Keeps the program as it is now, before the rules. `inputs` are the example's; without any nothing is asserted.
  InputForms(GraphModule& module, const std::vector<TensorInfo>& inputs);

  /// Asserts the rank of each input of which the program took others; `rule` went by it.
  void assert_ranks(std::string_view rule);
  /// The same of types.
  void assert_types(std::string_view rule);

 private:
  bool takes(const std::vector<TensorInfo>& inputs) const;
  /// Another form of the input, of it alone or of all that are like it.
  bool takes_another(std::size_t input, std::vector<TensorInfo> (*others_of)(const TensorInfo&)) const;
  void assert_that(std::size_t input, const char* question, std::int64_t answer, const std::string& what,
                   std::string_view rule, std::vector<TensorInfo> (*others_of)(const TensorInfo&));

  GraphModule& module_;
  const std::vector<TensorInfo>& inputs_;
  std::shared_ptr<GraphModule> before_;
};

}  // namespace fx::rules
