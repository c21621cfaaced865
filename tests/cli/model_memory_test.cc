// The predicted peak of activations against what LibTorch's allocator holds while the models run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/analysis/liveness.h>
#include <fxgraph/module/interpreter.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/shapes/shape_prop.h>
#include "tests/cli/counting_allocator.h"
#include "tests/cli/test_models.h"

namespace fx::model_memory_test {

/// Notes the most that the allocator holds when a node has made its value and its inputs are still there. What
/// operators allocate and free inside (weights in another layout, buffers of convolutions) belongs to no value and is
/// not seen.
class MemoryWatch : public Interpreter {
 public:
  explicit MemoryWatch(GraphModule& module) : Interpreter(module) {}

  Value call_function(const Target& target, const Args& args, const Kwargs& kwargs) override {
    return noted(Interpreter::call_function(target, args, kwargs));
  }
  Value call_method(const Target& target, const Args& args, const Kwargs& kwargs) override {
    return noted(Interpreter::call_method(target, args, kwargs));
  }
  Value call_module(const Target& target, const Args& args, const Kwargs& kwargs) override {
    return noted(Interpreter::call_module(target, args, kwargs));
  }

  std::int64_t peak() const { return peak_; }

 private:
  Value noted(Value value) {
    peak_ = std::max(peak_, allocator_.held() - before_);
    return value;
  }

  const testing::CountingAllocator& allocator_ = testing::CountingAllocator::installed();
  std::int64_t before_ = allocator_.held();
  std::int64_t peak_ = 0;
};

TEST(ModelMemory, ThePredictedPeakIsWhatTheAllocatorHolds) {
  testing::CountingAllocator::installed();
  int exact = 0;
  const int models = testing::for_each_test_model(false, [&](testing::TestModel& model) {
    const Shapes shapes = propagate_shapes(*model.module, model.inputs);
    const Effects effects(*model.module);
    const Liveness live(model.module->graph(), shapes, {.effects = &effects});
    MemoryWatch watch(*model.module);
    watch.run(model.inputs);
    const auto predicted = static_cast<double>(live.peak().bytes), held = static_cast<double>(watch.peak());
    EXPECT_NEAR(predicted, held, 0.02 * held) << model.file << ", peak at " << live.peak().node->name();
    exact += predicted == held;
  });
  if (models == 0) GTEST_SKIP() << "no test models: FXGRAPH_TEST_MODELS names no folder with a manifest.json";
  EXPECT_GT(exact, models * 9 / 10);
  RecordProperty("exact", exact);
  RecordProperty("models", models);
}

}  // namespace fx::model_memory_test
