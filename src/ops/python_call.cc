#include <fxgraph/ops/call.h>

#include <algorithm>

#include <fxgraph/ops/argument_type.h>
#include <fxgraph/ops/overload_resolution.h>
#include <fxgraph/ops/python_names.h>
#include <fxgraph/ops/python_rows.h>
#include <fxgraph/ops/schema_registry.h>

namespace fx::internal {

namespace {

using Base = SchemaType::Base;

// A call on its way from Python's words to the operator's.
struct Translation {
  const OperatorSchema* schema = nullptr;
  std::vector<Argument> args;
  std::vector<NamedArgument> kwargs;
};

// ── Calls with the operator's own arguments: torch.add(x, y, alpha=2), x.view(2, -1) ─────────────────────────────────

bool any_takes(const Overloads& overloads, Symbol name) {
  return std::ranges::any_of(overloads, [&](const OperatorSchema* schema) { return schema->index_of(name) >= 0; });
}

// Keywords as the operator spells them, without those that say nothing.
std::vector<NamedArgument> operator_keywords(const Overloads& overloads, KwargSpan kwargs) {
  std::vector<NamedArgument> kept;
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
bool gather_ints(std::vector<Argument>& args, std::size_t first) {
  if (args.size() <= first) return false;
  for (std::size_t i = first; i < args.size(); ++i) {
    const ArgumentType kind = argument_type(args[i]);
    const bool may_be_int =
        args[i].is_int() || (args[i].is_node() && (!kind.known || kind == ArgumentType{Base::integer}));
    if (!may_be_int) return false;
  }
  const Argument list = Argument::list(ArgumentSpan(args).subspan(first));
  args.resize(first);
  args.push_back(list);
  return true;
}

std::optional<Translation> same_arguments_call(Symbol packet, const Node& node) {
  const Overloads& overloads = overload_list(packet);
  if (overloads.empty()) return std::nullopt;
  const std::size_t first = node.is(Op::call_method) ? 1 : 0;
  Translation call{nullptr, node.args().to_vector(), operator_keywords(overloads, node.kwargs())};
  call.schema = best_overload(overloads, call.args, call.kwargs, false);
  if (call.schema && node.is(Op::call_method) && is_ambiguous(call, first)) return std::nullopt;
  if (call.schema) return call;
  if (!gather_ints(call.args, first)) return std::nullopt;
  Overloads of_lists;
  for (const OperatorSchema* schema : overloads) {
    if (schema->num_positional() == first + 1 && is_unsized_number_list(schema->arguments[first].type)) {
      of_lists.push_back(schema);
    }
  }
  call.schema = best_overload(of_lists, call.args, call.kwargs, false);
  if (!call.schema) return std::nullopt;
  return call;
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
    if (rest.size() == 1 && rest[0].is_sequence()) {
      values_[at] = rest[0];
    } else if (rest.size() == 1) {
      return false;
    } else {
      values_[at] = Argument::list(rest);
    }
    return true;
  }

  std::vector<std::optional<Argument>> values_;
};

const OperatorSchema* resolve_strictly(Symbol target, const Translation& call) {
  const TargetInfo& info = target_info(target);
  if (target.view() == packet_of(target.view())) return best_overload(*info.overloads, call.args, call.kwargs, false);
  return info.schema ? best_overload({info.schema}, call.args, call.kwargs, false) : nullptr;
}

// Python's defaults are spelt out in the row; where the operator's are the same they need not be.
void drop_defaults(Translation& call) {
  const std::vector<SchemaArgument>& wanted = call.schema->arguments;
  const auto is_default = [](const SchemaArgument& argument, const Argument& value) {
    return argument.default_value && same_argument(argument.type, value, *argument.default_value);
  };
  std::erase_if(call.kwargs, [&](const NamedArgument& kwarg) {
    return is_default(wanted[static_cast<std::size_t>(call.schema->index_of(kwarg.name))], kwarg.value);
  });
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

std::optional<Translation> row_call(const PythonRow& row, const Node& node) {
  if (row.same_arguments) return same_arguments_call(row.target, node);
  RowBinding values;
  if (!values.bind(row, node) || !values.holds(row.conditions)) return std::nullopt;
  Symbol target = row.target;
  if (row.inplace != PythonItem::kLiteral) {
    if (!values[row.inplace].is_bool()) return std::nullopt;
    if (values[row.inplace].as_bool()) target = Symbol(target.str() + "_");
  }
  Translation call;
  for (const PythonItem& item : row.items) {
    const bool literal = item.parameter == PythonItem::kLiteral || (item.literal && values[item.parameter].is_none());
    std::optional<Argument> value = literal ? *item.literal : values[item.parameter];
    if (!item.words.empty()) value = number_of(item.words, *value);
    if (item.repeated > 0) value = repeated(item.repeated, *value);
    if (!value) return std::nullopt;
    if (item.keyword.empty()) {
      call.args.push_back(*std::move(value));
    } else {
      call.kwargs.push_back({item.keyword, *std::move(value)});
    }
  }
  call.schema = resolve_strictly(target, call);
  if (!call.schema) return std::nullopt;
  drop_defaults(call);
  return call;
}

// ── Module operator ──────────────────────────────────────────────────────────────────────────────────────────────────

const OperatorRow* find_operator(std::string_view name) {
  const auto rows = python_operators();
  const auto row = std::ranges::lower_bound(rows, name, {}, &OperatorRow::name);
  return row != rows.end() && row->name == name ? &*row : nullptr;
}

// The overloads that compute with tensors: those that Python's operators on tensors call.
Overloads of_tensors(Symbol packet) {
  Overloads kept;
  for (const OperatorSchema* schema : overload_list(packet)) {
    const auto& arguments = schema->arguments;
    const std::size_t operands = std::min<std::size_t>(arguments.size(), 2);
    if (std::any_of(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(operands),
                    [](const SchemaArgument& argument) { return argument.type.is_tensor(); })) {
      kept.push_back(schema);
    }
  }
  return kept;
}

std::optional<Translation> operator_call(const OperatorRow& row, const Node& node) {
  Translation call{nullptr, node.args().to_vector(), {}};
  if (!node.kwargs().empty()) return std::nullopt;
  bool numbers = true, ints = true;
  for (const Argument& operand : call.args) {
    const ArgumentType kind = argument_type(operand);
    if (kind.list) return std::nullopt;  // Python's lists: no operator computes with them
    numbers &= is_number_type(kind);
    ints &= kind.base == Base::integer || kind.base == Base::boolean;
  }
  // An int or a float, as the second is; TorchScript's have one type, and round.
  if (ints && row.packet.starts_with("aten::pow")) return std::nullopt;
  if (numbers) {
    const std::string_view packet = row.numbers.empty() ? row.packet : row.numbers;
    call.schema = best_overload(overload_list(Symbol(packet)), call.args, {}, false);
  } else {
    call.schema = best_overload(of_tensors(Symbol(row.packet)), call.args, {}, false);
    if (!call.schema && call.args.size() == 2 && !call.args[0].is_node()) {
      std::swap(call.args[0], call.args[1]);
      call.schema = best_overload(of_tensors(Symbol(row.mirrored)), call.args, {}, false);
    }
  }
  if (!call.schema) return std::nullopt;
  return call;
}

// ── Names ────────────────────────────────────────────────────────────────────────────────────────────────────────────

bool is_like_operator(std::string_view name) {
  return std::ranges::find(like_operators(), name, &LikeRow::name) != like_operators().end();
}

// The operator that has the function's name, `aten::relu` for `torch.relu`; empty when the name is in no module of
// operators.
std::string packet_by_name(std::string_view name) {
  if (name.starts_with('.')) return "aten::" + std::string(name.substr(1));
  for (const PrefixRow& row : operator_modules()) {
    if (!name.starts_with(row.prefix)) continue;
    const std::string_view rest = name.substr(row.prefix.size());
    if (rest.find('.') == std::string_view::npos) return std::string(row.packet_prefix) + std::string(rest);
  }
  return {};
}

// Of names that the LibTorch at hand lacks, that on which its aliases agree: `aten::cat` for `aten::concatenate`.
std::string agreed_packet(std::string packet) {
  return packet.empty() || !overload_list(Symbol(packet)).empty() ? packet : agreed_name(packet);
}

// True when the operator of this name, should there be one, is what the function is.
bool goes_by_its_name(std::string_view name, std::span<const PythonRow> rows) {
  return rows.empty() && !is_like_operator(name) && !known_effect(name);
}

std::optional<Translation> translated(const Node& node) {
  const std::string name = python_name(node.op(), node.target());
  if (const OperatorRow* row = find_operator(name)) return operator_call(*row, node);
  const std::span<const PythonRow> rows = python_rows(name);
  for (const PythonRow& row : rows) {
    if (std::optional<Translation> call = row_call(row, node)) return call;
  }
  if (!goes_by_its_name(name, rows)) return std::nullopt;
  const std::string packet = agreed_packet(packet_by_name(name));
  return packet.empty() ? std::nullopt : same_arguments_call(Symbol(packet), node);
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

void add_packet(std::vector<Symbol>& packets, std::string_view packet) {
  if (!overload_list(Symbol(packet)).empty()) packets.push_back(Symbol(packet));
}

}  // namespace

Call python_call(const Node& node) {
  std::optional<Translation> call = translated(node);
  if (!call) return {};
  repeat_numbers(*call);
  return Call(*call->schema, std::move(call->args), std::move(call->kwargs));
}

std::string python_name(Op op, Symbol target) {
  if (op == Op::call_method) return "." + target.str();
  constexpr std::string_view kFunctional = "torch.functional.";
  const std::string_view name = canonical_target(target).view();
  if (name.starts_with(kFunctional)) return "torch." + std::string(name.substr(kFunctional.size()));
  return std::string(name);
}

bool is_pure_python_call(const Node& node) {
  for (const PythonRow& row : python_rows(python_name(node.op(), node.target()))) {
    RowBinding values;
    if (row.target.empty() && values.bind(row, node) && values.holds(row.conditions)) return true;
  }
  return false;
}

std::vector<Symbol> candidate_packets(Op op, Symbol target) {
  std::vector<Symbol> packets;
  const std::string name = python_name(op, target);
  if (const OperatorRow* row = find_operator(name)) {
    for (const std::string_view packet : {row->packet, row->numbers, row->mirrored}) add_packet(packets, packet);
    return packets;
  }
  const std::span<const PythonRow> rows = python_rows(name);
  for (const PythonRow& row : rows) {
    const std::string packet(packet_of(row.target.view()));
    add_packet(packets, packet);
    if (row.inplace != PythonItem::kLiteral) add_packet(packets, packet + "_");
  }
  for (const LikeRow& row : like_operators()) {
    if (row.name == name) add_packet(packets, row.packet);
  }
  if (goes_by_its_name(name, rows)) add_packet(packets, agreed_packet(packet_by_name(name)));
  return packets;
}

}  // namespace fx::internal
