#include <fxgraph/trace/leaf_modules.h>

#include <torch/nn/modules/container/sequential.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include <fxgraph/ir/graph_order.h>
#include <fxgraph/module/traced_body.h>
#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/text/print.h>
#include <fxgraph/trace/cleanup.h>
#include <fxgraph/trace/generic_body.h>
#include <fxgraph/trace/leaf_alone.h>
#include <fxgraph/trace/leaf_matcher.h>

namespace fx::internal {
namespace {

using torch::nn::Module;

/// A leaf module of the root.
struct Leaf {
  std::string path;
  std::shared_ptr<Module> module;
  const ModuleType* type = nullptr;
  std::vector<Node*> attributes;  // its get_attr nodes in the graph
  std::vector<Node*> calls;       // what has been raised
  TracedBody last_body;           // of the latest call; calls alike share it
  std::string last_text;
};

class Raiser {
 public:
  Raiser(Graph& graph, Session& session, Module& root, const LeafPredicate& is_leaf)
      : graph_(graph), session_(session), root_(root), is_leaf_(is_leaf) {}

  Raised run() {
    find_attribute_nodes();
    find_leaves();
    for (Leaf& leaf : leaves_) {
      for (Node* user : users_of(leaf)) {
        if (!user->is_erased()) raise_call_at(leaf, *user);
      }
    }
    raise_in_sequentials();
    return {modules(), std::move(calls_)};
  }

 private:
  void find_attribute_nodes();
  void find_leaves();
  bool is_below_leaf(const std::string& path) const;
  std::optional<Leaf> make_leaf(const std::string& path, const std::shared_ptr<Module>& module);

  RaisedModules modules() const;

  void raise_call_at(Leaf& leaf, Node& first);
  std::vector<Node*> users_of(const Leaf& leaf) const;
  std::vector<Node*> outer_inputs(const Leaf& leaf, Node& first) const;
  Node* raise_call(Leaf& leaf, const CallInputs& inputs, Node& near);
  static bool is_one_stretch(const LeafMatch& match);
  bool is_contained(const LeafAlone& alone, const LeafMatch& match) const;
  Node* replace(const Leaf& leaf, const CallInputs& inputs, const LeafAlone& alone, LeafMatch& match);
  void note_call(const Leaf& leaf, const CallInputs& inputs, const LeafAlone& alone, const LeafMatch& match);
  Argument as_traced(const Argument& input) const;
  void note_body(Leaf& leaf, const LeafAlone& alone, Node& call) const;
  void connect(const Argument& result, Node& value, const LeafMatch& match);

  void raise_in_sequentials();
  void raise_in_sequential(Module& sequential);

  Graph& graph_;
  Session& session_;
  Module& root_;
  const LeafPredicate& is_leaf_;
  std::unordered_map<Symbol, Node*> attribute_nodes_;
  std::unordered_map<const Module*, std::size_t> leaf_of_;
  std::vector<Leaf> leaves_;
  std::vector<RaisedCall> calls_;
  std::unordered_map<const Node*, Node*> traced_;  // what a node that stands for results of a raised call was
  std::unordered_set<std::string> leaf_paths_;
};

// ── Leaves
// ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

void Raiser::find_attribute_nodes() {
  for (Node& node : graph_.nodes()) {
    if (node.is(Op::get_attr)) attribute_nodes_.emplace(node.target(), &node);
  }
}

bool Raiser::is_below_leaf(const std::string& path) const {
  for (std::size_t dot = path.rfind('.'); dot != std::string::npos && dot > 0; dot = path.rfind('.', dot - 1)) {
    if (leaf_paths_.contains(path.substr(0, dot))) return true;
  }
  return false;
}

std::optional<Leaf> Raiser::make_leaf(const std::string& path, const std::shared_ptr<Module>& module) {
  const ModuleType* type = find_module_type(*module);
  if (!type || !type->call) return std::nullopt;
  Leaf leaf;
  leaf.path = path;
  leaf.module = module;
  leaf.type = type;
  const auto add = [&](const torch::Tensor& tensor) {
    const std::string* name = session_.attribute_path(tensor);
    const auto node = name ? attribute_nodes_.find(Symbol(*name)) : attribute_nodes_.end();
    if (node != attribute_nodes_.end()) leaf.attributes.push_back(node->second);
  };
  for (const torch::Tensor& tensor : module->parameters()) add(tensor);
  for (const torch::Tensor& tensor : module->buffers()) add(tensor);
  return leaf;
}

// Modules come before their children, so whatever is below a leaf is met after it.
void Raiser::find_leaves() {
  for (const auto& item : root_.named_modules(/*name_prefix=*/"", /*include_self=*/false)) {
    const std::shared_ptr<Module>& module = item.value();
    if (leaf_of_.contains(module.get()) || is_below_leaf(item.key()) || !is_leaf_(*module, item.key())) continue;
    leaf_paths_.insert(item.key());
    if (std::optional<Leaf> leaf = make_leaf(item.key(), module)) {
      leaf_of_.emplace(module.get(), leaves_.size());
      leaves_.push_back(std::move(*leaf));
    }
  }
}

RaisedModules Raiser::modules() const {
  RaisedModules modules;
  for (const Leaf& leaf : leaves_) {
    if (!leaf.calls.empty()) modules.emplace_back(leaf.path, leaf.module);
  }
  return modules;
}

// ── One call
// ───────────────────────────────────────────────────────────────────────────────────────────────────────────

// Operators that compute with the leaf's own tensors, in order.
std::vector<Node*> Raiser::users_of(const Leaf& leaf) const {
  std::vector<Node*> users;
  for (const Node* attribute : leaf.attributes) {
    for (Node& user : attribute->users()) {
      if (user.is(Op::call_function)) users.push_back(&user);
    }
  }
  std::sort(users.begin(), users.end(), GraphOrder{});
  users.erase(std::unique(users.begin(), users.end()), users.end());
  return users;
}

// What the call takes from outside, in the order of use: the inputs of operators that compute with the leaf's tensors.
std::vector<Node*> Raiser::outer_inputs(const Leaf& leaf, Node& first) const {
  constexpr int kReach = 64;
  std::vector<const Node*> inside(leaf.attributes.begin(), leaf.attributes.end());
  std::vector<Node*> outside;
  Node* node = &first;
  for (int i = 0; i < kReach && node && outside.size() < 3; ++i, node = node->next()) {
    const auto is_inside = [&](const Node& input) {
      return std::find(inside.begin(), inside.end(), &input) != inside.end();
    };
    bool belongs = false;
    node->for_each_input([&](Node& input) { belongs |= is_inside(input); });
    if (!belongs) continue;
    node->for_each_input([&](Node& input) {
      if (is_inside(input) || std::find(outside.begin(), outside.end(), &input) != outside.end()) return;
      if (input.is_before(first) && !input.is(Op::get_attr)) outside.push_back(&input);
    });
    inside.push_back(node);
  }
  return outside;
}

// The operators of one call of forward run one after the other: what is mixed with others was written out by hand, and
// those others may write what the call reads. getitem and get_attr nodes, which compute nothing, may stand between.
bool Raiser::is_one_stretch(const LeafMatch& match) {
  auto claimed = match.claimed.begin();
  for (const Node* node = *claimed; claimed != match.claimed.end(); node = node->next()) {
    if (node == *claimed) {
      ++claimed;
    } else if (!node->is(Op::get_attr) && node->target() != python::kGetItem) {
      return false;
    }
  }
  return true;
}

// A call may be raised when nothing outside sees its inner values. In-place operators on buffers may be seen: they are
// the state that the next call finds.
bool Raiser::is_contained(const LeafAlone& alone, const LeafMatch& match) const {
  for (const Node& inner : alone.graph.nodes()) {
    if (!inner.is(Op::call_function)) continue;
    bool is_result = alone.session->written_attribute(inner) != nullptr;
    for_each_node(alone.result, [&](Node& node) { is_result |= &node == &inner; });
    if (is_result || !match.image[inner]) continue;
    for (const Node& user : match.image[inner]->users()) {
      if (std::find(match.claimed.begin(), match.claimed.end(), &user) == match.claimed.end()) return false;
    }
  }
  return true;
}

void Raiser::connect(const Argument& result, Node& value, const LeafMatch& match) {
  if (const Node* node = result.node_or_null()) {
    Node* image = match.image[*node];
    if (std::find(match.claimed.begin(), match.claimed.end(), image) != match.claimed.end()) {
      session_.copy_value(*image, value);
      traced_.emplace(&value, image);
      image->replace_all_uses_with(value, except(value));
    }
    return;
  }
  const ArgumentSpan parts = result.elements();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    bool taken = false;
    for_each_node(parts[i], [&](Node& node) { taken |= match.image[node] != nullptr; });
    if (taken) connect(parts[i], graph_.call_function(python::kGetItem, {value, static_cast<std::int64_t>(i)}), match);
  }
}

Node* Raiser::replace(const Leaf& leaf, const CallInputs& inputs, const LeafAlone& alone, LeafMatch& match) {
  Node* call = nullptr;
  {
    const auto at = graph_.inserting_before(*match.claimed.back());
    call = &graph_.call_module(leaf.path, inputs);
    call->meta().set(meta_key::kModuleStack, leaf.path);
    connect(alone.result, *call, match);
  }
  for (const Node& inner : alone.graph.nodes()) {
    if (!inner.is(Op::call_function)) continue;
    if (const std::string* path = alone.session->written_attribute(inner)) {
      match.image[inner]->replace_all_uses_with(*attribute_nodes_.at(Symbol(*path)));
    }
  }
  for (auto node = match.claimed.rbegin(); node != match.claimed.rend(); ++node) graph_.erase_node(**node);
  return call;
}

Node* Raiser::raise_call(Leaf& leaf, const CallInputs& inputs, Node& near) {
  const std::unique_ptr<LeafAlone> alone = trace_leaf_alone(
      *leaf.module, *leaf.type, inputs, session_, [this](const Node& node) { return session_.value_of(node); });
  if (!alone) return nullptr;
  LeafMatch match;
  const auto attribute = [&](Symbol path) {
    const auto node = attribute_nodes_.find(path);
    return node == attribute_nodes_.end() ? nullptr : node->second;
  };
  if (!LeafMatcher(alone->graph, near).match(alone->inputs, attribute, match)) return nullptr;
  std::sort(match.claimed.begin(), match.claimed.end(), GraphOrder{});
  if (!is_one_stretch(match) || !is_contained(*alone, match)) return nullptr;
  note_call(leaf, inputs, *alone, match);
  Node* call = leaf.calls.emplace_back(replace(leaf, inputs, *alone, match));
  if (!leaf.type->body || !leaf.type->body(*leaf.module)) note_body(leaf, *alone, *call);
  return call;
}

// What the trace has in the place of the result of a leaf that was raised.
Argument Raiser::as_traced(const Argument& input) const {
  return map_nodes(input, [this](Node& node) {
    const auto traced = traced_.find(&node);
    return Argument(traced == traced_.end() ? node : *traced->second);
  });
}

void Raiser::note_call(const Leaf& leaf, const CallInputs& inputs, const LeafAlone& alone, const LeafMatch& match) {
  RaisedCall& call = calls_.emplace_back(RaisedCall{leaf.path, leaf.module, leaf.type, {}, {}, alone.asks_for_sizes()});
  for (const Argument& input : inputs) call.inputs.push_back(as_traced(input));
  for (const std::uint32_t inner : alone.operators()) {
    const Node& node = *alone.log[inner].node;
    call.operators.push_back(node.is_erased() ? nullptr : match.image[node]);
  }
}

// `alone` is the trace of `leaf`, whose get_attr nodes have paths from the root: a copy with paths from the leaf.
// Nothing when it computes with a tensor that is not the leaf's.
std::optional<Graph> body_of_leaf(const Graph& alone, const Session& session, const torch::nn::Module& leaf) {
  std::unordered_map<Symbol, std::string> inner_path;  // look-up only
  for (const auto& tensors : {leaf.named_parameters(), leaf.named_buffers()}) {
    for (const auto& item : tensors) {
      if (const std::string* path = session.attribute_path(item.value())) inner_path.emplace(*path, item.key());
    }
  }
  Graph body = alone.clone();
  for (Node& node : body.nodes()) {
    if (!node.is(Op::get_attr)) continue;
    const auto path = inner_path.find(node.target());
    if (path == inner_path.end()) return std::nullopt;
    node.set_target(path->second);
  }
  return body;
}

// What TorchScript cannot call is noted as the operators that it was.
void Raiser::note_body(Leaf& leaf, const LeafAlone& alone, Node& call) const {
  std::optional<Graph> body = body_of_leaf(alone.graph, session_, *leaf.module);
  if (!body) return;
  std::string text = print_graph(*body);
  if (text != leaf.last_text) {
    leaf.last_text = std::move(text);
    leaf.last_body = {std::make_shared<const Graph>(std::move(*body)),
                      generic_body(leaf.module, *leaf.type, call, session_), leaf.module->is_training()};
  }
  call.meta().set(meta_key::kTracedBody, leaf.last_body);
}

// Tries the ways in which modules take their inputs: one, two or three tensors, attention on one value or two, and
// recurrent modules with a pair of states.
void Raiser::raise_call_at(Leaf& leaf, Node& first) {
  const std::vector<Node*> outer = outer_inputs(leaf, first);
  if (outer.empty()) return;
  Node& a = *outer[0];
  std::vector<CallInputs> ways = {{a}, {a, a, a}};
  if (outer.size() > 1) {
    Node& b = *outer[1];
    ways.insert(ways.end(), {CallInputs{a, b}, CallInputs{a, b, b}});
    if (outer.size() > 2) {
      Node& c = *outer[2];
      ways.insert(ways.end(), {CallInputs{a, b, c}, CallInputs{a, Argument::tuple({Argument(b), Argument(c)})}});
    }
  }
  // Padding comes before the first use of a weight.
  if (a.is(Op::call_function) && !a.all_input_nodes().empty()) ways.push_back({*a.all_input_nodes().front()});
  for (const CallInputs& inputs : ways) {
    if (raise_call(leaf, inputs, first)) return;
  }
}

// ── Leaves without tensors
// ─────────────────────────────────────────────────────────────────────────────────────────────

void Raiser::raise_in_sequentials() {
  for (const auto& item : root_.named_modules()) {
    const bool is_sequential = dynamic_cast<torch::nn::SequentialImpl*>(item.value().get()) != nullptr;
    if (is_sequential && !is_below_leaf(item.key())) raise_in_sequential(*item.value());
  }
}

void Raiser::raise_in_sequential(Module& sequential) {
  std::vector<Node*> results;  // of the module before, one for each call
  for (const std::shared_ptr<Module>& child : sequential.children()) {
    const auto index = leaf_of_.find(child.get());
    if (index == leaf_of_.end()) {
      results.clear();
      continue;
    }
    Leaf& leaf = leaves_[index->second];
    if (!leaf.attributes.empty()) {
      results = leaf.calls;
      continue;
    }
    std::vector<Node*> next;
    for (Node* result : results) {
      Node* user = result->num_users() == 0 ? nullptr : &*result->users().begin();
      if (Node* call = user ? raise_call(leaf, {*result}, *user) : nullptr) next.push_back(call);
    }
    results = std::move(next);
  }
}

}  // namespace

Raised raise_leaf_modules(Graph& graph, Session& session, Module& root, const LeafPredicate& is_leaf) {
  return Raiser(graph, session, root, is_leaf).run();
}

}  // namespace fx::internal
