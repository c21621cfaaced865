// PlaceholderInputs: the inputs of a new graph, made from example inputs as the program's parameters ask for them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <fxgraph/trace/inputs.h>

namespace fx::internal {

/// An input tensor of a trace: the node that stands for it and its example.
struct BoundTensor {
  Node* node;  ///< the placeholder, or the getitem of an element; erased in the end when nothing uses it
  at::Tensor example;
  Node* placeholder;  ///< the input that it is, or is a part of
  std::string name;   ///< `x`, `xs[0]`
};

class PlaceholderInputs final : public Inputs {
 public:
  /// What parameters that are numbers, bools or strings become.
  enum class Literals : std::uint8_t {
    specialise,  ///< a placeholder with the value as default, and a check that it is that value
    holes,       ///< a placeholder of a pattern, typed `float`, `int` or `bool`
  };

  /// `parameters` is how many the program has, `names` what to call the first of them.
  PlaceholderInputs(Session& session, Graph& graph, const std::vector<std::string>& names,
                    std::vector<c10::IValue> examples, std::size_t parameters, Literals literals);

  std::size_t count(std::size_t required) const override;
  /// Gives the n-th tensor among the inputs the shape of `stand_ins[n]` instead of its example's.
  void replace_examples(const std::vector<at::Tensor>& stand_ins) { stand_ins_ = &stand_ins; }
  /// Takes `examples[n]` for the example of the n-th of them.
  void take_examples(const std::vector<at::Tensor>& examples) { instead_ = &examples; }
  /// The tensors among the inputs that have examples, in order.
  const std::vector<BoundTensor>& bound() const { return bound_; }
  /// What is optional and is given. A graph that does not use it has to ask, as the program may have.
  const std::vector<Node*>& given() const { return given_; }

 protected:
  bool next(const Parameter& parameter, InputItem& item) override;
  at::Tensor tensor(const InputItem& item) override;
  c10::IValue literal(const InputItem& item, ParameterKind kind) override;
  bool is_none(const InputItem& item) override;
  std::vector<InputItem> elements(const InputItem& item, std::size_t wanted) override;
  std::vector<std::pair<std::string, InputItem>> entries(const InputItem& item) override;

 private:
  Node& placeholder(const Argument* default_value, const std::string& annotation);
  void assert_length(Node& container, std::size_t length);
  void specialise(Node& placeholder, const Argument& value);
  [[noreturn]] void wrong_example(const std::optional<c10::IValue>& example, std::string_view wanted) const;

  Graph& graph_;
  const std::vector<std::string>& names_;
  std::vector<c10::IValue> examples_;
  std::vector<std::optional<c10::IValue>> notes_;
  std::size_t parameters_;
  Literals literals_;
  std::size_t next_ = 0;
  std::size_t current_ = 0;  // the parameter being bound, for messages
  std::string annotation_;   // its type
  Node* last_ = nullptr;
  std::vector<BoundTensor> bound_;
  std::vector<Node*> given_;
  const std::vector<at::Tensor>* stand_ins_ = nullptr;
  const std::vector<at::Tensor>* instead_ = nullptr;
};

/// An example for "a tensor of unknown shape", where other inputs need an example.
const at::Tensor& unknown_example();

}  // namespace fx::internal
