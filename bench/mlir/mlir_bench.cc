// The other yardstick: MLIR on the chain. relu is math.exp here, relu6 math.tanh, neg math.sin and sigmoid math.cos:
// calls of one operand that nothing folds.
#include <mlir/Analysis/Liveness.h>
#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/Dialect/Func/IR/FuncOps.h>
#include <mlir/Dialect/Math/IR/Math.h>
#include <mlir/IR/Builders.h>
#include <mlir/IR/BuiltinOps.h>
#include <mlir/IR/Diagnostics.h>
#include <mlir/IR/MLIRContext.h>
#include <mlir/IR/Verifier.h>
#include <mlir/Parser/Parser.h>
#include <mlir/Pass/PassManager.h>
#include <mlir/Transforms/GreedyPatternRewriteDriver.h>
#include <mlir/Transforms/Passes.h>
#include <mlir/Transforms/RegionUtils.h>

#include "bench/harness.h"
#include "tests/support/workloads.h"

namespace fx::bench {
namespace {

using Module = mlir::OwningOpRef<mlir::ModuleOp>;

// One thread, as everything else here.
mlir::MLIRContext& context() {
  static mlir::MLIRContext made(mlir::MLIRContext::Threading::DISABLED);
  static const bool loaded =
      (made.loadDialect<mlir::arith::ArithDialect, mlir::func::FuncDialect, mlir::math::MathDialect>(), true);
  benchmark::DoNotOptimize(loaded);
  return made;
}

// What each block of a chain has besides its three operations.
enum class Extra { none, dead, twin };

Module mlir_chain(std::int64_t blocks, Extra extra = Extra::none) {
  mlir::OpBuilder builder(&context());
  const mlir::Location here = builder.getUnknownLoc();
  Module module = mlir::ModuleOp::create(here);
  builder.setInsertionPointToEnd(module->getBody());
  const mlir::Type f32 = builder.getF32Type();
  auto function = builder.create<mlir::func::FuncOp>(here, "f", builder.getFunctionType({f32, f32}, {f32}));
  mlir::Block* const body = function.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  mlir::Value t = body->getArgument(0);
  const mlir::Value y = body->getArgument(1);
  for (std::int64_t i = 0; i < blocks; ++i) {
    const mlir::Value a = builder.create<mlir::arith::AddFOp>(here, t, y);
    const mlir::Value r = builder.create<mlir::math::ExpOp>(here, a);
    if (extra == Extra::dead) builder.create<mlir::math::SinOp>(here, r);
    const mlir::Value factor = extra == Extra::twin ? mlir::Value(builder.create<mlir::math::ExpOp>(here, a)) : y;
    t = builder.create<mlir::arith::MulFOp>(here, r, factor);
  }
  builder.create<mlir::func::ReturnOp>(here, t);
  return module;
}

template <typename Operation>
std::size_t count(Module& module) {
  std::size_t found = 0;
  module->walk([&](Operation) { ++found; });
  return found;
}

// The operations of the function, its end counted.
std::size_t size(Module& module) {
  mlir::Block& body = *(*module->getOps<mlir::func::FuncOp>().begin()).getBody().begin();
  return body.getOperations().size();
}

std::string print(Module& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream);
  return text;
}

// Sees on a fresh chain that `work` leaves as many operations as is right, and times it on more of them.
template <typename Work>
void on_fresh_modules(benchmark::State& state, Extra extra, std::int64_t right, Work work) {
  Module first = mlir_chain(state.range(0), extra);
  const std::size_t nodes = size(first) + 2;
  work(first);
  const bool as_many = size(first) == static_cast<std::size_t>(right) && mlir::succeeded(mlir::verify(*first));
  if (!verified(state, as_many, "number of operations")) return;
  time_editing(
      state, nodes, [&] { return mlir_chain(state.range(0), extra); }, work);
}

void BM_MlirBuild(benchmark::State& state) {
  Module made = mlir_chain(state.range(0));
  if (!verified(state, size(made) + 2 == chain_nodes(state), "number of operations")) return;
  time_reading(state, chain_nodes(state), [&] { return mlir_chain(state.range(0)); });
}
BENCHMARK(BM_MlirBuild)->Apply(peer_sizes);

void BM_MlirClone(benchmark::State& state) {
  Module module = mlir_chain(state.range(0));
  Module copy = module->clone();
  if (!verified(state, print(copy) == print(module), "the copy")) return;
  time_reading(state, chain_nodes(state), [&] { return Module(module->clone()); });
}
BENCHMARK(BM_MlirClone)->Apply(peer_sizes);

void BM_MlirLint(benchmark::State& state) {
  Module module = mlir_chain(state.range(0)), broken = mlir_chain(1);
  const mlir::ScopedDiagnosticHandler silence(&context(), [](mlir::Diagnostic&) {});
  mlir::Block& body = *(*broken->getOps<mlir::func::FuncOp>().begin()).getBody().begin();
  body.front().moveAfter(&*std::next(body.begin()));
  const bool right = mlir::succeeded(mlir::verify(*module)) && mlir::failed(mlir::verify(*broken));
  if (!verified(state, right, "violations")) return;
  time_reading(state, chain_nodes(state), [&] { return mlir::succeeded(mlir::verify(*module)); });
}
BENCHMARK(BM_MlirLint)->Apply(peer_sizes);

void BM_MlirDeadCode(benchmark::State& state) {
  on_fresh_modules(state, Extra::dead, 3 * state.range(0) + 1, [](Module& module) {
    mlir::IRRewriter rewriter(&context());
    benchmark::DoNotOptimize(mlir::succeeded(mlir::runRegionDCE(rewriter, module->getOperation()->getRegions())));
  });
}
BENCHMARK(BM_MlirDeadCode)->Apply(peer_sizes)->UseManualTime();

void BM_MlirCommonSubexpression(benchmark::State& state) {
  // Nothing but the pass: left to itself a pass manager verifies the module as well.
  mlir::PassManager passes(&context());
  passes.enableVerifier(false);
  passes.addPass(mlir::createCSEPass());
  const auto work = [&](Module& module) { benchmark::DoNotOptimize(mlir::succeeded(passes.run(*module))); };
  Module doubled = mlir_chain(state.range(0), Extra::twin);
  work(doubled);
  const auto blocks = static_cast<std::size_t>(state.range(0));
  if (!verified(state, count<mlir::math::ExpOp>(doubled) == blocks, "number of twins")) return;
  on_fresh_modules(state, Extra::none, 3 * state.range(0) + 1, work);
}
BENCHMARK(BM_MlirCommonSubexpression)->Apply(peer_sizes)->UseManualTime();

// ---- the greedy driver
// -----------------------------------------------------------------------------------------------

// exp(add(x, y)) with an add that nothing else uses, for tanh(sub(x, y)).
struct Hit : mlir::OpRewritePattern<mlir::math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;
  mlir::LogicalResult matchAndRewrite(mlir::math::ExpOp exp, mlir::PatternRewriter& rewriter) const override {
    auto add = exp.getOperand().getDefiningOp<mlir::arith::AddFOp>();
    if (!add || !add->hasOneUse()) return mlir::failure();
    const mlir::Value sub = rewriter.create<mlir::arith::SubFOp>(exp.getLoc(), add.getLhs(), add.getRhs());
    rewriter.replaceOpWithNewOp<mlir::math::TanhOp>(exp, sub);
    rewriter.eraseOp(add);
    return mlir::success();
  }
};

// cos(add(x, y)) for x.
struct Miss : mlir::OpRewritePattern<mlir::math::CosOp> {
  using OpRewritePattern::OpRewritePattern;
  mlir::LogicalResult matchAndRewrite(mlir::math::CosOp cos, mlir::PatternRewriter& rewriter) const override {
    auto add = cos.getOperand().getDefiningOp<mlir::arith::AddFOp>();
    if (!add || !add->hasOneUse()) return mlir::failure();
    rewriter.replaceOp(cos, add.getLhs());
    return mlir::success();
  }
};

// One of testing::operators_not_in_chain, for the innermost first operand.
class Nested : public mlir::RewritePattern {
 public:
  explicit Nested(const std::vector<mlir::OperationName>& names)
      : RewritePattern(names.front().getStringRef(), 1, &context()), names_(names) {}

  mlir::LogicalResult matchAndRewrite(mlir::Operation* root, mlir::PatternRewriter& rewriter) const override {
    mlir::Operation* at = root;
    for (std::size_t i = 1; i < names_.size(); ++i) {
      at = at->getOperand(0).getDefiningOp();
      if (!at || at->getName() != names_[i] || !at->hasOneUse()) return mlir::failure();
    }
    rewriter.replaceOp(root, at->getOperand(0));
    return mlir::success();
  }

 private:
  std::vector<mlir::OperationName> names_;
};

void add_nested(mlir::RewritePatternSet& patterns, std::size_t count) {
  for (const std::vector<std::string>& operators : testing::operators_not_in_chain(count)) {
    std::vector<mlir::OperationName> names;
    for (const std::string& name : operators)
      names.emplace_back(name == "aten::relu"         ? "math.exp"
                         : name == "aten::mul.Tensor" ? "arith.mulf"
                                                      : "arith.addf",
                         &context());
    patterns.add<Nested>(names);
  }
}

// What applies `patterns` in so many sweeps over the module, or until nothing changes.
auto driver(mlir::RewritePatternSet&& patterns, std::int64_t sweeps) {
  mlir::GreedyRewriteConfig config;
  config.enableRegionSimplification = false;  // there is one block
  config.useTopDownTraversal = true;          // the quicker way, says the driver
  config.maxIterations = sweeps;
  return [frozen = mlir::FrozenRewritePatternSet(std::move(patterns)), config](Module& module) {
    benchmark::DoNotOptimize(mlir::succeeded(mlir::applyPatternsAndFoldGreedily(*module, frozen, config)));
  };
}

void rewrite_nothing(benchmark::State& state, mlir::RewritePatternSet&& patterns) {
  const auto work = driver(std::move(patterns), 1);
  Module module = mlir_chain(state.range(0));
  const std::string before = print(module);
  work(module);
  if (!verified(state, print(module) == before, "rewrites")) return;
  on_fresh_modules(state, Extra::none, 3 * state.range(0) + 1, work);
}

// MLIR has no search that only matches: this is the driver, which also looks for what is dead or folds.
void BM_MlirMatchMiss(benchmark::State& state) {
  mlir::RewritePatternSet patterns(&context());
  patterns.add<Miss>(&context());
  rewrite_nothing(state, std::move(patterns));
}
BENCHMARK(BM_MlirMatchMiss)->Apply(peer_sizes)->UseManualTime();

void BM_MlirMatchMiss64(benchmark::State& state) {
  mlir::RewritePatternSet patterns(&context());
  add_nested(patterns, 64);
  rewrite_nothing(state, std::move(patterns));
}
BENCHMARK(BM_MlirMatchMiss64)->Apply(peer_sizes)->UseManualTime();

// Applies Hit, and `misses` patterns before it, to all of the chain.
void rewrite(benchmark::State& state, std::size_t misses, std::int64_t sweeps) {
  mlir::RewritePatternSet patterns(&context());
  add_nested(patterns, misses);
  patterns.add<Hit>(&context());
  const auto work = driver(std::move(patterns), sweeps);
  Module first = mlir_chain(state.range(0));
  work(first);
  const std::size_t made = count<mlir::math::TanhOp>(first) + count<mlir::arith::SubFOp>(first);
  if (!verified(state, made == 2 * static_cast<std::size_t>(state.range(0)), "rewrites")) return;
  on_fresh_modules(state, Extra::none, 3 * state.range(0) + 1, work);
}

void BM_MlirRewriteAll(benchmark::State& state) { rewrite(state, 0, 1); }
BENCHMARK(BM_MlirRewriteAll)->Apply(peer_sizes)->UseManualTime();

void BM_MlirRewrite64Rules(benchmark::State& state) { rewrite(state, 63, 1); }
BENCHMARK(BM_MlirRewrite64Rules)->Apply(peer_sizes)->UseManualTime();

void BM_MlirFixedPoint64Rules(benchmark::State& state) { rewrite(state, 63, mlir::GreedyRewriteConfig::kNoLimit); }
BENCHMARK(BM_MlirFixedPoint64Rules)->Apply(peer_sizes)->UseManualTime();

// ---- what changes nothing
// ---------------------------------------------------------------------------------------------

void BM_MlirMatchByHand(benchmark::State& state) {
  Module module = mlir_chain(state.range(0));
  const auto search = [&] {
    std::int64_t found = 0;
    module->walk([&](mlir::math::ExpOp exp) {
      auto add = exp.getOperand().getDefiningOp<mlir::arith::AddFOp>();
      found += add && add->hasOneUse();
    });
    return found;
  };
  if (!verified(state, search() == state.range(0), "number of matches")) return;
  time_reading(state, chain_nodes(state), search);
}
BENCHMARK(BM_MlirMatchByHand)->Apply(peer_sizes);

// The sets of each block; where in the block a value is used last is a walk for each question.
void BM_MlirLiveness(benchmark::State& state) {
  Module module = mlir_chain(state.range(0));
  const mlir::Liveness live(*module);
  bool right = true;
  module->walk([&](mlir::Operation* operation) {
    for (const mlir::Value result : operation->getResults())
      right = right && live.isDeadAfter(result, *result.getUsers().begin()) && !live.isDeadAfter(result, operation);
  });
  if (!verified(state, right, "a last use")) return;
  time_reading(state, chain_nodes(state), [&] { return mlir::Liveness(*module); });
}
BENCHMARK(BM_MlirLiveness)->Apply(peer_sizes);

void BM_MlirPrint(benchmark::State& state) {
  Module module = mlir_chain(state.range(0));
  time_reading(state, chain_nodes(state), [&] { return print(module); });
}
BENCHMARK(BM_MlirPrint)->Apply(peer_sizes);

void BM_MlirParse(benchmark::State& state) {
  Module module = mlir_chain(state.range(0));
  const std::string text = print(module);
  const auto parse = [&] { return mlir::parseSourceString<mlir::ModuleOp>(text, &context()); };
  Module parsed = parse();
  if (!verified(state, parsed && print(parsed) == text, "round trip")) return;
  time_reading(state, chain_nodes(state), parse);
}
BENCHMARK(BM_MlirParse)->Apply(peer_sizes);

}  // namespace
}  // namespace fx::bench
