// GraphTransformObserver: what a pass made, erased and replaced, by name; and a picture of the graph before and after.
//
//   {
//     fx::GraphTransformObserver observer(graph, "fuse", "drawings");
//     fuse(graph);
//     std::cout << observer.str();
//     observer.finish();  // drawings/fuse_input_graph.dot, drawings/fuse_output_graph.dot
//   }
//
// Cost: that of a look-up for each edit; with a folder, a clone of the graph. Thread-safety: that of the graph.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/graph_hooks.h>

namespace fx {

/// Watches a graph while it lives, and says what was edited, by name; see the top of this file.
class GraphTransformObserver {
 public:
  /// With a folder the graph is drawn, too.
  GraphTransformObserver(Graph& graph, std::string pass, std::string folder = "");
  GraphTransformObserver(const GraphTransformObserver&) = delete;
  GraphTransformObserver& operator=(const GraphTransformObserver&) = delete;

  /// Names in the order of the edits. A node that was made and erased is in both.
  const std::vector<std::string>& created_nodes() const { return created_; }
  const std::vector<std::string>& erased_nodes() const { return erased_; }  ///< in the order of the edits
  /// Old value and new, each pair once, in the order of the edits; new ones that are no nodes as FX prints them.
  const std::vector<std::pair<std::string, std::string>>& replaced_nodes() const { return replaced_; }
  /// `fuse: created a, b; erased c; replaced c by a`.
  std::string str() const;

  /// Ends watching, and writes the drawings: the graph before with what was erased in red, the graph now with what was
  /// made in green. Throws Error(io). Without it no drawing is written.
  void finish();

 private:
  Graph& graph_;
  std::string pass_, folder_;
  std::optional<Graph> before_;
  std::vector<std::string> created_, erased_;
  std::vector<std::pair<std::string, std::string>> replaced_;
  GraphHooks hooks_;
};

}  // namespace fx
