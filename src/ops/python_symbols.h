// The functions of Python that programs are made of between their operators: parts of tuples, numbers, assertions.
#pragma once

#include <string_view>

#include <fxgraph/support/symbol.h>

/// Python's spelling of each, as targets of Op::call_function.
namespace fx::python {

/// For tables that are made when the program is compiled.
inline constexpr std::string_view kGetItemName = "operator.getitem",
                                  kMultiHeadAttention = "torch.nn.functional.multi_head_attention_forward";

/// Where functions stand that are operators, whole or nearly.
inline constexpr std::string_view kTorchModule = "torch.", kFunctionalModule = "torch.nn.functional.",
                                  kOperatorModule = "operator.";

inline const Symbol kGetItem(kGetItemName), kSetItem("operator.setitem"), kLength("builtins.len"),
    kGetAttr("builtins.getattr"), kSetAttr("builtins.setattr");
inline const Symbol kIsInstance("torch.jit.isinstance");  ///< of a value and a type, an opaque text
inline const Symbol kAssert("torch._assert");             ///< of a condition and a message
inline const Symbol kAdd("operator.add"), kSub("operator.sub"), kMul("operator.mul"), kTrueDiv("operator.truediv"),
    kFloorDiv("operator.floordiv"), kMod("operator.mod"), kPow("operator.pow"), kInPlacePow("operator.ipow"),
    kSqrt("math.sqrt");
inline const Symbol kEqual("operator.eq"), kGreater("operator.gt"), kAtLeast("operator.ge"), kAtMost("operator.le"),
    kIs("operator.is_"), kIsNot("operator.is_not");

}  // namespace fx::python
