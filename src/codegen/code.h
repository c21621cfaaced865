// Source code from a graph, in the language that is asked for.
//
//   std::cout << fx::code(graph);                                     // Python, as torch.fx prints it
//   std::cout << fx::code(graph, fx::Language::cpp, {.class_name = "Net"});
//   std::cout << fx::code(*gm, fx::Language::cpp);                    // with the weights' shapes: module/code.h
//
// Cost: linear in the graph. Thread-safety: as the const functions of Graph.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/tensor_info.h>

namespace fx {

/// What the source is written in.
enum class Language : std::uint8_t {
  python,       ///< the method `forward`, as torch.fx generates it: codegen/python.h
  cpp,          ///< a `struct … : torch::nn::Module` that compiles against LibTorch: codegen/cpp.h
  torchscript,  ///< the method `forward` that torch.jit compiles: codegen/torchscript.h
};

/// A parameter or buffer that the graph reads.
struct CodeTensor {
  std::string path;          ///< as get_attr nodes name it
  TensorInfo info;           ///< dtype and sizes, with which C++ makes it
  bool is_parameter = true;  ///< else a buffer
  bool is_frozen = false;    ///< a parameter that takes no gradients
};

/// A module that the graph calls and that generated code makes anew.
struct CodeModule {
  std::string path{};                 ///< as call_module nodes name it
  std::string type{};                 ///< in C++, `torch::nn::LSTM`
  std::string header{};               ///< that declares it; empty: torch/torch.h
  std::string construction{};         ///< the C++ expression that makes one; empty: C++ cannot
  std::string python_construction{};  ///< the same in Python, `torch.nn.modules.rnn.LSTM(3, 4)`
  std::string python_import{};        ///< the module of Python that has its class: `torch.nn.modules.rnn`
  /// What its forward returns: a tensor, or a tuple of parts.
  struct Result {
    std::vector<Result> parts{};      ///< of a tuple, in order; empty: a tensor
  } result{};                         ///< the whole result
  bool training = false;              ///< the mode that the generated module is put into
  std::vector<std::string> frozen{};  ///< its parameters that take no gradients, by their paths in it
};

/// What the source is called and what is known beside the graph.
struct CodeOptions {
  std::string class_name = "Module";  ///< of the struct or class that is written
  /// What is known of the tensors that get_attr nodes name; the others get their shapes with the weights.
  std::vector<CodeTensor> tensors{};
  /// The modules that call_module nodes name, as far as code can make them; for C++, and for fx::to_folder.
  std::vector<CodeModule> modules{};
  /// What others return, by their paths, where it is no tensor.
  std::map<std::string, CodeModule::Result> results{};
  /// Why the program holds for the mode `training` alone: a generated C++ module refuses the other. Empty: for both.
  std::string fixed_mode{};
  bool training = true;  ///< the mode in that case
};

/// Returns the source. Throws Error(unsupported) naming the node for what the language cannot say.
std::string code(const Graph& graph, Language language = Language::python, const CodeOptions& options = {});

/// Reads `python`, `cpp`, `torchscript`.
std::optional<Language> parse_language(std::string_view name);

}  // namespace fx
