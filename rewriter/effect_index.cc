#include <fxgraph/rewriter/effect_index.h>

#include <numeric>

namespace fx::internal {

EffectIndex::EffectIndex(const Graph& graph, const ModuleEffects& modules) : graph_(graph), modules_(modules) {
  for (Node& node : const_cast<Graph&>(graph).nodes()) {
    if (surely_pure(node)) continue;
    const NodeEffects effects = of(node);
    if (!effects.impure()) continue;
    impure_.insert(impure_.end(), &node);
    writes_ |= effects.writes || effects.unknown;
  }
  if (writes_) build();
}

bool EffectIndex::surely_pure(const Node& node) const {
  if (!node.is(Op::call_function)) return node.is(Op::placeholder) || node.is(Op::get_attr) || node.is(Op::output);
  std::uint8_t& known = pure_[node.target().id()];
  if (known == 0) {
    const OperatorSchema* schema = find_schema(node.target());
    known = schema && schema->switches.empty() && !of(node).impure() && !schema->traits.writes && !schema->traits.random
                ? 2
                : 1;
  }
  return known == 2;
}

void EffectIndex::build() {
  parent_.resize(graph_.id_bound());
  std::iota(parent_.begin(), parent_.end(), 0u);
  next_ = parent_;
  last_write_.resize(graph_.id_bound());
  num_writes_.resize(graph_.id_bound());
  for (Node& node : const_cast<Graph&>(graph_).nodes()) classify(node);
  for (Node* node : impure_) note_write(*node);
}

void EffectIndex::classify(Node& node) {
  if (node.is(Op::get_attr)) unite(attributes_.emplace(node.target(), node.id()).first->second, node.id());
  const NodeEffects effects = of(node);
  if (!effects.may_alias && !effects.unknown) return;
  for_each_aliased_input(
      node, [&](Node& input) { unite(input.id(), node.id()); }, modules_);
}

void EffectIndex::note_write(Node& node) {
  for_each_written_class(node, [&](std::uint32_t written) {
    ++num_writes_[written];
    Node*& last = last_write_[written];
    if (!last || last->is_before(node)) last = &node;
  });
}

void EffectIndex::add(Node& node) {
  const NodeEffects effects = of(node);
  const bool impure = effects.writes || effects.random || effects.side_effect;
  if (impure) impure_.insert(&node);
  if (!writes_) {
    if (effects.writes) expect_writes();
    return;
  }
  while (parent_.size() <= node.id()) {
    next_.push_back(static_cast<std::uint32_t>(parent_.size()));
    parent_.push_back(static_cast<std::uint32_t>(parent_.size()));
    last_write_.push_back(nullptr);
    num_writes_.push_back(0);
  }
  classify(node);
  if (impure) note_write(node);
}

void EffectIndex::expect_writes() {
  if (writes_) return;
  writes_ = true;
  build();
}

Node* EffectIndex::attribute(Symbol path) const {
  const auto at = attributes_.find(path);
  return at == attributes_.end() ? nullptr : graph_.node_by_id(at->second);
}

void EffectIndex::remove(Node& node) {
  const auto at = impure_.find(&node);
  if (at == impure_.end()) return;
  if (writes_) {
    for_each_written_class(node, [&](std::uint32_t written) {
      --num_writes_[written];
      if (last_write_[written] != &node) return;
      last_write_[written] = nullptr;
      for (auto other = at; num_writes_[written] > 0 && !last_write_[written] && other != impure_.begin();) {
        --other;
        for_each_written_class(**other, [&](std::uint32_t also) {
          if (also == written) last_write_[written] = *other;
        });
      }
    });
  }
  impure_.erase(at);
}

std::vector<Node*> EffectIndex::between(const Node& first, const Node& last) const {
  std::vector<Node*> found;
  for (auto at = impure_.upper_bound(const_cast<Node*>(&first)); at != impure_.end() && (*at)->is_before(last); ++at)
    found.push_back(*at);
  return found;
}

std::uint32_t EffectIndex::root(std::uint32_t id) const {
  while (parent_[id] != id) id = parent_[id] = parent_[parent_[id]];
  return id;
}

std::uint32_t EffectIndex::alias_class(const Node& node) const {
  return node.id() < parent_.size() ? root(node.id()) : node.id();
}

Node* EffectIndex::last_write(std::uint32_t alias_class) const {
  return alias_class < last_write_.size() ? last_write_[alias_class] : nullptr;
}

std::vector<Node*> EffectIndex::members(const Node& node) const {
  std::vector<Node*> found;
  std::uint32_t at = node.id();
  do {
    if (Node* member = graph_.node_by_id(at)) found.push_back(member);
    at = at < next_.size() ? next_[at] : node.id();
  } while (at != node.id());
  return found;
}

void EffectIndex::unite(std::uint32_t a, std::uint32_t b) {
  a = root(a);
  b = root(b);
  if (a == b) return;
  parent_[b] = a;
  std::swap(next_[a], next_[b]);  // joins the two rings
  num_writes_[a] += num_writes_[b];
  Node* other = last_write_[b];
  if (other && (!last_write_[a] || last_write_[a]->is_before(*other))) last_write_[a] = other;
}

}  // namespace fx::internal
