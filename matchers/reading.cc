#include <fxgraph/matchers/reading.h>

#include <algorithm>
#include <utility>

#include <fxgraph/contract/symbolic_shapes.h>
#include <fxgraph/effects/in_place.h>
#include <fxgraph/effects/inlining.h>
#include <fxgraph/ir/graph_order.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/matchers/engine.h>
#include <fxgraph/ops/schema_registry.h>

namespace fx::internal {

namespace {

/// A body that was traced holds for the sizes of its call, unless it is one operator.
bool is_one_operator(const Graph& body) {
  const auto calls = std::ranges::count_if(body.nodes(), [](const Node& node) { return node.is_callable(); });
  return calls == 1;
}

std::shared_ptr<const Graph> body_of(const Node& call, const std::string& path, const ModuleInfo& modules) {
  std::shared_ptr<const Graph> body = modules.evaluated ? modules.evaluated(path) : nullptr;
  if (body) return why_misfit(call, *body).empty() ? body : nullptr;
  if (call.target().view() != path || !modules.operators) return nullptr;
  body = modules.operators(call);
  const bool fits = body && is_one_operator(*body) && call.kwargs().empty() &&
                    call.args().size() == call.all_input_nodes().size() && why_misfit(call, *body).empty();
  return fits ? body : nullptr;
}

bool may_write_in_place(Op op, Symbol target) {
  return is_function_or_method(op) && effects_of_each(op, target).value_or(NodeEffects{.writes = true}).writes;
}

/// True for a call of a function that writes in place when it is told to: `relu(x, inplace=True)`.
bool may_be_told_to_write(const Node& node) {
  const auto is_true = [](const Argument& argument) { return argument.is_bool() && argument.as_bool(); };
  bool any = std::ranges::any_of(node.args(), is_true);
  for (const auto& [name, value] : node.kwargs()) any = any || is_true(value);
  return any;
}

/// True when some node, and not its target alone, may be read as something else.
bool any_is_read(const Graph& graph, const std::function<bool(Op, Symbol)>& is_read) {
  const auto by_target = [&](Op op, Symbol target) {
    return is_read(op, target) && (op == Op::call_module || packet_of(target.view()).ends_with('_'));
  };
  return graph.any_called(by_target) || std::ranges::any_of(graph.nodes(), [&](const Node& node) {
           return is_function_or_method(node.op()) && may_be_told_to_write(node) && is_read(node.op(), node.target());
         });
}

}  // namespace

/// What the calls of some patterns accept.
class Reading::Wanted {
 public:
  Wanted(std::span<const Pattern> patterns, const FindOptions& options) {
    for (const Pattern& pattern : patterns) {
      patterns_.push_back(std::make_unique<CompiledPattern>(pattern, options));
      for (const PatternNode& node : PatternAccess::of(pattern).nodes)
        has_functions_ = has_functions_ || (node.kind == PatternKind::call && is_function_or_method(node.op));
    }
  }

  bool has_functions() const { return has_functions_; }
  /// True when a pattern may mean what computes the same as calls of `target`, which write, in a value of its own.
  bool means_functional(Op op, Symbol target) const {
    if (!may_write_in_place(op, target)) return false;
    Overloads called = candidate_overloads(op, target);
    if (const OperatorSchema* own = target_info(target).schema; own && op == Op::call_function) called = {own};
    return std::ranges::any_of(called, [&](const OperatorSchema* each) {
      const OperatorSchema* functional = functional_overload(*each);
      return functional && accepts_target(functional->target);
    });
  }
  /// True when a pattern means the node as it stands.
  bool accepts(const Node& node) const {
    return std::ranges::any_of(patterns_, [&](const auto& pattern) {
      for (std::uint32_t i = 0; i < pattern->size(); ++i) {
        if (pattern->is_call(i) && pattern->accepts(i, node)) return true;
      }
      return false;
    });
  }

 private:
  bool accepts_target(Symbol target) const {
    return std::ranges::any_of(patterns_, [&](const auto& pattern) {
      for (std::uint32_t i = 0; i < pattern->size(); ++i) {
        if (pattern->is_call(i) && pattern->facts().fit(i, Op::call_function, target) != Fit::no) return true;
      }
      return false;
    });
  }

  std::vector<std::unique_ptr<CompiledPattern>> patterns_;
  bool has_functions_ = false;
};

class Reading::Builder {
 public:
  Builder(Reading& reading, const Graph& program, const Wanted& wanted, std::uint32_t made_from)
      : reading_(reading), program_(program), wanted_(wanted), made_from_(made_from) {}

  /// False when the copy reads as the program does.
  bool build(std::span<const Pattern> patterns) {
    const FindOptions& options = reading_.options_;
    Inlined inlined = inline_calls(program_, [&](const Node& call, const std::string& path) {
      return options.leaves || is_named(call, path) ? nullptr : body_of(call, path, options.modules);
    });
    reading_.graph_ = std::move(inlined.graph);
    reading_.results_ = std::move(inlined.values);
    reading_.changed_ = NodeMap<bool>(reading_.graph_);
    for (const Node& node : reading_.graph_.nodes()) {
      const Node& source = *inlined.sources[node];
      reading_.sources_[node] = const_cast<Node*>(&source);
      reading_.changed_[node] = source.is(Op::call_module) && !node.is(Op::call_module);
      any_ = any_ || reading_.changed_[node];
      if (!reading_.first_[source]) reading_.first_[source] = &node;
    }
    for (const Node& node : program_.nodes()) {
      const Node* made = reading_.results_[node].node_or_null();
      if (made && (!reading_.values_[*made] || reading_.sources_[*made] == &node))
        reading_.values_[*made] = const_cast<Node*>(&node);
    }
    if (any_) ask_inputs_for_ranks(reading_.graph_, options.modules);
    reading_.forms_ = std::make_unique<Forms>(reading_.graph_);
    take_out_writes();
    if (any_ || options.definitions) infer_shapes();
    if (options.definitions) make_forms(patterns);
    return any_ || reading_.forms_->size() > 0;
  }

 private:
  /// Only calls that the program itself makes have a name that a pattern may say.
  bool is_named(const Node& call, const std::string& path) const {
    return &call.graph() == &program_ && call.target().view() == path && stays(call, call);
  }
  bool stays(const Node& node, const Node& source) const { return source.id() >= made_from_ || wanted_.accepts(node); }

  void take_out_writes() {
    Graph& graph = reading_.graph_;
    if (!graph.any_called(may_write_in_place)) return;
    TrackedEffects effects(graph, reading_.options_.modules);
    effects.expect_writes();
    for (Node& node : graph.nodes()) {
      const Call call = call_of(node);
      const OperatorSchema* functional = call ? functional_overload(call.schema()) : nullptr;
      if (!functional || stays(node, *reading_.sources_[node]) || sees_write(node, effects) || !keeps_type(node, call))
        continue;
      spell_as_operator(node);
      node.set_target(functional->target);
      effects.changed(node);
      reading_.changed_[node] = any_ = true;
    }
  }

  /// In place a sum has the type of its first operand; anew, that of both.
  bool keeps_type(const Node& node, const Call& call) const {
    const Shapes* shapes = reading_.options_.shapes;
    const Node* written = call.argument(0)->node_or_null();
    const TensorInfo* into = shapes && written ? info_of(*written) : nullptr;
    if (!into) return true;
    bool keeps = true;
    node.for_each_input([&](const Node& other) {
      const TensorInfo* info = info_of(other);
      keeps = keeps && (!info || info->dtype == into->dtype);
    });
    return keeps;
  }

  /// Of a node of the copy whose value the program has.
  const TensorInfo* info_of(const Node& node) const {
    const Node* value = reading_.values_[node];
    return value ? (*reading_.program_shapes_)[*value].tensor() : nullptr;
  }

  void make_forms(std::span<const Pattern> patterns) {
    FormMaker maker(
        reading_.graph_, *reading_.forms_, reading_.options_, [&](const Node& node) { return reading_.info(node); },
        [&](const Node& made, const Node& of) { reading_.sources_[made] = &reading_.source(of); });
    maker.run(patterns);
  }

  /// Of attributes where the program does not say it.
  void add_attributes() {
    const ModuleInfo& modules = reading_.options_.modules;
    for (const Node& node : reading_.graph_.nodes()) {
      if (!node.is(Op::get_attr) || !modules.tensor || reading_.info(node)) continue;
      if (std::optional<TensorInfo> info = modules.tensor(node.target().view()))
        reading_.shapes_[node] = *std::move(info);
    }
  }

  /// What the program's values are is known; what lies inside modules follows from it.
  void infer_shapes() {
    const Shapes* known = reading_.options_.shapes;
    reading_.shapes_ = Shapes(reading_.graph_);
    if (!known) return add_attributes();
    const ModuleInfo& modules = reading_.options_.modules;
    ShapeSources sources;
    sources.attribute = [&](std::string_view path) -> std::optional<TensorType> {
      const std::optional<TensorInfo> info = modules.tensor ? modules.tensor(path) : std::nullopt;
      return info ? std::optional(tensor_type(*info)) : std::nullopt;
    };
    sources.refine = [&](const Node& node, AbstractValue said) -> AbstractValue {
      const TensorInfo* info = info_of(node);
      return info ? AbstractValue(tensor_type(*info)) : said;
    };
    std::vector<AbstractValue> inputs;
    for (const Node* input : reading_.graph_.placeholders()) inputs.push_back(sources.refine(*input, {}));
    const SymbolicShapes inferred(reading_.graph_, std::move(inputs), sources);
    for (const Node& node : reading_.graph_.nodes()) {
      if (const Node* value = reading_.values_[node]) {
        reading_.shapes_[node] = (*known)[*value];
      } else if (const TensorType* type = inferred[node].tensor()) {
        if (std::optional<TensorInfo> info = tensor_info(*type)) reading_.shapes_[node] = *std::move(info);
      }
    }
    reading_.options_.shapes = &reading_.shapes_;
    add_attributes();
  }

  Reading& reading_;
  const Graph& program_;
  const Wanted& wanted_;
  const std::uint32_t made_from_;
  bool any_ = false;
};

Reading::Reading(const Graph& program, const FindOptions& options)
    : options_(options), program_shapes_(options.shapes), results_(program), first_(program) {
  options_.calls = nullptr;  // of the program
  options_.stats = nullptr;
}

std::shared_ptr<const Reading> Reading::of(const Graph& graph, std::span<const Pattern> patterns,
                                           const FindOptions& options, std::uint32_t made_from) {
  const bool opens_modules = options.modules.evaluated && !options.leaves;
  const auto may_be_read = [&](Op op, Symbol target) {
    return (op == Op::call_module && opens_modules) || may_write_in_place(op, target);
  };
  if (!options.definitions && !graph.any_called(may_be_read)) return nullptr;
  const Wanted wanted(patterns, options);
  const auto is_read = [&](Op op, Symbol target) {
    return (op == Op::call_module && opens_modules) || wanted.means_functional(op, target);
  };
  if (!wanted.has_functions()) return nullptr;
  const bool any_read = graph.any_called(is_read) && any_is_read(graph, is_read);
  if (!any_read && !(options.definitions && FormMaker::may_make_any(graph, patterns))) return nullptr;
  std::shared_ptr<Reading> reading(new Reading(graph, options));
  return Builder(*reading, graph, wanted, made_from).build(patterns) ? reading : nullptr;
}

std::vector<const Node*> Reading::parts(const Node& source) const {
  std::vector<const Node*> parts;
  for (const Node* node = first_[source]; node && sources_[*node] == &source; node = node->next()) {
    if (!forms_->is_of_form(*node)) parts.push_back(node);
  }
  return parts;
}

std::vector<const Definition*> Reading::rows(const std::vector<Argument>& values) const {
  std::vector<const Definition*> rows;
  for (const Argument& value : values) {
    const Node* node = value.node_or_null();
    const Form* form = node ? forms_->form(*node) : nullptr;
    if (form && std::ranges::find(rows, form->row) == rows.end()) rows.push_back(form->row);
  }
  return rows;
}

void Reading::translate(const std::shared_ptr<const Reading>& reading, Match& match) {
  const auto translated = [&](Node& node) {
    Node* value = reading->value(node);
    return Argument(value ? *value : node);
  };
  MatchBuilder::translate(match, reading, translated);
}

}  // namespace fx::internal
