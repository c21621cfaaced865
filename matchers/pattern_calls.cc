// What the calls of a pattern mean: operators in place of Python's spellings, and the overloads that take the
// arguments.
#include <algorithm>

#include <fxgraph/ir/target.h>
#include <fxgraph/matchers/pattern_data.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/schema_registry.h>
#include <fxgraph/support/error.h>

namespace fx::internal {

namespace {

// ── Overloads ────────────────────────────────────────────────────────────────────────────────────────────────────────

bool is_on_tensors(const OperatorSchema& schema) {
  const auto tensor = [](const auto& value) { return value.type.is_tensor(); };
  return std::ranges::any_of(schema.arguments, tensor) || std::ranges::any_of(schema.returns, tensor);
}

/// False for a number where the overload wants a tensor: there is another for numbers.
bool may_be(const PatternNode& operand, const SchemaArgument& argument) {
  const bool number = operand.kind == PatternKind::literal &&
                      (operand.literal.is_int() || operand.literal.is_float() || operand.literal.is_bool());
  return !number || !argument.type.is_tensor() || argument.type.list;
}

/// True when the overload can be called with as many arguments, and the keywords, that the pattern writes. Where it is
/// `one` of several, numbers are not for tensors.
bool takes(const OperatorSchema& schema, const PatternData& data, const PatternNode& node, bool one) {
  if (node.bare) return true;
  if (node.args.size() > schema.num_positional() && !schema.varargs) return false;
  std::vector<bool> given(schema.arguments.size());
  std::fill_n(given.begin(), std::min(node.args.size(), given.size()), true);
  for (const auto& [name, value] : node.kwargs) {
    const int at = schema.index_of(name);
    if (at < 0 || given[static_cast<std::size_t>(at)]) return false;
    given[static_cast<std::size_t>(at)] = true;
    if (one && !may_be(data.nodes[value], schema.arguments[static_cast<std::size_t>(at)])) return false;
  }
  for (std::size_t i = 0; i < std::min(node.args.size(), schema.arguments.size()); ++i) {
    const bool swaps = node.commutative && i < 2;
    if (one && !swaps && !may_be(data.nodes[node.args[i]], schema.arguments[i])) return false;
  }
  if (node.open) return true;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!given[i] && !schema.arguments[i].default_value && !changes_no_value(schema.arguments[i].name)) return false;
  }
  return true;
}

void append_new(std::vector<Symbol>& names, Symbol name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

/// `aten::view` is all its overloads, `aten::view.default` the one of that name.
bool is_packet(Symbol written) {
  const Symbol name = canonical_target(written);
  return packet_of(name.view()) == name.view() && !written.view().ends_with(".default");
}

/// Adds what a name stands for: itself, or, without an overload, those that take the arguments.
void expand(Symbol written, const PatternData& data, const PatternNode& node, std::vector<Symbol>& names) {
  const TargetInfo& info = target_info(written);
  const bool packet = is_packet(written);
  const Overloads& own = *info.overloads;
  const Overloads& overloads = own.empty() ? *target_info(info.name).overloads : own;
  if (!packet || overloads.empty()) return append_new(names, info.name);
  const std::size_t before = names.size();
  const bool tensors = info.schema && is_on_tensors(*info.schema);  // and the others are Python's numbers
  for (const OperatorSchema* schema : overloads) {
    if (takes(*schema, data, node, true) && (!tensors || is_on_tensors(*schema)))
      append_new(names, target_info(schema->target).name);
  }
  if (names.size() == before) append_new(names, info.name);
}

/// What no operator goes by, or takes.
void note_problems(PatternData& data, const PatternNode& node) {
  for (const Symbol written : node.targets.names()) {
    const Symbol name = canonical_target(written);
    if (std::optional<CallProblem> problem = unknown_name(node.op, name)) {
      data.problems.push_back(*std::move(problem));
      continue;
    }
    const TargetInfo& info = target_info(name);
    const bool packet = is_packet(written);
    // An overload that is spelt out takes a number for a tensor, as Python passes it.
    const auto fits = [&](const OperatorSchema* schema) {
      return (packet || schema == info.schema) && takes(*schema, data, node, packet);
    };
    if (info.overloads->empty() || std::ranges::any_of(*info.overloads, fits)) continue;
    std::string message = "no overload of " + name.str() + " takes these arguments";
    if (info.overloads->size() == 1 || !packet)
      message = name.str() +
                " does not take these arguments: " + (info.schema ? *info.schema : *info.overloads->front()).str();
    data.problems.push_back({std::move(message), name});
  }
}

// ── Python's spellings ───────────────────────────────────────────────────────────────────────────────────────────────

/// The one name of a call, as it is written or as spelt() wants it; empty where there are several.
Symbol python_spelling(const PatternNode& node) {
  const std::vector<Symbol>&names = node.targets.names(), &spellings = node.targets.spellings();
  if (!node.targets.is_finite() || names.size() + spellings.size() != 1) return {};
  return canonical_target(names.empty() ? spellings[0] : names[0]);
}

/// Makes a call that is written in Python's words the operator's: a graph of this one call is asked what it calls.
class Translator {
 public:
  Translator(const PatternData& data, const PatternNode& call) : data_(data), call_(call) {}

  /// Rewrites `made`, a copy of the call whose operands are moved; literals that it needs go to `add`.
  template <typename Add>
  bool translate(PatternNode& made, Add&& add) {
    std::vector<Argument> args;
    std::vector<NamedArgument> kwargs;
    for (std::size_t i = 0; i < call_.args.size(); ++i) args.push_back(value_for(call_.args[i], made.args[i]));
    for (std::size_t i = 0; i < call_.kwargs.size(); ++i)
      kwargs.push_back({call_.kwargs[i].first, value_for(call_.kwargs[i].second, made.kwargs[i].second)});
    const Node& node = graph_.create_node(call_.op, python_spelling(call_), args, kwargs);
    const std::optional<PatternCall> found = meaning_of(node);
    if (!found) return false;
    if (call_.targets.spellings().empty()) {
      made.op = Op::call_function;
      made.targets = TargetSet(found->target);
    } else {
      made.meaning = found->target;
    }
    made.args.clear();
    made.kwargs.clear();
    for (const Argument& arg : found->args) made.args.push_back(pattern_of(arg, add));
    for (const auto& [name, value] : found->kwargs) made.kwargs.emplace_back(name, pattern_of(value, add));
    return true;
  }

 private:
  std::optional<PatternCall> meaning_of(const Node& node) const {
    if (call_.open) return python_call_in_pattern(node, true);
    const Call found = call_of(node);
    if (!found) return python_call_in_pattern(node, false);
    PatternCall made{Symbol(packet_of(found.schema().target.view())), found.args().to_vector(), {}};
    for (const auto& [name, value] : found.kwargs()) made.kwargs.push_back({name, value});
    return made;
  }

  struct Given {
    Argument value;
    std::uint32_t pattern;
  };

  Argument value_for(std::uint32_t index, std::uint32_t moved) {
    const PatternNode& operand = data_.nodes[index];
    Argument value;
    if (operand.kind == PatternKind::literal) {
      value = operand.literal;
    } else if (operand.kind != PatternKind::absent) {
      Node& node = graph_.placeholder("x");
      if (const std::string_view type = type_of(operand); !type.empty())
        node.meta().set(meta_key::kType, std::string(type));
      value = Argument(node);
    }
    given_.push_back({value, moved});
    return value;
  }

  std::string_view type_of(const PatternNode& operand) const {
    if (operand.kind == PatternKind::sequence) {
      const bool numbers = std::ranges::any_of(operand.args, [&](std::uint32_t element) {
        const PatternKind kind = data_.nodes[element].kind;
        return kind == PatternKind::literal || kind == PatternKind::hole;
      });
      return numbers ? "List[int]" : "List[Tensor]";
    }
    if (operand.kind != PatternKind::hole) return {};
    constexpr std::string_view kTypes[] = {"float", "int", "float", "bool",
                                           "str"};  // by kind, the first stands for any
    return kTypes[static_cast<std::size_t>(operand.hole)];
  }

  template <typename Add>
  std::uint32_t pattern_of(const Argument& value, Add&& add) {
    for (const Given& known : given_) {
      if (known.value == value) return known.pattern;
    }
    PatternNode made;
    made.kind = names_nodes(value) ? PatternKind::sequence : PatternKind::literal;
    if (made.kind == PatternKind::literal) {
      made.literal = value;
    } else {
      made.container = value.kind();
      for (const Argument& element : value.elements()) made.args.push_back(pattern_of(element, add));
    }
    return add(std::move(made));
  }

  const PatternData& data_;
  const PatternNode& call_;
  Graph graph_;
  std::vector<Given> given_;
};

bool is_spelt_in_python(const PatternNode& node, bool from_graph) {
  const Symbol name = node.kind == PatternKind::call ? python_spelling(node) : Symbol();
  if (name.empty() || (node.bare && node.targets.names().empty())) return false;  // spelt, whatever its arguments
  if (node.op != Op::call_function && !(from_graph && node.op == Op::call_method)) return false;
  if (node.op == Op::call_function && !target_info(name).overloads->empty()) return false;
  return !candidate_overloads(node.op, name).empty();
}

void move_operands(PatternNode& node, const std::vector<std::uint32_t>& moved) {
  for (std::uint32_t& arg : node.args) arg = moved[arg];
  for (auto& [name, value] : node.kwargs) value = moved[value];
}

/// Operands stay before their users: literals that a translation adds stand in front of the call.
void translate(PatternData& data) {
  const auto spelt = [&](const PatternNode& node) { return is_spelt_in_python(node, data.from_graph); };
  if (std::ranges::none_of(data.nodes, spelt)) return;
  std::vector<PatternNode> nodes;
  std::vector<std::uint32_t> moved;
  const auto add = [&](PatternNode node) {
    nodes.push_back(std::move(node));
    return static_cast<std::uint32_t>(nodes.size() - 1);
  };
  for (const PatternNode& node : data.nodes) {
    PatternNode made = node;
    move_operands(made, moved);
    if (spelt(node)) {
      if (node.bare) {
        std::vector<Symbol> names;
        for (const OperatorSchema* schema : candidate_overloads(node.op, python_spelling(node)))
          append_new(names, schema->target);
        made.op = Op::call_function;
        made.targets = TargetSet(std::vector<TargetSet>(names.begin(), names.end()));
      } else {
        Translator(data, node).translate(made, add);
      }
    }
    moved.push_back(add(std::move(made)));
  }
  for (PatternNode& node : nodes) {
    for (std::uint32_t& dim : node.dims) dim = moved[dim];
    if (node.tail != kNoPattern) node.tail = moved[node.tail];
  }
  for (std::vector<std::uint32_t>* list : {&data.outputs, &data.roots, &data.inputs}) {
    for (std::uint32_t& index : *list) index = moved[index];
  }
  data.nodes = std::move(nodes);
}

}  // namespace

bool changes_no_value(Symbol argument) {
  constexpr std::string_view kNames[] = {"cudnn_enable", "cudnn_enabled", "benchmark", "deterministic", "allow_tf32"};
  return std::ranges::find(kNames, argument.view()) != std::end(kNames);
}

void resolve_calls(PatternData& data) {
  data.problems.clear();
  translate(data);
  for (PatternNode& node : data.nodes) {
    if (node.kind != PatternKind::call || node.op != Op::call_function) continue;
    node.operators.clear();
    for (const Symbol name : node.targets.names()) expand(name, data, node, node.operators);
    if (!node.meaning.empty()) expand(node.meaning, data, node, node.operators);
    note_problems(data, node);
  }
}

}  // namespace fx::internal
