// How Liveness finds the storages of a graph. Internal to analysis/liveness.cc.
#pragma once

#include <cstdint>
#include <vector>

#include <fxgraph/analysis/liveness.h>
#include <fxgraph/support/flat_map.h>

namespace fx {

class StorageTable {
 public:
  StorageTable(Liveness& live, const Shapes& shapes, const Effects& effects, const LivenessOptions& options)
      : live_(live), shapes_(shapes), effects_(effects), options_(options), of_set_(effects.num_sets(), kNone) {}
  void build();

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  void add_value(const Node& node);
  void add_exact(const Node& node, const TensorInfo& tensor);
  void add_by_sets(const Node& node, const ValueInfo& value);
  bool makes_storage(const Node& node) const;
  std::uint32_t new_storage(const Node& node);
  void hold(std::uint32_t storage, const Node& node);
  void collect_touched();
  void round_up();

  Liveness& live_;
  const Shapes& shapes_;
  const Effects& effects_;
  const LivenessOptions& options_;
  std::vector<std::uint32_t> of_set_;         // by alias set
  FlatMap<std::uint32_t> of_identity_;        // by TensorInfo::storage; 1 + storage
  std::vector<std::uint32_t> starts_, held_;  // the storages that each value lies in, by place
};

}  // namespace fx
