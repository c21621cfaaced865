#include <fxgraph/testing/self_test.h>

#include <ATen/ATen.h>

#include <array>
#include <cmath>
#include <limits>
#include <ostream>
#include <random>
#include <sstream>

#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/module/state_keeper.h>
#include <fxgraph/rewriter/program/replace_pattern.h>
#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/run/value.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/testing/hostile/generator.h>
#include <fxgraph/testing/hostile/judge.h>
#include <fxgraph/testing/pattern_examples.h>
#include <fxgraph/testing/silent_failures.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>

namespace fx {

namespace {

// ── Tensors ──────────────────────────────────────────────────────────────────────────────────────────────────────────

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t bound) {
  return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random);
}

/// What one tensor looks like, but for its numbers.
struct TensorForm {
  std::vector<std::int64_t> sizes;
  at::ScalarType type = at::kFloat;
};
using TensorForms = std::vector<TensorForm>;

/// Draws forms that go together: equal sizes, sizes that broadcast, square matrices, vectors along one dimension of the
/// first tensor.
TensorForms draw_forms(Random& random, std::size_t count) {
  constexpr std::array kTypes = {at::kFloat, at::kFloat, at::kFloat, at::kDouble, at::kBFloat16, at::kLong, at::kBool};
  const at::ScalarType type = kTypes[below(random, kTypes.size())];
  constexpr std::array<std::size_t, 10> kRanks = {0, 1, 1, 2, 2, 2, 2, 3, 4, 5};
  const bool mixed = below(random, 8) == 0;
  std::array<std::int64_t, 5> sizes;
  for (std::int64_t& size : sizes) size = static_cast<std::int64_t>(below(random, 10) == 0 ? 0 : 1 + below(random, 4));
  const std::size_t rank = below(random, 6);
  const std::size_t style = below(random, 6);
  const auto last = [&](std::size_t n) {
    return std::vector<std::int64_t>(sizes.end() - static_cast<std::ptrdiff_t>(n), sizes.end());
  };
  TensorForms forms;
  for (std::size_t i = 0; i < count; ++i) {
    TensorForm form{{}, mixed && below(random, 2) ? at::kFloat : type};
    switch (style) {
      case 0: form.sizes = last(rank); break;
      case 1: form.sizes.assign(rank, sizes[0]); break;
      case 2: form.sizes.assign(kRanks[below(random, kRanks.size())], sizes[0]); break;
      case 3: form.sizes = i == 0 ? last(std::max<std::size_t>(rank, 2)) : std::vector{forms[0].sizes[1]}; break;
      case 4: form.sizes = i == 0 ? last(std::max<std::size_t>(rank, 1)) : std::vector{forms[0].sizes.back()}; break;
      default:
        form.sizes = last(below(random, 6));
        for (std::int64_t& size : form.sizes) size = below(random, 3) == 0 ? 1 : size;
    }
    forms.push_back(std::move(form));
  }
  return forms;
}

double draw_number(Random& random, bool special) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr std::array kSpecial = {std::numeric_limits<double>::quiet_NaN(), kInfinity, -kInfinity, 0.0, -0.0, 1.0};
  if (special && below(random, 2)) return kSpecial[below(random, kSpecial.size())];
  return std::normal_distribution<double>(0, 2)(random);
}

at::Tensor draw_tensor(Random& random, const TensorForm& form, bool special) {
  std::int64_t count = 1;
  for (const std::int64_t size : form.sizes) count *= size;
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(draw_number(random, special));
  at::Tensor tensor = at::tensor(numbers, at::kDouble).reshape(form.sizes);
  if (at::isIntegralType(form.type, true)) tensor = at::nan_to_num(tensor, 0, 3, -3).round();
  tensor = form.type == at::kBool ? tensor > 0 : tensor.to(form.type);
  switch (below(random, 6)) {
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

/// Where large numbers cancel, what is left is as wrong as they were.
double largest_number(const std::vector<c10::IValue>& inputs) {
  double largest = 1e-3;
  for (const c10::IValue& input : inputs) {
    if (!input.isTensor() || !input.toTensor().defined() || input.toTensor().numel() == 0) continue;
    const at::Tensor numbers = at::nan_to_num(input.toTensor().to(at::kDouble), 0, 0, 0);
    largest = std::max(largest, numbers.abs().max().item<double>());
  }
  return largest;
}

double tolerance(Promise promise, at::ScalarType type) {
  if (promise == Promise::reassociates) return usual_tolerance(type) / 3;
  if (promise == Promise::lower_precision) return std::max(usual_tolerance(type), usual_tolerance(at::kBFloat16));
  return usual_tolerance(type);
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
    const double differs = relative_difference(a[i], b[i], largest_number(inputs));
    if (!(differs <= tolerance(promise, narrowest_type(a[i], inputs)))) return false;
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
    special_values_ = options.special_values && !rule.needs.finite_inputs;
    name_ = rule.name;
    sources_.push_back({rule.pattern});
    for (const std::string& text : rule.examples) sources_.push_back({Pattern(text)});
    result_.wanted = options.wanted;
  }

  SelfTestResult run() {
    const at::NoGradGuard no_grad;
    const internal::SilentFailures quiet;  // what LibTorch warns of and refuses is done on purpose here
    for (std::size_t tries = 0; result_.cases < options_.cases && tries < 8 * options_.cases; ++tries) {
      Source& source = sources_[tries % sources_.size()];
      std::optional<Graph> graph = internal::example_of(internal::PatternAccess::of(source.pattern), random_);
      if (graph) try_program(source, std::move(*graph));
    }
    try_hostile_programs();
    return std::move(result_);
  }

 private:
  /// Where programs come from, and forms of tensors that they ran with, or that the rule fired on: most do not fit, so
  /// those come again.
  struct Source {
    Pattern pattern;
    std::vector<TensorForms> ran{};
    std::vector<TensorForms> fired{};
  };

  TensorForms draw(const Source& source, std::size_t count) {
    const std::vector<TensorForms>& known = below(random_, 3) ? source.fired : source.ran;
    if (!known.empty() && below(random_, 4)) {
      const TensorForms& forms = known[below(random_, known.size())];
      if (forms.size() == count) return forms;
    }
    return draw_forms(random_, count);
  }

  static void remember(std::vector<TensorForms>& known, const TensorForms& forms) {
    if (known.size() < 64) known.push_back(forms);
  }

  void try_program(Source& source, Graph graph) {
    std::size_t count = 0;
    for (const Node& node : graph.nodes()) count += node.is(Op::placeholder) || node.is(Op::get_attr);
    TensorForms forms = draw(source, count);
    std::size_t next = 0;
    internal::NamedSizes named;
    for (const Node& node : graph.nodes()) {
      if (!node.is(Op::placeholder) && !node.is(Op::get_attr)) continue;
      if (auto sizes = internal::example_sizes(internal::PatternAccess::of(source.pattern), node, named, random_))
        forms[next] = {*sizes};
      ++next;
    }
    const bool special = special_values_ && below(random_, 3) == 0;
    GraphModule::Attributes attributes;
    std::vector<c10::IValue> inputs;
    next = 0;
    for (Node& node : graph.nodes()) {
      if (node.is(Op::placeholder)) inputs.emplace_back(draw_tensor(random_, forms[next++], special));
      if (node.is(Op::get_attr))
        attributes.emplace_back(node.target().str(), draw_tensor(random_, forms[next++], special));
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
    remember(source.ran, forms);
    const auto after = before->clone_graph_module();
    Rule rule = make_(*after);
    rule.name = name_;
    RewriteReport report;
    try {
      report = rewrite_once(*after, RuleSet{{std::move(rule)}}, {.allow_output_aliases = true, .shapes = &shapes});
    } catch (const std::exception& error) {
      ++result_.applied;
      fail(*before, *after, inputs, expected, std::string("the rewrite throws: ") + error.what());
      return;
    }
    if (!report.changed()) return;
    ++result_.applied;
    remember(source.fired, forms);
    try {
      const c10::IValue found = run_on(*after, inputs);
      if (!keeps(promise_, expected, found, inputs)) fail(*before, *after, inputs, expected, show(found));
    } catch (const std::exception& error) {
      fail(*before, *after, inputs, expected, std::string("fails: ") + error.what());
    }
  }

  // ── Among other calls ──────────────────────────────────────────────────────────────────────────────────────────────
  void try_hostile_programs() {
    hostile::DrawOptions options{.common_percent = 10, .motif_percent = 65};
    if (!special_values_) options.special_percent = 0;
    for (const Source& source : sources_) options.motifs.push_back(source.pattern);
    const hostile::Rewrite rewrite = [this](GraphModule& module, const hostile::HostileProgram& program) {
      return rewritten(module, program);
    };
    for (std::size_t i = 0; i < options_.hostile && result_.counter_example.empty(); ++i) {
      const hostile::HostileProgram program = hostile::draw_program(options_.seed * 1000003 + i, options);
      const hostile::Verdict verdict = hostile::judge(program, rewrite);
      result_.hostile_applied += verdict.changed;
      if (verdict.wrong.empty()) continue;
      const hostile::HostileProgram small = hostile::reduce(program, rewrite);
      const hostile::Verdict found = hostile::judge(small, rewrite);
      result_.counter_example = small.str() + "  " + found.wrong + "\n" + found.after;
    }
  }

  hostile::Rewritten rewritten(GraphModule& module, const hostile::HostileProgram& program) const {
    Shapes shapes;
    try {
      const StateKeeper keeper(module);
      std::vector<c10::IValue> inputs;
      for (const at::Tensor& input : program.inputs[0]) inputs.emplace_back(hostile::copy_of(input));
      shapes = propagate_shapes(module, std::move(inputs));
    } catch (const std::exception&) {
      return {};  // no such program
    }
    Rule rule = make_(module);
    rule.name = name_;
    const bool needs_finite = rule.needs.finite_inputs;
    const RewriteReport report = rewrite_once(module, RuleSet{{std::move(rule)}}, {.shapes = &shapes});
    return {report.changed(), needs_finite, promise_ == Promise::lower_precision};
  }

  /// Strides are kept; a write to an expanded tensor is an error of the program.
  static c10::IValue run_on(GraphModule& module, const std::vector<c10::IValue>& inputs) {
    at::manual_seed(0);
    return copy_of(module.run(inputs));
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
  Random random_;
  Promise promise_ = Promise::bit_exact;
  bool special_values_ = true;
  std::string name_;
  std::vector<Source> sources_;
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
