#include <fxgraph/rewriter/partition/course.h>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/MemoryOverlap.h>

#include <mutex>
#include <utility>

#include <fxgraph/module/interpreter.h>
#include <fxgraph/nn/without_repeats.h>
#include <fxgraph/rewriter/program/verify.h>

namespace fx {
namespace {

at::Tensor generator_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void set_generator_state(const at::Tensor& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

/// What is expanded is expanded in the copy.
at::Tensor copy_as_it_lies(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  at::Tensor plain = tensor.clone();
  if (tensor.layout() != at::kStrided || tensor.is_quantized() || plain.strides().equals(tensor.strides()))
    return plain;
  const at::Tensor least = without_repeats(tensor);
  at::Tensor copy = at::empty_strided(least.sizes(), least.strides(), least.options());
  if (at::has_internal_overlap(copy) != at::MemOverlap::No) return plain;
  copy.copy_(least);
  return copy.sizes().equals(tensor.sizes()) ? copy : copy.expand(tensor.sizes());
}

/// Whether a call may draw from the generator.
bool may_draw(const NodeEffects& effects) { return effects.random || effects.unknown; }

}  // namespace

SameGenerator::SameGenerator() : state_(generator_state()) {}
SameGenerator::~SameGenerator() { set_generator_state(state_); }

c10::IValue copy_as_it_lies(const c10::IValue& value) {
  if (value.isTensor()) return copy_as_it_lies(value.toTensor());
  if (value.isTuple() && !value.toTupleRef().type()->schema()) {
    std::vector<c10::IValue> elements;
    for (const c10::IValue& element : value.toTupleRef().elements()) elements.push_back(copy_as_it_lies(element));
    return c10::ivalue::Tuple::create(std::move(elements));
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& element : value.toTensorVector()) list.push_back(copy_as_it_lies(element));
    return list;
  }
  return copy_of(value);
}

Written::Written(const GraphModule& module, const Effects& effects, const ModuleInfo& modules)
    : effects_(effects), modules_(modules) {
  const auto add = [&](const std::string& path) { paths_[modules.storage_of(Symbol(path))].push_back(path); };
  for (const auto& item : module.named_parameters()) add(item.key());
  for (const auto& item : module.named_buffers()) add(item.key());
}

void Written::add_storage(Symbol storage, Places& places) const {
  const auto at = paths_.find(storage);
  if (at != paths_.end()) places.paths.insert(at->second.begin(), at->second.end());
}

Written::Places Written::of(const std::vector<Node*>& nodes) const {
  Places places;
  const auto add_module = [&](const Node& node) {
    if (modules_.state) modules_.state(node.target(), [&](Symbol storage) { add_storage(storage, places); });
  };
  for (const Node* node : nodes) {
    if (!effects_.writes(*node) && !effects_.of(*node).unknown) continue;
    if (node->is(Op::call_module)) add_module(*node);
    for (const Effects::Set set : effects_.written_sets(*node)) {
      for (const Node* member : effects_.members(set)) {
        if (member->is(Op::placeholder)) places.inputs.insert(member->id());
        if (!member->is(Op::get_attr)) continue;
        add_storage(modules_.storage_of(member->target()), places);
        add_module(*member);
      }
    }
  }
  return places;
}

/// Notes what is there when a unit ends.
class Noting : public Interpreter {
 public:
  Noting(Course& course, GraphModule& copy, const NodeMap<const Node*>& originals,
         const std::vector<std::vector<Node*>>& units, const Effects& effects, const Written& written)
      : Interpreter(copy),
        course_(course),
        originals_(originals),
        units_(units),
        effects_(effects),
        written_(written),
        unit_of_(effects.graph(), 0) {
    for (std::size_t i = 0; i < units.size(); ++i) {
      for (const Node* node : units[i]) unit_of_[*node] = i;
    }
    course_.generator_[0] = generator_state();
  }

  Value run_node(const Node& node) override {
    const Node& original = *originals_[node];
    if (original.is_callable() && unit_of_[original] != unit_) end_unit();
    Value value = Interpreter::run_node(node);
    if (node.is(Op::placeholder)) {
      placeholders_[original.id()] = value;
      course_.inputs_[original.id()][0] = copy_as_it_lies(value);
    }
    if (original.is_callable()) made_.emplace_back(&original, value);
    return value;
  }

  void end_unit() {
    for (const auto& [node, value] : made_) course_.values_[node->id()] = copy_as_it_lies(value);
    made_.clear();
    const std::size_t next = unit_ + 1;
    if (unit_ < units_.size()) {
      const Written::Places places = written_.of(units_[unit_]);
      for (const std::uint32_t id : places.inputs) course_.inputs_[id][next] = copy_as_it_lies(placeholders_[id]);
      for (const std::string& path : places.paths) {
        if (const at::Tensor tensor = module().find_attribute(path); tensor.defined())
          course_.state_[path][next] = tensor.detach().clone();
      }
      for (const Node* node : units_[unit_]) {
        if (may_draw(effects_.of(*node))) course_.generator_[next] = generator_state();
      }
    }
    unit_ = next;
  }

 private:
  Course& course_;
  const NodeMap<const Node*>& originals_;
  const std::vector<std::vector<Node*>>& units_;
  const Effects& effects_;
  const Written& written_;
  NodeMap<std::size_t> unit_of_;
  std::size_t unit_ = 0;
  std::vector<std::pair<const Node*, Value>> made_;  // by this unit
  std::map<std::uint32_t, Value> placeholders_;
};

Course::Course(GraphModule& module, const std::vector<c10::IValue>& inputs,
               const std::vector<std::vector<Node*>>& units, const Effects& effects, const Written& written) {
  const SameGenerator same;
  const at::Tensor start = generator_state();
  const auto copy = module.clone_graph_module();  // which may draw, for tensors that it fills
  NodeMap<const Node*> originals(copy->graph(), nullptr);
  auto theirs = copy->graph().nodes().begin();
  for (const Node& node : module.graph().nodes()) {
    originals[*theirs] = &node;
    ++theirs;
  }
  set_generator_state(start);
  Noting noting(*this, *copy, originals, units, effects, written);
  std::vector<c10::IValue> values;
  for (const c10::IValue& input : inputs) values.push_back(copy_as_it_lies(input));
  noting.run(std::move(values));
  noting.end_unit();
}

/// The newest version when the unit begins, of two histories; of two of one age the first one's. Null without any.
template <typename History>
const typename History::mapped_type* newest(const History* own, const History* base, std::size_t unit) {
  const auto of = [&](const History* history) {
    if (!history) return static_cast<const typename History::value_type*>(nullptr);
    const auto after = history->upper_bound(unit);
    return after == history->begin() ? nullptr : &*std::prev(after);
  };
  const auto *mine = of(own), *theirs = of(base);
  if (!mine || (theirs && theirs->first > mine->first)) mine = theirs;
  return mine ? &mine->second : nullptr;
}

template <typename Histories, typename Key>
const typename Histories::mapped_type* history_of(const Histories& all, const Key& key) {
  const auto at = all.find(key);
  return at == all.end() ? nullptr : &at->second;
}

c10::IValue Course::value(const Node& node, std::size_t unit) const {
  if (node.is(Op::placeholder)) {
    const auto* now =
        newest(history_of(inputs_, node.id()), base_ ? history_of(base_->inputs_, node.id()) : nullptr, unit);
    return now ? copy_as_it_lies(*now) : c10::IValue();
  }
  const auto own = values_.find(node.id());
  if (own != values_.end()) return copy_as_it_lies(own->second);
  return base_ ? base_->value(node, unit) : c10::IValue();
}

void Course::set_state(GraphModule& part, std::size_t unit) const {
  const at::NoGradGuard guard;
  const Course& first = base_ ? *base_ : *this;  // knows all that is ever written
  for (const auto& [path, versions] : first.state_) {
    const at::Tensor* wanted = newest(history_of(state_, path), &versions, unit);
    const at::Tensor present = wanted ? part.find_attribute(path) : at::Tensor();
    if (!present.defined()) continue;
    if (present.sizes().equals(wanted->sizes())) {
      without_repeats(present.detach()).copy_(without_repeats(*wanted, present));
    } else {
      part.set_attribute(path, wanted->clone().set_requires_grad(present.requires_grad()));
    }
  }
}

void Course::set_generator(std::size_t unit) const {
  if (base_) return base_->set_generator(unit);
  set_generator_state(std::prev(generator_.upper_bound(unit))->second);
}

}  // namespace fx
