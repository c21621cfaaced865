#include <fxgraph/trace/type_dependence.h>

#include <ATen/ops/empty_strided.h>

#include <algorithm>

#include <fxgraph/run/value.h>

namespace fx::internal {
namespace {

class TypeDependence {
 public:
  TypeDependence(Graph& graph, const SampledProgram& program, const std::vector<BoundTensor>& inputs,
                 const std::vector<at::Tensor>& stand_ins)
      : graph_(graph), program_(program), inputs_(inputs), stand_ins_(stand_ins) {}

  void run() {
    const auto floating = std::find_if(stand_ins_.begin(), stand_ins_.end(),
                                       [](const at::Tensor& input) { return input.is_floating_point(); });
    if (floating != stand_ins_.end()) {
      const at::ScalarType from = floating->scalar_type();
      type_ = {from, from == at::kDouble ? at::kFloat : at::kDouble};
    }
    const bool other_layout = std::any_of(stand_ins_.begin(), stand_ins_.end(), may_be_laid_out_otherwise);
    if ((!type_ && !other_layout) || dependence(type_.has_value(), other_layout).empty()) return;
    if (const std::string why = type_ ? dependence(true, false) : ""; !why.empty()) assert_type(why);
    if (const std::string why = other_layout ? dependence(false, true) : ""; !why.empty()) assert_layout(why);
  }

 private:
  static bool may_be_laid_out_otherwise(const at::Tensor& input) {
    return input.dim() > 1 && input.numel() > 1 && input.layout() == at::kStrided && input.is_contiguous() &&
           input.size(0) > 1 && input.numel() > input.size(0);
  }
  // The last dimension outermost.
  static at::Tensor other_layout_of(const at::Tensor& input) {
    std::vector<std::int64_t> strides(static_cast<std::size_t>(input.dim()));
    std::int64_t next = 1;
    for (std::size_t i = 0; i < strides.size(); ++i) {
      strides[i] = next;
      next *= input.size(static_cast<std::int64_t>(i));
    }
    return at::empty_strided(input.sizes(), strides, input.options());
  }

  std::string dependence(bool other_type, bool other_layout) const;
  void assert_type(const std::string& why);
  void assert_layout(const std::string& why);
  void assert_that(const BoundTensor& input, Symbol question, const Argument& answer, const std::string& message);

  Graph& graph_;
  const SampledProgram& program_;
  const std::vector<BoundTensor>& inputs_;
  const std::vector<at::Tensor>& stand_ins_;
  std::optional<OtherType> type_;
};

// Why the graph does not hold; empty when it does, or says so itself. What lies inside of a leaf module is its own
// business.
std::string TypeDependence::dependence(bool other_type, bool other_layout) const {
  std::vector<at::Tensor> stand_ins = stand_ins_;
  for (at::Tensor& input : stand_ins) {
    if (other_layout && may_be_laid_out_otherwise(input)) input = other_layout_of(input);
    if (other_type && input.scalar_type() == type_->from) input = input.to(type_->to);
  }
  Sample sample(program_);
  const bool came_through = sample.run(stand_ins, Sample::kToTheEnd, other_type ? type_ : std::optional<OtherType>());
  const TraceLog& log = program_.log;
  const auto is_there = [&](std::uint32_t call) { return call >= log.size() || !log[call].node->is_erased(); };
  std::string why;
  if (!came_through) {
    if (sample.operator_refused() || !is_there(sample.failed_at())) return "";
    // Whoever asks for contiguous memory takes any.
    if (other_layout && !other_type && sample.why().find("aten::contiguous") != std::string::npos) return "";
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

void TypeDependence::assert_that(const BoundTensor& input, Symbol question, const Argument& answer,
                                 const std::string& message) {
  static const Symbol kEqual("operator.eq"), kAssert("torch._assert");
  if (input.node->is_erased()) return;
  Node* last = input.node;
  while (last->is(Op::placeholder) && last->next() && last->next()->is(Op::placeholder)) last = last->next();
  const auto at = graph_.inserting_after(*last);
  const Node* holds = &graph_.call_function(question, {Argument(input.node)});
  if (!answer.is_none()) holds = &graph_.call_function(kEqual, {Argument(*const_cast<Node*>(holds)), answer});
  graph_.call_function(kAssert, {Argument(*const_cast<Node*>(holds)), Argument(message)});
}

void TypeDependence::assert_type(const std::string& why) {
  static const Symbol kType("prim::dtype");
  for (const BoundTensor& input : inputs_) {
    if (input.example.scalar_type() != type_->from) continue;
    assert_that(input, kType, static_cast<std::int64_t>(type_->from),
                input.name + " must be " + to_string(Argument(to_dtype(type_->from))) + ": " + why);
  }
}

void TypeDependence::assert_layout(const std::string& why) {
  static const Symbol kContiguous("aten::is_contiguous");
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (may_be_laid_out_otherwise(stand_ins_[i]) && inputs_[i].example.is_contiguous())
      assert_that(inputs_[i], kContiguous, {}, inputs_[i].name + " must be contiguous: " + why);
  }
}

}  // namespace

void assert_types(Graph& graph, const SampledProgram& program, const std::vector<BoundTensor>& inputs,
                  const std::vector<at::Tensor>& stand_ins) {
  TypeDependence(graph, program, inputs, stand_ins).run();
}

}  // namespace fx::internal
