// Writing into a traced graph what is known of sizes: expressions in the place of numbers, and assertions at the
// inputs.
//
// A size is read by `aten::size.int` and computed with by `operator.add` and its like, so that everything that knows
// numbers knows these. Equal expressions are one node, before its first user.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fxgraph/trace/session.h>
#include <fxgraph/trace/size_groups.h>
#include <fxgraph/trace/size_terms.h>
#include <fxgraph/trace/trace_log.h>

namespace fx::internal {

/// The nodes that read sizes, by tensor and dimension.
using SizeNodes = std::map<std::pair<Node*, std::int64_t>, Node*>;  // look-up only

class SizeWriter {
 public:
  /// `sizes` are read at the inputs already.
  SizeWriter(Graph& graph, const Session& session, const TraceLog& log, const SizeTerms& terms, SizeNodes sizes)
      : graph_(graph), session_(session), log_(log), terms_(terms), sizes_(std::move(sizes)) {}

  /// Number `leaf` among the arguments of call `call` becomes `term`.
  void replace(std::uint32_t call, std::uint32_t leaf, SizeTerms::Id term) {
    replacements_.push_back({call, leaf, term});
  }
  /// The tensor of the get_attr `call` is made of `elements`, terms or numbers.
  void replace_constant(std::uint32_t call, const at::Tensor& constant,
                        std::vector<std::pair<std::size_t, SizeTerms::Id>> elements) {
    constants_.push_back({call, constant, std::move(elements)});
  }
  /// Makes all replacements, in the order of the graph.
  void write();

 private:
  struct Replacement {
    std::uint32_t call, leaf;
    SizeTerms::Id term;
  };
  struct Constant {
    std::uint32_t call;
    at::Tensor tensor;
    std::vector<std::pair<std::size_t, SizeTerms::Id>> elements;
  };

  Argument argument(SizeTerms::Id term);
  Node& make(SizeTerms::Id term);
  Node& size_node(const SizeTerm& term);
  void rewrite_call(const Replacement* first, const Replacement* last);
  void rewrite_constant(const Constant& constant);

  Graph& graph_;
  const Session& session_;
  const TraceLog& log_;
  const SizeTerms& terms_;
  SizeNodes sizes_;
  std::vector<Replacement> replacements_;
  std::vector<Constant> constants_;
  std::unordered_map<SizeTerms::Id, Node*> nodes_;
};

/// Asserts at the inputs what the trace holds for, and notes it on them (meta_key::kSizes). Returns the sizes that it
/// reads for that.
SizeNodes write_size_assertions(Graph& graph, const std::vector<BoundTensor>& inputs, const SizeGroups& groups);

}  // namespace fx::internal
