#include <fxgraph/contract/restated.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <string>
#include <utility>

#include <fxgraph/contract/assertions.h>
#include <fxgraph/contract/contract.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/symbolic/size_solution.h>

namespace fx {
namespace {

struct NodeOrder {
  bool operator()(const Node* a, const Node* b) const { return a->id() < b->id(); }
};

class Restated {
 public:
  Restated(Graph& graph, std::vector<AbstractValue> inputs, ShapeSources sources) : graph_(graph) {
    const std::vector<Node*> placeholders = graph.placeholders();
    if (placeholders.empty()) return;
    begin_ = placeholders.back()->next();
    inputs.resize(placeholders.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const TensorType* type = inputs[i].tensor();
      if (!type) continue;
      TensorType any{type->dtype};
      for (std::size_t dim = 0; dim < type->sizes.size(); ++dim) {
        const std::string name = placeholders[i]->name() + "[" + std::to_string(dim) + "]";
        sizes_[name] = {placeholders[i], static_cast<std::int64_t>(dim)};
        any.sizes.push_back(SizeExpr::symbol(name));
      }
      any.strides = contiguous_strides(any.sizes);
      ranks_[placeholders[i]] = any.sizes.size();
      inputs[i] = std::move(any);
    }
    const SymbolicShapes shapes(graph, std::move(inputs), sources);
    for (const auto& all : {shapes.conditions(), shapes.implied()}) {
      for (const SymbolicShapes::Asked& asked : all) asked_[asked.node].push_back(asked.condition);
    }
    for (Node* assertion : graph.find_nodes(Op::call_function, python::kAssert)) visit(*assertion);
    drop_implied();
    assert_ranks();
  }

  std::size_t changed() const { return changed_; }

 private:
  void visit(Node& assertion) {
    const auto asked = asked_.find(&assertion);
    if (asked == asked_.end() || read_condition(assertion)) return;
    std::set<Node*, NodeOrder> reached;
    if (!is_of_tensors(assertion.arg(0).node(), reached)) return;
    std::vector<SizeCondition> open;
    for (const SizeCondition& each : asked->second) {
      const SizeCondition simple = each.simplified(), condition = solved(simple).value_or(simple);
      if (SizeFacts().holds(condition) != Answer::yes) open.push_back(condition);
    }
    if (open.empty()) {
      if (&assertion == begin_) begin_ = assertion.next();
      graph_.erase_node(assertion);
    } else if (std::ranges::all_of(open, [this](const SizeCondition& each) { return is_of_inputs(each); })) {
      say(assertion, open);
    } else {
      return;
    }
    ++changed_;
    read_.insert(reached.begin(), reached.end());
  }

  bool is_of_inputs(const SizeCondition& condition) const {
    constexpr std::uint32_t kLongest = 64;  // what is longer tells nobody more than the file's own line
    if (condition.left.parts() + condition.right.parts() > kLongest) return false;
    bool all = AssertionWriter::can_write(condition.left) && AssertionWriter::can_write(condition.right);
    condition.for_each_symbol([&](const std::string& name) { all = all && sizes_.contains(name); });
    return all;
  }

  /// Each by itself, before the program begins: it may give an input other sizes in place.
  void say(Node& assertion, const std::vector<SizeCondition>& conditions) {
    const auto at = graph_.inserting_before(*begin_);
    for (const SizeCondition& each : conditions) {
      const Argument holds = AssertionWriter(graph_).holds(each, [&](const std::string& symbol) {
        const auto& [input, dim] = sizes_.at(symbol);
        Node*& read = read_sizes_[symbol];
        if (!read) read = &graph_.call_function("aten::size.int", {*input, dim});
        return Argument(*read);
      });
      const bool is_first = &each == &conditions.front();
      Node& said = is_first ? assertion : graph_.node_copy(assertion, [](Node& input) { return Argument(input); });
      said.update_arg(0, holds);
      if (is_first && &said != begin_) begin_->prepend(said);
      said_.emplace_back(&said, each);
    }
  }

  /// Nothing stands between them: what a later one says, too, goes without saying.
  void drop_implied() {
    SizeFacts facts;
    for (const auto& [symbol, input] : sizes_) facts.declare(symbol, {0, std::nullopt});
    for (const auto& [assertion, condition] : std::views::reverse(said_)) {
      if (facts.holds(condition) == Answer::yes) {
        graph_.erase_node(*assertion);
      } else {
        facts.assume(condition);
      }
    }
  }

  /// Whether the tensors that it follows from are all known, and of floats: others may be masks; and asks how none of
  /// them lies in memory, which their sizes do not say. Adds them.
  bool is_of_tensors(Node& value, std::set<Node*, NodeOrder>& reached) const {
    std::vector<Node*> open = {&value};
    std::set<const Node*> seen = {&value};  // asked only, not gone through
    while (!open.empty()) {
      Node& node = *open.back();
      open.pop_back();
      if (node.is(Op::placeholder) && !ranks_.contains(&node)) return false;
      const std::string_view packet = packet_of(node.target().view());
      if (packet == "aten::stride" || packet == "aten::is_contiguous") return false;
      if (node.is(Op::placeholder)) reached.insert(&node);
      for (Node* input : node.all_input_nodes()) {
        if (seen.insert(input).second) open.push_back(input);
      }
    }
    return !reached.empty();
  }

  void assert_ranks() {
    if (read_.empty()) return;
    const std::vector<Condition> conditions = Contract(graph_).conditions();
    Node& first = *graph_.placeholders().back()->next();  // a size is there where the rank is right
    for (Node* input : read_) {
      const Node* asked = nullptr;  // first of its sizes
      for (const auto& [symbol, size] : read_sizes_) {
        if (sizes_.at(symbol).first == input && (!asked || size->is_before(*asked))) asked = size;
      }
      const bool is_said = std::ranges::any_of(conditions, [&](const Condition& each) {
        return (!asked || each.assertion->is_before(*asked)) && each.relation == SizeRelation::equal &&
               each.measures.size() == 1 && each.measures[0].property == InputProperty::rank &&
               each.measures[0].input == input->name();
      });
      if (is_said) continue;
      const auto rank = static_cast<std::int64_t>(ranks_.at(input));
      const auto at = graph_.inserting_before(first);
      AssertionWriter(graph_).add(SizeRelation::equal, graph_.call_function("aten::dim", {*input}), rank,
                                  "the program was read for inputs at which " + input->name() + " is of " +
                                      std::to_string(rank) + (rank == 1 ? " dimension" : " dimensions"));
    }
  }

  Graph& graph_;
  Node* begin_ = nullptr;                                        // behind the inputs
  std::map<std::string, Node*> read_sizes_;                      // by symbol
  std::map<std::string, std::pair<Node*, std::int64_t>> sizes_;  // by symbol
  std::map<const Node*, std::size_t> ranks_;                     // asked only, not gone through
  std::map<const Node*, std::vector<SizeCondition>> asked_;      // asked only, not gone through
  std::vector<std::pair<Node*, SizeCondition>> said_;            // in order, without any other node between them
  std::set<Node*, NodeOrder> read_;
  std::size_t changed_ = 0;
};

}  // namespace

std::size_t restate_assertions(Graph& graph, std::vector<AbstractValue> inputs, ShapeSources sources) {
  return Restated(graph, std::move(inputs), std::move(sources)).changed();
}

}  // namespace fx
