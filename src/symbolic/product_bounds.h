// Bounds of sums of products, which those of each product by itself may say little of.
#pragma once

#include <cstdint>
#include <optional>

#include <fxgraph/symbolic/size_facts.h>

namespace fx::internal {

/// True for a sum in which two that vary are multiplied.
bool has_products(const SizeExpr& expr);
/// What it is at least: `a*b + a + b + 1` is `(a + 1)*(b + 1)`, at least 0 where a and b are at least -1.
std::optional<std::int64_t> least_of_products(const SizeFacts& facts, const SizeExpr& expr);

}  // namespace fx::internal
