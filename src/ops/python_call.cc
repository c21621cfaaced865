#include <fxgraph/ops/call.h>

#include <algorithm>

#include <boost/container/small_vector.hpp>

#include <fxgraph/ops/argument_type.h>
#include <fxgraph/ops/overload_resolution.h>
#include <fxgraph/ops/python_target.h>
#include <fxgraph/ops/row_binding.h>

namespace fx::internal {

namespace {

using Base = SchemaType::Base;

// Calls are translated by the thousand, and have few arguments.
using Arguments = boost::container::small_vector<Argument, 6>;
using Keywords = boost::container::small_vector<NamedArgument, 4>;

// A call on its way from Python's words to the operator's.
struct Translation {
  const OperatorSchema* schema = nullptr;
  Arguments args;
  Keywords kwargs;

  ArgumentSpan positional() const { return std::span(args.data(), args.size()); }
  // Takes the overload that fits best without forcing what is given; false when none fits.
  bool choose(std::span<const OperatorSchema* const> overloads) {
    schema =
        best_overload(overloads, positional(), std::span<const NamedArgument>(kwargs.data(), kwargs.size()), false);
    return schema != nullptr;
  }
};

// ── Calls with the operator's own arguments: torch.add(x, y, alpha=2), x.view(2, -1) ─────────────────────────────────

bool any_takes(const Overloads& overloads, Symbol name) {
  return std::ranges::any_of(overloads, [&](const OperatorSchema* schema) { return schema->index_of(name) >= 0; });
}

// Keywords as the operator spells them, without those that say nothing.
Keywords operator_keywords(const Overloads& overloads, KwargSpan kwargs) {
  Keywords kept;
  for (const auto& [name, value] : kwargs) {
    if (name == "out" && value.is_none()) continue;
    Symbol spelt = name;
    if (!any_takes(overloads, name)) {
      if (name == "requires_grad" && value == Argument(false)) continue;
      for (const KeywordRow& row : keyword_synonyms()) {
        if (name == row.python) spelt = Symbol(row.aten);
      }
    }
    kept.push_back({spelt, value});
  }
  return kept;
}

bool is_unsized_number_list(const SchemaType& type) {
  return type.list && type.fixed_size == 0 && type.base == Base::integer;
}

// `x.view(n)` with an n that may be an int or a size: which of two overload forms is meant cannot be told.
bool is_ambiguous(const Translation& call, std::size_t first) {
  return call.args.size() == first + 1 && !call.schema->varargs &&
         is_unsized_number_list(call.schema->arguments[first].type) && call.args[first].is_node() &&
         !argument_type(call.args[first]).known;
}

// Python lets ints stand for a list when the list is all that is given by position: x.view(2, -1), torch.zeros(2, 3).
bool gather_ints(Arguments& args, std::size_t first) {
  if (args.size() <= first) return false;
  for (std::size_t i = first; i < args.size(); ++i) {
    const ArgumentType kind = argument_type(args[i]);
    const bool may_be_int =
        args[i].is_int() || (args[i].is_node() && (!kind.known || kind == ArgumentType{Base::integer}));
    if (!may_be_int) return false;
  }
  const Argument list = Argument::list(ArgumentSpan(args.data(), args.size(), sizeof(Argument)).subspan(first));
  args.resize(first);
  args.push_back(list);
  return true;
}

bool same_arguments_call(const Overloads& overloads, const Node& node, Translation& call) {
  if (overloads.empty()) return false;
  const std::size_t first = node.is(Op::call_method) ? 1 : 0;
  call.args.assign(node.args().begin(), node.args().end());
  call.kwargs = operator_keywords(overloads, node.kwargs());
  if (call.choose(overloads)) return !node.is(Op::call_method) || !is_ambiguous(call, first);
  if (!gather_ints(call.args, first)) return false;
  Overloads of_lists;
  std::ranges::copy_if(overloads, std::back_inserter(of_lists), [&](const OperatorSchema* schema) {
    return schema->num_positional() == first + 1 && is_unsized_number_list(schema->arguments[first].type);
  });
  return call.choose(of_lists);
}

// ── Calls that the table of functions translates ─────────────────────────────────────────────────────────────────────

bool resolve_strictly(Symbol target, const Overloads& reached, Translation& call) {
  const TargetInfo& info = target_info(target);
  if (target.view() == packet_of(target.view())) return call.choose(reached.empty() ? *info.overloads : reached);
  return info.schema && call.choose({&info.schema, 1});
}

// Python's defaults are spelt out in the row; where the operator's are the same they need not be.
void drop_defaults(Translation& call) {
  const std::vector<SchemaArgument>& wanted = call.schema->arguments;
  const auto is_default = [](const SchemaArgument& argument, const Argument& value) {
    return argument.default_value && same_argument(argument.type, value, *argument.default_value);
  };
  const auto kept = std::ranges::remove_if(call.kwargs, [&](const NamedArgument& kwarg) {
    return is_default(wanted[static_cast<std::size_t>(call.schema->index_of(kwarg.name))], kwarg.value);
  });
  call.kwargs.erase(kept.begin(), kept.end());
  while (!call.schema->varargs && !call.args.empty() && is_default(wanted[call.args.size() - 1], call.args.back())) {
    call.args.pop_back();
  }
}

std::optional<Argument> number_of(std::string_view words, const Argument& value) {
  if (!value.is_string()) return std::nullopt;
  for (const WordRow& row : python_words()) {
    if (row.words == words && row.word == value.as_string()) return Argument(row.number);
  }
  return std::nullopt;
}

// A list, or nothing, stays; of a node it must be known which of the two it is.
std::optional<Argument> repeated(std::size_t times, const Argument& value) {
  const ArgumentType type = argument_type(value);
  if (is_number_type(type)) return Argument::list(std::vector<Argument>(times, value));
  if (value.is_node() && !type.list) return std::nullopt;
  return value;
}

std::optional<Argument> half_of(PythonItem::Half half, const Argument& value) {
  const bool left = half == PythonItem::Half::left;
  if (value.is_sequence() && value.elements().size() == 2) return repeated(1, value.elements()[left ? 0 : 1]);
  if (!value.is_int() || value.as_int() < 0 || value.as_int() > 64) return std::nullopt;
  std::vector<Argument> dims;
  for (std::int64_t i = 0; i < value.as_int(); ++i) dims.push_back(Argument(left ? i - value.as_int() : i));
  return Argument::list(dims);
}

// The in-place operator where the row's `inplace` is True; nothing where that cannot be told.
std::optional<Symbol> target_of(const PythonRow& row, const RowBinding& values) {
  if (row.inplace == PythonItem::kLiteral || !values.is_given(row.inplace)) return row.target;
  const Argument& inplace = values[row.inplace];
  if (!inplace.is_bool()) return std::nullopt;
  return inplace.as_bool() ? Symbol(row.target.str() + "_") : row.target;
}

bool row_call(const PythonRow& row, const Overloads& reached, const Node& node, Translation& call) {
  RowBinding values;
  if (!values.bind(row, node) || !values.holds(row)) return false;
  const std::optional<Symbol> target = target_of(row, values);
  if (!target) return false;
  call = {};
  for (const PythonItem& item : row.items) {
    const bool literal = item.parameter == PythonItem::kLiteral || (item.literal && values[item.parameter].is_none());
    std::optional<Argument> value = literal ? *item.literal : values[item.parameter];
    if (!item.words.empty()) value = number_of(item.words, *value);
    if (item.repeated > 0) value = repeated(item.repeated, *value);
    if (item.half != PythonItem::Half::none) value = half_of(item.half, *value);
    if (!value) return false;
    if (item.keyword.empty()) {
      call.args.push_back(*std::move(value));
    } else {
      call.kwargs.push_back({item.keyword, *std::move(value)});
    }
  }
  if (!resolve_strictly(*target, *target == row.target ? reached : Overloads(), call)) return false;
  drop_defaults(call);
  return true;
}

// ── Calls in patterns ────────────────────────────────────────────────────────────────────────────────────────────────

std::optional<PatternCall> same_arguments_in_pattern(Symbol packet, const Node& node) {
  const Overloads& overloads = *target_info(packet).overloads;
  const Keywords kwargs = operator_keywords(overloads, node.kwargs());
  const auto takes = [&](const OperatorSchema* schema) {
    return node.args().size() <= schema->num_positional() &&
           std::ranges::all_of(kwargs, [&](const NamedArgument& given) { return schema->index_of(given.name) >= 0; });
  };
  if (std::ranges::none_of(overloads, takes)) return std::nullopt;
  return PatternCall{packet, node.args().to_vector(), {kwargs.begin(), kwargs.end()}};
}

// An argument that the row does not make of a parameter is not mentioned by an open call; wildcards stand for the
// operator's words.
std::optional<Argument> value_in_pattern(const PythonItem& item, const RowBinding& values, bool open) {
  const bool literal = item.parameter == PythonItem::kLiteral;
  if (literal) return open ? std::nullopt : item.literal;
  if (!values.is_given(item.parameter)) return std::nullopt;
  const Argument& value = values[item.parameter];
  if (value.is_none() && item.literal) return item.literal;
  if (value.is_node()) return value;
  if (!item.words.empty()) return number_of(item.words, value);
  if (item.half != PythonItem::Half::none) return half_of(item.half, value);
  return item.repeated > 0 ? repeated(item.repeated, value) : value;
}

std::optional<PatternCall> row_call_in_pattern(const PythonRow& row, const Node& node, bool open) {
  RowBinding values;
  if (row.target.empty() || !values.bind(row, node, open) || !values.holds(row)) return std::nullopt;
  if (row.same_arguments) return same_arguments_in_pattern(row.target, node);
  const std::optional<Symbol> target = target_of(row, values);
  if (!target) return std::nullopt;
  const TargetInfo& info = target_info(*target);
  const OperatorSchema* schema = info.schema               ? info.schema
                                 : info.overloads->empty() ? nullptr
                                                           : info.overloads->front();
  PatternCall made{Symbol(packet_of(target->view())), {}, {}};
  bool all = true;  // so far: behind a gap arguments have names
  for (std::size_t i = 0; i < row.items.size(); ++i) {
    const PythonItem& item = row.items[i];
    std::optional<Argument> value = value_in_pattern(item, values, open);
    const bool written = item.parameter != PythonItem::kLiteral && values.is_given(item.parameter);
    if (!value && (written || !open)) return std::nullopt;
    all = all && value;
    if (!value) continue;
    if (all && item.keyword.empty()) {
      made.args.push_back(*std::move(value));
    } else if (const Symbol name = item.keyword.empty() && schema ? schema->arguments.at(i).name : item.keyword;
               !name.empty()) {
      made.kwargs.push_back({name, *std::move(value)});
    } else {
      return std::nullopt;
    }
  }
  return made;
}

// ── Module operator ──────────────────────────────────────────────────────────────────────────────────────────────────

// A bool is an int there; TorchScript's Scalars are none.
Overloads without_scalars(const Overloads& overloads) {
  Overloads kept;
  std::ranges::copy_if(overloads, std::back_inserter(kept), [](const OperatorSchema* schema) {
    return std::ranges::none_of(schema->arguments, [](const auto& each) { return each.type.base == Base::scalar; });
  });
  return kept;
}

bool operator_call(const PythonTarget& target, const Node& node, Translation& call) {
  if (!node.kwargs().empty()) return false;
  call.args.assign(node.args().begin(), node.args().end());
  bool numbers = true, ints = true, bools = false;
  for (const Argument& operand : call.args) {
    const ArgumentType kind = argument_type(operand);
    if (kind.list) return false;  // Python's lists: no operator computes with them
    numbers &= is_number_type(kind);
    ints &= kind.base == Base::integer || kind.base == Base::boolean;
    bools |= kind.base == Base::boolean;
  }
  // Of the kind that the values decide; TorchScript's have one type, and round.
  if (numbers && target.op->packet.starts_with("aten::pow")) return false;
  // Python's remainder decides; TorchScript's rounds what it divides.
  if (numbers && !ints && target.op->numbers == "aten::floordiv") return false;
  if (numbers) {
    const bool found = (bools && call.choose(without_scalars(target.of_numbers))) || call.choose(target.of_numbers);
    return found && !call.schema->arguments[0].type.is_tensor();
  }
  if (call.choose(target.of_tensors)) return true;
  if (call.args.size() != 2 || !is_number_type(argument_type(call.args[0]))) return false;
  std::swap(call.args[0], call.args[1]);
  return call.choose(target.of_mirrored);
}

bool translate(const Node& node, Translation& call) {
  const PythonTarget& target = python_target(node.op(), node.target());
  if (target.op) return operator_call(target, node, call);
  for (std::size_t i = 0; i < target.rows.size(); ++i) {
    const PythonRow& row = target.rows[i];
    const Overloads& reached = target.of_rows[i];
    if (row.same_arguments ? same_arguments_call(reached, node, call) : row_call(row, reached, node, call)) return true;
  }
  return same_arguments_call(target.of_packet, node, call);
}

// Python repeats a single number, alone or in a list, where an operator takes a list of fixed size; not every way to
// run operators does.
void repeat_numbers(Translation& call) {
  const auto repeat = [](const SchemaType& type, Argument& value) {
    if (type.fixed_size == 0) return;
    const bool alone = value.is_sequence() && value.elements().size() == 1 && type.fixed_size > 1;
    const Argument one = alone ? value.elements()[0] : value;
    if (is_number_type(argument_type(one))) value = Argument::list(std::vector<Argument>(type.fixed_size, one));
  };
  const std::vector<SchemaArgument>& wanted = call.schema->arguments;
  for (std::size_t i = 0; i < std::min(call.args.size(), wanted.size()); ++i) repeat(wanted[i].type, call.args[i]);
  for (NamedArgument& kwarg : call.kwargs) {
    const int index = call.schema->index_of(kwarg.name);
    if (index >= 0) repeat(wanted[static_cast<std::size_t>(index)].type, kwarg.value);
  }
}

bool is_same(const Keywords& a, KwargSpan b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const NamedArgument& one, const KwargSpan::Item& other) {
    return one.name == other.name && one.value == other.value;
  });
}

}  // namespace

Call python_call(const Node& node) {
  Translation call;
  if (!translate(node, call)) return {};
  repeat_numbers(call);
  // Mostly they are the node's own, or the first of them: `torch.nn.functional.relu(x, inplace=False)`.
  const ArgumentSpan own = node.args();
  const bool same_args = call.args.size() <= own.size() && std::equal(call.args.begin(), call.args.end(), own.begin());
  const bool same_kwargs = call.kwargs.empty() || is_same(call.kwargs, node.kwargs());
  if (same_args && same_kwargs) {
    return Call(*call.schema, own.first(call.args.size()), call.kwargs.empty() ? KwargSpan() : node.kwargs(), true);
  }
  return Call(*call.schema, {call.args.begin(), call.args.end()}, {call.kwargs.begin(), call.kwargs.end()});
}

std::optional<PatternCall> python_call_in_pattern(const Node& node, bool open) {
  const PythonTarget& target = python_target(node.op(), node.target());
  if (target.op) return std::nullopt;
  for (const PythonRow& row : target.rows) {
    if (std::optional<PatternCall> found = row_call_in_pattern(row, node, open)) return found;
  }
  if (target.packet.empty()) return std::nullopt;
  return same_arguments_in_pattern(target.packet, node);
}

bool is_pure_python_call(const Node& node) {
  return std::ranges::any_of(python_target(node.op(), node.target()).rows, [&](const PythonRow& row) {
    RowBinding values;
    return row.target.empty() && values.bind(row, node) && values.holds(row);
  });
}

}  // namespace fx::internal
