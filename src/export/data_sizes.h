// DataSizes: sizes and numbers that a program's data decide, which torch.export names u0, u1, … (zuf0, … of floats).
//
// A source is a call whose result has as many rows as its data say (nonzero, a mask as an index, unique), or that reads
// a number out of a tensor (item). Its symbol is treated as one of the inputs' sizes: the program is run with the
// source's rows cut or repeated, or with another number in its place, where the example has fewer than two.
//
// Sources that must agree share a symbol: the program asserts that they are equal, or they count one mask, or read one
// number, with no write in between. Thread-safety: none.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <fxgraph/export/tensors.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/symbolic/size_expr.h>

namespace fx::pt2 {

struct ValueShape;

/// One call whose result data decide.
struct DataSource {
  enum class Kind : std::uint8_t { rows, integer, floating, boolean };
  /// Where the number of rows shows: an element of the result (its tensor when it is one), and a dimension of it.
  struct Place {
    std::size_t element;
    std::int64_t dim;
  };
  const Node* node = nullptr;
  Kind kind = Kind::rows;
  std::string symbol;
  std::vector<Place> places{};   ///< of rows
  bool has_row_numbers = false;  ///< the second element, which are smaller than the number of rows
  bool by_columns = false;       ///< of rows: the result of nonzero lies column by column
  std::int64_t seen = 0;         ///< the number in the first run
};

class DataSizes {
 public:
  /// None.
  DataSizes() = default;
  explicit DataSizes(const Graph& graph) : at_(graph) {}

  /// True when a call of this may be a source.
  static bool may_be(const Node& node);

  /// Looks at the result of a call of which may_be() is true, in a run in which these values were seen.
  void look(const Node& node, const c10::IValue& result, const NodeMap<ValueShape>& seen);
  /// Gives the sources their symbols, once all were looked at, and the symbols their ranges, as the program asserts
  /// them. `taken`: the inputs' symbols.
  void name(const Graph& graph, const Symbols& taken);

  const std::vector<DataSource>& all() const { return sources_; }
  /// The symbol that a node is: of a whole number that is read, or of the rows of a result; empty for others.
  std::string symbol_of(const Node& node) const;
  /// The source that the node is; null for others.
  const DataSource* find(const Node& node) const;
  /// By symbol, of whole numbers.
  const SizeRanges& ranges() const { return ranges_; }
  /// Values at which to try the program, the one seen first where it says something.
  std::vector<std::int64_t> candidates(const std::string& symbol) const;

  /// The result with the number of rows, or the whole number, that `symbols` says.
  static c10::IValue with(const DataSource& source, const c10::IValue& result, const Symbols& symbols);

 private:
  bool find_rows(DataSource& source, const c10::IValue& result, const NodeMap<ValueShape>& seen) const;

  NodeMap<std::size_t> at_;  // 1 + the place in sources_
  std::vector<DataSource> sources_;
  SizeRanges ranges_;
};

}  // namespace fx::pt2
