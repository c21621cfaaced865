#include <fxgraph/testing/hostile/respell.h>

#include <algorithm>
#include <array>

#include <fxgraph/ops/python_rows.h>
#include <fxgraph/ops/python_symbols.h>

namespace fx::hostile {

namespace {

// Of those that call the operator: what Python's tables have under `module`; empty when there is none.
std::string_view name_under(Random& random, std::string_view module, const std::string& packet) {
  std::vector<std::string_view> names = internal::python_functions_of("aten::" + packet);
  std::erase_if(names, [&](std::string_view name) { return !name.starts_with(module); });
  return names.empty() ? std::string_view() : random.pick(names);
}

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
  const bool of_torch = call.target.starts_with(python::kTorchModule);
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
      const std::string_view found = name_under(random, python::kOperatorModule, packet);
      const std::size_t wanted = schema.num_positional() > 1 && !schema.arguments[1].default_value ? 2 : 1;
      if (found.empty() || call.args.size() != wanted || !call.kwargs.empty()) break;
      call.target = found;
      if (wanted == 2 && !packet.ends_with('_') && !call.args[1].is_node() && random.chance(30))
        std::swap(call.args[0], call.args[1]);
      break;
    }
    case 2: call.target = std::string(python::kTorchModule) + packet; break;
    case 3: {
      const std::string_view found = name_under(random, python::kFunctionalModule, packet);
      if (found.empty() || !call.kwargs.empty() || (packet == "dropout" && call.args.size() < 3)) break;
      call.target = found;
      if (call.args.size() == 1 && random.chance(40)) call.kwargs.push_back({"inplace", Argument(random.chance(50))});
      break;
    }
    case 4: call.target = "aten::" + packet; break;
    default: break;
  }
  if (random.chance(6)) name_all(schema, call);
  return call;
}

}  // namespace fx::hostile
