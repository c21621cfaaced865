#include <fxgraph/rewriter/rules/batch.h>

#include <algorithm>
#include <iterator>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/rewriter/rules/call_samples.h>
#include <fxgraph/rewriter/rules/operator_of.h>

namespace fx {

namespace internal {

std::optional<SampleRows> SampleRows::of(std::span<const std::int64_t> sizes) {
  SampleRows product;
  for (const std::int64_t size : sizes) {
    if (size == 0) return std::nullopt;
    if (size > 0) {
      product.factor *= size;
    } else {
      product.free.push_back(size);
    }
  }
  std::ranges::sort(product.free);
  return product;
}

SampleRows SampleRows::times(const SampleRows& other) const {
  SampleRows product{factor * other.factor};
  std::ranges::merge(free, other.free, std::back_inserter(product.free));
  return product;
}

std::optional<SampleRows> SampleRows::over(const SampleRows& other) const {
  if (factor % other.factor != 0 || !std::ranges::includes(free, other.free)) return std::nullopt;
  SampleRows quotient{factor / other.factor};
  std::ranges::set_difference(free, other.free, std::back_inserter(quotient.free));
  return quotient;
}

const Argument* CallSamples::argument(std::size_t i) const {
  if (call_) return i < num_arguments() ? call_.argument(i) : nullptr;
  return i < node_.args().size() ? &node_.args()[i] : nullptr;
}

const Argument* CallSamples::argument(std::string_view name) const { return call_.argument(name); }

SampleValue CallSamples::value(const Argument& argument) const {
  if (const Node* node = argument.node_or_null()) return values_[*node];
  if (!argument.is_container()) return {};
  SampleValue list{.kind = SampleValue::Kind::items};
  for (const Argument& element : argument.elements()) list.items.push_back(value(element));
  if (std::ranges::all_of(list.items, &SampleValue::is_shared)) return {};
  const SampleValue& first = list.items.front();
  const bool alike =
      first.is_batched() && std::ranges::all_of(list.items, [&](const auto& each) { return each == first; });
  if (!alike || !argument.is_sequence()) return list;
  SampleValue all = first;
  all.each = true;
  return all;
}

SampleValue CallSamples::value(std::size_t i) const {
  const Argument* found = argument(i);
  return found ? value(*found) : SampleValue();
}

bool CallSamples::all_shared() const {
  return std::ranges::all_of(node_.all_input_nodes(), [&](const Node* input) { return values_[*input].is_shared(); });
}

bool CallSamples::shared_from(std::size_t from) const {
  for (std::size_t i = from; i < num_arguments(); ++i) {
    if (!value(i).is_shared()) return false;
  }
  return true;
}

const TensorInfo* CallSamples::info(const Argument& argument) const {
  const Node* node = argument.node_or_null();
  return node ? shapes_[*node].tensor() : nullptr;
}

std::optional<std::size_t> CallSamples::rank(std::size_t i) const {
  const Argument* found = argument(i);
  const TensorInfo* known = found ? info(*found) : nullptr;
  if (!known) return std::nullopt;
  return known->sizes.size();
}

std::optional<std::vector<std::size_t>> CallSamples::dims(const Argument& named, std::size_t rank) {
  std::vector<std::size_t> found;
  const auto add = [&](const Argument& dim) {
    const auto whole = static_cast<std::int64_t>(rank);
    if (!dim.is_int() || dim.as_int() < -whole || dim.as_int() >= whole) return false;
    found.push_back(static_cast<std::size_t>(dim.as_int() < 0 ? dim.as_int() + whole : dim.as_int()));
    return true;
  };
  if (!named.is_sequence()) return add(named) ? std::optional(found) : std::nullopt;
  for (const Argument& dim : named.elements()) {
    if (!add(dim)) return std::nullopt;
  }
  return found;
}

SampleValue CallSamples::returned(SampleValue value) const {
  if (!call_) return value;
  const std::vector<SchemaReturn>& returns = call_.schema().returns;
  value.each = returns.size() > 1 || (returns.size() == 1 && returns[0].type.list);
  return value;
}

}  // namespace internal

namespace {

using internal::CallSamples;
using internal::SampleRows;
using internal::SampleValue;

class Samples {
 public:
  Samples(const Graph& graph, const Shapes& shapes) : graph_(graph), shapes_(shapes), values_(graph), aliases_(graph) {}

  std::optional<AcrossSamples> run() {
    for (const Node& node : graph_.nodes()) {
      const CallSamples::Result found = visit(node);
      if (!found) return AcrossSamples{node.name(), std::move(why_)};
      values_[node] = *found;
    }
    return std::nullopt;
  }

 private:
  CallSamples::Result no(std::string why) {
    why_ = std::move(why);
    return std::nullopt;
  }

  CallSamples::Result visit(const Node& node) {
    switch (node.op()) {
      case Op::placeholder: return input(node);
      case Op::get_attr: return SampleValue();
      case Op::output: return result(node);
      case Op::call_module: return no("it calls a module");
      case Op::call_method:
      case Op::call_function: return call(node);
    }
    return no("it is of no kind that is known");
  }

  CallSamples::Result input(const Node& node) {
    if (!node.has_users()) return SampleValue();
    const TensorInfo* known = shapes_[node].tensor();
    if (!known && shapes_[node].tensors.empty()) return SampleValue();
    if (!known) return no("it is an input of several tensors");
    return known->sizes.empty() ? SampleValue() : SampleValue::batched(0);
  }

  CallSamples::Result result(const Node& node) {
    std::vector<const Node*> returned;
    for (const Argument& value : node.args()) {
      if (!gather(value, returned)) return std::nullopt;
    }
    for (std::size_t i = 0; i < returned.size(); ++i) {
      for (std::size_t k = i + 1; k < returned.size(); ++k) {
        if (returned[i] == returned[k] || aliases_.may_alias(*returned[i], *returned[k]))
          return no("it returns %" + returned[k]->name() + ", which may be the memory of %" + returned[i]->name());
      }
    }
    return SampleValue();
  }

  /// The nodes that are returned; false when they are not tensors with a row for each sample, in memory of their own.
  bool gather(const Argument& value, std::vector<const Node*>& returned) {
    if (value.kind() == ArgumentKind::list || value.kind() == ArgumentKind::tuple)
      return std::ranges::all_of(value.elements(), [&](const Argument& each) { return gather(each, returned); });
    const Node* node = value.node_or_null();
    if (!node) return no("it returns what is no tensor").has_value();
    const SampleValue& found = values_[*node];
    const std::string what = "it returns %" + node->name() + ", ";
    if (found.kind != SampleValue::Kind::batched) return no(what + "which is not a row for each sample").has_value();
    if (found.outer != SampleRows()) return no(what + "whose samples are not in order").has_value();
    if (found.dim != 0) return no(what + "whose samples lie in dimension " + std::to_string(found.dim)).has_value();
    const auto is_external = [&](Effects::Set set) { return aliases_.is_external(set); };
    if (std::ranges::any_of(aliases_.sets(*node), is_external) || (found.each && effects_of(*node).may_alias))
      return no(what + "which may be memory of something else").has_value();
    returned.push_back(node);
    return true;
  }

  CallSamples::Result call(const Node& node) {
    const NodeEffects effects = effects_of(node);
    CallSamples call(node, shapes_, values_);
    const std::string name(rules::last_name(node));
    if (effects.unknown) return no("nobody knows what " + name + " does");
    if (effects.random) return no(name + " draws random numbers");
    const bool shared = call.all_shared();
    if (effects.side_effect)
      return shared && node.is_call(python::kAssert) ? CallSamples::Result(SampleValue()) : no(name + " has effects");
    if (effects.restructures) return no(name + " changes the form of what it is given");
    if (effects.writes && shared) return no(name + " writes what the samples share");
    if (shared) return internal::result_of_shared_call(call);
    const CallSamples::Result found = internal::result_of_batch_call(call);
    if (!found) return no(call.why().empty() ? "of " + name + " it is not known where samples lie" : call.why());
    return found;
  }

  const Graph& graph_;
  const Shapes& shapes_;
  NodeMap<SampleValue> values_;
  Effects aliases_;
  std::string why_;
};

}  // namespace

std::optional<AcrossSamples> computes_across_samples(const Graph& graph, const Shapes& shapes) {
  return Samples(graph, shapes).run();
}

}  // namespace fx
