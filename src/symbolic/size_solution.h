// What a condition of one symbol says of it.
#pragma once

#include <optional>

#include <fxgraph/symbolic/size_facts.h>

namespace fx {

/// `n >= 29` for `n//4 + (6*((n//4)%7))%7 >= 8`: an order of what is linear but for divisions by whole numbers, of one
/// symbol of at least 0, that holds from some number on, or up to one. Nothing where it does neither, or where more
/// than some 10^5 numbers would have to be tried: those of one period, and all up to where the rest grows past them.
std::optional<SizeCondition> solved(const SizeCondition& condition);

}  // namespace fx
