// Modules that a program calls before it is rewritten and no more afterwards: what stands for one in evaluation does
// not follow when the mode is switched.
//
// Thread-safety: none.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <fxgraph/module/graph_module.h>

namespace fx::internal {

class CalledModules {
 public:
  /// Notes what is called now.
  explicit CalledModules(GraphModule& module);

  /// Fixes the mode of the program where one is gone that does something else in the other mode. `who`, as in
  /// "optimize", has put something in its place.
  void fix_mode_where_one_is_gone(std::string_view who);

 private:
  struct Called {
    int times = 0;
    std::shared_ptr<torch::nn::Module> module;
  };
  GraphModule& module_;
  std::map<std::string, Called> called_;
};

}  // namespace fx::internal
