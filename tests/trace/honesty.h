// Whether a trace is honest: a module is traced, and then the GraphModule, the module and a twin that nobody has traced
// must agree, or the trace, or the run, must be refused by an fx::Error.
//
// Compared are results, written inputs and gradients on several inputs, twice over; in the other mode; and the module
// before and after its trace.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/trace/trace_testing.h"

namespace fx::testing {

using Inputs = std::vector<c10::IValue>;

inline c10::IValue copy_of(const c10::IValue& value) {
  if (value.isTensor()) {
    const torch::Tensor tensor = value.toTensor();
    if (!tensor.defined() || tensor.layout() != torch::kStrided) return tensor;
    return tensor.detach().clone().set_requires_grad(tensor.requires_grad());
  }
  if (value.isTensorList()) {
    c10::List<torch::Tensor> list;
    for (const torch::Tensor& tensor : value.toTensorVector()) list.push_back(copy_of(tensor).toTensor());
    return list;
  }
  return value;
}
inline Inputs copy_of(const Inputs& inputs) {
  Inputs copies;
  for (const c10::IValue& input : inputs) copies.push_back(copy_of(input));
  return copies;
}

inline void all_tensors(const c10::IValue& value, std::vector<torch::Tensor>& tensors) {
  if (value.isTensor()) tensors.push_back(value.toTensor());
  if (value.isList() && !value.isIntList() && !value.isDoubleList()) {
    for (const c10::IValue& each : value.toListRef()) all_tensors(each, tensors);
  }
  if (value.isTuple()) {
    for (const c10::IValue& each : value.toTupleRef().elements()) all_tensors(each, tensors);
  }
}

/// What one call did: result, inputs afterwards, gradients; or how it failed.
struct CallResult {
  c10::IValue result;
  Inputs inputs;
  std::vector<std::pair<std::string, torch::Tensor>> gradients;
  std::string error;
  bool is_fx = false;
};

template <typename Call>
CallResult call_and_differentiate(Call&& call, const Inputs& inputs, const torch::nn::Module& owner) {
  CallResult done;
  done.inputs = copy_of(inputs);
  try {
    torch::manual_seed(7);
    done.result = call(done.inputs);
    std::vector<torch::Tensor> tensors;
    all_tensors(done.result, tensors);
    torch::Tensor sum;
    for (const torch::Tensor& tensor : tensors) {
      if (!tensor.defined() || !tensor.requires_grad() || tensor.layout() != torch::kStrided) continue;
      const torch::Tensor real = tensor.is_complex() ? torch::view_as_real(tensor) : tensor;
      const torch::Tensor part = (real * real).to(torch::kDouble).sum();
      sum = sum.defined() ? sum + part : part;
    }
    for (const torch::Tensor& parameter : owner.parameters()) parameter.mutable_grad() = torch::Tensor();
    if (sum.defined()) sum.backward();
    for (const auto& item : owner.named_parameters()) done.gradients.emplace_back(item.key(), item.value().grad());
    for (const c10::IValue& input : done.inputs) {
      if (input.isTensor() && input.toTensor().is_leaf()) done.gradients.emplace_back("input", input.toTensor().grad());
    }
  } catch (const Error& error) {
    done.error = error.what();
    done.is_fx = true;
  } catch (const std::exception& error) {
    done.error = error.what();
  }
  return done;
}

inline std::string difference(const CallResult& a, const CallResult& b) {
  constexpr double kTolerance = 1e-6;
  if (a.error.empty() != b.error.empty()) return "one throws: " + (a.error + b.error).substr(0, 200);
  if (!a.error.empty()) return {};
  if (const auto same = same_value(a.result, b.result, kTolerance); !same)
    return std::string("results: ") + same.message();
  for (std::size_t i = 0; i < a.inputs.size(); ++i) {
    if (const auto same = same_value(a.inputs[i], b.inputs[i], kTolerance); !same)
      return std::string("inputs afterwards: ") + same.message();
  }
  if (a.gradients.size() != b.gradients.size()) return "other gradients";
  for (std::size_t i = 0; i < a.gradients.size(); ++i) {
    const torch::Tensor &x = a.gradients[i].second, &y = b.gradients[i].second;
    const auto is_zero = [](const torch::Tensor& t) {
      return !t.defined() || t.count_nonzero().item<std::int64_t>() == 0;
    };
    if (is_zero(x) && is_zero(y)) continue;
    if (const auto same = same_value(x, y, kTolerance); !same)
      return "gradient of " + a.gradients[i].first + ": " + same.message();
  }
  return {};
}

/// What a trace has done to `traced`: to what is registered, and, when it came through, to what the module does. What a
/// program keeps elsewhere is as after the runs that were made. `other` is like it was.
template <typename Module, typename Call>
std::string damage(Module& traced, Module& other, bool came_through, Call&& call, const std::vector<Inputs>& inputs) {
  const auto is_same = [](const auto& ours, const auto& theirs) {
    for (const auto& item : theirs) {
      const torch::Tensor* found = ours.find(item.key());
      if (!found || is_proxy(*found) || !same_value(*found, item.value(), 0)) return false;
    }
    return true;
  };
  if (!is_same(traced.named_parameters(), other.named_parameters())) return "parameters";
  if (!is_same(traced.named_buffers(), other.named_buffers())) return "buffers";
  for (int round = 0; round < 2; ++round) {
    for (const Inputs& each : inputs) {
      const CallResult ours = call_and_differentiate([&](Inputs& in) { return call(traced, in); }, each, traced);
      const CallResult theirs = call_and_differentiate([&](Inputs& in) { return call(other, in); }, each, other);
      if (!came_through && ours.is_fx) continue;  // what only a run at other sizes has left says so
      if (ours.error.empty() != theirs.error.empty())
        return "one throws: " + (ours.error + theirs.error).substr(0, 200);
      if (!came_through) continue;
      if (const std::string how = difference(ours, theirs); !how.empty()) return how;
    }
  }
  return {};
}

/// Traces modules that `make` makes, all alike, and says how that went: "right", "refused: …", or, with a capital
/// letter, how it was wrong. `call` calls the module's forward.
template <typename Make, typename Call>
std::string honesty(Make&& make, Call&& call, const std::vector<Inputs>& inputs, const TraceOptions& options = {}) {
  const auto fresh = [&] {
    torch::manual_seed(0);
    return make();
  };
  std::string verdict = "right";
  const auto run_all = [&](auto& gm, auto& traced, auto& twin) -> std::string {
    for (int round = 0; round < 2; ++round) {
      for (const Inputs& each : inputs) {
        const CallResult ours = call_and_differentiate([&](Inputs& in) { return gm->run(in); }, each, *traced);
        if (ours.is_fx) return "refused: " + ours.error;
        if (!ours.error.empty()) return "Foreign: " + ours.error.substr(0, 300);
        const CallResult theirs = call_and_differentiate([&](Inputs& in) { return call(*twin, in); }, each, *twin);
        if (const std::string how = difference(ours, theirs); !how.empty()) return "Wrong: " + how;
      }
    }
    return "right";
  };
  const auto traced = fresh(), twin = fresh();
  std::shared_ptr<GraphModule> gm;
  torch::manual_seed(3);
  const double expected_random = torch::rand({1}).template item<double>();
  torch::manual_seed(3);
  try {
    gm = symbolic_trace(traced, copy_of(inputs[0]), options);
  } catch (const Error& error) {
    verdict = std::string("refused: ") + error.what();
  } catch (const std::exception& error) {
    return std::string("Foreign: ") + std::string(error.what()).substr(0, 300);
  }
  if (torch::rand({1}).template item<double>() != expected_random) return "Damaged: the random generator; " + verdict;
  if (traced->is_training() != twin->is_training()) return "Damaged: the mode; " + verdict;
  if (const std::string how = damage(*traced, *fresh(), gm != nullptr, call, inputs); !how.empty())
    return "Damaged: " + how + "; " + verdict;
  if (!gm) return verdict;
  for (const bool other_mode : {false, true}) {
    const auto again = fresh(), reference = fresh();
    std::shared_ptr<GraphModule> graph;
    try {
      graph = symbolic_trace(again, copy_of(inputs[0]), options);
    } catch (const Error& error) {
      return std::string("refused: ") + error.what();
    }
    if (other_mode) {
      try {
        graph->train(!again->is_training());
      } catch (const Error&) {
        continue;
      }
      reference->train(!reference->is_training());
    }
    const std::string how = run_all(graph, again, reference);
    if (how != "right") return (other_mode ? how + " (in the other mode)" : how);
  }
  return verdict;
}

inline bool is_honest(const std::string& verdict) {
  return verdict.starts_with("right") || verdict.starts_with("refused: ");
}

/// The verdict is "right" or "refused: …", and begins with `want`.
template <typename Make, typename Call>
void expect_honest(const std::string& want, Make&& make, Call&& call, const std::vector<Inputs>& inputs) {
  const std::string verdict = honesty(make, call, inputs);
  EXPECT_TRUE(is_honest(verdict) && verdict.starts_with(want)) << "wanted " << want << ", got " << verdict;
}

}  // namespace fx::testing
