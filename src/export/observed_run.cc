// The values of a run: what a program is on its example.
#include <ATen/ATen.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <fxgraph/export/value_shapes.h>
#include <fxgraph/module/interpreter.h>
#include <fxgraph/module/state_keeper.h>
#include <fxgraph/run/nested_graph.h>
#include <fxgraph/run/value.h>

namespace fx::pt2 {

ValueShape observe(const c10::IValue& value) {
  using Kind = ValueShape::Kind;
  ValueShape seen;
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined()) return seen;
    seen.kind = tensor.layout() == at::kStrided ? Kind::tensor : Kind::other;
    if (seen.kind == Kind::other) return seen;
    seen.tensor = meta_of_tensor(tensor);
    seen.tensor.storage_offset = 0;
    seen.tensor.requires_grad = tensor.requires_grad() && tensor.is_leaf();
  } else if (value.isBool()) {
    seen.kind = Kind::boolean;
    seen.boolean = value.toBool();
  } else if (value.isInt()) {
    seen.kind = Kind::integer;
    seen.integer = {SizeExpr(value.toInt()), value.toInt()};
  } else if (value.isDouble()) {
    seen.kind = Kind::floating;
    seen.floating = value.toDouble();
  } else if (value.isTuple() || value.isList()) {
    seen.kind = Kind::list;
    for (const c10::IValue& each : elements_of(value)) seen.elements.push_back(observe(each));
  } else if (!value.isNone()) {
    seen.kind = Kind::other;
  }
  return seen;
}

namespace {

class Recorder : public Interpreter, private NestedGraphRunner {
 public:
  /// What `data` decide is what `symbols` say.
  Recorder(GraphModule& module, const Graph& graph, const DataSizes* data = nullptr, const Symbols* symbols = nullptr)
      : Interpreter(module, graph), seen{ValueShapes(graph)}, data_(data), symbols_(symbols) {}

  fx::Value run_node(const Node& node) override {
    fx::Value value = Interpreter::run_node(node);
    if (const DataSource* source = data_ ? data_->find(node) : nullptr)
      value = DataSizes::with(*source, value, *symbols_);
    seen.values[node] = observe(value);
    return value;
  }

  // Graphs that this run may not come to are run, too: both sides of a cond, a loop's body.
  fx::Value call_function(const Target& target, const Args& args, const Kwargs& kwargs) override {
    if (target == "higher_order::cond" && args.size() == 4) {
      for (const std::size_t side : {1, 2}) nested_graph(args[side]).call(copies({args[3]}));
    } else if (target == "higher_order::while_loop" && args.size() >= 3) {
      for (const std::size_t part : {0, 1}) nested_graph(args[part]).call(copies(Args(args.begin() + 2, args.end())));
    }
    return Interpreter::call_function(target, args, kwargs);
  }

  ProgramValues seen;

 private:
  const DataSizes* data_;
  const Symbols* symbols_;

  static Args copies(const Args& packs) {
    Args all;
    for (const fx::Value& pack : packs) {
      for (const fx::Value& value : elements_of(pack))
        all.push_back(value.isTensor() ? fx::Value(value.toTensor().clone()) : value);
    }
    return all;
  }

  c10::IValue run(const OwningModule& module, std::vector<c10::IValue> inputs) override {
    auto* inner = dynamic_cast<GraphModule*>(&const_cast<OwningModule&>(module));
    if (!inner) throw Error(ErrorKind::unsupported, "a graph among the arguments is not a GraphModule's");
    Recorder recorder(*inner, inner->graph());
    fx::Value result = static_cast<Interpreter&>(recorder).run(std::move(inputs));
    for (auto& [graph, values] : recorder.seen.nested) seen.nested.try_emplace(graph, std::move(values));
    seen.nested.try_emplace(&inner->graph(), std::move(recorder.seen.values));
    return result;
  }
};

/// The program as it runs on its example, and which of its calls data decide.
class Finder : public Interpreter {
 public:
  Finder(GraphModule& module, const Graph& graph) : Interpreter(module, graph), data(graph), seen_(graph) {}

  fx::Value run_node(const Node& node) override {
    fx::Value value = Interpreter::run_node(node);
    seen_[node] = observe(value);
    if (DataSizes::may_be(node) && !is_rounded_whole(node)) data.look(node, value, seen_);
    return value;
  }

  // The example need not be one that the program takes: numbers that nobody gave are zeros.
  fx::Value call_function(const Target& target, const Args& args, const Kwargs& kwargs) override {
    return target == "torch._assert" ? fx::Value() : Interpreter::call_function(target, args, kwargs);
  }

  DataSizes data;

 private:
  // A whole number stays itself.
  bool is_rounded_whole(const Node& node) const {
    const Node* of = node.args().empty() ? nullptr : node.arg(0).node_or_null();
    const bool is_whole = seen_[node].kind == ValueShape::Kind::integer;
    return is_whole && of && seen_[*of].kind != ValueShape::Kind::floating &&
           seen_[*of].kind != ValueShape::Kind::tensor;
  }

  ValueShapes seen_;
};

/// Each symbol in turn gets the first value at which the program runs; those that have none yet are what the data say.
DataSizes find_data(GraphModule& module, const Graph& graph, const SizedInputs& inputs, Symbols& example,
                    SizeRanges& ranges) {
  Finder finder(module, graph);
  {
    const StateKeeper keeper(module);
    static_cast<Interpreter&>(finder).run(inputs.make(example));
  }
  DataSizes data = std::move(finder.data);
  data.name(graph, example);
  for (const auto& [symbol, range] : data.ranges()) {
    const std::vector<std::int64_t> values = data.candidates(symbol);
    const auto runs_at = [&](std::int64_t value) {
      Symbols here = example;
      here[symbol] = value;
      const StateKeeper keeper(module);
      try {
        Recorder recorder(module, graph, &data, &here);
        static_cast<Interpreter&>(recorder).run(inputs.make(here));
        return true;
      } catch (const std::exception&) {
        return false;
      }
    };
    const auto found = std::ranges::find_if(values, runs_at);
    if (found == values.end()) {
      const auto source = std::ranges::find(data.all(), symbol, &DataSource::symbol);
      throw Error(
          ErrorKind::unsupported,
          "%" + source->node->name() +
              " has a size, or is a number, that data decide, and the program runs at none that was tried; save "
              "it with an example (SaveExportedOptions::inputs, --input) at which it may be two or more",
          source->node->name());
    }
    example[symbol] = *found;
    ranges[symbol] = range;
  }
  return data;
}

}  // namespace

ProgramValues observe(GraphModule& module, const Graph& graph, const SizedInputs& inputs, Symbols& example,
                      SizeRanges& ranges) {
  DataSizes data;
  if (std::ranges::any_of(graph.nodes(), [](const Node& node) { return DataSizes::may_be(node); }))
    data = find_data(module, graph, inputs, example, ranges);
  const StateKeeper keeper(module);
  Recorder recorder(module, graph, &data, &example);
  static_cast<Interpreter&>(recorder).run(inputs.make(example));
  recorder.seen.data = std::move(data);
  return std::move(recorder.seen);
}

}  // namespace fx::pt2
