#include <fxgraph/rewriter/program/hostile/respell.h>

#include <algorithm>
#include <array>
#include <utility>

namespace fx::hostile {

namespace {

using Names = std::pair<std::string_view, std::string_view>;

// Of the operators' packets and the functions of Python's module `operator`.
constexpr std::array<Names, 27> kOperators = {{
    {"add", "add"},         {"sub", "sub"},
    {"mul", "mul"},         {"div", "truediv"},
    {"neg", "neg"},         {"matmul", "matmul"},
    {"pow", "pow"},         {"bitwise_and", "and_"},
    {"bitwise_or", "or_"},  {"eq", "eq"},
    {"ne", "ne"},           {"lt", "lt"},
    {"gt", "gt"},           {"le", "le"},
    {"ge", "ge"},           {"bitwise_not", "invert"},
    {"add_", "iadd"},       {"sub_", "isub"},
    {"mul_", "imul"},       {"div_", "itruediv"},
    {"remainder", "mod"},   {"abs", "abs"},
    {"bitwise_xor", "xor"}, {"floor_divide", "floordiv"},
    {"pow_", "ipow"},       {"bitwise_and_", "iand"},
    {"bitwise_or_", "ior"},
}};

constexpr std::array<std::string_view, 14> kFunctionals = {
    "relu",        "gelu", "silu",       "sigmoid", "tanh",       "softplus", "hardswish",
    "hardsigmoid", "elu",  "leaky_relu", "linear",  "layer_norm", "softmax",  "dropout"};

std::string packet_of(const OperatorSchema& schema) {
  const std::string_view target = schema.target.view();
  const std::size_t start = target.find("::") + 2;
  return std::string(target.substr(start, target.find('.', start) - start));
}

/// Moves positional arguments from some place on to keywords.
void use_keywords(Random& random, const OperatorSchema& schema, Spelling& call) {
  if (call.args.size() < 2) return;
  const std::size_t from = 1 + random.below(call.args.size() - 1);
  for (std::size_t i = from; i < call.args.size() && i < schema.arguments.size(); ++i)
    call.kwargs.push_back({schema.arguments[i].name, call.args[i]});
  call.args.resize(from);
}

void write_defaults(Random& random, const OperatorSchema& schema, Spelling& call) {
  for (std::size_t i = call.args.size(); i < schema.num_positional() && random.chance(70); ++i) {
    const bool given =
        std::ranges::any_of(call.kwargs, [&](const auto& named) { return named.name == schema.arguments[i].name; });
    if (given || !schema.arguments[i].default_value) return;
    call.args.push_back(*schema.arguments[i].default_value);
  }
}

/// `x.view(2, 3)` for `x.view([2, 3])`.
void unpack_sizes(Random& random, Spelling& call) {
  constexpr std::array<std::string_view, 7> kVariadic = {"view",   "reshape", "permute", "expand",
                                                         "repeat", "flip",    "tile"};
  if (std::ranges::find(kVariadic, call.target) == kVariadic.end() || call.args.size() != 2 || !call.kwargs.empty() ||
      !call.args[1].is_sequence() || call.args[1].elements().empty() || !random.chance(60))
    return;
  const Argument sizes = call.args[1];
  call.args.resize(1);
  call.args.insert(call.args.end(), sizes.elements().begin(), sizes.elements().end());
}

/// All arguments by name, the first too.
void name_all(const OperatorSchema& schema, Spelling& call) {
  if (call.op != Op::call_function || call.args.empty() || call.args.size() > schema.arguments.size()) return;
  const bool of_torch = call.target.starts_with("torch.") && !call.target.starts_with("torch.ops.");
  if (!of_torch && !call.target.starts_with("aten::")) return;
  std::vector<NamedArgument> named;
  for (std::size_t i = 0; i < call.args.size(); ++i) {
    const Symbol name = schema.arguments[i].name;
    named.push_back({of_torch && name == "self" ? Symbol("input") : name, call.args[i]});
  }
  call.kwargs.insert(call.kwargs.begin(), named.begin(), named.end());
  call.args.clear();
}

}  // namespace

Spelling respell(Random& random, const OperatorSchema& schema, Spelling call) {
  const std::string packet = packet_of(schema);
  if (random.chance(15)) write_defaults(random, schema, call);
  if (random.chance(20)) use_keywords(random, schema, call);
  const bool is_method =
      !schema.arguments.empty() && schema.arguments[0].name == "self" && !call.args.empty() && call.args[0].is_node();
  switch (random.below(8)) {
    case 0: {
      if (is_method) {
        call.op = Op::call_method;
        call.target = packet;
        unpack_sizes(random, call);
      }
      break;
    }
    case 1: {
      const auto* found = std::ranges::find(kOperators, packet, &Names::first);
      const std::size_t wanted = schema.num_positional() > 1 && !schema.arguments[1].default_value ? 2 : 1;
      if (found == kOperators.end() || call.args.size() != wanted || !call.kwargs.empty()) break;
      call.target = "operator." + std::string(found->second);
      if (wanted == 2 && !packet.ends_with('_') && !call.args[1].is_node() && random.chance(30))
        std::swap(call.args[0], call.args[1]);
      break;
    }
    case 2: call.target = "torch." + packet; break;
    case 3:
      if (std::ranges::find(kFunctionals, packet) == kFunctionals.end() || !call.kwargs.empty()) break;
      if (packet == "dropout" && call.args.size() < 3) break;
      call.target = "torch.nn.functional." + packet;
      if (call.args.size() == 1 && random.chance(40)) call.kwargs.push_back({"inplace", Argument(random.chance(50))});
      break;
    case 4: call.target = "aten::" + packet; break;
    default: break;
  }
  if (random.chance(6)) name_all(schema, call);
  return call;
}

}  // namespace fx::hostile
