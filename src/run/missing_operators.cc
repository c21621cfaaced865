#include <fxgraph/run/missing_operators.h>

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/interpreter.h>
#include <torch/library.h>

#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace fx {
namespace {

namespace jit = torch::jit;

struct MissingOperator {
  const char* schema;
  const char* source;  ///< TorchScript: a function `body` with the schema's parameters
};

// Sources know `torch` alone, and element types by LibTorch's numbers: 5 float16, 6 float32, 7 float64, 11 bool, 15
// bfloat16.
const MissingOperator kMissing[] = {
    {"_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
     R"(
def body(self: Tensor, dim: int, dtype: Optional[int]) -> Tensor:
    x = self
    if dtype is not None:
        x = self.to(dtype)
    masked = torch.all(x == float("-inf"), dim, True)
    return torch.softmax(x.masked_fill(masked, 0.0), dim).masked_fill(masked, 0.0)
)"},
    // What aten::_scaled_dot_product_attention_math computes; a row that attends to nothing gives zeros.
    {"scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., "
     "bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
     R"(
def body(query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor], dropout_p: float, is_causal: bool,
         scale: Optional[float], enable_gqa: bool) -> Tensor:
    k = key
    v = value
    if enable_gqa:
        k = k.repeat_interleave(query.size(-3) // key.size(-3), -3)
        v = v.repeat_interleave(query.size(-3) // value.size(-3), -3)
    factor = 0.0
    if scale is None:
        factor = 1.0 / torch.sqrt(float(query.size(-1)))
    else:
        factor = scale
    root = torch.sqrt(torch.fabs(factor))
    sign = 1.0
    if factor < 0.0:
        sign = -1.0
    scores = torch.matmul(query * (root * sign), (k * root).transpose(-2, -1))
    if is_causal:
        allowed = torch.ones([query.size(-2), k.size(-2)], dtype=11, device=query.device).tril()
        scores = scores.masked_fill(allowed.logical_not(), float("-inf"))
    if attn_mask is not None:
        if attn_mask.dtype == 11:
            scores = scores.masked_fill(attn_mask.logical_not(), float("-inf"))
        else:
            scores = scores + attn_mask
    masked = torch.all(scores == float("-inf"), -1, True)
    weights = torch.softmax(scores.masked_fill(masked, 0.0), -1).masked_fill(masked, 0.0)
    if dropout_p > 0.0:
        weights = torch.dropout(weights, dropout_p, True)
    return torch.matmul(weights, v)
)"},
    {"_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) "
     "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     R"(
def body(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], running_mean: Tensor, running_var: Tensor,
         training: bool, momentum: float, eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    return torch.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
)"},
    {"_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, "
     "float eps) -> (Tensor, Tensor, Tensor)",
     R"(
def body(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], training: bool, momentum: float,
         eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    return torch.native_batch_norm(input, weight, bias, None, None, training, momentum, eps)
)"},
    {"_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor "
     "running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     R"(
def body(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], running_mean: Tensor, running_var: Tensor,
         momentum: float, eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    return torch.native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)
)"},
    {"_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor "
     "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor running_mean_out, "
     "Tensor running_var_out)",
     R"(
def body(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], running_mean: Tensor, running_var: Tensor,
         training: bool, momentum: float, eps: float) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    mean = running_mean.clone()
    var = running_var.clone()
    result, saved_mean, saved_var = torch.native_batch_norm(input, weight, bias, mean, var, training, momentum, eps)
    return result, saved_mean, saved_var, mean, var
)"},
    {"rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
     R"(
def body(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor], eps: Optional[float]) -> Tensor:
    dims: List[int] = []
    for i in range(len(normalized_shape)):
        dims.append(input.dim() - len(normalized_shape) + i)
    small = 0.0
    if eps is not None:
        small = eps
    elif input.dtype == 7:
        small = 2.220446049250313e-16
    else:
        small = 1.1920928955078125e-07
    x = input
    if input.dtype == 5 or input.dtype == 15:
        x = input.to(6)
    result = (x * torch.rsqrt(torch.mean(x.pow(2), dims, True) + small)).to(input.dtype)
    if weight is not None:
        result = result * weight
    return result
)"},
    {"squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
     R"(
def body(self: Tensor, dim: List[int]) -> Tensor:
    positions: List[int] = []
    for d in dim:
        positions.append(d + self.dim() if d < 0 else d)
    result = self
    for i in range(self.dim()):
        d = self.dim() - 1 - i
        if d in positions:
            result = result.squeeze(d)
    return result
)"},
    {"squeeze_copy.dims(Tensor self, int[] dim) -> Tensor",
     R"(
def body(self: Tensor, dim: List[int]) -> Tensor:
    positions: List[int] = []
    for d in dim:
        positions.append(d + self.dim() if d < 0 else d)
    result = self
    for i in range(self.dim()):
        d = self.dim() - 1 - i
        if d in positions:
            result = result.squeeze(d)
    return result.clone()
)"},
    {"any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
     R"(
def body(self: Tensor, dim: Optional[List[int]], keepdim: bool) -> Tensor:
    return torch.sum(self != 0, dim if dim is not None else [i for i in range(self.dim())], keepdim) > 0
)"},
    {"all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
     R"(
def body(self: Tensor, dim: Optional[List[int]], keepdim: bool) -> Tensor:
    return torch.sum(self == 0, dim if dim is not None else [i for i in range(self.dim())], keepdim) == 0
)"},
    {"empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? layout=None, Device? "
     "device=None, bool? pin_memory=None) -> Tensor",
     R"(
def body(size: List[int], physical_layout: List[int], dtype: Optional[int], layout: Optional[int],
         device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    sizes: List[int] = []
    back: List[int] = [0 for i in size]
    for i in range(len(physical_layout)):
        sizes.append(size[physical_layout[i]])
        back[physical_layout[i]] = i
    return torch.empty(sizes, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory).permute(back)
)"},
    {"rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, "
     "bool "
     "training=False, Generator? generator=None) -> (Tensor, Tensor noise_out)",
     R"(
def body(self: Tensor, noise: Tensor, lower: number, upper: number, training: bool,
         generator: Any) -> Tuple[Tensor, Tensor]:
    drawn = noise.clone()
    return torch.rrelu_with_noise(self, drawn, lower, upper, training), drawn
)"},
    {"_prelu_kernel(Tensor self, Tensor weight) -> Tensor",
     R"(
def body(self: Tensor, weight: Tensor) -> Tensor:
    return torch.where(self > 0, self, weight * self)
)"},
    {"_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
     R"(
def body(self: Tensor, indices: List[Optional[Tensor]]) -> Tensor:
    return torch.index(self, indices)
)"},
    {"_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
     R"(
def body(self: Tensor, indices: List[Optional[Tensor]], values: Tensor, accumulate: bool) -> Tensor:
    return torch.index_put(self, indices, values, accumulate)
)"},
    {"_is_all_true(Tensor self) -> Tensor", "def body(self: Tensor) -> Tensor:\n    return torch.all(self)\n"},
    {"_is_any_true(Tensor self) -> Tensor", "def body(self: Tensor) -> Tensor:\n    return torch.any(self)\n"},
    {"_reshape_copy(Tensor self, SymInt[] size) -> Tensor",
     "def body(self: Tensor, size: List[int]) -> Tensor:\n    return self.reshape(size).clone()\n"},
    {"_int_mm(Tensor self, Tensor mat2) -> Tensor",
     "def body(self: Tensor, mat2: Tensor) -> Tensor:\n    return torch.mm(self.to(3), "
     "mat2.to(3))\n"},
    {"nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
     R"(
def body(self: Tensor, size: int, fill_value: int) -> Tensor:
    found = torch.nonzero(self)[:size]
    missing = torch.full([size - found.size(0), found.size(1)], fill_value, dtype=4, device=self.device)
    return torch.cat([found, missing])
)"},
};

// Older releases know no symbolic ints: in their schemas they are ints.
std::string schema_for_this_release(std::string schema) {
#if !__has_include(<c10/core/SymBool.h>)
  for (std::size_t at = schema.find("SymInt"); at != std::string::npos; at = schema.find("SymInt", at))
    schema.replace(at, 6, "int");
#endif
  return schema;
}

/// The operators that are registered here.
class Registered {
 public:
  Registered() : library_(torch::Library::FRAGMENT, "aten", c10::nullopt, __FILE__, __LINE__) {
    for (const MissingOperator& row : kMissing) {
      const std::string schema = row.schema;
      const std::string name = schema.substr(0, schema.find('('));
      const std::size_t dot = name.find('.');
      const c10::OperatorName full("aten::" + name.substr(0, dot),
                                   dot == std::string::npos ? "" : name.substr(dot + 1));
      if (c10::Dispatcher::singleton().findSchema(full)) continue;
      const std::string here = schema_for_this_release(schema);
      library_.def(here.c_str());
      library_.impl(name.c_str(), torch::dispatch(c10::DispatchKey::CompositeImplicitAutograd,
                                                  torch::CppFunction::makeFromBoxedFunction<&Registered::run>()));
      bodies_.emplace(full, Body{row.source});
    }
  }

  static Registered& instance() {
    static Registered& one = *new Registered;
    return one;
  }

  std::shared_ptr<jit::Graph> graph(const c10::OperatorName& name) {
    const std::lock_guard lock(mutex_);
    const auto found = bodies_.find(name);
    if (found == bodies_.end()) return nullptr;
    compile(found->second);
    return found->second.graph;
  }

 private:
  struct Body {
    const char* source;
    std::shared_ptr<jit::Graph> graph{};
    std::optional<jit::Code> code{};
  };
  struct Less {
    bool operator()(const c10::OperatorName& a, const c10::OperatorName& b) const {
      return std::tie(a.name, a.overload_name) < std::tie(b.name, b.overload_name);
    }
  };

  static void compile(Body& body) {
    if (body.graph) return;
    jit::CompilationUnit unit;
    unit.define(c10::nullopt, body.source, jit::nativeResolver(), nullptr);
    body.graph = jit::toGraphFunction(unit.get_function("body")).graph()->copy();
    jit::Inline(*body.graph);
    body.code.emplace(body.graph, "body");
  }

  // One result per value, as operators leave them.
  static void run(const c10::OperatorHandle& op, jit::Stack* stack) {
    Registered& all = instance();
    std::optional<jit::Code> code;
    {
      const std::lock_guard lock(all.mutex_);
      Body& body = all.bodies_.at(op.operator_name());
      compile(body);
      code = body.code;
    }
    const std::size_t arguments = op.schema().arguments().size();
    jit::Stack values(stack->end() - static_cast<std::ptrdiff_t>(arguments), stack->end());
    stack->resize(stack->size() - arguments);
    jit::InterpreterState(*code).run(values);
    if (op.schema().returns().empty()) return;
    if (op.schema().returns().size() == 1) {
      stack->push_back(std::move(values[0]));
      return;
    }
    for (const c10::IValue& value : values[0].toTupleRef().elements()) stack->push_back(value);
  }

  std::mutex mutex_;
  std::map<c10::OperatorName, Body, Less> bodies_;
  torch::Library library_;
};

}  // namespace

void install_missing_operators() { Registered::instance(); }

std::shared_ptr<jit::Graph> missing_operator_body(Symbol target) {
  const std::string text = target.str();
  const std::size_t dot = text.find('.');
  return Registered::instance().graph({text.substr(0, dot), dot == std::string::npos ? "" : text.substr(dot + 1)});
}

}  // namespace fx
