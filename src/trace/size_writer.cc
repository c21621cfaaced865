#include <fxgraph/trace/size_writer.h>

#include <ATen/ops/to.h>

#include <algorithm>

#include <fxgraph/contract/assertions.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/run/value.h>
#include <fxgraph/text/size_report.h>
#include <fxgraph/trace/input_assertions.h>

namespace fx::internal {

std::string symbol_of(const SizePlace& place) {
  constexpr std::size_t kDigits = 8;
  const std::string call = std::to_string(place.first);
  return "s" + std::string(kDigits - std::min(kDigits, call.size()), '0') + call + "[" + std::to_string(place.second) +
         "]";
}

// ── Expressions ───────────────────────────────────────────────────────────────────────────────────────────────────

// Where the shape of a tensor may change later its size is read at once.
Node& SizeWriter::size_node(const SizePlace& place) {
  static const Symbol kSize("aten::size.int");
  Node* of = session_.standing_for(*log_[place.first].node);
  Node*& read = sizes_[{of, place.second}];
  if (read) return *read;
  const std::vector<Argument> args = {Argument(of), place.second};
  if (!session_.reshapes_in_place()) return *(read = &graph_.call_function(kSize, args));
  const auto at = graph_.inserting_after(last_placeholder(*of));
  return *(read = &graph_.call_function(kSize, args));
}

Node& SizeWriter::call(Symbol target, ArgumentSpan arguments) {
  std::string text = target.str();
  for (const Argument& argument : arguments) text += " " + to_string(argument);
  Node*& made = calls_[text];
  if (!made) made = &graph_.call_function(target, arguments);
  return *made;
}

Argument SizeWriter::argument(const SizeExpr& size) {
  static const std::map<std::string, Symbol> kOfReals = {
      {"Add", python::kAdd}, {"Mul", python::kMul}, {"FloatTrueDiv", python::kTrueDiv}, {"FloatPow", python::kSqrt}};
  if (!size.is_real()) {
    return numbers_.number(size, [this](const std::string& symbol) { return Argument(size_node(places_.at(symbol))); });
  }
  if (size.operands().empty()) return *size.evaluate_real({});
  const Symbol target = kOfReals.at(size.name());
  std::vector<Argument> args;
  for (const SizeExpr& operand : size.operands()) args.push_back(argument(operand));
  if (target == python::kSqrt) args.resize(1);
  return Argument(call(target, args));
}

void SizeWriter::write() {
  const auto place = [&](std::uint32_t call) { return log_[call].node; };
  std::stable_sort(replacements_.begin(), replacements_.end(), [&](const Replacement& a, const Replacement& b) {
    return a.call != b.call ? place(a.call)->is_before(*place(b.call)) : a.leaf < b.leaf;
  });
  std::size_t next_constant = 0;
  const auto constants_before = [&](const Node* node) {
    for (; next_constant < constants_.size(); ++next_constant) {
      if (node && !place(constants_[next_constant].call)->is_before(*node)) return;
      rewrite_constant(constants_[next_constant]);
    }
  };
  std::stable_sort(constants_.begin(), constants_.end(), [&](const SizedConstant& a, const SizedConstant& b) {
    return place(a.call)->is_before(*place(b.call));
  });
  for (std::size_t i = 0, end = 0; i < replacements_.size(); i = end) {
    while (end < replacements_.size() && replacements_[end].call == replacements_[i].call) ++end;
    constants_before(place(replacements_[i].call));
    rewrite_call(&replacements_[i], replacements_.data() + end);
  }
  constants_before(nullptr);
}

void SizeWriter::rewrite_call(const Replacement* first, const Replacement* last) {
  const TraceLog::Call& call = log_[first->call];
  Node& node = *call.node;
  const auto at = graph_.inserting_before(node);
  std::vector<Argument> args = node.args().to_vector();
  std::vector<NamedArgument> kwargs = node.kwargs().to_vector();
  const ArgumentSpan logged = log_.arguments(first->call);
  std::uint32_t leaf = 0;
  for (std::size_t i = 0, position = 0; i < logged.size(); ++i) {
    const std::uint32_t begin = leaf;
    leaf += count_leaves(logged[i]);
    const bool named = call.record ? call.record->arguments[i].keyword_only : i >= args.size();
    const std::size_t at_position = named ? 0 : position++;
    if (first == last || first->leaf >= leaf) continue;
    // What the node leaves out, being the default, is written now.
    Argument* value = nullptr;
    if (named && !call.record) {
      value = &kwargs[i - args.size()].value;
    } else if (named) {
      const Symbol name = call.record->arguments[i].name;
      auto known =
          std::find_if(kwargs.begin(), kwargs.end(), [&](const NamedArgument& each) { return each.name == name; });
      if (known == kwargs.end()) known = kwargs.insert(known, {name, logged[i]});
      value = &known->value;
    } else {
      for (std::size_t missing = args.size(); missing <= at_position; ++missing)
        args.push_back(logged[i - (at_position - missing)]);
      value = &args[at_position];
    }
    std::uint32_t here = begin;
    *value = map_leaves(*value, [&](const Argument& old) {
      if (first == last || first->leaf != here++) return old;
      return argument((first++)->size);
    });
  }
  node.set_args_kwargs(args, kwargs);
}

// Made anew in each run, of one number after the other.
void SizeWriter::rewrite_constant(const SizedConstant& constant) {
  static const Symbol kScalarTensor("aten::scalar_tensor"), kStack("aten::stack"), kReshape("aten::reshape");
  Node& node = *log_[constant.call].node;
  const auto at = graph_.inserting_before(node);
  const at::Tensor flat = constant.first.detach().flatten().to(at::kDouble);
  const at::Tensor whole = constant.first.detach().flatten();
  const bool real = at::isFloatingType(constant.first.scalar_type());
  std::vector<Argument> elements;
  for (std::int64_t i = 0; i < flat.numel(); ++i) {
    const auto changed = std::find_if(constant.elements.begin(), constant.elements.end(),
                                      [&](const auto& each) { return each.first == static_cast<std::size_t>(i); });
    const Argument number = changed != constant.elements.end() ? argument(changed->second)
                            : real                             ? Argument(flat[i].item<double>())
                                                               : Argument(whole[i].item<std::int64_t>());
    elements.push_back(Argument(graph_.call_function(
        kScalarTensor, {number}, {NamedArgument{"dtype", Argument(to_dtype(constant.first.scalar_type()))}})));
  }
  Node* made = &elements.front().node();
  if (constant.first.dim() > 0) {
    made = &graph_.call_function(kStack, std::vector<Argument>{Argument::list(elements)});
    if (constant.first.dim() > 1) {
      std::vector<Argument> sizes;
      for (const std::int64_t size : constant.first.sizes()) sizes.push_back(size);
      made = &graph_.call_function(kReshape, std::vector<Argument>{Argument(made), Argument::list(sizes)});
    }
  }
  node.replace_all_uses_with(*made);
  graph_.erase_node(node);
}

// ── Assertions ────────────────────────────────────────────────────────────────────────────────────────────────────

namespace {

class SizeAssertions {
 public:
  SizeAssertions(Graph& graph, const std::vector<BoundTensor>& inputs, const SizeGroups& groups)
      : graph_(graph), inputs_(inputs), groups_(groups) {}

  SizeNodes write() {
    // From the last on, each right after its input, so that they come in order; then what is said by sizes of several.
    for (std::size_t i = groups_.groups.size(); i-- > 0;) {
      const SizeGroup& group = groups_.groups[i];
      if (is_written(group.dimensions) && !is_tied(group)) write(group);
    }
    for (const SizeGroup& group : groups_.groups) {
      if (is_written(group.dimensions) && is_tied(group)) write_tie(group);
    }
    note();
    return std::move(sizes_);
  }

 private:
  const SizeDimension& dimension(std::uint32_t i) const { return groups_.dimensions[i]; }
  std::uint32_t first_of(std::uint32_t group) const { return groups_.groups[group].dimensions.front(); }
  std::string name(std::uint32_t i) const { return dimension_name(inputs_[dimension(i).input], dimension(i).dim); }
  Node& size(std::uint32_t i) {
    static const Symbol kSize("aten::size.int");
    Node* input = inputs_[dimension(i).input].node;
    Node*& node = sizes_[{input, dimension(i).dim}];
    if (!node) node = &graph_.call_function(kSize, {Argument(input), dimension(i).dim});
    return *node;
  }
  static std::string because(const SizeGroup& group) {
    std::string why = group.why.size() > 240 ? group.why.substr(0, 237) + "..." : group.why;
    if (!group.where.empty()) why += " (" + group.where + ")";
    return why;
  }
  static std::string reason(const SizeGroup& group) {
    const std::string why = because(group);
    return why.empty() ? "" : ": " + why;
  }
  void assert_that(SizeRelation relation, Node& size, const Argument& value, const std::string& message) const {
    AssertionWriter(graph_).add(relation, size, value, message);
  }

  static bool is_tied(const SizeGroup& group) { return group.follows && !group.fixed; }
  // Nothing computes with an input that has gone: its sizes do not matter.
  bool is_written(const std::vector<std::uint32_t>& some) const {
    return !some.empty() && std::none_of(some.begin(), some.end(), [this](std::uint32_t each) {
      return inputs_[dimension(each).input].node->is_erased();
    });
  }
  Node& end_of_inputs(std::uint32_t i) const { return last_placeholder(*inputs_[dimension(i).input].node); }

  // The last of the inputs that have these dimensions, and of what has been read of their sizes.
  Node& last_of(const std::vector<std::uint32_t>& named) const {
    Node* last = &end_of_inputs(named.front());
    for (const std::uint32_t each : named) {
      const auto read = sizes_.find({inputs_[dimension(each).input].node, dimension(each).dim});
      for (Node* node : {&end_of_inputs(each), read == sizes_.end() ? last : read->second}) {
        if (last->is_before(*node)) last = node;
      }
    }
    return *last;
  }

  void write_tie(const SizeGroup& group) {
    std::vector<std::uint32_t> named = group.dimensions;
    for (const std::uint32_t of : groups_.groups_of(*group.follows)) named.push_back(first_of(of));
    if (!is_written(named)) return;
    const auto at = graph_.inserting_after(last_of(named));
    const std::uint32_t first = group.dimensions.front();
    write_equal(group);
    Node& of = size(first);
    const Argument computed = AssertionWriter(graph_).number(*group.follows, [this](const std::string& dimension) {
      return Argument(size(first_of(groups_.group_of(dimension))));
    });
    assert_that(SizeRelation::equal, of, computed,
                name(first) + " must be equal to " + group.follows->str() + reason(group));
  }

  void write_equal(const SizeGroup& group) {
    const std::uint32_t first = group.dimensions.front();
    for (std::size_t i = 1; i < group.dimensions.size(); ++i) {
      const std::uint32_t other = group.dimensions[i];
      assert_that(SizeRelation::equal, size(other), Argument(size(first)),
                  name(other) + " must be equal to " + name(first) + reason(group));
    }
  }

  void write(const SizeGroup& group) {
    const auto at = graph_.inserting_after(last_of(group.dimensions));
    const std::uint32_t first = group.dimensions.front();
    const std::string reason = this->reason(group);
    const std::string holds = name(first) + " must be ";
    if (!group.fixed) write_equal(group);
    if (group.fixed) {
      for (const std::uint32_t each : group.dimensions) {
        assert_that(SizeRelation::equal, size(each), group.size,
                    name(each) + " must be " + std::to_string(group.size) + reason);
      }
      return;
    }
    if (group.step != 1) {
      Node& rest = graph_.call_function(python::kMod, {Argument(size(first)), group.step});
      assert_that(SizeRelation::equal, rest, 0, holds + "a multiple of " + std::to_string(group.step) + reason);
    }
    if (!group.below_said)
      assert_that(SizeRelation::at_least, size(first), group.lowest,
                  holds + "at least " + std::to_string(group.lowest) + reason);
    if (!group.above_said)
      assert_that(SizeRelation::at_most, size(first), group.highest,
                  holds + "at most " + std::to_string(group.highest) + reason);
  }

  void note() const {
    std::vector<std::vector<SizeStatement>> by_input(inputs_.size());
    for (const SizeGroup& group : groups_.groups) {
      if (group.dimensions.empty()) continue;
      SizeStatement statement;
      using Kind = SizeStatement::Kind;
      statement.kind = group.fixed       ? Kind::fixed
                       : group.follows   ? Kind::tied
                       : group.step != 1 ? Kind::steps
                                         : Kind::any;
      if (statement.kind == Kind::any || statement.kind == Kind::steps)
        statement.probed.assign(group.probed.begin(), group.probed.end());
      if (statement.kind == Kind::tied) statement.expression = group.follows->str();
      statement.value = group.fixed ? group.size : group.follows ? 0 : group.step;
      for (const std::uint32_t each : group.dimensions) {
        statement.dimensions += (statement.dimensions.empty() ? "" : " = ") + name(each);
      }
      if (!group.fixed && !group.below_said) statement.dimensions += " >= " + std::to_string(group.lowest);
      if (!group.fixed && !group.above_said) statement.dimensions += " <= " + std::to_string(group.highest);
      const bool free = statement.kind == Kind::any && group.dimensions.size() == 1;
      if (!free || !group.below_said || !group.above_said) statement.why = because(group);
      by_input[dimension(group.dimensions.front()).input].push_back(std::move(statement));
    }
    std::unordered_map<Node*, std::vector<SizeStatement>> by_placeholder;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      Node* node = inputs_[i].placeholder;
      std::vector<SizeStatement>& all = by_placeholder[node];
      all.insert(all.end(), by_input[i].begin(), by_input[i].end());
      node->meta().set(meta_key::kSizes, all);
    }
  }

  Graph& graph_;
  const std::vector<BoundTensor>& inputs_;
  const SizeGroups& groups_;
  SizeNodes sizes_;
};

}  // namespace

SizeNodes write_size_assertions(Graph& graph, const std::vector<BoundTensor>& inputs, const SizeGroups& groups) {
  return SizeAssertions(graph, inputs, groups).write();
}

}  // namespace fx::internal
