#include "tests/trace/program_checks.h"

#include <algorithm>
#include <sstream>

#include <fxgraph/text/size_report.h>

namespace fx::testing {
namespace {

/// How a program went: a line for each input that was not equal; one in capitals is a fault.
struct ProgramVerdict {
  std::size_t equal = 0;
  std::string faults;
  std::string refusals;
};

using torch::nn::Module;

std::shared_ptr<GraphModule> trace(const std::shared_ptr<Module>& module, const Tensors& examples,
                                   const std::vector<std::string>& vary = {}) {
  std::vector<c10::IValue> values(examples.begin(), examples.end());
  TraceOptions options;
  if (!vary.empty()) options.sizes = Sizes::varying(vary);
  if (const auto one = std::dynamic_pointer_cast<Model>(module)) return symbolic_trace(one, values, options);
  return symbolic_trace(std::dynamic_pointer_cast<Model2>(module), values, options);
}

torch::Tensor call(Module& module, const Tensors& inputs) {
  if (auto* one = dynamic_cast<Model*>(&module)) return one->forward(inputs.at(0));
  return dynamic_cast<Model2&>(module).forward(inputs.at(0), inputs.at(1));
}

struct Result {
  torch::Tensor value;
  Tensors gradients;
  std::string error;
  bool is_ours = false;
};

template <typename Call>
Result run(Call&& call, const Tensors& inputs, const Module& owner) {
  Result result;
  Tensors copies;
  for (const torch::Tensor& input : inputs) {
    copies.push_back(input.detach().clone());
    if (input.is_floating_point()) copies.back().requires_grad_();
  }
  for (const torch::Tensor& parameter : owner.parameters()) parameter.mutable_grad() = torch::Tensor();
  try {
    torch::manual_seed(5);
    result.value = call(copies);
    if (result.value.requires_grad()) (result.value * result.value).sum().backward();
    for (const torch::Tensor& copy : copies) result.gradients.push_back(copy.grad());
    for (const torch::Tensor& parameter : owner.parameters()) result.gradients.push_back(parameter.grad());
  } catch (const Error& error) {
    result.error = error.what();
    result.is_ours = true;
  } catch (const std::exception& error) {
    result.error = std::string(error.what()).substr(0, 300);
  }
  return result;
}

std::string difference(const Result& ours, const Result& theirs, double tolerance) {
  if (const auto same = same_value(ours.value, theirs.value, tolerance); !same) return same.message();
  for (std::size_t i = 0; i < ours.gradients.size(); ++i) {
    const torch::Tensor &a = ours.gradients[i], &b = theirs.gradients.at(i);
    const auto is_zero = [](const torch::Tensor& t) { return !t.defined() || !t.any().item<bool>(); };
    if (is_zero(a) && is_zero(b)) continue;
    if (!a.defined() || !b.defined()) return "one gradient is missing";
    if (const auto same = same_value(a, b, 20 * tolerance); !same) return std::string("gradients: ") + same.message();
  }
  return "";
}

Tensors converted(const Tensors& inputs, torch::ScalarType type) {
  Tensors result;
  for (const torch::Tensor& input : inputs) result.push_back(input.is_floating_point() ? input.to(type) : input);
  return result;
}

class Check {
 public:
  explicit Check(const ProgramCase& c) : case_(c) {}

  ProgramVerdict run_all() {
    const auto traced = fresh(true);
    try {
      trace(traced, case_.inputs[0](), case_.vary);
    } catch (const Error& error) {
      verdict_.refusals = std::string("trace: ") + error.what() + "\n";
    } catch (const std::exception& error) {
      verdict_.faults = std::string("FOREIGN at trace: ") + std::string(error.what()).substr(0, 400) + "\n";
    }
    unharmed(*traced);
    if (!verdict_.refusals.empty() || !verdict_.faults.empty()) return verdict_;
    for (const bool training : {false, true}) compare(training, torch::kFloat);
    compare(false, torch::kDouble);
    return verdict_;
  }

 private:
  std::shared_ptr<Module> fresh(bool training) const {
    torch::manual_seed(1);
    auto module = case_.make();
    module->train(training);
    return module;
  }

  // The traced module goes on as one that nobody has traced.
  void unharmed(Module& traced) {
    const auto twin = fresh(true);
    if (traced.is_training() != twin->is_training()) verdict_.faults += "DAMAGED: the mode\n";
    for (int i = 0; i < 3; ++i) {
      const Tensors inputs = case_.inputs[0]();
      const Result a = run([&](const Tensors& in) { return call(traced, in); }, inputs, traced);
      const Result b = run([&](const Tensors& in) { return call(*twin, in); }, inputs, *twin);
      if (a.error != b.error) {
        verdict_.faults += "DAMAGED: " + a.error + b.error + "\n";
      } else if (const std::string how = difference(a, b, 1e-5); a.error.empty() && !how.empty()) {
        verdict_.faults += "DAMAGED: " + how + "\n";
      }
    }
  }

  void compare(bool training, torch::ScalarType type) {
    const auto root = fresh(training), twin = fresh(training);
    root->to(type);
    twin->to(type);
    std::shared_ptr<GraphModule> gm;
    try {
      gm = trace(root, converted(case_.inputs[0](), type), case_.vary);
    } catch (const Error& error) {
      verdict_.refusals += std::string("trace: ") + error.what() + "\n";
      return;
    } catch (const std::exception& error) {
      verdict_.faults += std::string("FOREIGN at trace: ") + std::string(error.what()).substr(0, 400) + "\n";
      return;
    }
    std::size_t equal = 0;
    for (std::size_t i = 0; i < case_.inputs.size(); ++i) {
      const Tensors inputs = converted(case_.inputs[i](), type);
      const Result theirs = run([&](const Tensors& in) { return call(*twin, in); }, inputs, *twin);
      const Result ours =
          run([&](const Tensors& in) { return gm->run(std::vector<c10::IValue>(in.begin(), in.end())).toTensor(); },
              inputs, *root);
      std::ostringstream at;
      for (const torch::Tensor& input : inputs) at << input.sizes();
      at << (training ? " training: " : ": ");
      if (!ours.error.empty()) {
        const bool named = ours.is_ours && ours.error.find(" must be ") != std::string::npos;
        if (!theirs.error.empty() || named) {
          verdict_.refusals += at.str() + ours.error.substr(0, 400) + "\n";
        } else {
          verdict_.faults += "FOREIGN " + at.str() + ours.error.substr(0, 400) + "\n";
        }
        continue;
      }
      if (!theirs.error.empty()) {
        verdict_.refusals += at.str() + "eager alone fails: " + theirs.error.substr(0, 200) + "\n";
        continue;
      }
      if (const std::string how = difference(ours, theirs, type == torch::kDouble ? 1e-9 : 1e-4); !how.empty()) {
        verdict_.faults += "WRONG " + at.str() + how + "\n";
      } else {
        ++equal;
      }
    }
    if (verdict_.equal == 0 || equal < verdict_.equal) verdict_.equal = equal;
  }

  const ProgramCase& case_;
  ProgramVerdict verdict_;
};

}  // namespace

std::string row_of_sizes(const ProgramCase& c) {
  torch::manual_seed(1);
  const auto module = c.make();
  module->eval();
  const Tensors examples = c.inputs[0]();
  const SizeReport report(trace(module, examples)->graph());
  std::size_t free = 0, tied = 0, steps = 0, fixed = 0;
  for (const SizeStatement& statement : report.statements()) {
    const auto count =
        static_cast<std::size_t>(1 + std::count(statement.dimensions.begin(), statement.dimensions.end(), '=') -
                                 (statement.dimensions.find(" <= ") != std::string::npos) -
                                 (statement.dimensions.find(" >= ") != std::string::npos));
    using Kind = SizeStatement::Kind;
    (statement.kind == Kind::fixed ? fixed : statement.kind == Kind::steps ? steps : count > 1 ? tied : free) += count;
  }
  std::ostringstream row;
  row << "| " << c.name << " | ";
  for (const torch::Tensor& example : examples) row << (&example == &examples[0] ? "" : ", ") << example.sizes();
  row << " | " << free << " | " << tied << " | " << steps << " | " << fixed << " |";
  return row.str();
}

void expect_holds_at_other_sizes(const ProgramCase& c) {
  if (!c.vary.empty()) {
    ProgramCase by_itself = c;
    by_itself.vary.clear();
    by_itself.taken = 1;
    expect_holds_at_other_sizes(by_itself);
  }
  const ProgramVerdict verdict = Check(c).run_all();
  EXPECT_EQ(verdict.faults, "");
  EXPECT_GE(verdict.equal, c.taken) << verdict.refusals;
}

}  // namespace fx::testing
