#include <fxgraph/analysis/dead_code.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>

#include <fxgraph/ops/call.h>
#include <fxgraph/ops/element.h>

namespace fx {

namespace {

constexpr std::array<std::string_view, 7> kKindNames = {
    "dead node", "dead store", "unused output", "unused input", "no-op", "unused attribute", "unused module"};

/// Marks what is needed, starting from what can be seen outside.
class Marker {
 public:
  Marker(const Graph& graph, const Effects& effects, std::vector<bool>& live)
      : graph_(graph), effects_(effects), live_(live), marked_writers_(effects.num_sets(), 0) {}

  void run() {
    for (const Node& node : graph_.nodes()) {
      if (is_root(node)) mark(node);
    }
    while (!work_.empty()) {
      const Node& node = *work_.back();
      work_.pop_back();
      node.for_each_input([&](const Node& input) {
        mark(input);
        mark_writes_before(input, node);
      });
    }
  }

 private:
  bool is_root(const Node& node) const {
    if (node.is(Op::output)) return true;
    const NodeEffects& e = effects_.of(node);
    if (!e.impure()) return false;
    if (e.random || e.side_effect || e.unknown) return true;
    const auto written = effects_.written_sets(node);
    // A write to nothing that has a name here is a write to something outside.
    return written.empty() ||
           std::any_of(written.begin(), written.end(), [&](Effects::Set set) { return effects_.is_external(set); });
  }

  void mark(const Node& node) {
    if (live_[node.id()]) return;
    live_[node.id()] = true;
    work_.push_back(&node);
  }

  /// Writers are in order, and whoever reads later needs at least as many of them: a count per set is enough.
  void mark_writes_before(const Node& value, const Node& reader) {
    for (const Effects::Set set : effects_.sets(value)) {
      const auto writers = effects_.writers(set);
      std::uint32_t& marked = marked_writers_[set];
      while (marked < writers.size() && writers[marked]->is_before(reader)) mark(*writers[marked++]);
    }
  }

  const Graph& graph_;
  const Effects& effects_;
  std::vector<bool>& live_;
  std::vector<std::uint32_t> marked_writers_;  // by set
  std::vector<const Node*> work_;
};

}  // namespace

std::string_view to_string(DeadFinding::Kind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

DeadCode::DeadCode(const Graph& graph, const DeadCodeOptions& options)
    : graph_(&graph), live_(graph.id_bound(), false), writes_(graph.id_bound(), false) {
  std::optional<Effects> own;
  const Effects& effects = options.effects ? *options.effects : own.emplace(graph);
  find_dead_nodes(effects);
  find_unused_outputs(options.shapes);
  find_unused_inputs();
  for (NoOp& no_op : find_no_ops(graph, options.shapes, &effects)) {
    if (is_dead(*no_op.node)) continue;
    findings_.push_back({.kind = DeadFinding::Kind::no_op,
                         .node = no_op.node,
                         .same_as = no_op.same_as,
                         .detail = std::move(no_op.reason)});
  }
  find_unused_attributes(options.attributes);
}

void DeadCode::find_dead_nodes(const Effects& effects) {
  Marker(*graph_, effects, live_).run();
  std::vector<Node*> stores;
  for (const Node& node : graph_->nodes()) {
    if (!is_dead(node) || node.is(Op::placeholder)) continue;
    Node* dead = const_cast<Node*>(&node);
    writes_[node.id()] = effects.of(node).writes;
    if (writes_[node.id()]) {
      stores.push_back(dead);
    } else {
      findings_.push_back({.kind = DeadFinding::Kind::dead_node, .node = dead});
    }
  }
  for (Node* store : stores) findings_.push_back({.kind = DeadFinding::Kind::dead_store, .node = store});
}

void DeadCode::find_unused_outputs(const Shapes* shapes) {
  for (const Node& node : graph_->nodes()) {
    if (is_dead(node) || !node.is(Op::call_function) || !node.has_users()) continue;
    const Node& first = *node.users().begin();
    if (!taken_element(first)) continue;
    const Call call = call_of(node);
    const std::span<const SchemaReturn> returns =
        call ? std::span(call.schema().returns) : std::span<const SchemaReturn>();
    std::size_t results = returns.size() > 1 ? returns.size() : 0;
    if (shapes && (*shapes)[node].tensors.size() > 1) results = (*shapes)[node].tensors.size();
    std::vector<bool> used(results, false);
    bool all_known = true;
    for (const Node& user : node.users()) {
      const std::optional<Element> taken = taken_element(user);
      std::int64_t index = taken ? taken->index : -1;
      if (taken && index < 0) index += static_cast<std::int64_t>(results);
      all_known = all_known && index >= 0;
      if (static_cast<std::size_t>(index) < results && !is_dead(user)) {
        used[static_cast<std::size_t>(index)] = true;
      }
    }
    for (std::size_t i = 0; all_known && i < results; ++i) {
      if (used[i]) continue;
      findings_.push_back({.kind = DeadFinding::Kind::unused_output,
                           .node = const_cast<Node*>(&node),
                           .output = static_cast<int>(i),
                           .detail = i < returns.size() ? returns[i].name.str() : std::string()});
    }
  }
}

void DeadCode::find_unused_inputs() {
  for (Node* input : graph_->placeholders()) {
    if (is_dead(*input)) findings_.push_back({.kind = DeadFinding::Kind::unused_input, .node = input});
  }
}

void DeadCode::find_unused_attributes(const std::vector<AttributeInfo>& attributes) {
  if (attributes.empty()) return;
  std::set<std::string, std::less<>> read;  // paths that live nodes fetch or call
  for (const Node& node : graph_->nodes()) {
    if ((node.is(Op::get_attr) || node.is(Op::call_module)) && !is_dead(node)) read.emplace(node.target().view());
  }
  struct Module {
    bool used = false;
    std::int64_t bytes = 0;
  };
  std::map<std::string, Module, std::less<>> modules;
  std::vector<const AttributeInfo*> unused;
  for (const AttributeInfo& attribute : attributes) {
    const std::string_view path = attribute.path;
    bool used = read.contains(path);
    for (std::size_t dot = path.find('.'); dot != path.npos; dot = path.find('.', dot + 1)) {
      used = used || read.contains(path.substr(0, dot));
    }
    for (std::size_t dot = path.find('.'); dot != path.npos; dot = path.find('.', dot + 1)) {
      Module& module = modules[std::string(path.substr(0, dot))];
      module.used = module.used || used;
      module.bytes += attribute.bytes;
    }
    if (!used) unused.push_back(&attribute);
  }
  const auto in_unused_module = [&](std::string_view path) {
    const std::size_t dot = path.rfind('.');
    return dot != path.npos && !modules.find(path.substr(0, dot))->second.used;
  };
  std::ranges::sort(unused, {}, &AttributeInfo::path);
  for (const AttributeInfo* attribute : unused) {
    if (in_unused_module(attribute->path)) continue;
    findings_.push_back(
        {.kind = DeadFinding::Kind::unused_attribute, .path = attribute->path, .bytes = attribute->bytes});
  }
  for (const auto& [path, module] : modules) {
    if (module.used || in_unused_module(path)) continue;
    findings_.push_back({.kind = DeadFinding::Kind::unused_module, .path = path, .bytes = module.bytes});
  }
}

std::size_t DeadCode::count(DeadFinding::Kind kind) const {
  return static_cast<std::size_t>(
      std::count_if(findings_.begin(), findings_.end(), [&](const DeadFinding& f) { return f.kind == kind; }));
}

std::string DeadCode::why(const Node& node) const {
  if (!is_dead(node)) return {};
  std::string text;
  const Node* at = &node;
  for (int reasons = 1;; ++reasons) {
    if (is_dead_store(*at) && !at->has_users()) return text + "nothing reads what it writes";
    if (!at->has_users()) return text + "nothing uses it";
    if (reasons > kMaxReasons) return text + "…";
    const Node& user = *at->users().begin();
    if (is_dead_store(*at)) text += "nothing live reads what it writes, and ";
    if (at->num_users() == 1) {
      text += "its only user " + user.name() + " is " + (is_dead_store(user) ? "a dead store" : "dead") + " because ";
    } else {
      text += "all its " + std::to_string(at->num_users()) + " users are dead: " + user.name() + " because ";
    }
    at = &user;
  }
}

std::string DeadCode::explain(const DeadFinding& finding) const {
  using Kind = DeadFinding::Kind;
  const std::string name = finding.node ? finding.node->name() : finding.path;
  switch (finding.kind) {
    case Kind::dead_node: return name + ": dead because " + why(*finding.node);
    case Kind::dead_store: return name + ": dead store because " + why(*finding.node);
    case Kind::unused_output:
      return name + ": result " + std::to_string(finding.output) +
             (finding.detail.empty() ? "" : " (" + finding.detail + ")") + " is never used";
    case Kind::unused_input: return name + ": unused input because " + why(*finding.node);
    case Kind::no_op: return name + ": no-op, " + finding.detail + "; the same as " + finding.same_as->name();
    case Kind::unused_attribute: return name + ": no live node reads this attribute";
    case Kind::unused_module: return name + ": no live node calls this module or reads its attributes";
  }
  return name;
}

}  // namespace fx
