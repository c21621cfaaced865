#include <fxgraph/matchers/explain_words.h>

#include <algorithm>

#include <fxgraph/effects/in_place.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/ops/schema_registry.h>

namespace fx::internal {

std::string describe_targets(const TargetSet& set) {
  std::vector<std::string> parts;
  for (const Symbol name : set.names()) parts.push_back(name.str());
  for (const Symbol name : set.spellings()) parts.push_back(name.str());
  for (const std::string& expression : set.expressions()) parts.push_back("/" + expression + "/");
  for (const Tag tag : set.tags()) parts.push_back("a " + std::string(to_string(tag)) + " operator");
  if (parts.empty()) return "any call";
  std::string text = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) text += (i + 1 == parts.size() ? " or " : ", ") + parts[i];
  return text;
}

namespace {

std::string describe_call(const PatternNode& node) {
  const std::string type = node.types.accepts_all() ? "" : " that is a " + describe_targets(node.types);
  if (node.op == Op::call_function) return describe_targets(node.targets);
  return "a " + std::string(to_string(node.op)) +
         (node.targets.accepts_all() ? "" : " of " + describe_targets(node.targets)) + type;
}

}  // namespace

std::string describe(const PatternData& data, std::uint32_t index) {
  const PatternNode& node = data.nodes[index];
  constexpr std::string_view kHoles[] = {"a literal", "an int", "a float", "a bool", "a string"};
  switch (node.kind) {
    case PatternKind::any: return "any value";
    case PatternKind::value: return "a node";
    case PatternKind::call: return describe_call(node);
    case PatternKind::attribute:
      return node.targets.accepts_all() ? "a get_attr" : "get_attr " + describe_targets(node.targets);
    case PatternKind::literal: return to_string(node.literal);
    case PatternKind::hole: return std::string(kHoles[static_cast<std::size_t>(node.hole)]);
    case PatternKind::sequence:
      return "a list of " + std::string(node.open ? "at least " : "") + std::to_string(node.args.size());
    case PatternKind::one_of: {
      std::string text;
      for (std::size_t i = 0; i < node.args.size(); ++i) text += (i > 0 ? " or " : "") + describe(data, node.args[i]);
      return text;
    }
    case PatternKind::absent: return "nothing";
    case PatternKind::rest: return "anything";
    case PatternKind::constant: return "a constant";
    case PatternKind::negation: return "anything but " + describe(data, node.args[0]);
    case PatternKind::transparent: return describe(data, node.args[0]);
    case PatternKind::dominated: return describe(data, node.args[0]) + " through " + describe(data, node.args[1]);
  }
  return {};
}

std::string describe(const Value& value) {
  if (value.missing()) return "nothing";
  if (!value.node) return to_string(*value.argument, NodeStyle::plain);
  const Node& node = *value.node;
  return node.name() + " (" + (node.is(Op::call_function) ? "" : std::string(to_string(node.op())) + " ") +
         node.target().str() + ")";
}

std::string misfit(const PatternNode& node, const Call& call) {
  if (!call) return {};
  const OperatorSchema& schema = call.schema();
  const std::string_view packet = packet_of(operator_name(schema).view());
  const auto is_named = [&](Symbol name) {
    return packet_of(target_info(canonical_target(name)).name.view()) == packet;
  };
  if (std::ranges::none_of(node.targets.names(), is_named)) return {};
  const std::string called = schema.target.str();
  if (const std::size_t most = schema.num_positional(); node.args.size() > most && !schema.varargs) {
    const std::string takes = called + " takes " + std::to_string(most) + " by position";
    if (most == schema.arguments.size()) return takes;
    return takes + ", write " + schema.arguments[most].name.str() + "=… for the next";
  }
  for (const auto& [name, value] : node.kwargs) {
    if (schema.index_of(name) < 0) return called + " has no argument " + name.str();
  }
  return {};
}

namespace {

/// Of a call that computes in place what the pattern wants in a tensor of its own: who sees the write.
std::string same_in_place(const PatternNode& node, const Node& found, const Call& call, const TrackedEffects& effects) {
  const OperatorSchema* functional = call ? functional_overload(call.schema()) : nullptr;
  const auto is_named = [&](Symbol name) {
    const Symbol wanted = target_info(canonical_target(name)).name, other = operator_name(*functional);
    return wanted == other || wanted == packet_of(other.view());
  };
  if (!functional || std::ranges::none_of(node.targets.names(), is_named)) return {};
  const Node* seen = sees_write(found, effects);
  return "the same in place; " + (seen ? seen->name() + " holds or reads" : std::string("nothing else sees")) +
         " what it writes";
}

std::string list_users(const Node& node) {
  std::string text;
  std::size_t shown = 0;
  for (const Node& user : node.users()) {
    if (shown++ == 5) return text + ", …";
    text += (shown > 1 ? ", " : "") + user.name();
  }
  return text;
}

std::string count_words(std::uint32_t count) {
  constexpr std::string_view kWords[] = {"no use", "one use", "two uses", "three uses", "four uses"};
  return count < 5 ? std::string(kWords[count]) : std::to_string(count) + " uses";
}

std::string argument_name(const CompiledPattern& program, const Node* user, const Value& value) {
  if (!user) return {};
  const Call& call = program.called(*user);
  const ArgumentSpan args = call ? call.args() : user->args();
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (&args[i] == value.argument) {
      const bool named = call && i < call.schema().arguments.size();
      return "argument " + (named ? call.schema().arguments[i].name.str() : std::to_string(i)) + ": ";
    }
  }
  for (const auto& [name, argument] : call ? call.kwargs() : user->kwargs()) {
    if (&argument == value.argument) return "argument " + name.str() + ": ";
  }
  return {};
}

std::string keyword(const Call& call, const Node& node, std::uint32_t detail) {
  const KwargSpan kwargs = call ? call.kwargs() : node.kwargs();
  return detail < kwargs.size() ? kwargs.name(detail).str() : node.target().str();
}

std::string uses_reason(const PatternNode& node, const Node& value) {
  std::string wanted = count_words(node.min_uses);
  if (node.min_uses != node.max_uses) {
    wanted = node.max_uses == kManyUses ? "at least " + wanted
                                        : std::to_string(node.min_uses) + " to " + count_words(node.max_uses);
  }
  return "wants " + wanted + " of " + value.name() + ", it has " +
         count_words(value.num_users())
             .substr(0, value.num_users() < 5 ? count_words(value.num_users()).find(' ') : std::string::npos) +
         (value.has_users() ? " (" + list_users(value) + ")" : "");
}

std::string default_reason(const Call& call, std::uint32_t position) {
  if (!call) return "has an argument that the pattern does not mention";
  const SchemaArgument& argument = call.schema().arguments[position];
  const Argument* found = call.argument(position);
  return "wants " + argument.name.str() + "=" +
         (argument.default_value ? to_string(*argument.default_value) : "nothing") + ", its default, found " +
         (found ? to_string(*found, NodeStyle::plain) : "nothing") + "; write ... to leave it open";
}

std::string tensor_reason(const PatternNode& node, const Value& value, TensorPart part,
                          const std::function<std::string(std::uint32_t)>& dim, const Shapes* shapes) {
  const std::string wanted = "wants " + print_tensor_test(node, dim);
  if (part == TensorPart::unknown) return wanted + ", and nothing is known of " + describe(value);
  const TensorInfo* tensor = (*shapes)[*value.node].tensor();
  return wanted + ", found " + value.node->name() + " of " + to_string(*tensor) +
         (part == TensorPart::device ? " on " + to_string(tensor->device) : "");
}

std::string size_of(const PatternNode& size) {
  if (size.kind == PatternKind::literal) return to_string(size.literal);
  return size.name.empty() ? "*" : size.name.str();
}

/// What is wanted where a call is: any of the alternatives that it is one of, or it through a path.
std::uint32_t widest(const CompiledPattern& program, std::uint32_t pattern) {
  for (std::uint32_t i = pattern + 1; i < program.size(); ++i) {
    const PatternNode& node = program.node(i);
    if (node.kind == PatternKind::dominated && node.args[0] == pattern) return i;
    if (node.kind != PatternKind::one_of || !only_calls(program.pattern(), i)) continue;
    for (const std::uint32_t arg : node.args) {
      if (arg == pattern) return widest(program, i);
    }
  }
  return pattern;
}

}  // namespace

std::string explain_failure(const CompiledPattern& program, const Engine& engine, const Failure& failure) {
  const auto& [pattern, value, user, why, detail] = failure;
  const PatternNode& node = program.node(pattern);
  const std::string where = argument_name(program, user, value);
  switch (why) {
    case Mismatch::uses: return uses_reason(node, *value.node);
    case Mismatch::condition: return where + "wants " + node.conditions[detail].what + ", found " + describe(value);
    case Mismatch::other_value:
      return where + "wants " + describe(engine.value(pattern)) + " again, as " +
             (node.name.empty() ? "before" : node.name.str()) + ", found " + describe(value);
    case Mismatch::arity:
      return "wants " + std::to_string(node.args.size()) +
             (node.kind == PatternKind::sequence ? " elements" : " arguments") + ", found " + std::to_string(detail) +
             "; write ... to leave the rest open";
    case Mismatch::keyword:
      if (std::string why = misfit(node, program.called(*value.node)); !why.empty())
        return "wants other arguments of " + value.node->name() + ": " + why;
      return "has an argument that the pattern does not mention: " +
             keyword(program.called(*value.node), *value.node, detail);
    case Mismatch::not_default: return default_reason(program.called(*value.node), detail);
    case Mismatch::tensor:
      return where + tensor_reason(
                         node, value, static_cast<TensorPart>(detail),
                         [&](std::uint32_t dim) { return size_of(program.node(dim)); }, program.shapes());
    case Mismatch::path:
      return "wants only " + describe(program.pattern(), node.args[1]) + " on the way, found " + describe(value);
    case Mismatch::no_user:
      return !value.node  // nothing joins it with the rest, or a literal or list, which has no users
                 ? "the graph has no " + describe(program.pattern(), pattern)
                 : "wants " + value.node->name() + " to be used by " + describe(program.pattern(), pattern) +
                       " too, it is used by " + (value.node->has_users() ? list_users(*value.node) : "nothing");
    case Mismatch::opcode_or_target:
      if (std::string why =
              value.node ? same_in_place(node, *value.node, program.called(*value.node), engine.effects()) : "";
          !why.empty())
        return where + "wants " + describe(program.pattern(), pattern) + ", found " + describe(value) + ", " + why;
      if (std::string why = value.node ? misfit(node, program.called(*value.node)) : ""; !why.empty())
        return where + "wants other arguments of " + value.node->name() + ": " + why;
      return where + "wants " + describe(program.pattern(), widest(program, pattern)) + ", found " + describe(value);
    default: return where + "wants " + describe(program.pattern(), pattern) + ", found " + describe(value);
  }
}

}  // namespace fx::internal
