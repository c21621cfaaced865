#include <fxgraph/ops/call.h>

#include <algorithm>

#include <boost/container/small_vector.hpp>

#include <fxgraph/ops/argument_type.h>
#include <fxgraph/ops/overload_resolution.h>
#include <fxgraph/ops/python_target.h>

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

bool same_arguments_call(Symbol packet, const Node& node, Translation& call) {
  const Overloads& overloads = *target_info(packet).overloads;
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

// The values of a row's parameters in one call.
class RowBinding {
 public:
  // False when the call does not fit the row's parameters.
  bool bind(const PythonRow& row, const Node& node) {
    const std::vector<PythonParameter>& parameters = row.parameters;
    values_.assign(parameters.size(), std::nullopt);
    std::size_t next = 0;
    const ArgumentSpan args = node.args();
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (next == parameters.size()) return false;
      if (parameters[next].rest) {
        if (!bind_rest(next, args.subspan(i))) return false;
        break;
      }
      values_[next++] = args[i];
    }
    for (const auto& [name, value] : node.kwargs()) {
      const auto at = std::ranges::find(parameters, name, &PythonParameter::name);
      if (at == parameters.end() || values_[at - parameters.begin()]) return false;
      values_[at - parameters.begin()] = value;
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!values_[i]) values_[i] = parameters[i].default_value;
      if (!values_[i]) return false;
    }
    return true;
  }

  bool holds(const std::vector<PythonCondition>& conditions) const {
    return std::ranges::all_of(conditions, [&](const PythonCondition& condition) {
      const Argument& value = *values_[condition.parameter];
      switch (condition.test) {
        case PythonCondition::Test::equal:
          return value == condition.value ||
                 (value.is_int() && condition.value.is_float() && value.as_float() == condition.value.as_float());
        case PythonCondition::Test::not_equal: return !(value == condition.value);
        case PythonCondition::Test::at_least: return value.is_int() && value.as_int() >= condition.value.as_int();
      }
      return false;
    });
  }

  const Argument& operator[](std::size_t i) const { return *values_[i]; }

 private:
  bool bind_rest(std::size_t at, ArgumentSpan rest) {
    // One list may stand for all; one node may be either.
    bool list = rest.size() == 1 && rest[0].is_sequence();
    if (rest.size() == 1 && !list) {
      const ArgumentType alone = argument_type(rest[0]);
      if (!alone.known) return false;
      list = alone.list;
    }
    values_[at] = list ? rest[0] : Argument::list(rest);
    return true;
  }

  boost::container::small_vector<std::optional<Argument>, 8> values_;
};

bool resolve_strictly(Symbol target, Translation& call) {
  const TargetInfo& info = target_info(target);
  if (target.view() == packet_of(target.view())) return call.choose(*info.overloads);
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

bool row_call(const PythonRow& row, const Node& node, Translation& call) {
  if (row.same_arguments) return same_arguments_call(row.target, node, call);
  RowBinding values;
  if (!values.bind(row, node) || !values.holds(row.conditions)) return false;
  Symbol target = row.target;
  if (row.inplace != PythonItem::kLiteral) {
    if (!values[row.inplace].is_bool()) return false;
    if (values[row.inplace].as_bool()) target = Symbol(target.str() + "_");
  }
  call = {};
  for (const PythonItem& item : row.items) {
    const bool literal = item.parameter == PythonItem::kLiteral || (item.literal && values[item.parameter].is_none());
    std::optional<Argument> value = literal ? *item.literal : values[item.parameter];
    if (!item.words.empty()) value = number_of(item.words, *value);
    if (item.repeated > 0) value = repeated(item.repeated, *value);
    if (!value) return false;
    if (item.keyword.empty()) {
      call.args.push_back(*std::move(value));
    } else {
      call.kwargs.push_back({item.keyword, *std::move(value)});
    }
  }
  if (!resolve_strictly(target, call)) return false;
  drop_defaults(call);
  return true;
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
  // An int or a float, as the second is; TorchScript's have one type, and round.
  if (ints && target.op->packet.starts_with("aten::pow")) return false;
  // Python's remainder decides; TorchScript's rounds what it divides.
  if (numbers && !ints && target.op->numbers == "aten::floordiv") return false;
  if (numbers) return (bools && call.choose(without_scalars(target.of_numbers))) || call.choose(target.of_numbers);
  if (call.choose(target.of_tensors)) return true;
  if (call.args.size() != 2 || !is_number_type(argument_type(call.args[0]))) return false;
  std::swap(call.args[0], call.args[1]);
  return call.choose(target.of_mirrored);
}

bool translate(const Node& node, Translation& call) {
  const PythonTarget& target = python_target(node.op(), node.target());
  if (target.op) return operator_call(target, node, call);
  for (const PythonRow& row : target.rows) {
    if (row_call(row, node, call)) return true;
  }
  return !target.packet.empty() && same_arguments_call(target.packet, node, call);
}

// Python repeats a single number where an operator takes a list of fixed size; not every way to run operators does.
void repeat_numbers(Translation& call) {
  const auto repeat = [](const SchemaType& type, Argument& value) {
    if (type.fixed_size == 0 || !is_number_type(argument_type(value))) return;
    value = Argument::list(std::vector<Argument>(type.fixed_size, value));
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

bool is_pure_python_call(const Node& node) {
  return std::ranges::any_of(python_target(node.op(), node.target()).rows, [&](const PythonRow& row) {
    RowBinding values;
    return row.target.empty() && values.bind(row, node) && values.holds(row.conditions);
  });
}

}  // namespace fx::internal
