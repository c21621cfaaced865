#include <fxgraph/retrace/pattern_function.h>

#include <algorithm>

#include <fxgraph/ops/call.h>
#include <fxgraph/run/value.h>
#include <fxgraph/text/print.h>

namespace fx {
namespace {

/// Two values for a literal parameter, unlikely to be what anything else computes.
struct Probe {
  Argument first;
  Argument second;
};

Probe probe_for(const Parameter& parameter, std::size_t position) {
  const auto nth = static_cast<double>(position);
  switch (parameter.kind) {
    case ParameterKind::integer: {
      const auto base = static_cast<std::int64_t>(2 * position + 2);
      return {base, base + 1};
    }
    case ParameterKind::boolean: return {false, true};
    case ParameterKind::string: return {"first", "second"};
    case ParameterKind::floating: return {0.40625 + nth, 0.71875 + nth};
    default:
      throw Error(ErrorKind::unsupported,
                  "pattern: parameter " + std::to_string(position) +
                      " is a list of numbers; literals are double, int64_t, bool or std::string");
  }
}

/// Puts a hole into a pattern wherever two traces, made with different values of one literal, differ.
class HoleFinder {
 public:
  HoleFinder(const Graph& first, const Graph& second, Graph& pattern, std::size_t parameter, const Probe& probe)
      : first_(first), second_(second), pattern_(pattern), parameter_(parameter), probe_(probe) {}

  void run() {
    if (first_.size() != second_.size()) different_program(nullptr);
    hole_ = pattern_.placeholders().at(parameter_);
    auto other = second_.nodes().begin();
    auto target = pattern_.nodes().begin();
    for (const Node& node : first_.nodes()) {
      visit(node, *other, *target);
      ++other;
      ++target;
    }
  }

 private:
  void visit(const Node& first, const Node& second, Node& target) {
    if (first.op() != second.op() || first.target() != second.target()) different_program(&first);
    const Spelled a = spelled_beside(first, second), b = spelled_beside(second, first),
                  c = spelled_beside(target, second);
    if (a.args.size() != b.args.size() || a.kwargs.size() != b.kwargs.size()) different_program(&first);
    changed_ = false;
    std::vector<Argument> args;
    for (std::size_t i = 0; i < a.args.size(); ++i) args.push_back(merge(first, a.args[i], b.args[i], c.args[i]));
    std::vector<NamedArgument> kwargs;
    for (std::size_t i = 0; i < a.kwargs.size(); ++i) {
      if (a.kwargs[i].name != b.kwargs[i].name) different_program(&first);
      kwargs.push_back({a.kwargs[i].name, merge(first, a.kwargs[i].value, b.kwargs[i].value, c.kwargs[i].value)});
    }
    if (changed_) target.set_args_kwargs(args, kwargs);
  }

  /// The arguments of a call.
  struct Spelled {
    std::vector<Argument> args;
    std::vector<NamedArgument> kwargs;
  };
  /// With the defaults that the other call of the same operator says: at one of its values a literal is the default,
  /// and left out.
  static Spelled spelled_beside(const Node& node, const Node& other) {
    Spelled spelled{node.args().to_vector(), {}};
    for (const auto& [name, value] : node.kwargs()) spelled.kwargs.push_back({name, value});
    const Call call = call_of(node);
    if (!call || call.is_translated()) return spelled;
    for (std::size_t i = spelled.args.size(); i < other.args().size(); ++i) {
      const Argument* value = i < call.schema().arguments.size() ? call.argument(i) : nullptr;
      if (!value) return spelled;
      spelled.args.push_back(*value);
    }
    for (const auto& [name, value] : other.kwargs()) {
      const Argument* known = node.kwarg(name) ? nullptr : call.argument(name.view());
      if (known) spelled.kwargs.push_back({name, *known});
    }
    std::ranges::sort(spelled.kwargs, {}, [&](const NamedArgument& one) { return call.schema().index_of(one.name); });
    return spelled;
  }

  Argument merge(const Node& at, const Argument& a, const Argument& b, const Argument& target) {
    if (a.is_node() && b.is_node()) {
      if (a.node().name_parts() != b.node().name_parts()) different_program(&at);
      return target;
    }
    if (a.is_container() && a.kind() == b.kind() && a.kind() != ArgumentKind::complex) {
      if (a.elements().size() != b.elements().size()) different_program(&at);
      std::vector<Argument> elements;
      for (std::size_t i = 0; i < a.elements().size(); ++i) {
        elements.push_back(merge(at, a.elements()[i], b.elements()[i], target.elements()[i]));
      }
      return rebuild(a.kind(), elements);
    }
    if (a == b) return target;
    if (a != probe_.first || b != probe_.second) computed(at);
    changed_ = true;
    return Argument(*hole_);
  }

  static Argument rebuild(ArgumentKind kind, const std::vector<Argument>& elements) {
    switch (kind) {
      case ArgumentKind::tuple: return Argument::tuple(elements);
      case ArgumentKind::dict: return Argument::dict(elements);
      case ArgumentKind::slice: return Argument::slice(elements[0], elements[1], elements[2]);
      default: return Argument::list(elements);
    }
  }

  std::string parameter_name() const { return pattern_.placeholders().at(parameter_)->name(); }

  [[noreturn]] void different_program(const Node* at) const {
    throw Error(ErrorKind::trace, "pattern: the value of the literal `" + parameter_name() +
                                      "` decides which operators run" + (at ? " (from %" + at->name() + " on)" : "") +
                                      "; write one pattern for each case");
  }
  [[noreturn]] void computed(const Node& at) const {
    throw Error(ErrorKind::trace,
                "pattern: the literal `" + parameter_name() + "` reaches %" + at.name() + " (" + at.target().str() +
                    ") as a computed or converted value; a pattern may only pass it on as it is",
                at.name());
  }

  const Graph& first_;
  const Graph& second_;
  Graph& pattern_;
  std::size_t parameter_;
  const Probe& probe_;
  Node* hole_ = nullptr;
  bool changed_ = false;
};

}  // namespace

std::size_t PatternFunction::num_literals() const {
  std::size_t count = 0;
  for (const Parameter& parameter : parameters()) count += parameter.is_literal();
  return count;
}

Trace PatternFunction::trace_at(const std::vector<Argument>& literals) const {
  TraceOptions options;
  options.names = names_;
  options.raise_leaf_modules = false;
  options.sizes = Sizes::fixed;
  std::vector<c10::IValue> examples;
  std::size_t next = 0;
  for (const Parameter& parameter : parameters()) {
    const std::size_t position = examples.size();
    if (!parameter.is_literal()) {
      examples.emplace_back(internal::unknown_example());
      continue;
    }
    const Argument& literal = literals.at(next++);
    const bool any = literal.is_none() && !parameter.optional;
    examples.push_back(to_ivalue(any ? probe_for(parameter, position).first : literal));
  }
  Tracer tracer(std::move(options));
  return tracer.trace_callable(callable_, std::move(examples), internal::PlaceholderInputs::Literals::holes);
}

Trace PatternFunction::instance(const std::vector<Argument>& literals) const {
  if (literals.size() != num_literals()) {
    throw Error(ErrorKind::invalid_argument, "pattern: the function takes " + std::to_string(num_literals()) +
                                                 " literals, but " + std::to_string(literals.size()) + " are given");
  }
  return trace_at(literals);
}

bool PatternFunction::depends_on(std::size_t i, const std::vector<Argument>& literals) const {
  const auto place = static_cast<std::size_t>(
      std::count_if(parameters().begin(), parameters().begin() + static_cast<std::ptrdiff_t>(i),
                    [](const Parameter& parameter) { return parameter.is_literal(); }));
  const Probe probe = probe_for(parameters()[i], i);
  std::vector<Argument> first = literals, second = literals;
  first.at(place) = probe.first;
  second.at(place) = probe.second;
  return print_graph(trace_at(first).graph) != print_graph(trace_at(second).graph);
}

Trace PatternFunction::pattern() const {
  std::vector<Probe> probes;
  std::vector<std::size_t> positions;
  std::vector<Argument> values;
  for (std::size_t i = 0; i < parameters().size(); ++i) {
    if (!parameters()[i].is_literal()) continue;
    probes.push_back(probe_for(parameters()[i], i));
    positions.push_back(i);
    values.push_back(probes.back().first);
  }
  Trace trace = trace_at(values);
  const Graph first = trace.graph.clone();
  for (std::size_t i = 0; i < probes.size(); ++i) {
    std::vector<Argument> changed = values;
    changed[i] = probes[i].second;
    const Trace second = trace_at(changed);
    HoleFinder(first, second.graph, trace.graph, positions[i], probes[i]).run();
  }
  return trace;
}

}  // namespace fx
