#include <fxgraph/rewriter/graph_transform_observer.h>

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <unordered_set>

#include <fxgraph/support/error.h>
#include <fxgraph/support/output_file.h>
#include <fxgraph/text/dot.h>

namespace fx {
namespace {

using Names = std::unordered_set<std::string>;

void draw(const Graph& graph, const std::vector<std::string>& names, const std::string& colour,
          const std::filesystem::path& path) {
  const Names marked(names.begin(), names.end());
  const std::string text = print_dot(graph, {.arguments = true, .colour = [&](const Node& node) {
                                               return marked.contains(node.name()) ? colour : std::string();
                                             }});
  write_file(path.string(), [&](std::ostream& file) { file << text; });
}

void append_names(std::string& out, const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return;
  out += (out.ends_with(": ") ? "" : "; ") + std::string(what);
  for (std::size_t i = 0; i < names.size(); ++i) out += (i ? ", " : " ") + names[i];
}

std::string file_name(std::string pass) {
  std::ranges::replace(pass, '/', '_');
  return pass;
}

}  // namespace

GraphTransformObserver::GraphTransformObserver(Graph& graph, std::string pass, std::string folder)
    : graph_(graph),
      pass_(std::move(pass)),
      folder_(std::move(folder)),
      hooks_(graph, {.created = [this](Node& node) { created_.push_back(node.name()); },
                     .erased = [this](Node& node) { erased_.push_back(node.name()); },
                     .replaced =
                         [this](Node& old, const Argument& by, Node&) {
                           const Node* made = by.node_or_null();
                           std::pair<std::string, std::string> pair(old.name(), made ? made->name() : to_string(by));
                           // The users of one node come one after the other.
                           if (replaced_.empty() || replaced_.back() != pair) replaced_.push_back(std::move(pair));
                         }}) {
  if (!folder_.empty()) before_ = graph.clone();
}

std::string GraphTransformObserver::str() const {
  std::string out = pass_ + ": ";
  append_names(out, "created", created_);
  append_names(out, "erased", erased_);
  std::vector<std::string> pairs;
  for (const auto& [old, by] : replaced_) pairs.push_back(old + " by " + by);
  append_names(out, "replaced", pairs);
  return out.ends_with(": ") ? out + "nothing" : out;
}

void GraphTransformObserver::finish() {
  hooks_.remove();
  if (!before_) return;
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  const std::filesystem::path folder(folder_);
  draw(*before_, erased_, "#f4a6a6", folder / (file_name(pass_) + "_input_graph.dot"));
  draw(graph_, created_, "#a6f4a6", folder / (file_name(pass_) + "_output_graph.dot"));
  before_.reset();
}

}  // namespace fx
