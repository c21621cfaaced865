// Lists of sizes, as TorchScript computes with them.
#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include <fxgraph/export/numbers.h>

namespace fx::pt2 {
namespace {

using NumberList = std::vector<Argument>;

class NumberLists {
 public:
  NumberLists(Graph& graph, ValueShapes& values) : graph_(graph), values_(values) {}

  void run() {
    for (Node& node : graph_.nodes()) {
      if (node.is(Op::call_function)) visit(node);
    }
    // Where lists are read as a whole, once all are known.
    for (const auto& [node, elements] : found_) node->replace_all_uses_with(Argument::list(elements));
  }

 private:
  using Elements = std::optional<NumberList> (NumberLists::*)(Node& node);
  struct ListForm {
    std::string_view target;
    Elements elements;
  };

  void visit(Node& node) {
    if (values_[node].kind == ValueShape::Kind::list) {
      static constexpr ListForm kForms[] = {
          {"aten::size", &NumberLists::sizes},          {"aten::add.t", &NumberLists::joined},
          {"aten::mul.left_t", &NumberLists::repeated}, {"aten::list.t", &NumberLists::same},
          {"aten::slice.t", &NumberLists::sliced},
      };
      const auto* form = std::ranges::find(kForms, node.target().view(), &ListForm::target);
      std::optional<NumberList> elements =
          form == std::end(kForms) || node.args().empty() ? std::nullopt : (this->*form->elements)(node);
      if (!elements || elements->size() != values_[node].elements.size()) return;
      found_.push_back({&node, *elements});
      known_.emplace(&node, std::move(*elements));
      return;
    }
    if (node.target() != "operator.getitem" && node.target() != "aten::__getitem__.t") return;
    const std::optional<NumberList> list = list_of(node.arg(0));
    const std::optional<std::int64_t> index = list ? number_of(node.arg(1)) : std::nullopt;
    if (!index) return;
    const auto size = static_cast<std::int64_t>(list->size());
    const std::int64_t at = *index < 0 ? *index + size : *index;
    if (at >= 0 && at < size) node.replace_all_uses_with((*list)[static_cast<std::size_t>(at)]);
  }

  // A number that is the same in all runs.
  std::optional<std::int64_t> number_of(const Argument& value) const {
    if (value.is_int()) return value.as_int();
    const Node* node = value.node_or_null();
    if (!node || values_[*node].kind != ValueShape::Kind::integer || values_[*node].varies) return std::nullopt;
    return values_[*node].integer.example;
  }

  std::optional<NumberList> list_of(const Argument& value) const {
    if (value.is_sequence()) return NumberList(value.elements().begin(), value.elements().end());
    const auto known = value.is_node() ? known_.find(&value.node()) : known_.end();
    return known == known_.end() ? std::nullopt : std::optional(known->second);
  }

  // ── Forms ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  std::optional<NumberList> sizes(Node& node) {
    NumberList all;
    const auto at = graph_.inserting_after(node);
    const std::vector<ValueShape> elements = values_[node].elements;
    for (std::size_t dim = 0; dim < elements.size(); ++dim) {
      Node& size = graph_.call_function("aten::size.int", {node.arg(0), Argument(dim)});
      values_[size] = elements[dim];
      all.emplace_back(size);
    }
    return all;
  }
  std::optional<NumberList> joined(Node& node) {
    std::optional<NumberList> all = list_of(node.arg(0));
    const std::optional<NumberList> more = node.args().size() == 2 ? list_of(node.arg(1)) : std::nullopt;
    if (!all || !more) return std::nullopt;
    all->insert(all->end(), more->begin(), more->end());
    return all;
  }
  std::optional<NumberList> repeated(Node& node) {
    const std::optional<NumberList> once = list_of(node.arg(0));
    const std::optional<std::int64_t> times = node.args().size() == 2 ? number_of(node.arg(1)) : std::nullopt;
    if (!once || !times) return std::nullopt;
    NumberList all;
    for (std::int64_t i = 0; i < *times; ++i) all.insert(all.end(), once->begin(), once->end());
    return all;
  }
  std::optional<NumberList> same(Node& node) { return list_of(node.arg(0)); }
  // Python's slice, forwards.
  std::optional<NumberList> sliced(Node& node) {
    const std::optional<NumberList> list = list_of(node.arg(0));
    if (!list) return std::nullopt;
    const auto size = static_cast<std::int64_t>(list->size());
    const auto bound = [&](std::size_t at, std::int64_t otherwise) -> std::optional<std::int64_t> {
      if (at >= node.args().size() || node.arg(at).is_none()) return otherwise;
      std::optional<std::int64_t> value = number_of(node.arg(at));
      if (value && *value < 0) *value += size;
      return value ? std::optional(std::clamp<std::int64_t>(*value, 0, size)) : std::nullopt;
    };
    constexpr std::size_t kStep = 3;
    const std::optional<std::int64_t> start = bound(1, 0), end = bound(2, size),
                                      step = node.args().size() > kStep ? number_of(node.arg(kStep)) : 1;
    if (!start || !end || !step || *step <= 0 || !node.kwargs().empty()) return std::nullopt;
    NumberList all;
    for (std::int64_t i = *start; i < *end; i += *step) all.push_back((*list)[static_cast<std::size_t>(i)]);
    return all;
  }

  Graph& graph_;
  ValueShapes& values_;
  struct Found {
    Node* node;
    NumberList elements;
  };
  std::vector<Found> found_;
  std::map<const Node*, NumberList> known_;  // looked up, not gone through
};

}  // namespace

void take_lists_apart(Graph& graph, ValueShapes& values) {
  for (Node* number : graph.find_nodes(Op::call_function, Symbol("aten::len.t"))) {
    if (values[*number].kind == ValueShape::Kind::integer && !values[*number].varies)
      number->replace_all_uses_with(Argument(values[*number].integer.example));
  }
  NumberLists(graph, values).run();
}

}  // namespace fx::pt2
