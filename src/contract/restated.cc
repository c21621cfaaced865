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
      if (!inputs[i].tensor() && !inputs[i].list()) continue;
      inputs[i] = of_any_size(inputs[i], {placeholders[i], {}});
      forms_[placeholders[i]] = inputs[i];
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
  /// An input, or a part of a list that one is.
  struct Part {
    Node* input;
    std::vector<std::int64_t> path;

    auto operator<=>(const Part& other) const {
      return std::pair(input->id(), path) <=> std::pair(other.input->id(), other.path);
    }
    bool operator==(const Part&) const = default;
    Part element(std::size_t at) const {
      Part made = *this;
      made.path.push_back(static_cast<std::int64_t>(at));
      return made;
    }
    std::string name() const {
      std::string text = input->name();
      for (const std::int64_t each : path) text += "[" + std::to_string(each) + "]";
      return text;
    }
  };

  AbstractValue of_any_size(const AbstractValue& form, const Part& part) {
    if (const AbstractValue::List* list = form.list()) {
      AbstractValue::List made;
      for (const AbstractValue& each : *list) made.push_back(of_any_size(each, part.element(made.size())));
      return made;
    }
    TensorType any{form.tensor()->dtype};
    for (std::size_t dim = 0; dim < form.tensor()->sizes.size(); ++dim) {
      const std::string at = std::to_string(dim),
                        name = part.name() + (part.path.empty() ? "[" + at + "]" : ".size(" + at + ")");
      sizes_[name] = {part, static_cast<std::int64_t>(dim)};
      any.sizes.push_back(SizeExpr::symbol(name));
    }
    any.strides = contiguous_strides(any.sizes);
    return any;
  }

  /// The node that is the part; made where it is asked for first, before the program begins.
  Node& value_of(const Part& part) {
    if (part.path.empty()) return *part.input;
    Node*& made = parts_[part];
    if (!made) {
      const Part whole{part.input, {part.path.begin(), part.path.end() - 1}};
      made = &graph_.call_function(python::kGetItem, {value_of(whole), part.path.back()});
    }
    return *made;
  }

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
        const auto& [part, dim] = sizes_.at(symbol);
        Node*& read = read_sizes_[symbol];
        if (!read) read = &graph_.call_function("aten::size.int", {value_of(part), dim});
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
      if (node.is(Op::placeholder) && !forms_.contains(&node)) return false;
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
    const Contract contract(graph_);
    const auto at =
        graph_.inserting_before(*graph_.placeholders().back()->next());  // a size is there where they are right
    parts_.clear();                                                      // these come first
    for (Node* input : read_) assert_form(forms_.at(input), {input, {}}, contract.conditions());
  }

  /// How many dimensions a tensor has, or parts a list, and each of them.
  void assert_form(const AbstractValue& form, const Part& part, const std::vector<Condition>& conditions) {
    const AbstractValue::List* list = form.list();
    const auto count = static_cast<std::int64_t>(list ? list->size() : form.tensor()->sizes.size());
    const InputProperty property = list ? InputProperty::length : InputProperty::rank;
    const bool is_said = std::ranges::any_of(conditions, [&](const Condition& each) {
      return is_before_sizes(*each.assertion, part) && each.relation == SizeRelation::equal &&
             each.measures.size() == 1 && each.measures[0].property == property &&
             each.measures[0].input == part.input->name() && each.measures[0].part == part.path;
    });
    if (!is_said) {
      const std::string is = list ? "has " + std::to_string(count) + " elements"
                                  : "is of " + std::to_string(count) + (count == 1 ? " dimension" : " dimensions");
      AssertionWriter(graph_).add(SizeRelation::equal,
                                  graph_.call_function(list ? "aten::len.t" : "aten::dim", {value_of(part)}), count,
                                  "the program was read for inputs at which " + part.name() + " " + is);
    }
    for (std::size_t i = 0; list && i < list->size(); ++i) assert_form((*list)[i], part.element(i), conditions);
  }

  /// Before anything is asked of the sizes of the part, or of its parts.
  bool is_before_sizes(const Node& assertion, const Part& part) const {
    return std::ranges::none_of(read_sizes_, [&](const auto& read) {
      const Part& of = sizes_.at(read.first).first;
      return of.input == part.input && std::ranges::equal(part.path, of.path | std::views::take(part.path.size())) &&
             !assertion.is_before(*read.second);
    });
  }

  Graph& graph_;
  Node* begin_ = nullptr;                                       // behind the inputs
  std::map<std::string, Node*> read_sizes_;                     // by symbol
  std::map<std::string, std::pair<Part, std::int64_t>> sizes_;  // by symbol
  std::map<Part, Node*> parts_;
  std::map<const Node*, AbstractValue> forms_;               // asked only, not gone through
  std::map<const Node*, std::vector<SizeCondition>> asked_;  // asked only, not gone through
  std::vector<std::pair<Node*, SizeCondition>> said_;        // in order, without any other node between them
  std::set<Node*, NodeOrder> read_;
  std::size_t changed_ = 0;
};

}  // namespace

std::size_t restate_assertions(Graph& graph, std::vector<AbstractValue> inputs, ShapeSources sources) {
  return Restated(graph, std::move(inputs), std::move(sources)).changed();
}

}  // namespace fx
