// What operators make of strides, and what they need of them, as data, beside OperatorTraits. All ask for packets:
// `aten::softmax`.
#pragma once

#include <string_view>

namespace fx::internal {

bool gives_contiguous(std::string_view packet);    ///< whatever the strides of what it takes
bool looks_at_all(std::string_view packet);        ///< a view of all elements, in their order
bool raises_by_strides(std::string_view packet);   ///< where they do not do
bool differs_by_strides(std::string_view packet);  ///< beside those of OperatorTraits::reads_layout()
bool copies_in_order(std::string_view packet);     ///< a copy that keeps the order of dimensions

}  // namespace fx::internal
