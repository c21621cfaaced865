// The reference form: every quantized operator on floats, between dequantize and quantize.
#pragma once

#include <fxgraph/rewriter/quantize/annotation.h>
#include <fxgraph/rewriter/quantize/record.h>

namespace fx::quantize {

namespace meta_key {
inline constexpr const char* kShared = "quantize_shared";       ///< bool: a quantize node with its input's own range
inline constexpr const char* kQuantized = "quantize_operator";  ///< bool: an operator that kernels may do
inline constexpr const char* kRank = "quantize_rank";           ///< int: of a node's value, where kernels differ by it
}  // namespace meta_key

/// Writes the reference form into `flat`, whose annotation it is: weights become quantized attributes, values with a
/// range go through quantize_per_tensor, each reader has a dequantize of its own. `prepared` holds the observers.
/// Throws Error(invalid_argument) for a range that was never observed; then `flat` is unusable.
void write_reference(GraphModule& flat, const Annotation& annotation, const GraphModule& prepared,
                     const QuantRecord& record);

/// A weight as a quantized tensor, with the range that `quantizer` finds for it; `axis` of the channels, or none.
at::Tensor quantized_weight(const Quantizer& quantizer, const at::Tensor& weight, std::optional<std::int64_t> axis,
                            const std::string& node);

}  // namespace fx::quantize
