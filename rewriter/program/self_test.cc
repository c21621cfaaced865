#include "rewriter/program/self_test.h"

#include <ATen/ATen.h>

#include <array>
#include <cmath>
#include <limits>
#include <ostream>
#include <random>
#include <sstream>

#include "module/shape_prop.h"
#include "module/value.h"
#include "rewriter/program/pattern_examples.h"
#include "rewriter/program/replace_pattern.h"
#include "rewriter/program/verify.h"
#include "text/parse.h"
#include "text/print.h"

namespace fx {

namespace {

// ── Tensors ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Makes the tensors of one case. They go together: sizes are drawn so that broadcasting, matrix products and equal
/// shapes all happen.
class TensorMaker {
 public:
  TensorMaker(std::mt19937_64& random, bool special_values) : random_(random) {
    constexpr std::array kTypes = {at::kFloat,    at::kFloat, at::kFloat, at::kDouble,
                                   at::kBFloat16, at::kLong,  at::kBool};
    type_ = kTypes[below(kTypes.size())];
    special_ = special_values && below(3) == 0;
    mixed_ = below(6) == 0;
    for (std::int64_t& size : sizes_) size = static_cast<std::int64_t>(below(10) == 0 ? 0 : 1 + below(4));
    rank_ = below(5);
    style_ = below(4);
  }

  at::Tensor make() {
    at::Tensor tensor = values(shape());
    switch (below(6)) {
      case 0:  // transposed
        if (tensor.dim() >= 2) return tensor.transpose(0, -1).contiguous().transpose(0, -1);
        break;
      case 1:  // every other element of something larger
        if (tensor.dim() >= 1) {
          const at::Tensor wide = at::repeat_interleave(tensor, 2, -1);
          return wide.slice(-1, 0, wide.size(-1), 2);
        }
        break;
      case 2:  // one row, repeated
        if (tensor.dim() >= 2 && tensor.size(0) > 0) return tensor.slice(0, 0, 1).expand(tensor.sizes());
        break;
      default: break;
    }
    return tensor;
  }

 private:
  std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_); }

  std::vector<std::int64_t> shape() {
    switch (style_) {
      case 0: return std::vector<std::int64_t>(sizes_.end() - static_cast<std::ptrdiff_t>(rank_), sizes_.end());
      case 1: return std::vector<std::int64_t>(rank_, sizes_[0]);
      case 2: return std::vector<std::int64_t>(below(5), sizes_[0]);
      default: {
        std::vector<std::int64_t> shape(sizes_.end() - static_cast<std::ptrdiff_t>(below(5)), sizes_.end());
        for (std::int64_t& size : shape) size = below(3) == 0 ? 1 : size;
        return shape;
      }
    }
  }

  at::Tensor values(const std::vector<std::int64_t>& shape) {
    const at::ScalarType type = mixed_ && below(2) ? at::kFloat : type_;
    std::vector<double> numbers;
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    std::normal_distribution<double> normal(0, 2);
    for (std::int64_t i = 0; i < count; ++i)
      numbers.push_back(special_ && below(2) ? special_value() : normal(random_));
    at::Tensor tensor = at::tensor(numbers, at::kDouble).reshape(shape);
    if (at::isIntegralType(type, true)) tensor = at::nan_to_num(tensor, 0, 3, -3).round();
    if (type == at::kBool) return tensor > 0;
    return tensor.to(type);
  }

  double special_value() {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    constexpr std::array kSpecial = {std::numeric_limits<double>::quiet_NaN(), kInfinity, -kInfinity, 0.0, -0.0, 1.0};
    return kSpecial[below(kSpecial.size())];
  }

  std::mt19937_64& random_;
  at::ScalarType type_;
  bool special_, mixed_;
  std::array<std::int64_t, 4> sizes_;
  std::size_t rank_, style_;
};

// ── Comparison ───────────────────────────────────────────────────────────────────────────────────────────────────────

bool same_bits(const c10::IValue& a, const c10::IValue& b) {
  if (relative_difference(a, b) != 0) return false;
  if (!a.isTensor() || !a.toTensor().is_floating_point()) return true;
  // -0 and 0 compare equal, their signs do not. The sign of a NaN means nothing.
  const at::Tensor x = a.toTensor(), y = b.toTensor();
  return at::equal(at::signbit(x).logical_or(at::isnan(x)), at::signbit(y).logical_or(at::isnan(y)));
}

at::ScalarType narrowest_type(const c10::IValue& value, const std::vector<c10::IValue>& inputs) {
  at::ScalarType narrowest = at::kDouble;
  const auto look = [&](const c10::IValue& part) {
    if (!part.isTensor() || !part.toTensor().defined() || !part.toTensor().is_floating_point()) return;
    const at::ScalarType type = part.toTensor().scalar_type();
    if (usual_tolerance(type) > usual_tolerance(narrowest)) narrowest = type;
  };
  look(value);
  for (const c10::IValue& input : inputs) look(input);
  return narrowest;
}

double tolerance(Promise promise, at::ScalarType type) {
  return promise == Promise::reassociates ? usual_tolerance(type) / 10 : usual_tolerance(type);
}

std::vector<c10::IValue> parts_of(const c10::IValue& value) {
  if (value.isTuple()) return value.toTupleRef().elements().vec();
  if (value.isList()) return value.toListRef().vec();
  return {value};
}

bool keeps(Promise promise, const c10::IValue& before, const c10::IValue& after,
           const std::vector<c10::IValue>& inputs) {
  const std::vector<c10::IValue> a = parts_of(before), b = parts_of(after);
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (promise == Promise::bit_exact && !same_bits(a[i], b[i])) return false;
    if (!(relative_difference(a[i], b[i]) <= tolerance(promise, narrowest_type(a[i], inputs)))) return false;
  }
  return true;
}

std::string show(const c10::IValue& value) {
  if (!value.isTensor()) {
    std::ostringstream out;
    out << value;
    return out.str();
  }
  const at::Tensor tensor = value.toTensor();
  if (!tensor.defined()) return "None";
  std::ostringstream out;
  out << tensor.scalar_type() << tensor.sizes();
  if (!tensor.is_contiguous()) out << " strides " << tensor.strides();
  if (tensor.numel() > 12) return out.str() + " {…}";
  out << " {";
  const at::Tensor flat = tensor.reshape({-1}).to(at::kDouble);
  for (std::int64_t i = 0; i < flat.numel(); ++i) out << (i ? ", " : "") << flat[i].item<double>();
  out << "}";
  return out.str();
}

// ── The test ─────────────────────────────────────────────────────────────────────────────────────────────────────────

class SelfTest {
 public:
  SelfTest(const std::function<Rule(GraphModule&)>& make, const SelfTestOptions& options)
      : make_(make), options_(options), random_(options.seed) {
    GraphModule nothing;
    const Rule rule = make_(nothing);
    promise_ = rule.promise;
    name_ = rule.name;
    sources_.push_back(rule.pattern);
    for (const std::string& text : rule.examples) sources_.emplace_back(text);
    result_.wanted = options.wanted;
  }

  SelfTestResult run() {
    const at::NoGradGuard no_grad;
    // Shapes that do not fit cost little, so there may be many of them.
    for (std::size_t tries = 0; result_.cases < options_.cases && tries < 60 * options_.cases; ++tries) {
      std::optional<Graph> graph = internal::example_of(sources_[tries % sources_.size()].data(), random_);
      if (graph) try_program(std::move(*graph));
    }
    return std::move(result_);
  }

 private:
  void try_program(Graph graph) {
    TensorMaker tensors(random_, options_.special_values);
    GraphModule::Attributes attributes;
    std::vector<c10::IValue> inputs;
    for (Node& node : graph.nodes()) {
      if (node.is(Op::placeholder)) inputs.emplace_back(tensors.make());
      if (node.is(Op::get_attr)) attributes.emplace_back(node.target().str(), tensors.make());
    }
    std::shared_ptr<GraphModule> before;
    c10::IValue expected;
    Shapes shapes;
    try {
      before = std::make_shared<GraphModule>(attributes, std::move(graph));
      expected = run_on(*before, inputs);
      shapes = propagate_shapes(*before, copies_of(inputs));
    } catch (const std::exception&) {
      return;  // no such program
    }
    ++result_.cases;
    const auto after = before->clone_graph_module();
    Rule rule = make_(*after);
    rule.name = name_;
    RewriteReport report;
    try {
      report = rewrite_once(*after, RuleSet{{std::move(rule)}},
                            {.find = {.normalize = true}, .allow_output_aliases = true, .shapes = &shapes});
    } catch (const std::exception& error) {
      ++result_.applied;
      fail(*before, *after, inputs, expected, std::string("the rewrite throws: ") + error.what());
      return;
    }
    if (!report.changed()) return;
    ++result_.applied;
    try {
      const c10::IValue found = run_on(*after, inputs);
      if (!keeps(promise_, expected, found, inputs)) fail(*before, *after, inputs, expected, show(found));
    } catch (const std::exception& error) {
      fail(*before, *after, inputs, expected, std::string("fails: ") + error.what());
    }
  }

  static std::vector<c10::IValue> copies_of(const std::vector<c10::IValue>& values) {
    std::vector<c10::IValue> copies;
    for (const c10::IValue& value : values) copies.push_back(value.toTensor().clone(at::MemoryFormat::Preserve));
    return copies;
  }

  /// Strides are kept; a write to an expanded tensor is an error of the program.
  static c10::IValue run_on(GraphModule& module, const std::vector<c10::IValue>& inputs) {
    at::manual_seed(0);
    return module.run(inputs).deepcopy();
  }

  void fail(const GraphModule& before, const GraphModule& after, const std::vector<c10::IValue>& inputs,
            const c10::IValue& expected, const std::string& found) {
    double size = static_cast<double>(before.graph().size());
    for (const c10::IValue& input : inputs) size += static_cast<double>(input.toTensor().numel());
    if (size >= smallest_) return;
    smallest_ = size;
    std::ostringstream out;
    out << print_graph(before.graph());
    std::size_t next = 0;
    for (const Node* placeholder : before.graph().placeholders())
      out << "  " << placeholder->name() << " = " << show(inputs[next++]) << "\n";
    for (const auto& item : before.named_parameters()) out << "  " << item.key() << " = " << show(item.value()) << "\n";
    for (const auto& item : before.named_buffers()) out << "  " << item.key() << " = " << show(item.value()) << "\n";
    out << "  before: " << show(expected) << "\n  after:  " << found << "\n" << print_graph(after.graph());
    result_.counter_example = out.str();
  }

  const std::function<Rule(GraphModule&)>& make_;
  const SelfTestOptions& options_;
  std::mt19937_64 random_;
  Promise promise_ = Promise::bit_exact;
  std::string name_;
  std::vector<Pattern> sources_;
  SelfTestResult result_;
  double smallest_ = std::numeric_limits<double>::infinity();
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const SelfTestResult& result) {
  out << "ran " << result.cases << " programs, the rule fired on " << result.applied << " of them";
  if (result.applied < result.wanted)
    out << ", fewer than the " << result.wanted << " that would prove something: give it examples";
  if (!result.counter_example.empty()) out << "\ncounter-example:\n" << result.counter_example;
  return out;
}

SelfTestResult self_test(const std::function<Rule(GraphModule&)>& make, const SelfTestOptions& options) {
  return SelfTest(make, options).run();
}

SelfTestResult self_test(const Rule& rule, const SelfTestOptions& options) {
  return self_test([&](GraphModule&) { return rule; }, options);
}

}  // namespace fx
