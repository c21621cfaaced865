// What calls come to: the operator behind a Python function, a method, an operator on numbers; what is wrong with
// arguments; what a call does. On record for every name that the tables have, with arguments of all kinds.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ops/argument_type.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/records/python_names.h>
#include "tests/support/error_of.h"
#include "tests/support/record.h"

namespace fx::recorded_calls_test {

using testing::Recorded;

std::string call_text(const Node& node) {
  std::string text = node.target().str() + "(";
  for (const Argument& argument : node.args()) text += to_string(argument) + ", ";
  for (const auto& [name, value] : node.kwargs()) text += name.str() + "=" + to_string(value) + ", ";
  return text + ")";
}

std::string effects_text(const NodeEffects& effects) {
  std::string text;
  for (const auto& [has, word] : {std::pair(effects.writes, " writes"),
                                  {effects.random, " random"},
                                  {effects.side_effect, " side effect"},
                                  {effects.unknown, " unknown"},
                                  {effects.may_alias, " may alias"},
                                  {effects.aliases, " aliases"},
                                  {effects.restructures, " restructures"}})
    text += has ? word : "";
  return text;
}

/// Ways to call something.
class Forms {
 public:
  struct Form {
    std::vector<Argument> args;
    std::vector<NamedArgument> kwargs;
  };
  Forms() {
    const Argument pair = Argument::list({1, 2}), both = Argument::list({x, y}), none;
    for (const std::vector<Argument>& args :
         std::vector<std::vector<Argument>>{{x},
                                            {x, y},
                                            {x, y, w},
                                            {x, y, w, y},
                                            {x, 2},
                                            {x, 2.0},
                                            {x, true},
                                            {x, n},
                                            {n, x},
                                            {x, sizes},
                                            {sizes, 2},
                                            {2, x, 1},
                                            {x, item},
                                            {2, x},
                                            {2.5, x},
                                            {n, 2},
                                            {n, n},
                                            {item, 2},
                                            {n, 2.5},
                                            {x, pair},
                                            {x, Argument::tuple({2, 3})},
                                            {x, Argument::list({n, 2})},
                                            {x, 1, 2},
                                            {x, 1, n},
                                            {x, y, 1},
                                            {x, y, 2.0},
                                            {x, pair, true},
                                            {x, none},
                                            {x, y, none},
                                            {x, "mean"},
                                            {x, DType::int64},
                                            {x, y, DType::int64},
                                            {x, Device{"cpu"}},
                                            {x, Argument::slice(1, nullptr, nullptr)},
                                            {both},
                                            {both, 1},
                                            {x, both},
                                            {pair},
                                            {2, 3},
                                            {2},
                                            {},
                                            {"i,i->", x, y},
                                            {x, w, none, 1, pair},
                                            {x, 0, true},
                                            {x, 1, y},
                                            {x, 1, 2.0},
                                            {x, 1, y, y}})
      all.push_back({args, {}});
    const std::vector<NamedArgument> keywords = {{"dim", 1},
                                                 {"axis", 1},
                                                 {"keepdim", true},
                                                 {"keepdims", true},
                                                 {"other", y},
                                                 {"input", x},
                                                 {"self", x},
                                                 {"alpha", 2},
                                                 {"out", w},
                                                 {"out", Argument()},
                                                 {"dtype", DType::float64},
                                                 {"inplace", true},
                                                 {"inplace", false},
                                                 {"training", false},
                                                 {"training", true},
                                                 {"p", 0.5},
                                                 {"weight", w},
                                                 {"bias", Argument()},
                                                 {"value", 1.5},
                                                 {"min", 0},
                                                 {"max", y},
                                                 {"mode", "constant"},
                                                 {"rounding_mode", "floor"},
                                                 {"requires_grad", false},
                                                 {"requires_grad", true},
                                                 {"as_tuple", true},
                                                 {"reduction", "sum"},
                                                 {"size", pair},
                                                 {"stride", 2},
                                                 {"ceil_mode", true},
                                                 {"return_indices", true},
                                                 {"approximate", "tanh"},
                                                 {"eps", 1e-3},
                                                 {"memory_format", MemoryFormat{"channels_last"}},
                                                 {"no_such", 1}};
    for (const NamedArgument& keyword : keywords) {
      all.push_back({{x}, {keyword}});
      all.push_back({{x, y}, {keyword}});
      if (keyword.name != "dim") all.push_back({{x, 2}, {keyword, {"dim", 0}}});
    }
  }

  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y");
  Node& w = graph.placeholder("w");
  Node& n = graph.call_method("size", {x, 0}, {}, "n");
  Node& item = graph.call_function("aten::item", {x}, {}, "item");
  Node& sizes = graph.call_method("size", {x}, {}, "sizes");
  std::vector<Form> all;

  /// All of them for one target: what it is a call of, what it does, and its spelling when normalised.
  std::string of(Op op, Symbol target) {
    std::string found;
    for (const Form& form : all) {
      Node* made = nullptr;
      const std::string error =
          testing::error_of([&] { made = &graph.create_node(op, target, form.args, form.kwargs); });
      if (!made) {
        found += error + "\n";
        continue;
      }
      const internal::ArgumentType type = internal::argument_type(Argument(*made));
      if (type.known) found += (type.list ? "list " : "type ") + std::to_string(static_cast<int>(type.base)) + " ";
      const NodeEffects effects = effects_of(*made);
      const Call call = call_of(*made);
      if (call || effects_text(effects) != unknown_) {
        found += call_text(*made) + effects_text(effects);
        for_each_written(*made, [&](const Argument& written) { found += " to " + to_string(written); });
        for_each_aliased_input(*made, [&](Node& input) { found += " of " + input.name(); });
        const Argument* self = call.is_translated() ? nullptr : call.argument("self");
        if (self) found += " self " + to_string(*self);
        if (call) {
          found += " = " + call.schema().target.str();
          for (int i = 0; i < 2; ++i) {
            found += " " + std::to_string(normalize_operators(graph));
            found += " " + call_text(*made);
          }
        }
        found += "\n";
      }
      graph.erase_node(*made);
    }
    return found;
  }

 private:
  const std::string unknown_ = effects_text(effects_of(graph.call_function("mine.f", {x}, {}, "f")));
};

/// Functions of all modules that the tables know, and some that they do not.
std::set<std::string> functions() {
  std::set<std::string> names;
  for (const auto& row : internal::python_functions()) names.emplace(row.name);
  for (const auto& row : internal::python_operators()) names.emplace(row.name);
  for (const auto& row : internal::like_operators()) names.emplace(row.name);
  for (const char* name : {"operator.getitem",
                           "_operator.add",
                           "builtins.getattr",
                           "builtins.len",
                           "builtins.max",
                           "math.sqrt",
                           "torch.relu",
                           "torch.add",
                           "torch.zeros",
                           "torch.sum",
                           "torch.max",
                           "torch.where",
                           "torch._C._nn.gelu",
                           "torch._C._linalg.linalg_norm",
                           "torch.linalg.norm",
                           "torch.fft.fft",
                           "torch.special.expit",
                           "torch.clamp",
                           "torch.cat",
                           "torch.split",
                           "torch.rand",
                           "torch._assert",
                           "print",
                           "torch.manual_seed",
                           "torch.ops.aten.max",
                           "torch.ops.aten.relu.default",
                           "higher_order::cond",
                           "operator.setitem",
                           "torch.squeeze",
                           "torch.view_as_real",
                           "torch.bernoulli",
                           "mine.f"})
    names.emplace(name);
  return names;
}

TEST(RecordedCalls, PythonFunctionsAndOperators) {
  const std::set<std::string> names = functions();
  Forms forms;
  std::vector<Recorded> all;
  for (const std::string& name : names) all.push_back({name, forms.of(Op::call_function, Symbol(name))});
  testing::expect_as_recorded("python_functions", all);
}

std::set<std::string> packets() {
  std::set<std::string> names;
  for (const Symbol target : builtin_targets()) names.emplace(packet_of(target.view()));
  return names;
}

TEST(RecordedCalls, MethodsOfEveryName) {
  Forms forms;
  std::vector<Recorded> all;
  for (const std::string& packet : packets()) {
    if (!packet.starts_with("aten::") || packet.starts_with("aten::_")) continue;
    all.push_back({packet.substr(6), forms.of(Op::call_method, Symbol(packet.substr(6)))});
  }
  testing::expect_as_recorded("methods", all);
}

/// What a node is called when nobody says, by what it calls.
TEST(RecordedCalls, NamesOfNodes) {
  std::set<std::string> targets = functions();
  for (const Symbol target : builtin_targets()) targets.emplace(target.view());
  for (const char* module :
       {"", "math.", "torch.", "torch.nn.functional.", "operator.", "_operator.", "builtins.", "mine."})
    for (const char* name :
         {"sqrt", "prod", "__add__", "__and_", "Linear", "LSTMCell", "relu6", "conv2D", "x__y", "_f", "1d"})
      targets.emplace(std::string(module) + name);
  std::vector<Recorded> all;
  for (const std::string& target : targets) {
    const std::string group = target.substr(0, 8);
    if (all.empty() || all.back().name != group) all.push_back({group, ""});
    all.back().found +=
        target + " " + name_stem(Symbol(target)).str() + " " + canonical_target(Symbol(target)).str() + "\n";
  }
  testing::expect_as_recorded("names", all);
}

TEST(RecordedCalls, OverloadsAndWhatIsWrong) {
  Forms forms;
  std::vector<Recorded> all;
  for (const std::string& packet : packets()) {
    std::string found;
    for (const Forms::Form& form : forms.all) {
      std::string why;
      const OperatorSchema* schema = resolve_overload(Symbol(packet), form.args, form.kwargs, &why);
      found += (schema ? schema->target.str() : why) + "\n";
    }
    for (const OperatorSchema* schema : overloads_of(Symbol(packet))) {
      found += schema->str() + "\n";
      for (const Forms::Form& form : forms.all)
        found += check_call(*schema, form.args, form.kwargs).value_or("fits") + "\n";
      for (const SchemaArgument& argument : schema->arguments)
        found += argument.name.str() + (argument.hidden_write ? " written" : "") +
                 (argument.hidden_alias ? " shared" : "") + "\n";
      const OperatorTraits& traits = schema->traits;
      for (const bool trait : {traits.writes, traits.random, traits.side_effect, traits.view, traits.pointwise,
                               traits.reduction, traits.commutative, traits.may_copy, traits.restructures})
        found += trait ? '1' : '0';
      found += " " + std::to_string(schema->switches.size()) + " " + spelled_target(schema->target) + " " +
               spelled_target(Symbol(packet)) + "\n";
    }
    all.push_back({packet, found});
  }
  testing::expect_as_recorded("overloads", all);
}

}  // namespace fx::recorded_calls_test
