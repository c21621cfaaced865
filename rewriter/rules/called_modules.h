// Modules that a program calls before it is optimized and no more afterwards: what stands for one in evaluation does
// not follow when the mode is switched.
//
// Thread-safety: none.
#pragma once

#include <map>
#include <memory>
#include <string>

#include <fxgraph/module/graph_module.h>

namespace fx::rules {

class CalledModules {
 public:
  /// Notes what is called now.
  explicit CalledModules(GraphModule& module);

  /// Fixes the mode of the program where one is gone that does something else in the other mode.
  void fix_mode_where_one_is_gone();

 private:
  struct Called {
    int times = 0;
    std::shared_ptr<torch::nn::Module> module;
  };
  GraphModule& module_;
  std::map<std::string, Called> called_;
};

}  // namespace fx::rules
