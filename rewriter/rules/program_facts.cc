#include <fxgraph/rewriter/rules/program_facts.h>

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include <fxgraph/module/module_info.h>
#include <fxgraph/module/state_keeper.h>
#include <fxgraph/rewriter/rewriter.h>
#include <fxgraph/rewriter/rules/free_sizes.h>
#include <fxgraph/rewriter/rules/weights.h>
#include <fxgraph/run/value.h>

namespace fx::rules {

namespace {

/// The same with a dimension more or less, or of another type.
std::vector<TensorInfo> others_of(FactKind kind, const TensorInfo& info) {
  std::vector<TensorInfo> others;
  if (kind == FactKind::dtype) {
    for (const DType type :
         {DType::float32, DType::float64, DType::bfloat16, DType::float16, DType::int64, DType::boolean}) {
      if (type == info.dtype) continue;
      others.push_back(info);
      others.back().dtype = type;
    }
    return others;
  }
  others.assign(info.sizes.empty() ? 1 : 2, info);
  for (TensorInfo& other : others) other.strides.clear();
  others[0].sizes.push_back(2);
  if (!info.sizes.empty()) others[1].sizes.pop_back();
  return others;
}

InputProperty property_of(FactKind kind) {
  return kind == FactKind::dtype ? InputProperty::dtype : InputProperty::rank;
}

}  // namespace

std::set<std::string> asserted_inputs(const Graph& graph, InputProperty property) {
  std::set<std::string> names;
  for (const Condition& condition : Contract(graph).conditions()) {
    for (const Measure& measure : condition.measures) {
      if (measure.part.empty() && measure.property == property) names.insert(measure.input);
    }
  }
  return names;
}

ProgramFacts::ProgramFacts(GraphModule& module, const std::vector<TensorInfo>& inputs, bool keeps_sizes)
    : module_(module), inputs_(inputs), keeps_sizes_(keeps_sizes), propagated_(module) {
  find();
}

void ProgramFacts::find() {
  if (inputs_.empty()) return;
  propagate();
  if (!known()) return;
  forget_branches(module_.graph(), example_);
  forget_changing_forms();
  is_marked_ = false;
  before_.reset();
  typed_ = NodeMap<bool>(module_.graph(), false);
  other_types_.reset();
  other_ranks_.reset();
}

Shapes& ProgramFacts::in_every_call() {
  if (std::exchange(is_marked_, true)) return known_;
  known_ = example_;
  mark_free(module_, inputs_, known_);
  return known_;
}

std::optional<AcrossSamples> ProgramFacts::across_samples(Shapes& shapes) {
  shapes = in_every_call();
  const auto across = computes_across_samples(module_.graph(), shapes);
  if (!across || !known()) return across;
  shapes = example_;
  mark_free(module_, inputs_, shapes, Vary::first);
  return computes_across_samples(module_.graph(), shapes) ? across : std::nullopt;
}

void ProgramFacts::propagate() {
  if (must_run_) return run();
  try {
    if (worked_out_ == 0) {
      propagated_.propagate(inputs_);
      worked_out_ = module_.graph().size();
    } else {
      worked_out_ += propagated_.update();
    }
    example_ = propagated_.shapes();
  } catch (const std::exception&) {
    must_run_ = true;  // it looks at its numbers, to check them for instance
    run();
  }
}

void ProgramFacts::run() {
  const at::NoGradGuard no_grad;
  const StateKeeper keeper(module_);
  try {
    example_ = propagate_shapes(module_, inputs_);
    worked_out_ += module_.graph().size();
    unknown_because_.clear();
  } catch (const std::exception& error) {
    example_ = known_ = {};
    unknown_because_ = error.what();
  }
}

/// What is known of a value's form is no use where the program changes it in place; of what is computed from a weight
/// either, whose form the next call finds changed.
void ProgramFacts::forget_changing_forms() {
  const Graph& graph = module_.graph();
  const auto changes = [&](const Node& node) { return effects_of(node).restructures; };
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), changes)) return;
  const ProgramEffects effects(module_);
  NodeMap<bool> carried(graph, false);
  for (const Node& node : graph.nodes()) {
    const bool changes_form = effects.has_inplace_view(node);
    bool from_state = changes_form && node.is(Op::get_attr);
    node.for_each_input([&](const Node& input) { from_state |= carried[input]; });
    carried[node] = from_state;
    if (changes_form || from_state) example_[node] = {};
  }
}

// ── What rules went by ───────────────────────────────────────────────────────────────────────────────────────────────

void ProgramFacts::set_type(const Node& value, DType type) {
  ValueFacts::set_type(value, type);
  if (is_marked_ && !known_[value].tensors.empty()) known_[value].tensors[0].dtype = type;
  typed_[value] = true;
}

void ProgramFacts::forget(const Node& value) {
  ValueFacts::forget(value);
  known_[value] = {};
}

void ProgramFacts::stands_for(const Node& made, const Node& old) {
  const auto copy = [&](Shapes& shapes) {
    ValueInfo info = std::as_const(shapes)[old];
    for (TensorInfo& tensor : info.tensors) {
      tensor.strides.clear();
      tensor.storage = tensor.storage_bytes = -1;
    }
    shapes[made] = std::move(info);
  };
  copy(example_);
  if (is_marked_) copy(known_);
  if (before_) was_[made] = std::as_const(was_)[old];
}

bool ProgramFacts::is_held(FactKind kind, std::size_t input) const {
  return required_.contains({kind, input}) || asserted_.contains({kind, input});
}

void ProgramFacts::prepare() {
  if (before_ || !known()) return;
  NodeMap<Node*> copies;
  before_ = std::make_shared<GraphModule>(module_, module_.graph().clone(&copies));
  was_ = NodeMap<const Node*>(module_.graph(), nullptr);
  for (const Node& node : module_.graph().nodes()) was_[node] = copies[node];
}

/// One input at a time, and then all that are alike together.
const std::vector<ProgramFacts::Form>& ProgramFacts::other_forms(FactKind kind) {
  auto& forms = kind == FactKind::dtype ? other_types_ : other_ranks_;
  if (forms) return *forms;
  forms.emplace();
  const Graph& graph = before_->graph();
  ShapeSources sources = shape_sources(*before_);
  sources.may_stop = true;
  // Otherwise rows cannot tell what else the program takes.
  sources.may_stop = SymbolicShapes(graph, of_any_size(inputs_), sources).refused().empty();
  const auto add = [&](const std::vector<TensorInfo>& form, std::vector<std::size_t> others) {
    SymbolicShapes shapes(graph, of_any_size(form), sources);
    if (!sources.may_stop || shapes.refused().empty()) forms->push_back({std::move(others), std::move(shapes)});
  };
  const std::vector<Node*> placeholders = graph.placeholders();
  const std::set<std::string> asserted = asserted_inputs(graph, property_of(kind));
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (is_held(kind, i) || asserted.contains(placeholders[i]->name())) continue;
    for (const TensorInfo& other : others_of(kind, inputs_[i])) {
      std::vector<TensorInfo> form = inputs_;
      form[i] = other;
      add(form, {i});
    }
  }
  std::vector<bool> grouped(inputs_.size());
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const auto is_alike = [&](std::size_t k) {
      return kind == FactKind::dtype ? inputs_[k].dtype == inputs_[i].dtype
                                     : inputs_[k].sizes.size() == inputs_[i].sizes.size();
    };
    std::vector<std::size_t> alike;
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      if (!grouped[k] && is_alike(k)) alike.push_back(k);
    }
    for (const std::size_t k : alike) grouped[k] = true;
    if (alike.size() < 2 || std::ranges::any_of(alike, [&](std::size_t k) { return is_held(kind, k); })) continue;
    for (std::size_t at = 0; at < others_of(kind, inputs_[i]).size(); ++at) {
      std::vector<TensorInfo> form = inputs_;
      for (const std::size_t k : alike) form[k] = others_of(kind, inputs_[k])[at];
      add(form, alike);
    }
  }
  return *forms;
}

const TensorType* ProgramFacts::in_form(const Node& value, const Form& form) const {
  const Node* was = std::as_const(was_)[value];
  return was ? form.shapes[*was].tensor() : nullptr;
}

bool ProgramFacts::holds(const Fact& fact, const Form& form) {
  const TensorInfo* read = std::as_const(in_every_call())[*fact.value].tensor();
  if (fact.kind == FactKind::dtype && typed_[*fact.value]) return true;
  const TensorType* type = in_form(*fact.value, form);
  const TensorType* other = fact.other ? in_form(*fact.other, form) : nullptr;
  if (!type || !read) return false;
  const auto is_as_read = [](const SizeExpr& size, std::int64_t known) {
    return is_free(known) || (size.is_integer() && size.value() == known);
  };
  switch (fact.kind) {
    case FactKind::dtype: return fact.types.contains(type->dtype);
    case FactKind::same_dtype: return other && other->dtype == type->dtype;
    case FactKind::same_sizes: return other && other->sizes == type->sizes;
    case FactKind::rank: return fact.ranks >> type->sizes.size() & 1;
    case FactKind::last_size:
      return !type->sizes.empty() && !read->sizes.empty() && is_as_read(type->sizes.back(), read->sizes.back());
    case FactKind::sizes: return std::ranges::equal(type->sizes, read->sizes, is_as_read);
  }
  return false;
}

std::string ProgramFacts::require(std::string_view rule, std::span<const Fact> facts) {
  if (!known()) return {};
  prepare();
  std::set<Held> needed;
  for (const Fact& fact : facts) {
    for (const FactKind kind : {FactKind::dtype, FactKind::rank}) {
      const bool of_type = fact.kind == FactKind::dtype || fact.kind == FactKind::same_dtype;
      if (kind == FactKind::dtype && !of_type) continue;  // sizes hang on no type
      for (const Form& form : other_forms(kind)) {
        // Held by one of them, the program does not come into this form any more.
        const auto is_excluded = [&](std::size_t input) {
          return needed.contains({kind, input}) || is_held(kind, input);
        };
        if (holds(fact, form) || std::ranges::any_of(form.inputs, is_excluded)) continue;
        needed.insert({kind, form.inputs[0]});
      }
    }
  }
  if (needed.empty()) return {};
  if (keeps_sizes_) {
    const auto& [kind, input] = *needed.begin();
    return "it would hold " + before_->graph().placeholders()[input]->name() + " to be " +
           form_of(kind, inputs_[input]) + ", and the program takes others";
  }
  for (const Held& held : needed) required_.emplace(held, rule);
  return {};
}

std::string ProgramFacts::ByExample::require(std::string_view rule, std::span<const Fact> asked) {
  for (const Fact& fact : asked) {
    const TensorInfo* known = std::as_const(facts.in_every_call())[*fact.value].tensor();
    const bool of_sizes = fact.kind == FactKind::sizes || fact.kind == FactKind::last_size;
    if (of_sizes && (!known || std::ranges::any_of(known->sizes, is_free)))
      return "the sizes of " + fact.value->name() + " differ from call to call";
  }
  return facts.require(rule, asked);
}

std::string ProgramFacts::form_of(FactKind kind, const TensorInfo& info) {
  if (kind == FactKind::dtype) return to_string(Argument(info.dtype));
  const std::size_t rank = info.sizes.size();
  return "of " + std::to_string(rank) + (rank == 1 ? " dimension" : " dimensions");
}

void ProgramFacts::assert_required() {
  const std::vector<Node*> placeholders = module_.graph().placeholders();
  for (const auto& [held, rule] : std::exchange(required_, {})) {
    const auto& [kind, i] = held;
    const bool of_type = kind == FactKind::dtype;
    Node& input = *placeholders[i];
    Rewriter rewriter(module_.graph());
    const auto at = rewriter.inserting_before(*placeholders.back()->next());
    Node& asked = rewriter.call_function(of_type ? kTypeQuestion : kRankQuestion, {input});
    const auto answer = of_type ? static_cast<std::int64_t>(to_scalar_type(inputs_[i].dtype))
                                : static_cast<std::int64_t>(inputs_[i].sizes.size());
    rewriter.assertions().add(SizeRelation::equal, asked, answer,
                              input.name() + " must be " + form_of(kind, inputs_[i]) +
                                  ", as those that it was optimised for: " + rule + " went by that");
    asserted_.emplace(held, rule);
  }
}

std::vector<HeldInput> ProgramFacts::held() const {
  std::vector<HeldInput> all;
  if (asserted_.empty()) return all;
  const std::vector<Node*> placeholders = module_.graph().placeholders();
  for (const FactKind kind : {FactKind::dtype, FactKind::rank}) {
    const std::set<std::string> still = asserted_inputs(module_.graph(), property_of(kind));
    for (const auto& [held, rule] : asserted_) {
      const std::string input = placeholders[held.second]->name();
      if (held.first == kind && still.contains(input))
        all.push_back({input, form_of(kind, inputs_[held.second]), rule});
    }
  }
  return all;
}

}  // namespace fx::rules
