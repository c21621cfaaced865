#include <fxgraph/rewriter/program/verify.h>

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <ostream>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include <fxgraph/rewriter/program/replace_pattern.h>
#include <fxgraph/run/copies.h>
#include <fxgraph/run/plan.h>

namespace fx {

namespace {

constexpr double kDiffers = std::numeric_limits<double>::infinity();

void collect_tensors(const c10::IValue& value, std::vector<at::Tensor>& tensors) {
  if (value.isTensor()) {
    tensors.push_back(value.toTensor());
  } else if (value.isTuple()) {
    for (const c10::IValue& element : value.toTupleRef().elements()) collect_tensors(element, tensors);
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) collect_tensors(element, tensors);
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) collect_tensors(entry.value(), tensors);
  } else if (value.isDouble()) {
    tensors.push_back(at::scalar_tensor(value.toDouble(), at::kDouble));
  } else if (value.isInt()) {
    tensors.push_back(at::scalar_tensor(value.toInt(), at::kDouble));
  } else if (value.isBool()) {
    tensors.push_back(at::scalar_tensor(value.toBool() ? 1.0 : 0.0, at::kDouble));
  }
}

at::Tensor as_double(const at::Tensor& tensor) {
  return (tensor.is_complex() ? at::view_as_real(tensor.resolve_conj()) : tensor).to(at::kCPU, at::kDouble);
}

double tensor_difference(const at::Tensor& a, const at::Tensor& b, double least_scale) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined() ? 0 : kDiffers;
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return kDiffers;
  if (a.numel() == 0) return 0;
  const at::Tensor x = as_double(a), y = as_double(b);
  const at::Tensor finite = at::isfinite(x);
  if (!at::equal(finite, at::isfinite(y))) return kDiffers;
  const at::Tensor rest = at::logical_not(finite);
  if (!at::allclose(x.masked_select(rest), y.masked_select(rest), 0, 0, true)) return kDiffers;
  const at::Tensor u = x.masked_select(finite), v = y.masked_select(finite);
  if (u.numel() == 0) return 0;
  const double scale = std::max(u.abs().max().item<double>(), least_scale);
  return (u - v).abs().max().item<double>() / scale;
}

std::string describe(const c10::IValue& value) {
  std::ostringstream out;
  if (value.isTensor() && value.toTensor().defined()) {
    out << value.toTensor().scalar_type() << value.toTensor().sizes();
  } else {
    out << value.tagKind();
  }
  return out.str();
}

/// One run on copies: what came out, and what the inputs hold afterwards.
struct Run {
  c10::IValue result;
  std::vector<c10::IValue> inputs;
};

Run run(GraphModule& module, const std::vector<c10::IValue>& inputs, std::uint64_t seed) {
  Run done{{}, copies_of(inputs)};
  at::manual_seed(seed);
  done.result = module.run(done.inputs);
  return done;
}

double difference(const Run& a, const Run& b) {
  double worst = relative_difference(a.result, b.result);
  for (std::size_t i = 0; i < a.inputs.size(); ++i) {
    worst = std::max(worst, relative_difference(a.inputs[i], b.inputs[i]));
  }
  return worst;
}

void observe(GraphModule& module, const std::vector<c10::IValue>& inputs, std::uint64_t seed,
             const Plan::Observer& observer) {
  at::manual_seed(seed);
  Plan::compile(module, {.observe = true})->run(module, copies_of(inputs), observer);
}

/// Copies the values of `before` by name, and compares those of `after` as they come.
void name_first_difference(GraphModule& before, GraphModule& after, const std::vector<c10::IValue>& inputs,
                           std::uint64_t seed, double tolerance, Verification& found) {
  std::unordered_map<std::string, c10::IValue> values;
  observe(before, inputs, seed, [&](const Node& node, const c10::IValue& value) {
    if (!node.is(Op::output)) values.emplace(node.name(), copy_of(value));
  });
  observe(after, inputs, seed, [&](const Node& node, const c10::IValue& value) {
    const auto same = values.find(node.name());
    if (!found.node.empty() || same == values.end()) return;
    const double differs = relative_difference(same->second, value);
    if (differs <= tolerance) return;
    found.node = node.name();
    found.detail = describe(same->second) + " before, " + describe(value) + " after" +
                   (std::isfinite(differs) ? "" : "; in type, shape, or in where it is not finite");
  });
}

}  // namespace

double relative_difference(const c10::IValue& a, const c10::IValue& b, double least_scale) {
  std::vector<at::Tensor> x, y;
  collect_tensors(a, x);
  collect_tensors(b, y);
  if (x.size() != y.size()) return kDiffers;
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) worst = std::max(worst, tensor_difference(x[i], y[i], least_scale));
  return worst;
}

double run_difference(GraphModule& a, GraphModule& b, const std::vector<c10::IValue>& inputs, std::uint64_t seed) {
  return difference(run(a, inputs, seed), run(b, inputs, seed));
}

namespace {

/// Adds one to every tensor that the caller owns: not a view of the program's own, nor one whose elements overlap.
void write_to(const c10::IValue& result, const GraphModule& module) {
  std::unordered_set<const void*> own;  // membership only
  const auto note = [&](const auto& named) {
    for (const auto& item : named) {
      if (item.value().defined() && item.value().has_storage())
        own.insert(item.value().storage().unsafeGetStorageImpl());
    }
  };
  note(module.named_parameters());
  note(module.named_buffers());
  std::vector<at::Tensor> tensors;
  collect_tensors(result, tensors);
  for (at::Tensor& tensor : tensors) {
    if (!tensor.defined() || !tensor.has_storage() || !tensor.is_non_overlapping_and_dense()) continue;
    if (tensor.scalar_type() == at::kBool || own.count(tensor.storage().unsafeGetStorageImpl())) continue;
    tensor.detach().add_(1);
  }
}

}  // namespace

double calls_difference(GraphModule& a, GraphModule& b, const std::vector<c10::IValue>& inputs, std::uint64_t seed) {
  Run x = run(a, inputs, seed), y = run(b, inputs, seed);
  double worst = difference(x, y);
  write_to(x.result, a);
  write_to(y.result, b);
  worst = std::max(worst, difference(x, y));
  at::manual_seed(seed + 1);
  x.result = a.run(x.inputs);
  at::manual_seed(seed + 1);
  y.result = b.run(y.inputs);
  return std::max(worst, difference(x, y));
}

double usual_tolerance(at::ScalarType type) {
  switch (type) {
    case at::kHalf: return 1e-2;
    case at::kBFloat16: return 5e-2;
    case at::kDouble: return 1e-9;
    default: return 1e-4;
  }
}

std::ostream& operator<<(std::ostream& out, const Verification& verification) {
  if (verification.equal) {
    return out << "equal on " << verification.rounds << " sets of inputs, largest relative difference "
               << verification.largest;
  }
  out << "differs by " << verification.largest << " (relative)";
  if (!verification.node.empty()) out << " from " << verification.node << " on: " << verification.detail;
  return out;
}

Verification verify_equivalent(GraphModule& before, GraphModule& after,
                               const std::vector<std::vector<c10::IValue>>& inputs, double tolerance) {
  if (inputs.empty())
    throw Error(ErrorKind::invalid_argument, "verify_equivalent: there are no inputs to compare on; give some");
  const at::NoGradGuard no_grad;
  Verification found;
  for (std::size_t round = 0; round < inputs.size() && found.equal; ++round) {
    const double differs = difference(run(before, inputs[round], round), run(after, inputs[round], round));
    found.largest = std::max(found.largest, differs);
    found.equal = differs <= tolerance;
    ++found.rounds;
    if (!found.equal) name_first_difference(before, after, inputs[round], round, tolerance, found);
  }
  return found;
}

// ── Bisection ────────────────────────────────────────────────────────────────────────────────────────────────────────

namespace {

class Bisection {
 public:
  Bisection(const GraphModule& module, const std::function<RuleSet(GraphModule&)>& rules,
            const std::vector<std::vector<c10::IValue>>& inputs, double tolerance, const DriverOptions& options)
      : module_(module), rules_(rules), inputs_(inputs), tolerance_(tolerance), options_(options) {}

  std::optional<Culprit> run() {
    std::size_t good = 0;
    Trial bad = trial(options_.max_rewrites);
    if (bad.check.equal) return {};
    std::size_t first_bad = bad.report.applied;
    while (first_bad - good > 1) {
      const std::size_t middle = good + (first_bad - good) / 2;
      Trial tried = trial(middle);
      if (tried.check.equal) {
        good = middle;
      } else {
        first_bad = middle;
        bad = std::move(tried);
      }
    }
    const Trial last_good = good == 0 ? Trial{module_.clone_graph_module(), {}, {}} : trial(good);
    return name(last_good, bad, first_bad);
  }

 private:
  struct Trial {
    std::shared_ptr<GraphModule> module;
    RewriteReport report;
    Verification check;
  };

  Trial trial(std::size_t rewrites) {
    Trial tried{module_.clone_graph_module(), {}, {}};
    DriverOptions options = options_;
    options.max_rewrites = rewrites;
    options.find.modules = {};
    Shapes shapes;
    if (options.shapes) options.shapes = &(shapes = *options_.shapes);
    tried.report = rewrite_to_fixed_point(*tried.module, rules_(*tried.module), options);
    const auto original = module_.clone_graph_module();
    tried.check = verify_equivalent(*original, *tried.module, inputs_, tolerance_);
    return tried;
  }

  /// The rule that applied once more in the bad trial, and what is new there.
  static Culprit name(const Trial& good, const Trial& bad, std::size_t rewrite) {
    Culprit culprit{{}, rewrite, {}, bad.check.largest};
    for (const RuleReport& rule : bad.report.rules) {
      std::size_t before = 0;
      for (const RuleReport& same : good.report.rules) before += same.rule == rule.rule ? same.applied : 0;
      if (rule.applied > before) culprit.rule = rule.rule;
    }
    std::unordered_set<std::string> known;  // membership only
    for (const Node& node : good.module->graph().nodes()) known.insert(node.name());
    for (const Node& node : bad.module->graph().nodes()) {
      if (!known.count(node.name())) culprit.nodes.push_back(node.name());
    }
    return culprit;
  }

  const GraphModule& module_;
  const std::function<RuleSet(GraphModule&)>& rules_;
  const std::vector<std::vector<c10::IValue>>& inputs_;
  double tolerance_;
  const DriverOptions& options_;
};

}  // namespace

std::optional<Culprit> bisect(const GraphModule& module, const std::function<RuleSet(GraphModule&)>& rules,
                              const std::vector<std::vector<c10::IValue>>& inputs, double tolerance,
                              const DriverOptions& options) {
  return Bisection(module, rules, inputs, tolerance, options).run();
}

}  // namespace fx
