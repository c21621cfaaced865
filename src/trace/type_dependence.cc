#include <fxgraph/trace/type_dependence.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include <fxgraph/run/value.h>
#include <fxgraph/trace/input_assertions.h>
#include <fxgraph/trace/tensor_memory.h>

namespace fx::internal {
namespace {

// What most operators take in its place.
at::ScalarType of_the_kind(at::ScalarType type) {
  switch (type) {
    case at::kDouble: return at::kFloat;
    case at::kComplexDouble: return at::kComplexFloat;
    case at::kLong: return at::kInt;
    case at::kBool: return at::kByte;
    default: break;
  }
  if (at::isComplexType(type)) return at::kComplexDouble;
  return at::isFloatingType(type) ? at::kDouble : at::kLong;
}

const OtherType* find_type(const std::vector<OtherType>& types, at::ScalarType from) {
  const auto found = std::find_if(types.begin(), types.end(), [&](const OtherType& type) { return type.from == from; });
  return found == types.end() ? nullptr : &*found;
}

bool may_be_laid_out_otherwise(const at::Tensor& input) {
  return input.dim() > 0 && input.numel() > 1 && input.layout() == at::kStrided;
}

class TypeDependence {
 public:
  TypeDependence(Graph& graph, const ProbedProgram& program, const std::vector<BoundTensor>& inputs,
                 const std::vector<at::Tensor>& stand_ins)
      : graph_(graph), program_(program), inputs_(inputs), stand_ins_(stand_ins) {
    for (const at::Tensor& input : stand_ins) {
      const at::ScalarType from = input.scalar_type();
      if (input.is_quantized() || find_type(types_, from)) continue;
      types_.push_back({from, of_the_kind(from)});
      for (const at::ScalarType to : {at::kFloat, at::kByte, at::kBool, at::kLong, at::kHalf}) {
        if (to != from && to != types_.back().to) further_types_.push_back({from, to});
      }
    }
    // Parameters and buffers become other types with the inputs; where no input is of their type, too.
    for (const auto& [name, tensor] : program.attributes) {
      if (!tensor.defined() || !tensor.is_floating_point() || tensor.is_quantized()) continue;
      if (!find_type(types_, tensor.scalar_type()))
        types_.push_back({tensor.scalar_type(), of_the_kind(tensor.scalar_type())});
    }
  }

  void run() {
    // It is another run for each type that tells which of them it is.
    if (!types_.empty() && !dependence(types_).empty()) {
      for (const OtherType& type : types_) note_dependence(type, Probe::kToTheEnd);
    }
    for (const OtherType& type : types_) {
      if (has_root_of(type.from) && has_input_of(type.from))
        note_dependence(type, Probe::kToTheEnd, Probe::Root::as_it_is);
    }
    for (const OtherType& type : further_types_) {
      if (changes_gradients(type)) continue;
      note_dependence(type, where_asked(type.from), Probe::Root::as_it_is);
    }
    for (const auto& [type, why] : of_types_) assert_type(type, why);
    if (program_.session.asks_layout()) assert_layout("the program asks how values lie in memory");
  }

 private:
  using Types = std::vector<OtherType>;

  std::string difference(const Probe& sample) const;
  std::vector<at::Tensor> inputs_of(const Types& types) const;
  std::string dependence(const Types& types, std::uint32_t last = Probe::kToTheEnd,
                         Probe::Root root = Probe::Root::of_other_type) const;
  void note_dependence(const OtherType& type, std::uint32_t last, Probe::Root root = Probe::Root::of_other_type);
  std::uint32_t where_asked(at::ScalarType type) const;
  bool has_root_of(at::ScalarType type) const;
  bool has_input_of(at::ScalarType type) const;
  bool changes_gradients(const OtherType& type) const;
  bool is_of_root(const Node& attribute) const;
  void assert_type(at::ScalarType type, const std::string& why);
  void assert_layout(const std::string& why);

  Graph& graph_;
  const ProbedProgram& program_;
  const std::vector<BoundTensor>& inputs_;
  const std::vector<at::Tensor>& stand_ins_;
  Types types_, further_types_;  // another for each that inputs have; those besides that programs ask for by name
  std::map<at::ScalarType, std::string> of_types_;  // why it must be this type
};

// What the run did otherwise; empty when nothing, or when an operator could not run, as it cannot in the graph. What
// lies inside of a leaf module is its own business.
std::string TypeDependence::difference(const Probe& sample) const {
  const TraceLog& log = program_.log;
  const auto is_there = [&](std::uint32_t call) { return !log[call].node->is_erased(); };
  std::string why;
  if (!sample.came_through()) {
    if (sample.operator_refused() || log.is_inside_leaf(sample.failed_at())) return "";
    why = log.describe(sample.failed_at()) + ": " + sample.why();
  }
  for (const Probe::Change& change : sample.changes()) {
    if (why.empty() && is_there(change.call))
      why = log.describe(change.call) + ": an argument is " + to_string(change.value) + " for others";
  }
  for (const Probe::ChangedConstant& constant : sample.changed_constants()) {
    if (why.empty() && is_there(constant.call))
      why = log[constant.call].target.str() + ", a tensor that the program makes without operators, is another one";
  }
  if (why.empty()) return why;
  const std::string where = sample.where();
  return where.empty() ? why : why + " (" + where + ")";
}

// Without their contents.
std::vector<at::Tensor> TypeDependence::inputs_of(const Types& types) const {
  std::vector<at::Tensor> inputs = stand_ins_;
  for (at::Tensor& input : inputs) {
    if (const OtherType* type = find_type(types, input.scalar_type()))
      input = without_contents(input, input.sizes(), input.strides(), input.options().dtype(type->to));
  }
  return inputs;
}

// Why the graph does not hold; empty when it does, or says so itself.
std::string TypeDependence::dependence(const Types& types, std::uint32_t last, Probe::Root root) const {
  Probe sample(program_);
  sample.run(inputs_of(types), last, types, root);
  return difference(sample);
}

void TypeDependence::note_dependence(const OtherType& type, std::uint32_t last, Probe::Root root) {
  if (of_types_.contains(type.from)) return;
  if (std::string why = dependence({type}, last, root); !why.empty()) of_types_.emplace(type.from, std::move(why));
}

// Programs look for a type by name where they take their inputs up. The call until which one is watched: not many
// behind the first that takes an input of this type.
std::uint32_t TypeDependence::where_asked(at::ScalarType type) const {
  constexpr std::uint32_t kBehind = 32;
  const TraceLog& log = program_.log;
  const auto is_input = [&](const Node& node) {
    return std::ranges::any_of(
        inputs_, [&](const BoundTensor& input) { return input.node == &node && input.example.scalar_type() == type; });
  };
  for (std::uint32_t call = 0; call + kBehind < log.size(); ++call) {
    bool takes_one = false;
    for (const Argument& argument : log.arguments(call))
      for_each_node(argument, [&](const Node& node) { takes_one |= is_input(node); });
    if (takes_one) return call + kBehind;
  }
  return Probe::kToTheEnd;
}

// Inputs may be of another type than the root's tensors, where the program brings them together.
bool TypeDependence::has_root_of(at::ScalarType type) const {
  return at::isFloatingType(type) &&
         std::any_of(program_.attributes.begin(), program_.attributes.end(), [&](const auto& attribute) {
           return attribute.second.defined() && attribute.second.scalar_type() == type;
         });
}

bool TypeDependence::has_input_of(at::ScalarType type) const {
  return std::any_of(inputs_.begin(), inputs_.end(),
                     [&](const BoundTensor& input) { return input.example.scalar_type() == type; });
}

// Whole numbers have no gradients that an operator could be kept from: such a program is another one with them.
bool TypeDependence::changes_gradients(const OtherType& type) const {
  return program_.session.has_values_without_grad() && may_have_gradient(type.from) != may_have_gradient(type.to);
}

void TypeDependence::assert_type(at::ScalarType type, const std::string& why) {
  static const Symbol kType("prim::dtype");
  const auto assert_of = [&](const BoundTensor& value) {
    assert_of_input(graph_, value, kType, static_cast<std::int64_t>(type),
                    value.name + " must be " + to_string(Argument(to_dtype(type))) + ": " + why);
  };
  for (const BoundTensor& input : inputs_) {
    if (input.example.scalar_type() == type) assert_of(input);
  }
  if (has_input_of(type)) return;
  // Parameters decide: what comes of the first of them says which type they have.
  for (Node& node : graph_.nodes()) {
    const at::Tensor value = program_.session.value_of(node);
    if (!value.defined() || value.scalar_type() != type) continue;
    if (node.is(Op::call_module) || (node.is(Op::get_attr) && is_of_root(node)))
      return assert_of({&node, value, &node, "parameters"});
  }
}

bool TypeDependence::is_of_root(const Node& attribute) const {
  return std::any_of(program_.attributes.begin(), program_.attributes.end(),
                     [&](const auto& each) { return each.first == attribute.target().view(); });
}

void TypeDependence::assert_layout(const std::string& why) {
  static const Symbol kContiguous("aten::is_contiguous"), kStride("aten::stride");
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const BoundTensor& input = inputs_[i];
    if (!may_be_laid_out_otherwise(stand_ins_[i])) continue;
    const auto order = order_in_memory(input.example);
    if (input.example.is_contiguous()) {
      assert_of_input(graph_, input, kContiguous, true, input.name + " must be contiguous: " + why);
    } else if (input.example.permute(order).is_contiguous()) {
      assert_of_input(graph_, input, kContiguous, true, input.name + " must be laid out as the example: " + why,
                      {order.begin(), order.end()});
    } else {
      const auto strides = input.example.strides();
      const Argument answer = Argument::list(std::vector<Argument>(strides.begin(), strides.end()));
      assert_of_input(graph_, input, kStride, answer,
                      input.name + " must be of the strides " + to_string(answer) + ", as the example: " + why);
    }
  }
}

}  // namespace

void assert_types(Graph& graph, const ProbedProgram& program, const std::vector<BoundTensor>& inputs,
                  const std::vector<at::Tensor>& stand_ins) {
  TypeDependence(graph, program, inputs, stand_ins).run();
}

}  // namespace fx::internal
