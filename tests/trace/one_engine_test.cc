// The tracer and ShapeProp say the same of every operator of the dispatcher that can be called with plain arguments,
// and what LibTorch says when it runs.
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>

#include <fxgraph/run/value.h>
#include <fxgraph/shapes/shape_prop.h>
#include "tests/trace/trace_testing.h"

namespace fx {
namespace {

using c10::IValue;
using torch::Tensor;

/// What tensors and numbers are, unless there is a default.
struct Profile {
  std::vector<std::int64_t> sizes;
  bool indices;  ///< the second tensor is one
  std::int64_t number;
};

const std::vector<Profile>& profiles() {
  static const std::vector<Profile> all = {
      {{3, 3}, false, 1},
      {{3, 3}, true, 1},
      {{2, 3, 3}, false, 0},
      {{3}, false, 0},
  };
  return all;
}

// Positive definite where it is a matrix.
Tensor example(const Profile& profile) {
  Tensor tensor = torch::rand(profile.sizes) * 0.2;
  const std::size_t rank = profile.sizes.size();
  if (rank < 2 || profile.sizes[rank - 1] != profile.sizes[rank - 2]) return tensor;
  return (tensor + tensor.transpose(-1, -2)) / 2 + 2 * torch::eye(profile.sizes.back());
}

/// One operator with its arguments; the tensors among them come in a list.
class Call {
 public:
  static std::optional<Call> of(const c10::OperatorHandle& op, const Profile& profile) {
    Call call(op);
    for (const c10::Argument& argument : op.schema().arguments()) {
      if (argument.alias_info() && argument.alias_info()->isWrite()) return std::nullopt;
      if (!call.add(argument, profile)) return std::nullopt;
    }
    return call.tensors_.empty() ? std::nullopt : std::optional(call);
  }

  const std::vector<Tensor>& tensors() const { return tensors_; }
  /// The tensors that it returns.
  std::vector<Tensor> run(const std::vector<Tensor>& tensors) const {
    torch::jit::Stack stack;
    std::size_t next = 0;
    for (const IValue& argument : arguments_) {
      if (argument.isTensor()) {
        stack.emplace_back(tensors[next++]);
      } else if (argument.isTensorList()) {
        stack.emplace_back(std::vector<Tensor>{tensors[next], tensors[next + 1]});
        next += 2;
      } else {
        stack.push_back(argument);
      }
    }
    op_.callBoxed(&stack);
    std::vector<Tensor> results;
    for (const IValue& value : stack) {
      if (value.isTensor()) results.push_back(value.toTensor());
      if (!value.isTensorList()) continue;
      for (const Tensor& tensor : value.toTensorVector()) results.push_back(tensor);
    }
    return results;
  }

 private:
  explicit Call(const c10::OperatorHandle& op) : op_(op) {}

  bool add(const c10::Argument& argument, const Profile& profile) {
    if (argument.default_value()) {
      arguments_.push_back(*argument.default_value());
      return true;
    }
    switch (argument.type()->kind()) {
      case c10::TypeKind::TensorType:
        tensors_.push_back(profile.indices && !tensors_.empty() ? torch::zeros({3, 3}, torch::kLong)
                                                                : example(profile));
        arguments_.emplace_back(tensors_.back());
        return true;
      case c10::TypeKind::IntType: arguments_.emplace_back(profile.number); return true;
      case c10::TypeKind::FloatType: arguments_.emplace_back(0.5); return true;
      case c10::TypeKind::BoolType: arguments_.emplace_back(false); return true;
      case c10::TypeKind::NumberType: arguments_.emplace_back(2); return true;
      case c10::TypeKind::OptionalType: arguments_.emplace_back(); return true;
      case c10::TypeKind::ListType: return add_list(*argument.type(), profile);
      default: return false;
    }
  }
  // Lists of numbers are windows and sizes, which some kernels do not check: shape_formulas_test draws those.
  bool add_list(const c10::Type& type, const Profile& profile) {
    const c10::TypeKind kind = type.expectRef<c10::ListType>().getElementType()->kind();
    if (kind != c10::TypeKind::TensorType) return false;
    tensors_.insert(tensors_.end(), {example(profile), example(profile)});
    arguments_.emplace_back(std::vector<Tensor>{tensors_.back(), tensors_.back()});
    return true;
  }

  const c10::OperatorHandle op_;
  std::vector<IValue> arguments_;
  std::vector<Tensor> tensors_;
};

std::string text(const TensorInfo& info) { return to_string(info); }
std::string text(const Tensor& tensor) {
  std::ostringstream out;
  out << tensor.scalar_type() << tensor.sizes();
  return out.str();
}
bool same(const TensorInfo& info, const Tensor& tensor) {
  TensorInfo real;
  real.dtype = to_dtype(tensor.scalar_type());
  real.sizes = tensor.sizes().vec();
  return info.dtype == real.dtype && info.sizes == real.sizes;
}

/// What is wrong with the shapes that are told of the call; empty when nothing is.
std::string disagreement(const Call& call, const std::vector<Tensor>& real) {
  const auto program = [&](std::vector<Tensor> tensors) { return call.run(tensors); };
  Tracer tracer({.second_call = false, .sizes = Sizes::fixed});
  Trace trace;
  try {
    trace = tracer.trace(program, {IValue(call.tensors())});
  } catch (const Error& error) {
    return error.kind() == ErrorKind::trace && error.message().find("cannot run on these shapes") == std::string::npos
               ? ""  // refused by name: numbers, data
               : std::string("the trace says ") + error.message();
  }
  const Argument result = trace.graph.output_node()->arg(0);
  const Shapes traced = trace.shapes;
  const auto gm = to_graph_module(std::move(trace));
  ShapeProp prop(*gm);
  try {
    prop.propagate({IValue(call.tensors())});
  } catch (const Error& error) {
    return std::string("ShapeProp says ") + error.message();
  }
  for (std::size_t i = 0; i < real.size() && i < result.elements().size(); ++i) {
    const Node* node = result.elements()[i].node_or_null();
    const TensorInfo* in_trace = node ? traced[*node].tensor() : nullptr;
    const TensorInfo* found = node ? prop.shapes()[*node].tensor() : nullptr;
    if (!in_trace) continue;  // only data tells it
    if (!same(*in_trace, real[i])) return "the trace says " + text(*in_trace) + ", it is " + text(real[i]);
    if (!found || !same(*found, real[i]))
      return "ShapeProp says " + (found ? text(*found) : "nothing") + ", it is " + text(real[i]);
    if (in_trace->is_contiguous() != found->is_contiguous())
      return "the trace and ShapeProp do not agree in strides: " + text(*found);
  }
  return "";
}

bool is_asked(const c10::OperatorName& name) {
  // Names that begin with _ are LibTorch's own; those of other machines and libraries do not run here.
  if (!name.name.starts_with("aten::") || name.name.starts_with("aten::_")) return false;
  constexpr std::array<const char*, 8> kElsewhere = {"cudnn",  "mkldnn", "miopen", "quantize",
                                                     "fbgemm", "sparse", "vulkan", "mps"};
  return std::none_of(kElsewhere.begin(), kElsewhere.end(),
                      [&](const char* part) { return name.name.find(part) != std::string::npos; });
}

TEST(OneEngineSlow, OfAllOperators) {
  torch::manual_seed(3);
  std::vector<c10::OperatorName> names;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (is_asked(name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) {
    return std::pair(a.name, a.overload_name) < std::pair(b.name, b.overload_name);
  });
  std::size_t asked = 0;
  for (const c10::OperatorName& name : names) {
    bool ran = false;
    for (const Profile& profile : profiles()) {
      const auto op = c10::Dispatcher::singleton().findSchema(name);
      const std::optional<Call> call = op ? Call::of(*op, profile) : std::nullopt;
      if (!call) continue;
      std::vector<Tensor> real;
      try {
        real = call->run(call->tensors());
      } catch (const std::exception&) {
        continue;
      }
      if (real.empty() || std::any_of(real.begin(), real.end(), [](const Tensor& tensor) {
            return !tensor.defined() || tensor.layout() != torch::kStrided || tensor.is_quantized();
          }))
        continue;
      ran = true;
      EXPECT_EQ(disagreement(*call, real), "") << c10::toString(name) << " of " << profile.sizes;
    }
    asked += ran;
  }
  std::cout << asked << " of " << names.size() << " operators\n";
  EXPECT_GT(asked, 500U);
}

}  // namespace
}  // namespace fx
