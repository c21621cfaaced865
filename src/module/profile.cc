#include <fxgraph/module/profile.h>

#include <chrono>

namespace fx {

namespace {

class ProfilingInterpreter : public Interpreter {
 public:
  explicit ProfilingInterpreter(GraphModule& module) : Interpreter(module), times_(module.graph()) {}

  Value run_node(const Node& node) override {
    const Clock::time_point start = Clock::now();
    Value value = Interpreter::run_node(node);
    if (measures_) times_[node].push_back(std::chrono::duration<double>(Clock::now() - start).count());
    return value;
  }

  NodeTimes times(const Args& inputs, std::size_t runs) {
    run(inputs);
    measures_ = true;
    for (std::size_t i = 0; i < runs; ++i) run(inputs);
    return std::move(times_);
  }

 private:
  using Clock = std::chrono::steady_clock;

  NodeTimes times_;
  bool measures_ = false;
};

}  // namespace

NodeTimes profile(GraphModule& module, const Args& inputs, std::size_t runs) {
  return ProfilingInterpreter(module).times(inputs, runs);
}

}  // namespace fx
