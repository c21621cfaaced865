// Maximum pooling of images with channels last: by rows, then by columns (fxgraph::max_pool2d), where that was measured
// to be faster than window by window.
#include <fxgraph/rewriter/rules/rules.h>

#include <fxgraph/rewriter/rules/measured_rules.h>
#include <fxgraph/rewriter/rules/packed_calls.h>

namespace fx::rules::lowering_pool {

namespace {

Decision fits(const Match& match) {
  const TensorFacts x = match.info("x");
  if (!x) return refuse("the shape of its input is not known; give --input");
  if (x.rank() != 4 || x.example().numel() == 0 || !is_on_cpu(x, DType::float32))
    return refuse("its input is not float32 on the CPU, of four dimensions");
  for (const Argument& each : match.argument("dilation").elements()) {
    if (each != Argument(1)) return refuse("its windows have gaps");
  }
  return true;
}

std::vector<Rewrite> pool() {
  return {
      {.name = "rows-then-columns",
       .pattern = "aten::max_pool2d(x: node, kernel: literal, stride: literal, padding: literal, dilation: literal, "
                  "ceil: literal)",
       .when = fits,
       .replacement = [](const Match& m, Rewriter& r) -> Node& {
         std::vector<Argument> args = {m["x"]};
         for (const char* name : {"kernel", "stride", "padding", "dilation", "ceil"}) args.push_back(m.argument(name));
         return r.call_function("fxgraph::max_pool2d", args);
       },
       .examples = {"aten::max_pool2d(x, [3, 3], [2, 2], [1, 1], [1, 1], False)",
                    "aten::max_pool2d(x, [2, 1], [], [0, 0], [1, 1], True)",
                    "aten::max_pool2d(x, [3, 3], [1, 2], [1, 0], [1, 1], True)"}},
  };
}

}  // namespace

std::span<const OptimizeRule> family() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "lower-pool",
          .summary = "Maximum pooling goes by rows, then by columns, where that was measured to be faster",
          .preconditions = "shapes known (--input); float32 of four dimensions on the CPU; windows without gaps",
          .order = 540,
          .group = Group::lowering,
          .promise = Promise::reassociates,
          .rewrites = pool,
          .pass = apply_fastest_to_images,
      },
  };
  return kFamily;
}

}  // namespace fx::rules::lowering_pool
