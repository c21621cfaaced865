#include <fxgraph/effects/tracked_effects.h>

#include <utility>

#include <fxgraph/ops/element.h>

namespace fx::internal {

namespace {

std::int64_t literal_index(const Node& node) {
  const std::optional<Element> taken = taken_element(node);
  return taken ? taken->index : -1;
}

}  // namespace

TrackedEffects::TrackedEffects(const Graph& graph, ModuleInfo modules, bool told)
    : graph_(graph), cells_(graph, std::move(modules)), told_(told) {
  // Mostly nothing has effects, and the targets say so.
  const bool pure = !graph.any_called([&](Op op, Symbol target) {
    const std::optional<NodeEffects> effects = effects_of_each(op, target, this->modules());
    return !effects || effects->impure();
  });
  if (pure) return;
  for (Node& node : const_cast<Graph&>(graph).nodes()) {
    const NodeEffects effects = of(node);
    if (!effects.impure()) continue;
    impure_.insert(impure_.end(), &node);
    writes_ |= effects.writes || effects.unknown;
  }
  if (writes_) build();
}

NodeEffects TrackedEffects::of(const Node& node) const {
  NodeEffects effects = effects_of(node, modules());
  if (effects.unknown && runs_graphs(node)) effects.random = effects.side_effect = true;
  return effects;
}

// ── Edits ────────────────────────────────────────────────────────────────────────────────────────────────────────────

void TrackedEffects::build() {
  built_ = true;
  if (told_) cells_.follow_edits();
  cells_.reserve(graph_.size());
  cells_.find_elements();
  for (Node& node : const_cast<Graph&>(graph_).nodes()) classify(node);
  for (Node* node : impure_) note_writes(*node);
}

void TrackedEffects::expect_writes() {
  writes_ = true;
  if (!built_) build();
}

void TrackedEffects::classify(Node& node) {
  const bool is_new = cells_.of(node).empty();
  if (node.is(Op::get_attr) && is_new) attributes_[modules().storage_of(node.target())].push_back(&node);
  if (!cells_.classify(node, of(node)) || !members_known_) return;
  for (const Cell cell : cells_.of(node)) held_[cell].push_back(&node);
}

void TrackedEffects::add(Node& node) {
  const NodeEffects effects = of(node);
  if (effects.impure()) impure_.insert(&node);
  if (effects.undescribed && undescribed_known_) undescribed_.insert(&node);
  if (effects.writes || effects.unknown) expect_writes();
  if (!built_) return;
  see_elements(node);
  classify(node);
  if (effects.impure()) note_writes(node);
}

void TrackedEffects::changed(Node& node) {
  if (const NodeEffects effects = of(node); !built_ && effects.impure()) add(node);
  if (!built_) return;
  see_elements(node);
  spread(node);
}

/// Where the node takes an element, the tuple has another, or one less.
void TrackedEffects::see_elements(const Node& node) {
  const std::optional<Element> taken = taken_element(node);
  if (!taken) return;
  cells_.count_elements(*taken->of);
  spread(*taken->of);
}

/// The storage of the node is worked out once more, and, where it is another, that of all that share it.
void TrackedEffects::spread(Node& node) {
  std::vector<Node*> open = {&node};
  while (!open.empty()) {
    Node& one = *open.back();
    open.pop_back();
    const NodeEffects effects = of(one);
    const bool is_other = cells_.classify(one, effects);
    if (is_other && members_known_) {
      for (const Cell cell : cells_.of(one)) held_[cell].push_back(&one);
    }
    if (effects.impure() || impure_.count(&one)) {
      drop_writes(one);
      if (effects.impure()) {
        impure_.insert(&one);
        note_writes(one);
      } else {
        impure_.erase(&one);
      }
    }
    if (!is_other) continue;
    for (Node& user : one.users()) {
      if (!cells_.is_gone(user) && (impure_.count(&user) || of(user).may_alias)) open.push_back(&user);
    }
  }
}

void TrackedEffects::remove(Node& node) {
  if (!impure_.empty() && impure_.erase(&node) > 0) drop_writes(node);
  undescribed_.erase(&node);
  if (!built_) return;
  if (node.is(Op::get_attr)) std::erase(attributes_[modules().storage_of(node.target())], &node);
  cells_.forget(node);
  see_elements(node);
}

void TrackedEffects::note_writes(Node& node) {
  const NodeEffects effects = of(node);
  if (!effects.writes && !effects.unknown) return;
  std::uint32_t& place = noted_at_[node.id()];
  if (!place) {
    noted_.emplace_back();
    place = static_cast<std::uint32_t>(noted_.size());
  }
  auto& noted = noted_[place - 1];
  cells_.for_each_written(node, effects, [&](Cell cell) {
    std::uint32_t& list = writers_at_[cell];
    if (!list) {
      writers_.emplace_back();
      list = static_cast<std::uint32_t>(writers_.size());
    }
    auto& all = writers_[list - 1];
    const auto at = std::lower_bound(all.begin(), all.end(), &node, GraphOrder{});
    if (at != all.end() && *at == &node) return;
    all.insert(at, &node);
    noted.push_back(cell);
  });
}

void TrackedEffects::drop_writes(Node& node) {
  const std::uint32_t* place = noted_at_.find(node.id());
  if (!place) return;
  for (const Cell cell : noted_[*place - 1]) {
    auto& all = writers_[*writers_at_.find(cell) - 1];
    all.erase(std::remove(all.begin(), all.end(), &node), all.end());
  }
  noted_[*place - 1].clear();
}

// ── Questions ────────────────────────────────────────────────────────────────────────────────────────────────────────

std::vector<Node*> TrackedEffects::between(const Node& first, const Node& last) const {
  std::vector<Node*> found;
  if (impure_.empty()) return found;
  if (!undescribed_known_) {
    undescribed_known_ = true;
    for (Node* module : graph_.find_nodes(Op::call_module)) {
      if (of(*module).undescribed) undescribed_.insert(module);
    }
  }
  const auto add = [&](const std::set<Node*, GraphOrder>& all) {
    for (auto at = all.upper_bound(const_cast<Node*>(&first)); at != all.end() && (*at)->is_before(last); ++at)
      found.push_back(*at);
  };
  add(impure_);
  const std::size_t impure = found.size();
  add(undescribed_);
  std::inplace_merge(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(impure), found.end(), GraphOrder{});
  return found;
}

void TrackedEffects::for_each_written_cell(const Node& call, const std::function<void(Cell)>& visit) const {
  cells_.for_each_written(call, of(call), [&](Cell cell) { visit(cells_.find(cell)); });
}

void TrackedEffects::for_each_read_cell(const Node& call, const std::function<void(Cell)>& visit) const {
  call.for_each_input([&](const Node& input) { for_each_cell(input, visit); });
  if (call.is(Op::call_module) || runs_graphs(call))
    cells_.for_each_state(call, of(call), [&](Cell cell) { visit(cells_.find(cell)); });
}

bool TrackedEffects::may_alias(const Node& a, const Node& b) const {
  bool found = false;
  for_each_cell(a, [&](Cell one) { for_each_cell(b, [&](Cell other) { found |= one == other; }); });
  return found;
}

bool TrackedEffects::is_within(const Node& value, std::span<const Cell> cells) const {
  bool within = true;
  for_each_cell(value, [&](Cell one) { within &= std::ranges::find(cells, one) != cells.end(); });
  return within;
}

bool TrackedEffects::may_write(const Node& call, const Node& value) const {
  bool found = false;
  for_each_written_cell(call, [&](Cell written) { for_each_cell(value, [&](Cell one) { found |= one == written; }); });
  return found;
}

std::span<Node* const> TrackedEffects::writers(Cell cell) const {
  const std::uint32_t* at = writers_at_.find(cell);
  return at ? std::span<Node* const>(writers_[*at - 1].data(), writers_[*at - 1].size()) : std::span<Node* const>();
}

Node* TrackedEffects::write_between(const Node& value, const Node* first, const Node* last) const {
  if (writers_.empty()) return nullptr;
  Node* found = nullptr;
  for (const Cell cell : cells_.of(value)) {
    cells_.for_each_united(cell, [&](Cell one) {
      const std::span<Node* const> all = writers(one);
      const auto at = last ? std::lower_bound(all.begin(), all.end(), last, GraphOrder{}) : all.end();
      if (at == all.begin() || (first && !first->is_before(*at[-1]))) return;
      if (!found || found->is_before(*at[-1])) found = at[-1];
    });
  }
  return found;
}

bool TrackedEffects::is_returned(const Node& value) const {
  bool found = false;
  if (const Node* output = graph_.output_node())
    output->for_each_input([&](const Node& result) { found = found || may_alias(result, value); });
  return found;
}

Node* TrackedEffects::attribute(Symbol path) const {
  const auto at = attributes_.find(modules().storage_of(path));
  return at == attributes_.end() || at->second.empty() ? nullptr : at->second.front();
}

const Node* TrackedEffects::attribute_writer(Symbol path) {
  const Node* found = nullptr;
  cells_.for_each_united(cells_.attribute_cell(path), [&](Cell one) {
    if (!found && !writers(one).empty()) found = writers(one).front();
  });
  return found;
}

bool TrackedEffects::is_attribute_returned(Symbol path) {
  const Cell cell = cells_.find(cells_.attribute_cell(path));
  bool found = false;
  if (const Node* output = graph_.output_node()) {
    output->for_each_input([&](const Node& result) { for_each_cell(result, [&](Cell one) { found |= one == cell; }); });
  }
  return found;
}

std::vector<Node*> TrackedEffects::members(const Node& value) const {
  if (!members_known_) {
    members_known_ = true;
    for (Node& node : const_cast<Graph&>(graph_).nodes()) {
      for (const Cell cell : cells_.of(node)) held_[cell].push_back(&node);
    }
  }
  std::vector<Node*> found;
  for (const Cell cell : cells_.of(value)) {
    cells_.for_each_united(cell, [&](Cell one) {
      const auto at = held_.find(one);
      if (at == held_.end()) return;
      std::erase_if(at->second, [&](const Node* node) {
        return node->is_erased() || std::ranges::find(cells_.of(*node), one) == cells_.of(*node).end();
      });
      found.insert(found.end(), at->second.begin(), at->second.end());
    });
  }
  std::sort(found.begin(), found.end(), GraphOrder{});
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

// ── What is sure ─────────────────────────────────────────────────────────────────────────────────────────────────────

const Node* TrackedEffects::viewed(const Node& node, bool& own) const {
  own = false;
  if (node.is(Op::placeholder) || node.is(Op::get_attr)) return nullptr;
  const NodeEffects effects = of(node);
  own = !effects.may_alias;
  if (!effects.aliases) return nullptr;
  const Node* only = nullptr;
  bool several = false;
  for_each_source(node, [&](Node& input) {
    several |= only && only != &input;
    only = &input;
  });
  return several ? nullptr : only;
}

TrackedEffects::Origin TrackedEffects::origin_of(const Node& value) const {
  const Node* at = &value;
  std::int64_t element = -1;
  for (int steps = 0; steps < kMostViews; ++steps) {
    bool own = false;
    const Node* source = viewed(*at, own);
    if (!source) {
      const Symbol storage = at->is(Op::get_attr) ? modules().storage_of(at->target()) : Symbol();
      return {at, storage, element, own};
    }
    // The index that was applied to the tuple itself; a view of a tensor by a number keeps its storage.
    bool source_own = false;
    const bool to_the_end = !viewed(*source, source_own);
    element = to_the_end && (source_own || source->is(Op::placeholder)) ? literal_index(*at) : -1;
    at = source;
  }
  return {&value, {}, -1, false};
}

bool TrackedEffects::escapes(const Node& value) const {
  return any_use(value, [](const Node& user) { return user.is(Op::output); });
}

// ── Step by step ─────────────────────────────────────────────────────────────────────────────────────────────────────

void TrackedEffects::for_each_source(const Node& node, const std::function<void(Node&)>& visit) const {
  for_each_aliased_input(node, visit, modules());
}

void TrackedEffects::walk_to_roots(const Node& value, const std::function<void(std::uint64_t)>& visit) const {
  constexpr std::size_t kMost = 16;
  std::vector<const Node*> open = {&value};
  for (std::size_t next = 0; next < open.size(); ++next) {
    if (open.size() > kMost) return visit(kAnyRoot);
    const Node& one = *open[next];
    if (one.is(Op::get_attr)) {
      visit((std::uint64_t{1} << 32) | modules().storage_of(one.target()).id());
      continue;
    }
    const NodeEffects effects = one.is_callable() ? of(one) : NodeEffects{};
    const std::size_t known = open.size();
    if (effects.may_alias) {
      for_each_source(one, [&](const Node& source) {
        if (std::ranges::find(open, &source) == open.end()) open.push_back(&source);
      });
    }
    if (open.size() == known || effects.may_alias_state) visit(one.id());
  }
}

bool TrackedEffects::may_alias_input(const Node& user, const Node& value) const {
  if (!of(user).may_alias) return false;
  bool found = false;
  for_each_source(user, [&](Node& input) { found |= &input == &value; });
  return found;
}

}  // namespace fx::internal
