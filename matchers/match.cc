#include <fxgraph/matchers/match.h>

#include <algorithm>
#include <ostream>

#include <fxgraph/ir/graph_order.h>
#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/matchers/reading.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/support/error.h>

namespace fx {

using internal::PatternKind;
using internal::PatternNode;

const Argument& Match::at(std::string_view name, std::uint32_t* index) const {
  for (std::uint32_t i = 0; pattern_ && i < pattern_->nodes.size(); ++i) {
    if (pattern_->nodes[i].name.empty() || pattern_->nodes[i].name != name) continue;
    if (index) *index = i;
    return values_[i];
  }
  throw Error(ErrorKind::not_found, "the pattern binds nothing called '" + std::string(name) + "'");
}

Node& Match::operator[](std::string_view name) const {
  const Argument& value = at(name);
  if (Node* node = value.node_or_null()) return *node;
  throw Error(ErrorKind::invalid_argument, "'" + std::string(name) + "' is bound to " + to_string(value) +
                                               ", not to a node; read it with argument() or literal()");
}

const Argument& Match::argument(std::string_view name) const { return at(name); }

double Match::literal(std::string_view name) const {
  const Argument& value = at(name);
  if (value.is_int() || value.is_float()) return value.as_float();
  if (value.is_bool()) return value.as_bool() ? 1 : 0;
  throw Error(ErrorKind::invalid_argument,
              "'" + std::string(name) + "' is bound to " + to_string(value) + ", which is no number");
}

bool Match::has(std::string_view name) const {
  for (std::size_t i = 0; pattern_ && i < pattern_->nodes.size(); ++i) {
    if (!pattern_->nodes[i].name.empty() && pattern_->nodes[i].name == name) return !values_[i].is_none();
  }
  return false;
}

RestArguments Match::rest(std::string_view name) const {
  std::uint32_t index = 0;
  const Argument& value = at(name, &index);
  if (pattern_->nodes[index].kind != PatternKind::rest)
    throw Error(ErrorKind::invalid_argument, "'" + std::string(name) + "' is no rest of a call");
  RestArguments rest;
  for (const Argument& element : value.elements()) {
    if (!element.is_dict()) {
      rest.args.push_back(element);
      continue;
    }
    const ArgumentSpan pairs = element.elements();
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2)
      rest.kwargs.push_back({Symbol(pairs[i].as_string()), pairs[i + 1]});
  }
  return rest;
}

TensorFacts Match::info(std::string_view name) const {
  const Node* node = at(name).node_or_null();
  return node ? info(*node) : TensorFacts();
}

TensorFacts Match::info(const Node& node) const {
  const bool inside = reading_ && &node.graph() == &reading_->graph();
  const Shapes* shapes = inside ? reading_->options().shapes : shapes_;
  return {shapes ? (*shapes)[node].tensor() : nullptr, node, notes_ ? &asked_ : nullptr};
}

Symbol Match::called(std::string_view name) const {
  std::uint32_t index = 0;
  at(name, &index);
  const Node& node = reading_ ? read_[index].node() : (*this)[name];
  const Call call = call_of(node);
  return call ? call.schema().target : node.target();
}

std::vector<std::string> Match::definitions() const {
  std::vector<std::string> names;
  if (!reading_) return names;
  for (const Definition* row : reading_->rows(read_)) names.push_back(row->name);
  return names;
}

int Match::alternative(std::string_view name) const {
  std::uint32_t index = 0;
  at(name, &index);
  if (pattern_->nodes[index].kind == PatternKind::one_of) return alternatives_[index];
  throw Error(ErrorKind::invalid_argument, "'" + std::string(name) + "' is no one_of, it has no alternatives");
}

Node& Match::anchor() const {
  if (!pattern_) throw Error(ErrorKind::invalid_argument, "the match is of no pattern, it has no anchor");
  return values_[pattern_->anchor].node();
}

std::vector<Argument> Match::outputs() const {
  std::vector<Argument> values;
  if (!pattern_) return values;
  for (const std::uint32_t output : pattern_->outputs) values.push_back(values_[output]);
  return values;
}

bool Match::contains(const Node& node) const { return std::find(nodes_.begin(), nodes_.end(), &node) != nodes_.end(); }

std::vector<Node*> Match::skipped() const {
  std::vector<Node*> nodes;
  for (const auto& [pattern, node] : interior_) {
    if (pattern_->nodes[pattern].kind == PatternKind::transparent) nodes.push_back(node);
  }
  std::sort(nodes.begin(), nodes.end(), GraphOrder{});
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

std::vector<Node*> Match::path(std::string_view name) const {
  std::uint32_t index = 0;
  at(name, &index);
  if (pattern_->nodes[index].kind != PatternKind::dominated)
    throw Error(ErrorKind::invalid_argument, "'" + std::string(name) + "' is no dominates(), it has no path");
  std::vector<Node*> nodes;
  for (const auto& [pattern, node] : interior_) {
    if (pattern == index) nodes.push_back(node);
  }
  return nodes;
}

std::vector<std::pair<Symbol, Argument>> Match::bindings() const {
  std::vector<std::pair<Symbol, Argument>> result;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (!pattern_->nodes[i].name.empty()) result.emplace_back(pattern_->nodes[i].name, values_[i]);
  }
  return result;
}

std::ostream& operator<<(std::ostream& out, const Match& match) {
  if (match.values().empty()) return out << "no match";
  out << match.anchor() << " {";
  bool first = true;
  for (const auto& [name, value] : match.bindings()) {
    out << (first ? "" : ", ") << name << ": " << to_string(value, NodeStyle::plain);
    first = false;
  }
  out << "}";
  first = true;
  for (const Node* node : match.skipped()) {
    out << (first ? " through " : ", ") << *node;
    first = false;
  }
  first = true;
  for (const std::string& name : match.definitions()) {
    out << (first ? " by " : ", ") << name;
    first = false;
  }
  return out;
}

InternalMatch internal_match(const Match& match) {
  const internal::PatternData& pattern = internal::PatternAccess::of(match);
  std::vector<bool> used(pattern.nodes.size());
  for (const PatternNode& node : pattern.nodes) {
    node.for_each_child([&](std::uint32_t child) { used[child] = true; });
  }
  InternalMatch result;
  for (const std::uint32_t output : pattern.outputs) {
    Node* node = match.values()[output].node_or_null();
    if (!node) continue;
    result.returning_nodes.push_back(node);
    if (!used[output]) result.anchors.push_back(node);
  }
  for (std::size_t i = 0; i < pattern.nodes.size(); ++i) {
    if (pattern.nodes[i].name.empty()) continue;
    const std::string name = pattern.nodes[i].name.str();
    result.nodes_map.emplace_back(name, match.values()[i]);
    if (Node* node = match.values()[i].node_or_null()) result.name_node_map.emplace_back(name, node);
  }
  for (const std::uint32_t input : pattern.inputs) result.placeholder_nodes.push_back(match.values()[input]);
  return result;
}

}  // namespace fx
