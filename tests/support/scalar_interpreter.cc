#include "tests/support/scalar_interpreter.h"

#include <cmath>
#include <functional>
#include <memory>
#include <string_view>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/support/error.h>

namespace fx::testing {

namespace {

using Storage = std::shared_ptr<double>;

/// A tensor, or several.
struct Value {
  Storage one;
  std::vector<Storage> many;
};

using Pure = double (*)(double, double, double);

const std::map<std::string_view, Pure>& pure_operators() {
  static const std::map<std::string_view, Pure> table = {
      {"aten::add", [](double a, double b, double) { return a + b; }},
      {"aten::sub", [](double a, double b, double) { return a - b; }},
      {"aten::mul", [](double a, double b, double) { return a * b; }},
      {"aten::div", [](double a, double b, double) { return a / b; }},
      {"aten::matmul", [](double a, double b, double) { return 0.5 * a + b * a - 0.25 * b; }},
      {"aten::relu", [](double a, double, double) { return a > 0 ? a : 0; }},
      {"aten::neg", [](double a, double, double) { return -a; }},
      {"aten::sin", [](double a, double, double) { return std::sin(a); }},
      {"aten::exp", [](double a, double, double) { return std::exp(a); }},
      {"aten::abs", [](double a, double, double) { return std::abs(a); }},
      {"aten::sigmoid", [](double a, double, double) { return 1 / (1 + std::exp(-a)); }},
      {"aten::clamp_min", [](double a, double b, double) { return std::max(a, b); }},
      {"aten::clamp", [](double a, double b, double c) { return std::min(std::max(a, b), c); }},
      {"aten::clone", [](double a, double, double) { return a; }},
      {"aten::copy", [](double, double b, double) { return b; }},
      {"aten::zero_", [](double, double, double) { return 0.0; }},
      {"torch.relu", [](double a, double, double) { return a > 0 ? a : 0; }},
  };
  return table;
}

class Runner {
 public:
  Runner(const Graph& graph, const std::vector<double>& inputs) : graph_(graph), given_(inputs), values_(graph) {}

  ScalarRun run() {
    ScalarRun result;
    std::vector<Storage> inputs;
    for (const Node& node : graph_.nodes()) {
      if (node.is(Op::placeholder)) {
        const std::size_t i = inputs.size();
        inputs.push_back(std::make_shared<double>(i < given_.size() ? given_[i] : static_cast<double>(i) + 1.25));
        values_[node].one = inputs.back();
      } else if (node.is(Op::output)) {
        if (!node.args().empty()) collect(node.args()[0], result.outputs);
      } else {
        values_[node] = call(node);
      }
    }
    for (const Storage& input : inputs) result.inputs.push_back(*input);
    for (const auto& [path, storage] : attributes_) result.attributes[path] = *storage;
    return result;
  }

 private:
  double number(const Argument& argument) {
    if (Node* node = argument.node_or_null()) return *values_[*node].one;
    return argument.is_none() ? 0 : argument.as_float();
  }

  double argument(const Node& node, std::size_t i) {
    return i < node.args().size() && !node.args()[i].is_sequence() ? number(node.args()[i]) : 0;
  }

  void collect(const Argument& value, std::vector<double>& out) {
    if (value.is_sequence()) {
      for (const Argument& element : value.elements()) collect(element, out);
    } else if (Node* node = value.node_or_null(); node && !values_[*node].one) {
      for (const Storage& one : values_[*node].many) out.push_back(*one);
    } else {
      out.push_back(number(value));
    }
  }

  Value call(const Node& node) {
    if (node.is(Op::get_attr)) {
      Storage& storage = attributes_[node.target().str()];
      if (!storage) storage = std::make_shared<double>(0.5 + static_cast<double>(node.target().view().size()) / 8);
      return {storage, {}};
    }
    std::string name(node.is(Op::call_method) ? "aten::" + node.target().str()
                                              : std::string(packet_of(node.target().view())));
    if (node.target() == "operator.getitem") {
      const Value& from = values_[node.arg(0).node()];
      return {from.one ? from.one : from.many.at(static_cast<std::size_t>(node.arg(1).as_int())), {}};
    }
    if (name == "aten::view" || name == "aten::t" || name == "aten::transpose" || name == "aten::select")
      return values_[node.arg(0).node()];
    if (name == "aten::split") return {nullptr, {values_[node.arg(0).node()].one, values_[node.arg(0).node()].one}};
    if (name == "aten::rand_like") return {std::make_shared<double>(0.125 * ++draws_), {}};
    return compute(node, name);
  }

  Value compute(const Node& node, std::string name) {
    const bool in_place = name.ends_with('_');
    auto found = pure_operators().find(name);
    if (found == pure_operators().end() && in_place) {
      name.pop_back();
      found = pure_operators().find(name);
    }
    if (found == pure_operators().end()) return uninterpreted(node, name);
    const Argument* alpha = node.kwarg("alpha");
    const double second = argument(node, 1) * (alpha ? number(*alpha) : 1);
    const double result = found->second(argument(node, 0), second, argument(node, 2));
    if (!in_place) return {std::make_shared<double>(result), {}};
    const Value target = values_[node.arg(0).node()];
    *target.one = result;
    return target;
  }

  /// Of a pure operator that is not in the table: some number that depends on its name and on every argument.
  Value uninterpreted(const Node& node, const std::string& name) {
    const Call called = call_of(node);
    if (!called || called.schema().returns.size() != 1 || effects_of(node).impure() || effects_of(node).may_alias)
      throw Error(ErrorKind::unsupported, "the scalar interpreter has no " + node.target().str(), node.name());
    double result = 0;
    for (const char c : name) result = std::sin(2 * result + c);
    for (std::size_t i = 0; i < called.schema().arguments.size(); ++i) {
      const Argument* value = called.argument(i);
      const SchemaType& type = called.schema().arguments[i].type;
      for (int n = value && value->is_int() && type.list ? type.fixed_size : 1; n > 0; --n) mix(value, result);
    }
    return {std::make_shared<double>(result), {}};
  }

  void mix(const Argument* value, double& into) {
    if (value && value->is_sequence()) {
      for (const Argument& element : value->elements()) mix(&element, into);
      return;
    }
    const double here = !value                                   ? 0.5
                        : value->is_node() || value->is_number() ? number(*value)
                                                                 : static_cast<double>(value->hash() % 1000003);
    into = std::sin(2 * into + here);
  }

  const Graph& graph_;
  const std::vector<double>& given_;
  NodeMap<Value> values_;
  std::map<std::string, Storage> attributes_;
  int draws_ = 0;
};

}  // namespace

ScalarRun run_scalars(const Graph& graph, const std::vector<double>& inputs) { return Runner(graph, inputs).run(); }

}  // namespace fx::testing
