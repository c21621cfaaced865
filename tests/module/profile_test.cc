// Times node by node: every node that runs has as many as there were runs, and the results are those of any run.
#include <fxgraph/module/profile.h>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fxgraph/text/parse.h>

namespace fx::profile_test {

TEST(Profile, TimesEveryNodeInEveryRun) {
  GraphModule module({{"w", at::zeros({3})}}, parse_graph(R"(graph():
    %x : [num_users=1] = placeholder[target=x]
    %w : [num_users=1] = get_attr[target=w]
    %add : [num_users=1] = call_function[target=torch.ops.aten.add_.Tensor](args = (%w, %x), kwargs = {})
    return add
)"));
  const NodeTimes times = profile(module, {at::ones({3})}, 5);
  for (const Node& node : module.graph().nodes()) {
    const MeasuredTime time = summarize(times[node]);
    EXPECT_EQ(time.runs, 5u) << node.name();
    EXPECT_GT(time.seconds, 0) << node.name();
  }
  // One run to warm up, five that were measured: the buffer has seen them all.
  EXPECT_TRUE(at::equal(module.attribute("w"), at::full({3}, 6.0)));
}

}  // namespace fx::profile_test
