#include <fxgraph/cli/torch/measures.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <map>

#include <fxgraph/analysis/liveness.h>
#include <fxgraph/rewriter/partition/stage_costs.h>

namespace fx::cli {

ParameterCount count_parameters(const GraphModule& module) {
  ParameterCount count;
  std::map<const void*, std::int64_t> left;  // bytes of a storage that are not counted yet; look-up only
  for (const at::Tensor& parameter : module.parameters()) {
    auto bytes = static_cast<std::int64_t>(parameter.nbytes());
    if (parameter.has_storage()) {
      const auto whole = static_cast<std::int64_t>(parameter.storage().nbytes());
      std::int64_t& rest = left.try_emplace(parameter.storage().unsafeGetStorageImpl(), whole).first->second;
      bytes = std::min(bytes, rest);
      rest -= bytes;
    }
    count.bytes += static_cast<double>(bytes);
    count.elements += static_cast<double>(bytes / static_cast<std::int64_t>(parameter.element_size()));
  }
  return count;
}

Measures measure(const GraphModule& module, const Shapes& shapes) {
  const Cost cost(module, shapes);
  const Liveness live(module, shapes);
  return {cost.total().macs, static_cast<double>(live.peak().bytes)};
}

}  // namespace fx::cli
