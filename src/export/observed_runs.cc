#include <fxgraph/export/observed_runs.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <fxgraph/module/interpreter.h>
#include <fxgraph/module/state_keeper.h>
#include <fxgraph/run/nested_graph.h>
#include <fxgraph/run/value.h>

namespace fx::pt2 {
namespace {

using Number = std::int64_t;

Observed observe(const c10::IValue& value) {
  Observed seen;
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined()) return seen;
    seen.kind = ValueShape::Kind::tensor;
    seen.dtype = to_dtype(tensor.scalar_type());
    seen.device = to_device(tensor.device());
    seen.requires_grad = tensor.requires_grad() && tensor.is_leaf();
    if (tensor.layout() != at::kStrided) {
      seen.kind = ValueShape::Kind::other;
      return seen;
    }
    seen.numbers = tensor.sizes().vec();
    seen.numbers.insert(seen.numbers.end(), tensor.strides().begin(), tensor.strides().end());
  } else if (value.isBool()) {
    seen.kind = ValueShape::Kind::boolean;
    seen.numbers = {value.toBool()};
  } else if (value.isInt()) {
    seen.kind = ValueShape::Kind::integer;
    seen.numbers = {value.toInt()};
  } else if (value.isDouble()) {
    seen.kind = ValueShape::Kind::floating;
    seen.floating = value.toDouble();
  } else if (value.isTuple() || value.isList()) {
    seen.kind = ValueShape::Kind::list;
    if (value.isTuple()) {
      for (const c10::IValue& each : value.toTupleRef().elements()) seen.elements.push_back(observe(each));
    } else {
      for (const c10::IValue& each : value.toListRef()) seen.elements.push_back(observe(each));
    }
  } else if (!value.isNone()) {
    seen.kind = ValueShape::Kind::other;
  }
  return seen;
}

class Recorder : public Interpreter, private NestedGraphRunner {
 public:
  Recorder(GraphModule& module, const Graph& graph) : Interpreter(module, graph), seen(graph) {}
  /// What data decide is what `symbols` say, in the run of this number.
  Recorder(GraphModule& module, const Graph& graph, const DataSizes& data, const Symbols& symbols, std::size_t run)
      : Interpreter(module, graph), seen(graph), data_(&data), symbols_(&symbols), run_(run) {}

  fx::Value run_node(const Node& node) override {
    fx::Value value = Interpreter::run_node(node);
    if (const DataSource* source = data_ ? data_->find(node) : nullptr)
      value = DataSizes::with(*source, value, *symbols_, run_);
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

  Seen seen;

 private:
  const DataSizes* data_ = nullptr;
  const Symbols* symbols_ = nullptr;
  std::size_t run_ = 0;

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

// Further values of a symbol, near and one far enough that a division of the size shows.
std::vector<Number> other_values(Number value, const SizeRange& range) {
  constexpr std::size_t kEnough = 4;
  constexpr Number kFar = 4096;
  const Number most = range.max.value_or(INT64_MAX), least = std::max<Number>(range.min.value_or(2), 2);
  std::vector<Number> others;
  const auto add = [&](Number other) {
    if (other != value && other <= most && other >= least && std::ranges::find(others, other) == others.end())
      others.push_back(other);
  };
  for (const Number offset : {Number(1), Number(2), std::min(value, kFar) + 1, Number(5), Number(3), Number(4),
                              Number(-1), Number(-2), -value / 2}) {
    if (others.size() < kEnough) add(value + offset);
  }
  // The smallest: what is cut to some size (`x[:, :50]`) is shorter there.
  add(least);
  return others;
}

/// The program as it runs on its example, and which of its calls data decide.
class Finder : public Interpreter {
 public:
  Finder(GraphModule& module, const Graph& graph)
      : Interpreter(module, graph), data(graph), masks_(graph), reals_(graph), tensors_(graph) {}

  fx::Value run_node(const Node& node) override {
    fx::Value value = Interpreter::run_node(node);
    masks_[node] = value.isTensor() && value.toTensor().defined() &&
                   (value.toTensor().scalar_type() == at::kBool || value.toTensor().scalar_type() == at::kByte);
    reals_[node] = value.isDouble();
    tensors_[node] = value.isTensor();
    const bool is_number_itself =
        value.isInt() && !node.args().empty() && node.arg(0).is_node() && !was_real_or_tensor(node);
    if (DataSizes::may_be(node) && !is_number_itself)
      data.look(node, value, [this](const Node& input) { return masks_[input]; });
    return value;
  }

  // The example need not be one that the program takes: numbers that nobody gave are zeros.
  fx::Value call_function(const Target& target, const Args& args, const Kwargs& kwargs) override {
    return target == "torch._assert" ? fx::Value() : Interpreter::call_function(target, args, kwargs);
  }

  DataSizes data;

 private:
  // What is rounded: a whole number stays itself.
  bool was_real_or_tensor(const Node& rounding) const {
    const Node& value = rounding.arg(0).node();
    return reals_[value] || tensors_[value];
  }

  NodeMap<bool> masks_, reals_, tensors_;
};

}  // namespace

// Each symbol in turn gets the first value at which the program runs; those that have none yet are what the data say.
void Runs::find_data(Symbols& example, SizeRanges& ranges) {
  if (std::ranges::none_of(graph_.nodes(), [](const Node& node) { return DataSizes::may_be(node); })) return;
  Finder finder(module_, graph_);
  {
    const StateKeeper keeper(module_);
    static_cast<Interpreter&>(finder).run(inputs_.make(example));
  }
  data_ = std::move(finder.data);
  data_.name(graph_, example);
  for (const auto& [symbol, range] : data_.ranges()) {
    const std::vector<Number> values = data_.candidates(symbol);
    const auto runs_at = [&](Number value) {
      Symbols here = example;
      here[symbol] = value;
      const StateKeeper keeper(module_);
      try {
        Recorder recorder(module_, graph_, data_, here, 0);
        static_cast<Interpreter&>(recorder).run(inputs_.make(here));
        return true;
      } catch (const std::exception&) {
        return false;
      }
    };
    const auto found = std::ranges::find_if(values, runs_at);
    if (found == values.end()) {
      const auto source = std::ranges::find(data_.all(), symbol, &DataSource::symbol);
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
}

void Runs::add(const Symbols& symbols) {
  const StateKeeper keeper(module_);  // each run finds it as the first did
  Recorder recorder(module_, graph_, data_, symbols, seen.size());
  static_cast<Interpreter&>(recorder).run(inputs_.make(symbols));
  seen.push_back(std::move(recorder.seen));
  choices.push_back(symbols);
}

// False where the program does not run.
bool Runs::try_add(const Symbols& symbols) {
  if (!inputs_.takes(symbols) || std::ranges::find(choices, symbols) != choices.end()) return false;
  try {
    add(symbols);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void Runs::add_each(const std::string& symbol, const SizeRange& range) {
  if (data_.ranges().count(symbol)) return add_data_values(symbol);
  constexpr std::size_t kFewest = 2;
  const std::vector<Number> values = other_values(choices[0].at(symbol), range);
  std::size_t failed = 0;
  for (const Number value : values) {
    Symbols here = choices[0];
    here[symbol] = value;
    if (!inputs_.takes(here)) continue;
    try {
      add(here);
    } catch (const std::exception&) {
      if (values.size() - ++failed < kFewest) throw;
    }
  }
}

// The program may end at most of them: what it asserts of them need not be a range.
void Runs::add_data_values(const std::string& symbol) {
  constexpr std::size_t kEnough = 5, kFewest = 2;
  const Number value = choices[0].at(symbol);
  const SizeRange& range = data_.ranges().at(symbol);
  if (range.min && range.min == range.max) return;
  std::vector<Number> values;
  for (const Number offset : {1, -1, 2, 3, -2, 5, -3, 4, 6, 7, 8, 12, 16}) values.push_back(value + offset);
  for (const Number other : data_.candidates(symbol)) values.push_back(other);
  std::size_t added = 0;
  for (const Number other : values) {
    if (added == kEnough) return;
    if (other < std::max<Number>(range.min.value_or(2), 2) || other > range.max.value_or(other)) continue;
    Symbols here = choices[0];
    here[symbol] = other;
    added += try_add(here);
  }
  if (added >= kFewest) return;
  const auto source = std::ranges::find(data_.all(), symbol, &DataSource::symbol);
  throw Error(ErrorKind::unsupported,
              "%" + source->node->name() +
                  " has a size, or is a number, that data decide, and the program runs at too few others to tell what "
                  "follows from it",
              source->node->name());
}

void Runs::add_more(const std::string& symbol, const SizeRange& range) {
  for (const Number offset : {3, 4, 6, 7, 8, 9, 11, 13, 15, 16, 31, 32, 33, 64}) {
    Symbols here = choices[0];
    const Number other = here[symbol] += offset;
    if (other <= range.max.value_or(INT64_MAX)) try_add(here);
  }
}

// What is the less or the greater of two sizes shows where the order of the sizes is another.
void Runs::add_turned_round(const SizeRanges& ranges) {
  std::vector<std::pair<Number, std::string>> order;
  for (const auto& [symbol, value] : choices[0]) {
    if (!data_.ranges().count(symbol)) order.emplace_back(value, symbol);
  }
  std::ranges::sort(order);
  Symbols all = choices[0];
  Number more = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto known = ranges.find(order[i].second);
    const SizeRange range = known == ranges.end() ? SizeRange() : known->second;
    const Number value = order[order.size() - 1 - i].first + ++more;
    if (value < range.min.value_or(value) || value > range.max.value_or(value)) return;
    all[order[i].second] = value;
  }
  if (order.size() > 1) try_add(all);
}

bool Runs::add_doubts(const std::vector<Symbols>& doubts) {
  constexpr std::size_t kMost = 8;
  const std::size_t before = choices.size();
  for (const Symbols& here : doubts) {
    if (choices.size() - before == kMost) break;
    try_add(here);
  }
  return choices.size() > before;
}

void Runs::add_all_changed() {
  Symbols all = choices[0];
  for (std::size_t i = 1; i < choices.size(); ++i) {
    for (const auto& [symbol, value] : choices[i]) {
      // The second of its values, where there is one: sums of first ones look like products.
      if (value != choices[0].at(symbol) && std::abs(value - choices[0].at(symbol)) <= 2) all[symbol] = value;
    }
  }
  Number odd = 0;
  for (auto& [symbol, value] : all) {
    if (odd++ % 2 == 1 && value - 1 > choices[0].at(symbol)) --value;
  }
  if (!data_.empty()) {
    try_add(all);
  } else if (inputs_.takes(all)) {
    add(all);
  }
}

}  // namespace fx::pt2
