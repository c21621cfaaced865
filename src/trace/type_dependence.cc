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

  void run() {
    const bool types = disguise_.type().has_value(), layouts = disguise_.changes_layout();
    if (disguise_.is_empty() || dependence(types, layouts).empty()) return;
    if (const std::string why = types ? dependence(true, false) : ""; !why.empty()) assert_type(why);
    if (const std::string why = layouts ? dependence(false, true) : ""; !why.empty()) assert_layout(why);
  }

 private:
  std::string dependence(bool other_type, bool other_layout) const;
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
std::string TypeDependence::dependence(bool other_type, bool other_layout) const {
  Sample sample(program_);
  const bool came_through = sample.run(disguise_.of(stand_ins_, other_type, other_layout), Sample::kToTheEnd,
                                       other_type ? disguise_.type() : std::nullopt);
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

void TypeDependence::assert_type(const std::string& why) {
  static const Symbol kType("prim::dtype");
  for (const BoundTensor& input : inputs_) {
    if (input.example.scalar_type() != disguise_.type()->from) continue;
    assert_of_input(graph_, input, kType, static_cast<std::int64_t>(disguise_.type()->from),
                    input.name + " must be " + to_string(Argument(to_dtype(disguise_.type()->from))) + ": " + why);
  }
}

void TypeDependence::assert_layout(const std::string& why) {
  static const Symbol kContiguous("aten::is_contiguous");
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (Disguise::may_be_laid_out_otherwise(stand_ins_[i]) && inputs_[i].example.is_contiguous())
      assert_of_input(graph_, inputs_[i], kContiguous, {}, inputs_[i].name + " must be contiguous: " + why);
  }
}

}  // namespace

void assert_types(Graph& graph, const SampledProgram& program, const std::vector<BoundTensor>& inputs,
                  const std::vector<at::Tensor>& stand_ins) {
  TypeDependence(graph, program, inputs, stand_ins).run();
}

}  // namespace fx::internal
