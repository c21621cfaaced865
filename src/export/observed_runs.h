// Runs: what the values of a program were in runs of it, for choices of the sizes that vary.
//
// Costs: as running the program. Thread-safety: as running the module.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fxgraph/export/data_sizes.h>
#include <fxgraph/export/value_shapes.h>
#include <fxgraph/ir/node_map.h>

namespace fx::pt2 {

/// One run: the value of every node, numbers and shapes only.
struct Observed {
  ValueShape::Kind kind = ValueShape::Kind::none;
  DType dtype = DType::float32;
  Device device{};
  bool requires_grad = false;
  std::vector<std::int64_t> numbers;  ///< sizes, then strides, then the offset; of an int itself
  double floating = 0;
  std::vector<Observed> elements;
};

/// What was seen of the nodes of a program and of the graphs that it calls.
struct Seen {
  explicit Seen(const Graph& graph) : values(graph) {}
  NodeMap<Observed> values;
  std::map<const Graph*, NodeMap<Observed>> nested;
};

class Runs {
 public:
  Runs(GraphModule& module, const Graph& graph, const SizedInputs& inputs)
      : module_(module), graph_(graph), inputs_(inputs) {}

  /// Finds the sources of sizes that data decide, and puts their symbols and ranges beside the inputs'.
  void find_data(Symbols& example, SizeRanges& ranges);
  void add(const Symbols& symbols);
  /// Further values of one symbol. A program may end at sizes that are far: a table of positions that is too short. Two
  /// further values must be left.
  void add_each(const std::string& symbol, const SizeRange& range);
  /// So many that one division explains them.
  void add_more(const std::string& symbol, const SizeRange& range);
  /// True when one was added.
  bool add_doubts(const std::vector<Symbols>& doubts);
  /// A run in which the sizes are in another order.
  void add_turned_round(const SizeRanges& ranges);
  void add_all_changed();

  const DataSizes& data() const { return data_; }
  DataSizes take_data() { return std::move(data_); }

  std::vector<Seen> seen;
  std::vector<Symbols> choices;

 private:
  bool try_add(const Symbols& symbols);
  void add_data_values(const std::string& symbol);

  GraphModule& module_;
  const Graph& graph_;
  const SizedInputs& inputs_;
  DataSizes data_;
};

}  // namespace fx::pt2
