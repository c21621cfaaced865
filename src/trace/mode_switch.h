// ModeSwitch: what a module's forward does otherwise in the other mode, train() or eval().
//
// The program is traced once more in the other mode, as a whole. Dropout whose flag follows the mode becomes a call of
// a dropout module, which does; leaf modules that were raised do, too. Where anything else differs the graph holds for
// its mode only, and the GraphModule refuses to be switched.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/trace/same_program.h>
#include <fxgraph/trace/second_call.h>

namespace fx::internal {

class ModeSwitch {
 public:
  using Modules = std::vector<std::pair<std::string, std::shared_ptr<torch::nn::Module>>>;

  /// Traces `root` in the other mode, and puts the state of `plan` back. `updates` is what it does with its buffers in
  /// this one.
  ModeSwitch(const SecondCallPlan& plan, torch::nn::Module& root, const std::vector<BufferUpdate>& updates);

  /// After leaf modules have been raised in `graph`: makes calls of dropout modules, which `modules` gets. Returns why
  /// the graph does not hold in the other mode; empty when it does.
  std::string apply(Graph& graph, Session& session, const torch::nn::Module& root, Modules& modules) const;

 private:
  struct Flag {
    std::uint32_t node;
    std::size_t argument;
    Symbol target;
  };

  std::string frozen_module(torch::nn::Module& root) const;

  bool training_;
  std::string frozen_path_;
  std::string difference_;  // what the program does there, if nothing follows
  std::vector<Flag> flags_;
  std::vector<Flag> frozen_;                                   // that stay as they are in the other mode
  std::vector<std::pair<std::uint32_t, std::string>> writes_;  // node, in words
  std::vector<std::string> added_;
  bool updates_others_ = false;  // buffers, or by other values
};

}  // namespace fx::internal
