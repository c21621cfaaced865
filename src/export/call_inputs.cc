#include <fxgraph/export/call_inputs.h>

#include <ATen/ATen.h>

#include <algorithm>

#include <fxgraph/contract/open_sizes.h>
#include <fxgraph/export/graph_writer.h>
#include <fxgraph/module/interpreter.h>
#include <fxgraph/module/state_keeper.h>
#include <fxgraph/run/value.h>
#include <fxgraph/shapes/call_fit.h>
#include <fxgraph/shapes/example_note.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/text/size_report.h>

namespace fx::pt2 {
namespace {

std::int64_t valued(const SymbolicSize& size, const Symbols& symbols) {
  return size.expr.evaluate(symbols).value_or(size.example);
}

bool is_of(const SymbolicSize& size, const std::set<std::string>& symbols) {
  bool found = false;
  size.expr.for_each_symbol([&](const std::string& symbol) { found = found || symbols.contains(symbol); });
  return found;
}

/// Of a tensor its strides, too.
template <typename Value, typename Visit>
void for_each_size(Value& value, Visit&& visit) {
  if (value.number) visit(*value.number);
  if (!value.tensor) return;
  for (auto* all : {&value.tensor->sizes, &value.tensor->strides}) std::ranges::for_each(*all, visit);
}

}  // namespace

std::string identifier_of(const std::string& path) {
  std::string name = path;
  std::ranges::replace_if(
      name, [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

CallInputs::CallInputs(GraphModule& module, const Graph& graph, const SaveExportedOptions& options)
    : options_(options) {
  const std::vector<Node*> placeholders = graph.placeholders();
  if (options.inputs.size() > placeholders.size()) {
    throw Error(ErrorKind::invalid_argument, "the program takes " + std::to_string(placeholders.size()) + " inputs, " +
                                                 std::to_string(options.inputs.size()) + " examples were given");
  }
  const auto* noted = placeholders.empty() ? nullptr : note<std::vector<SizeExpr>>(placeholders[0], kGuardsNote);
  if (noted && options.sizes != ExportedSizes::fixed) guards_ = *noted;
  for (std::size_t i = 0; i < placeholders.size(); ++i) {
    Node& placeholder = *placeholders[i];
    const c10::IValue* example = i < options.inputs.size() ? &options.inputs[i] : noted_example(placeholder);
    // A container that is the default is packed as any: Python flattens what it is given.
    c10::IValue packed;
    if (!example && !placeholder.args().empty() && (placeholder.arg(0).is_sequence() || placeholder.arg(0).is_dict()))
      example = &(packed = to_ivalue(placeholder.arg(0)));
    add_input(placeholder, example);
  }
  const bool is_generic_trace = std::ranges::any_of(placeholders, [](const Node* placeholder) {
    return note<std::vector<SizeStatement>>(placeholder, meta_key::kSizes) != nullptr;
  });
  const bool is_found =
      options.sizes == ExportedSizes::found || (options.sizes == ExportedSizes::noted && is_generic_trace);
  if (is_found) free_sizes(module, graph);
  for (const DynamicSize& size : options.dynamic) make_dynamic(size);
  add_symbols();
  if (is_found && options.dynamic.empty()) keep_what_runs(module, graph);
}

void CallInputs::add_input(Node& placeholder, const c10::IValue* example) {
  const auto* spec = note<TreeSpec>(&placeholder, kTreeNote);
  const auto* keyword = note<bool>(&placeholder, kKeywordNote);
  note_ = note<InputNote>(&placeholder, kInputNote);
  first_leaf_ = leaves_.size();
  if (note_ && options_.sizes != ExportedSizes::fixed) ranges_.insert(note_->ranges.begin(), note_->ranges.end());
  Input input{&placeholder,
              spec      ? *spec
              : example ? spec_of(*example)
                        : TreeSpec::leaf(),
              leaves_.size(), keyword && *keyword};
  if (!placeholder.args().empty() && !example) {
    leaves_.push_back({{.literal = placeholder.arg(0)}, &placeholder, placeholder.name()});
  } else {
    add_leaves(&placeholder, input.spec, example, placeholder.name());
  }
  inputs_.push_back(std::move(input));
}

void CallInputs::add_leaves(Node* node, const TreeSpec& spec, const c10::IValue* example, const std::string& name) {
  if (spec.is_leaf()) return add_leaf(node, example, name);
  const std::vector<c10::IValue> examples = example ? elements_of(*example) : std::vector<c10::IValue>();
  if (example && examples.size() != spec.children.size())
    throw Error(ErrorKind::invalid_argument, "the example for '" + name + "' has another number of values");
  for (std::size_t i = 0; i < spec.children.size(); ++i) {
    const Argument key = spec.kind == TreeSpec::Kind::dict ? spec.keys[i] : Argument(i);
    const std::string part = key.is_int() ? std::to_string(key.as_int()) : std::string(key.as_string());
    add_leaves(node ? element_at(*node, key) : nullptr, spec.children[i], example ? &examples[i] : nullptr,
               name + "_" + identifier_of(part));
  }
}

void CallInputs::add_leaf(Node* node, const c10::IValue* example, const std::string& name) {
  Leaf leaf{{}, node, name};
  const std::size_t index = leaves_.size() - first_leaf_;
  const CallValue* noted = note_ && index < note_->leaves.size() ? &note_->leaves[index] : nullptr;
  if (noted && (noted->tensor || noted->number || noted->literal)) {
    add_noted(leaf, *noted, example);
  } else if (example && example->isInt() && example->toInt() > 1 && may_fix()) {
    leaf.number = {SizeExpr::integer(example->toInt()), example->toInt()};  // free_sizes() says whether it may vary
  } else if (example && !example->isTensor()) {
    const std::optional<Argument> literal = to_argument(*example);
    if (!literal)
      throw Error(ErrorKind::unsupported,
                  "the input '" + name + "' is a " + example->tagKind() + ", not a tensor or number");
    leaf.literal = *literal;
  } else if (example) {
    leaf.tensor = meta_of_tensor(example->toTensor());
    if (has_numbers(example->toTensor())) leaf.example = example->toTensor().detach();
  } else {
    throw Error(
        ErrorKind::invalid_argument,
        "the shape of the input '" + name + "' is not known: give an example (SaveExportedOptions::inputs, --input)");
  }
  if (leaf.tensor) {
    leaf.tensor->requires_grad = false;
    leaf.tensor->storage_offset = 0;
  }
  leaves_.push_back(std::move(leaf));
}

// What the archive says; the example gives numbers alone.
void CallInputs::add_noted(Leaf& leaf, const CallValue& note, const c10::IValue* example) {
  leaf.noted = true;
  static_cast<CallValue&>(leaf) = note;
  if (example && example->isTensor() && has_numbers(example->toTensor())) leaf.example = example->toTensor().detach();
  if (options_.sizes != ExportedSizes::fixed) return;
  for_each_size(leaf, [](SymbolicSize& size) { size.expr = SizeExpr::integer(size.example); });
  if (leaf.number) leaf.literal = Argument(leaf.number->example);
}

// ── Sizes that vary ────────────────────────────────────────────────────────────────────────────────────────────────

void CallInputs::make_dynamic(const DynamicSize& size) {
  std::size_t index = 0;
  for (Leaf& leaf : leaves_) {
    if (!leaf.tensor || index++ != size.input) continue;
    const auto rank = std::ssize(leaf.tensor->sizes);
    if (size.dimension < 0 || size.dimension >= rank) break;
    const std::string symbol = "s" + std::to_string(size.input) + "_" + std::to_string(size.dimension);
    leaf.tensor->sizes[static_cast<std::size_t>(size.dimension)].expr = SizeExpr::symbol(symbol);
    set_strides(*leaf.tensor);
    ranges_[symbol] = size.range;
    say_least({"size", static_cast<std::size_t>(&leaf - leaves_.data()), size.dimension}, size.range);
    return;
  }
  throw Error(ErrorKind::invalid_argument, "there is no dimension " + std::to_string(size.dimension) +
                                               " of a tensor number " + std::to_string(size.input) +
                                               " among the inputs");
}

// A range from two on says nothing, for torch.export gives it to every size that varies.
void CallInputs::say_least(const AskedSize& size, const SizeRange& range, std::int64_t step) {
  if (range.min == 2) guards_.push_back(SizeExpr::call("GreaterThan", {size.symbol(), 2 * step}));
}

SymbolicSize& CallInputs::size_of(Leaf& leaf, std::size_t dim) {
  return leaf.number ? *leaf.number : leaf.tensor->sizes[dim];
}

// What the program asks of sizes says which are free.
void CallInputs::free_sizes(GraphModule& module, const Graph& graph) {
  std::vector<Leaf*> tensors;
  std::vector<TensorInfo> examples;
  for (Leaf& leaf : leaves_) {
    if (leaf.literal || leaf.noted) continue;
    tensors.push_back(&leaf);
    leaf.given = leaf.tensor.value_or(TensorMeta());
    if (leaf.number) leaf.given->sizes = {*leaf.number};  // it is the size of one, as if it were asked for it
    TensorInfo& info = examples.emplace_back();
    info.dtype = leaf.given->dtype;
    for (const SymbolicSize& size : leaf.given->sizes) info.sizes.push_back(size.example);
  }
  const auto number_of = [&](const Leaf* leaf) { return std::to_string(leaf - leaves_.data()); };
  const auto name = [&](std::size_t input, std::size_t dim) {
    return "s" + number_of(tensors[input]) + "_" + std::to_string(dim);
  };
  const OpenSizes open = open_sizes(examples, name, [&](const auto& inputs, const SizeRanges& ranges) {
    Symbols at;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      for (std::size_t dim = 0; dim < examples[i].sizes.size(); ++dim) {
        size_of(*tensors[i], dim).expr = inputs[i].sizes[dim];
        if (inputs[i].sizes[dim].is_symbol()) at[name(i, dim)] = examples[i].sizes[dim];
      }
      if (tensors[i]->tensor) set_strides(*tensors[i]->tensor);
    }
    ShapeSources sources = shape_sources(module);
    sources.ranges = ranges;
    sources.refine = [&](const Node& node, AbstractValue said) {
      AbstractValue input = input_at(node);
      return input.is_known() ? input : said;
    };
    sources.other = [&](const UndecidedCall& call) {
      const auto value_of = [&](const Node& node) -> const AbstractValue& { return call.values[node]; };
      return fit_call(module, call.node, value_of, at, ranges);
    };
    return SymbolicShapes(graph, {}, sources);
  });
  Symbols numbers;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    for (std::size_t dim = 0; dim < examples[i].sizes.size(); ++dim) {
      const std::string symbol = name(i, dim);
      // Python takes a size of one for a size that never varies.
      numbers[symbol] = std::max<std::int64_t>(2, examples[i].sizes[dim] / open.step(symbol));
    }
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    for (std::size_t dim = 0; dim < examples[i].sizes.size(); ++dim) {
      const SizeExpr& expr = open.inputs[i].sizes[dim];
      size_of(*tensors[i], dim) = {expr, expr.evaluate(numbers).value_or(examples[i].sizes[dim])};
      const auto range = open.ranges.find(name(i, dim));
      if (range == open.ranges.end()) continue;
      const auto leaf = static_cast<std::size_t>(tensors[i] - leaves_.data());
      say_least({tensors[i]->number ? "value" : "size", leaf, static_cast<std::int64_t>(dim)}, range->second,
                open.step(name(i, dim)));
    }
    settle_leaf(*tensors[i]);
  }
  ranges_.insert(open.ranges.begin(), open.ranges.end());
}

// Operators refuse more than sizes: a program that does not run at others is saved for those of the example.
void CallInputs::keep_what_runs(GraphModule& module, const Graph& graph) {
  const at::NoGradGuard no_grad;
  const auto runs = [&](const Symbols& at) {
    const StateKeeper keeper(module);  // each run finds it as the first did
    try {
      Interpreter(module, graph).run(make(at));
      return true;
    } catch (const std::exception&) {
      return false;
    }
  };
  const auto changed = [&](const std::set<std::string>& symbols) {
    Symbols at = symbols_;
    for (const std::string& symbol : symbols) {
      const auto range = ranges_.find(symbol);
      at[symbol] += range != ranges_.end() && range->second.max == at[symbol] ? -1 : 1;
    }
    return at;
  };
  std::set<std::string> all, wrong;
  for (const auto& [symbol, value] : symbols_) all.insert(symbol);
  if (all.empty() || runs(changed(all))) return;
  if (!runs(symbols_)) return fix(all);
  for (const std::string& symbol : all) {
    if (!runs(changed({symbol}))) wrong.insert(symbol);
  }
  fix(wrong.empty() ? all : wrong);
}

// A number that does not vary is the one that it is.
void CallInputs::settle_leaf(Leaf& leaf) {
  if (leaf.tensor) return lay_out(*leaf.tensor, leaf.given);
  if (leaf.number->expr.is_integer()) leaf.literal = Argument(leaf.given->sizes[0].example);
  if (leaf.literal) leaf.number.reset();
}

void CallInputs::fix(const std::set<std::string>& symbols) {
  for (Leaf& leaf : leaves_) {
    if (leaf.number && !leaf.noted && is_of(*leaf.number, symbols))
      leaf.number->expr = SizeExpr::integer(leaf.given->sizes[0].example);
    for (std::size_t dim = 0; leaf.tensor && leaf.given && dim < leaf.given->sizes.size(); ++dim) {
      SymbolicSize& size = leaf.tensor->sizes[dim];
      if (is_of(size, symbols)) size.example = leaf.given->sizes[dim].example;
    }
    for_each_size(leaf, [&](SymbolicSize& size) {
      if (is_of(size, symbols) && (leaf.tensor || !leaf.noted)) size.expr = SizeExpr::integer(size.example);
    });
    if (!leaf.literal && !leaf.noted) settle_leaf(leaf);
  }
  for (const std::string& symbol : symbols) {
    symbols_.erase(symbol);
    ranges_.erase(symbol);
  }
}

AbstractValue CallInputs::input_at(const Node& node) const {
  static const Symbol kGetItem("operator.getitem");
  if (!node.is(Op::placeholder) && node.target() != kGetItem) return {};
  const auto leaf = std::ranges::find(leaves_, &node, &Leaf::node);
  if (leaf == leaves_.end() || leaf->literal) return {};
  if (leaf->number) return leaf->number->expr;
  TensorType type{leaf->tensor->dtype, {}, std::vector<SizeExpr>()};
  for (const SymbolicSize& size : leaf->tensor->sizes) type.sizes.push_back(size.expr.simplified());
  for (const SymbolicSize& stride : leaf->tensor->strides) type.strides->push_back(stride.expr.simplified());
  return type;
}

bool CallInputs::notes(const std::set<std::string>& symbols) const {
  return std::ranges::any_of(leaves_, [&](const Leaf& leaf) {
    bool is_noted = false;
    for_each_size(leaf, [&](const SymbolicSize& size) { is_noted = is_noted || is_of(size, symbols); });
    return leaf.noted && is_noted;
  });
}

// A symbol that is a size itself has the example's; one that is only part of one is searched for.
void CallInputs::add_symbols() {
  constexpr std::int64_t kFarthest = 65536;
  const auto each_size = [&](const auto& visit) {
    for (const Leaf& leaf : leaves_) for_each_size(leaf, visit);
  };
  each_size([&](const SymbolicSize& size) {
    if (size.expr.is_symbol()) symbols_.emplace(size.expr.name(), size.example);
  });
  each_size([&](const SymbolicSize& size) {
    size.expr.for_each_symbol([&](const std::string& name) {
      if (symbols_.count(name)) return;
      Symbols guess = symbols_;
      for (std::int64_t value = 1; value <= kFarthest; ++value) {
        guess[name] = value;
        if (size.expr.evaluate(guess) != size.example) continue;
        symbols_[name] = value;
        return;
      }
    });
  });
}

// ── Values ─────────────────────────────────────────────────────────────────────────────────────────────────────────

c10::IValue CallInputs::make_leaf(const Leaf& leaf, const Symbols& symbols) const {
  if (leaf.literal) return to_ivalue(*leaf.literal);
  if (leaf.number) return valued(*leaf.number, symbols);
  std::vector<std::int64_t> sizes, strides;
  for (const SymbolicSize& size : leaf.tensor->sizes) sizes.push_back(valued(size, symbols));
  for (const SymbolicSize& stride : leaf.tensor->strides) strides.push_back(valued(stride, symbols));
  const auto type = at::TensorOptions().dtype(to_scalar_type(leaf.tensor->dtype));
  return made_like(leaf.example, sizes, strides, type.device(to_torch_device(leaf.tensor->device)));
}

std::vector<c10::IValue> CallInputs::make(const Symbols& symbols) const {
  std::vector<c10::IValue> values;
  for (const Input& input : inputs_) {
    std::size_t leaf = input.first_leaf;
    values.push_back(input.spec.pack_values([&] { return make_leaf(leaves_[leaf++], symbols); }));
  }
  return values;
}

c10::IValue CallInputs::example() const {
  std::vector<c10::IValue> args, all = make(symbols_);
  c10::impl::GenericDict kwargs(c10::StringType::get(), c10::AnyType::get());
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].keyword) {
      kwargs.insert(inputs_[i].placeholder->target().str(), all[i]);
    } else {
      args.push_back(all[i]);
    }
  }
  return c10::ivalue::Tuple::create({c10::ivalue::Tuple::create(std::move(args)), std::move(kwargs)});
}

std::string CallInputs::spec() const {
  std::vector<TreeSpec> args, kwargs;
  std::vector<Argument> names;
  for (const Input& input : inputs_) {
    if (input.keyword) names.push_back(Argument(input.placeholder->target().view()));
    (input.keyword ? kwargs : args).push_back(input.spec);
  }
  return TreeSpec::tuple({TreeSpec::tuple(std::move(args)), TreeSpec::dict(std::move(names), std::move(kwargs))})
      .dump();
}

}  // namespace fx::pt2
