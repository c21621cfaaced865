// The calls of a hostile program while it is made: each is run on values at once, and throws where it cannot be.
// Internal to testing/hostile.
#pragma once

#include <map>
#include <memory>
#include <string>

#include <fxgraph/testing/hostile/values.h>

namespace fx::hostile {

class Calls : protected Values {
 public:
  using Values::Values;

 protected:
  c10::IValue run(const Node& node);
  /// Makes the node and runs it; a list or tuple is taken apart.
  Node& place(Op op, Symbol target, const std::vector<Argument>& args, const std::vector<NamedArgument>& kwargs = {});
  /// The same for an operator, in one of its spellings.
  Node& place(const OperatorSchema& schema, std::vector<Argument> args, std::vector<NamedArgument> kwargs);
  /// A call of the operator with arguments drawn by its schema.
  void operation(std::string_view target, unsigned optional_percent = 15);
  /// Numbers of the program, computed with as Python does.
  void arithmetic();
  /// x[…]
  void index();
  /// A write to some value, to a view of a view, to a weight.
  void write();

  std::vector<Node*> made_;  // by the step that is being tried
  std::map<std::string, std::shared_ptr<torch::nn::Module>> modules_;

 private:
  bool is_wrong_in_torch(const OperatorSchema& schema, const std::vector<Argument>& args,
                         const std::vector<NamedArgument>& kwargs) const;
  /// What may stand in the brackets of x[…].
  Argument draw_index(bool in_tuple = false);
};

}  // namespace fx::hostile
