// What `fxgraph quantize --report html` shows: how much each value differs, worst first, and why nodes stay float, as
// one page without scripts or links.
#pragma once

#include <string>
#include <vector>

#include <fxgraph/rewriter/quantize/compare.h>
#include <fxgraph/rewriter/quantize/quantize.h>

namespace fx::cli {

/// The whole page; `name` is the program's. Texts are escaped.
std::string quantize_page(const std::string& name, const ActivationComparison& comparison,
                          const std::vector<QuantReason>& reasons);

}  // namespace fx::cli
