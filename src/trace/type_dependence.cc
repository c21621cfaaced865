#include <fxgraph/trace/type_dependence.h>

#include <algorithm>

#include <fxgraph/run/value.h>
#include <fxgraph/trace/disguise.h>
#include <fxgraph/trace/input_assertions.h>

namespace fx::internal {
namespace {

class TypeDependence {
 public:
  TypeDependence(Graph& graph, const SampledProgram& program, const std::vector<BoundTensor>& inputs,
                 const std::vector<at::Tensor>& stand_ins)
      : graph_(graph), program_(program), inputs_(inputs), stand_ins_(stand_ins), disguise_(stand_ins) {}

  void run(bool has_been_seen) {
    using Root = Sample::Root;
    const bool types = disguise_.type().has_value(), layouts = disguise_.changes_layout();
    if (disguise_.is_empty()) return;
    std::string of_type, of_layout;
    const Laid laid = layouts ? Laid::otherwise : Laid::as_given;
    if (!has_been_seen && !dependence(types, laid).empty()) {
      if (types) of_type = dependence(true, Laid::as_given);
      if (layouts) of_layout = dependence(false, laid);
    }
    if (types && of_type.empty() && has_root_of_the_type()) of_type = dependence(true, Laid::as_given, Root::as_it_is);
    if (!of_type.empty()) assert_type(of_type);
    for (const Laid other : {Laid::contiguous, Laid::channels_last}) {
      const bool is_open = of_layout.empty() && program_.session.asks_layout();
      if (is_open && Disguise::may_be(stand_ins_, other)) of_layout = dependence(false, other);
    }
    if (!of_layout.empty()) assert_layout(of_layout);
  }

 private:
  std::string dependence(bool other_type, Laid laid, Sample::Root root = Sample::Root::of_other_type) const;
  bool has_root_of_the_type() const;
  void assert_type(const std::string& why);
  void assert_layout(const std::string& why);

  Graph& graph_;
  const SampledProgram& program_;
  const std::vector<BoundTensor>& inputs_;
  const std::vector<at::Tensor>& stand_ins_;
  const Disguise disguise_;
};

// Why the graph does not hold; empty when it does, or says so itself. What lies inside of a leaf module is its own
// business.
std::string TypeDependence::dependence(bool other_type, Laid laid, Sample::Root root) const {
  Sample sample(program_);
  const bool came_through = sample.run(disguise_.of(stand_ins_, other_type, laid), Sample::kToTheEnd,
                                       other_type ? disguise_.type() : std::nullopt, root);
  const TraceLog& log = program_.log;
  const auto is_there = [&](std::uint32_t call) { return call >= log.size() || !log[call].node->is_erased(); };
  std::string why;
  if (!came_through) {
    if (sample.operator_refused() || !is_there(sample.failed_at())) return "";
    why = log.describe(sample.failed_at()) + ": " + sample.why();
  }
  for (const Sample::Change& change : sample.changes()) {
    if (why.empty() && is_there(change.call))
      why = log.describe(change.call) + ": an argument is " + to_string(change.value) + " for others";
  }
  for (const Sample::ChangedConstant& constant : sample.changed_constants()) {
    if (why.empty() && is_there(constant.call))
      why = log[constant.call].target.str() + ", a tensor that the program makes without operators, is another one";
  }
  const std::string where = sample.where();
  return why.empty() || where.empty() ? why : why + " (" + where + ")";
}

// Inputs may be of another type than the root's tensors, where the program brings them together.
bool TypeDependence::has_root_of_the_type() const {
  return std::any_of(program_.attributes.begin(), program_.attributes.end(), [&](const auto& attribute) {
    return attribute.second.defined() && attribute.second.scalar_type() == disguise_.type()->from;
  });
}

void TypeDependence::assert_type(const std::string& why) {
  static const Symbol kType("prim::dtype");
  for (const BoundTensor& input : inputs_) {
    if (input.example.scalar_type() != disguise_.type()->from) continue;
    assert_of_input(graph_, input, kType, static_cast<std::int64_t>(disguise_.type()->from),
                    input.name + " must be " + to_string(Argument(to_dtype(disguise_.type()->from))) + ": " + why);
  }
}

void TypeDependence::assert_layout(const std::string& why) {
  static const Symbol kContiguous("aten::is_contiguous"), kStride("aten::stride");
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const BoundTensor& input = inputs_[i];
    if (!Disguise::may_be_laid_out_otherwise(stand_ins_[i])) continue;
    const auto order = order_in_memory(input.example);
    if (input.example.is_contiguous()) {
      assert_of_input(graph_, input, kContiguous, {}, input.name + " must be contiguous: " + why);
    } else if (input.example.permute(order).is_contiguous()) {
      assert_of_input(graph_, input, kContiguous, {}, input.name + " must be laid out as the example: " + why,
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

void assert_types(Graph& graph, const SampledProgram& program, const std::vector<BoundTensor>& inputs,
                  const std::vector<at::Tensor>& stand_ins, bool has_been_seen) {
  TypeDependence(graph, program, inputs, stand_ins).run(has_been_seen);
}

}  // namespace fx::internal
