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

#include <fxgraph/contract/assertions.h>
#include <fxgraph/trace/session.h>
#include <fxgraph/trace/size_groups.h>
#include <fxgraph/trace/trace_log.h>

namespace fx::internal {

/// The nodes that read sizes, by tensor and dimension.
using SizeNodes = std::map<std::pair<Node*, std::int64_t>, Node*>;  // look-up only

/// A dimension of what a call returns.
using SizePlace = std::pair<std::uint32_t, std::int64_t>;
/// Symbols stand in the order of calls.
std::string symbol_of(const SizePlace& place);
/// By symbol.
using SizePlaces = std::map<std::string, SizePlace>;

/// A tensor that is made of numbers: the get_attr `call`, what it was first, and those that are sizes.
struct SizedConstant {
  std::uint32_t call;
  at::Tensor first;
  std::vector<std::pair<std::size_t, SizeExpr>> elements;
};

class SizeWriter {
 public:
  /// `places` says what symbols stand for; `sizes` are read at the inputs already.
  SizeWriter(Graph& graph, const Session& session, const TraceLog& log, const SizePlaces& places, SizeNodes sizes)
      : graph_(graph),
        session_(session),
        log_(log),
        places_(places),
        sizes_(std::move(sizes)),
        numbers_([this](Symbol target, ArgumentSpan arguments) -> Node& { return call(target, arguments); }) {}

  /// Number `leaf` among the arguments of call `call` becomes `size`.
  void replace(std::uint32_t call, std::uint32_t leaf, SizeExpr size) {
    replacements_.push_back({call, leaf, std::move(size)});
  }
  void replace_constant(SizedConstant constant) { constants_.push_back(std::move(constant)); }
  /// Makes all replacements, in the order of the graph.
  void write();

 private:
  struct Replacement {
    std::uint32_t call, leaf;
    SizeExpr size;
  };

  Argument argument(const SizeExpr& size);
  Node& call(Symbol target, ArgumentSpan arguments);
  Node& size_node(const SizePlace& place);
  void rewrite_call(const Replacement* first, const Replacement* last);
  void rewrite_constant(const SizedConstant& constant);

  Graph& graph_;
  const Session& session_;
  const TraceLog& log_;
  const SizePlaces& places_;
  SizeNodes sizes_;
  const AssertionWriter numbers_;
  std::vector<Replacement> replacements_;
  std::vector<SizedConstant> constants_;
  std::unordered_map<std::string, Node*> calls_;  // by their texts
};

/// Asserts at the inputs what the trace holds for, and notes it on them (meta_key::kSizes). Returns the sizes that it
/// reads for that.
SizeNodes write_size_assertions(Graph& graph, const std::vector<BoundTensor>& inputs, const SizeGroups& groups);

}  // namespace fx::internal
