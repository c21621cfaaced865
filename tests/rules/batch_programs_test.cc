// Batches that are cut into micro-batches: what computes_across_samples() accepts computes of the parts what it
// computes of the whole. Of random programs of operators that move, mix, reduce and ask for dimensions, all of which
// are of few sizes, that of the batch among them, many mix samples: a wrong answer shows in their results.
//
// Not among them: operators that are not in the table, convolutions of volumes, attention operators, gradients.
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include <fxgraph/rewriter/rules/batch.h>
#include <fxgraph/rewriter/rules/program_facts.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/random.h>
#include <fxgraph/testing/hostile/hostile_program.h>
#include "tests/rules/hostile_run.h"

namespace fx::batch_programs_test {

using hostile::HostileProgram;
using hostile::Rewritten;
using internal::Random;
using testing::HostileRun;
using testing::Trial;

constexpr std::array<std::int64_t, 5> kSizes{1, 2, 3, 4, 6};

class Drawing {
 public:
  explicit Drawing(std::uint64_t seed) : random_(seed) {}

  HostileProgram draw() {
    const std::int64_t batch = random_.between(2, 4) + (random_.chance(30) ? 2 : 0);
    const std::size_t inputs = 1 + random_.below(3);
    hostile::Tensors given;
    for (std::size_t i = 1 + random_.below(3); i > 0; --i) add_weight();
    for (std::size_t i = 0; i < inputs; ++i) {
      std::vector<std::int64_t> sizes{batch};
      for (std::size_t rank = random_.below(4); rank > 0; --rank) sizes.push_back(size());
      given.push_back(at::randn(sizes));
      values_.push_back(&program_.graph.placeholder("x" + std::to_string(i)));
      tensors_.push_back(given.back());
    }
    program_.inputs.push_back(given);
    for (std::size_t steps = 3 + random_.below(8), tries = 60; steps > 0 && tries > 0; --tries) steps -= add();
    return_some();
    for (const std::int64_t other : {batch, batch + 1, 2 * batch}) add_inputs(given, other, false);
    add_inputs(given, batch, true);
    add_inputs(given, 2 * batch, true);
    return std::move(program_);
  }

 private:
  std::int64_t size() { return random_.pick(kSizes); }

  /// Another set: of another batch, or with other sizes, too, if the program takes those.
  void add_inputs(const hostile::Tensors& like, std::int64_t batch, bool others) {
    hostile::Tensors again;
    for (const at::Tensor& input : like) {
      std::vector<std::int64_t> sizes = input.sizes().vec();
      for (std::size_t d = 1; others && d < sizes.size(); ++d) {
        if (random_.chance(50)) sizes[d] = size();
      }
      sizes[0] = batch;
      again.push_back(at::randn(sizes));
    }
    if (!others || runs(program_, again)) program_.inputs.push_back(again);
  }
  static bool runs(const HostileProgram& program, const hostile::Tensors& inputs) {
    try {
      program.build()->run({inputs.begin(), inputs.end()});
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  void add_weight() {
    std::vector<std::int64_t> sizes;
    for (std::size_t rank = random_.below(4); rank > 0; --rank) sizes.push_back(random_.chance(40) ? 1 : size());
    const std::string path = "w" + std::to_string(program_.weights.size());
    program_.weights.push_back({path, at::rand(sizes) + 0.5});
    const auto scope = program_.graph.inserting_before();
    values_.push_back(&program_.graph.get_attr(path));
    tensors_.push_back(program_.weights.back().value);
  }

  // ── Arguments ────────────────────────────────────────────────────────────────────────────────────────────────────
  std::size_t pick() {
    return std::min(random_.below(values_.size()), random_.below(values_.size() + 4)) % values_.size();
  }
  /// A value, the later ones more often.
  std::size_t late() {
    return random_.chance(60) ? values_.size() - 1 - random_.below(std::min<std::size_t>(3, values_.size())) : pick();
  }
  std::int64_t rank(std::size_t i) const { return tensors_[i].dim(); }
  /// Seldom the first, which mostly is that of the batch.
  std::int64_t dim_of(std::int64_t rank) {
    if (rank > 1 && random_.chance(85)) return random_.between(1, rank - 1) - (random_.chance(50) ? rank : 0);
    return random_.between(-std::max<std::int64_t>(rank, 1), std::max<std::int64_t>(rank, 1) - 1);
  }
  Argument literal_sizes(std::size_t i, std::int64_t from) {
    std::vector<Argument> sizes;
    for (std::int64_t d = from; d < rank(i); ++d) sizes.emplace_back(tensors_[i].size(d));
    return Argument::list(sizes);
  }
  /// A size that is asked for, times or by a number.
  Argument asked_size(std::size_t i, std::int64_t dim) {
    Node* asked = &program_.graph.call_function("aten::size.int", {*values_[i], dim});
    if (random_.chance(25)) {
      Node& other = program_.graph.call_function("aten::size.int", {*values_[i], random_.between(0, rank(i) - 1)});
      asked = &program_.graph.call_function("operator.mul", {*asked, other});
    }
    if (random_.chance(25)) asked = &program_.graph.call_function("operator.mul", {*asked, random_.between(1, 3)});
    if (random_.chance(15)) asked = &program_.graph.call_function("operator.floordiv", {*asked, random_.between(1, 2)});
    return *asked;
  }
  Argument form(std::size_t i) {
    std::vector<Argument> sizes;
    const std::size_t count = 1 + random_.below(4);
    const std::size_t inferred = random_.chance(70) ? random_.below(count) : count;
    const bool usual = rank(i) > 0 && random_.chance(60);
    for (std::size_t k = 0; k < count; ++k) {
      if (k == 0 && usual && inferred != 0) {
        sizes.emplace_back(program_.graph.call_function("aten::size.int", {*values_[i], 0}));
      } else if (k == inferred) {
        sizes.emplace_back(-1);
      } else if (rank(i) > 0 && random_.chance(45)) {
        sizes.push_back(
            asked_size(i, static_cast<std::int64_t>(k == 0 ? 0 : random_.below(static_cast<std::size_t>(rank(i))))));
      } else {
        sizes.emplace_back(k < static_cast<std::size_t>(rank(i)) && random_.chance(60)
                               ? tensors_[i].size(static_cast<std::int64_t>(k))
                               : size());
      }
    }
    return Argument::list(sizes);
  }
  Argument index() {
    std::vector<Argument> parts;
    for (std::size_t k = 1 + random_.below(3); k > 0; --k) {
      switch (random_.below(5)) {
        case 0: parts.emplace_back(random_.between(-1, 1)); break;
        case 1: parts.emplace_back(nullptr); break;
        case 2:
          parts.push_back(Argument::slice(random_.between(0, 1), random_.chance(50) ? Argument(2) : Argument()));
          break;
        default: parts.push_back(Argument::slice(nullptr, nullptr));
      }
    }
    return parts.size() == 1 && random_.chance(50) ? parts[0] : Argument::tuple(parts);
  }
  Argument permutation(std::int64_t rank) {
    std::vector<Argument> order;
    for (std::int64_t d = 0; d < rank; ++d) order.emplace_back(d);
    for (std::size_t k = order.size(); k > 1; --k) order[k - 1].swap(order[random_.below(k)]);
    return Argument::list(order);
  }
  Argument some_dims(std::int64_t rank) {
    std::vector<Argument> dims;
    for (std::size_t k = random_.chance(80) ? 1 : 2; k > 0; --k) dims.emplace_back(dim_of(rank));
    return Argument::list(dims);
  }

  // ── Steps ────────────────────────────────────────────────────────────────────────────────────────────────────────
  /// Adds a call, and keeps it when it runs.
  bool add() {
    const std::size_t a = late(), b = random_.chance(20) ? a : pick(), c = pick();
    Node* const last_before = last_;
    Node& made = call(a, b, c);
    const bool kept = keep(made);
    if (!kept) drop_after(last_before);
    return kept;
  }

  Node& f(const char* target, const std::vector<Argument>& args) { return program_.graph.call_function(target, args); }
  Node& part(Node& list) { return f("operator.getitem", {list, static_cast<std::int64_t>(random_.below(2))}); }

  Node& call(std::size_t a, std::size_t b, std::size_t c) {
    Node &x = *values_[a], &y = *values_[b], &z = *values_[c];
    const std::int64_t r = rank(a), d = dim_of(r);
    const bool keep = random_.chance(50);
    switch (random_.below(58)) {
      case 0: return f(random_.chance(50) ? "aten::relu" : "aten::sigmoid", {x});
      case 1: return f("aten::add.Tensor", {x, y});
      case 2: return f("aten::mul.Tensor", {y, x});
      case 3: return f("aten::maximum", {x, y});
      case 4: return f("aten::where.self", {f("aten::gt.Scalar", {x, 0}), y, z});
      case 5: return f(random_.chance(50) ? "aten::relu_" : "aten::tanh_", {x});
      case 6: return f("aten::add_.Tensor", {x, y});
      case 7: return f("aten::copy_", {f("aten::select.int", {x, d, 0}), y});
      case 8: return f("aten::sum.dim_IntList", {x, some_dims(r), keep});
      case 9: return f("aten::mean.dim", {x, some_dims(r), keep});
      case 10: return f("aten::amax", {x, some_dims(r), keep});
      case 11: return part(f("aten::max.dim", {x, d, keep}));
      case 12: return f("aten::softmax.int", {x, d});
      case 13: return f("aten::cumsum", {x, d});
      case 14: return f("aten::select.int", {x, d, random_.between(-1, 1)});
      case 15: return f("aten::slice.Tensor", {x, d, 0, random_.chance(50) ? Argument(2) : Argument()});
      case 16:
      case 17: return f("aten::unsqueeze", {x, random_.between(-r - 1, r)});
      case 18: return f("aten::squeeze.dim", {x, d});
      case 19: return f("aten::squeeze", {x});
      case 20:
      case 21: return f("aten::transpose.int", {x, d, dim_of(r)});
      case 22:
      case 23: return f("aten::permute", {x, permutation(r)});
      case 24:
      case 25: return f("aten::flatten.using_ints", {x, d, dim_of(r)});
      case 26:
      case 27:
      case 28: return f("aten::reshape", {x, form(a)});
      case 29: return f("aten::view", {x, form(a)});
      case 30:
      case 31: return f("aten::expand", {x, form(b)});
      case 32: return f("aten::expand_as", {x, y});
      case 33: return f("aten::cat", {Argument::list({x, y}), d});
      case 34: return f("aten::stack", {Argument::list({x, y}), random_.between(-r - 1, r)});
      case 35: return part(f("aten::split.Tensor", {x, random_.between(1, 2), d}));
      case 36: return part(f("aten::chunk", {x, 2, d}));
      case 37: return part(f("aten::unbind.int", {x, d}));
      case 38:
      case 39: return f("aten::matmul", {x, y});
      case 40: return f("aten::matmul", {x, f("aten::transpose.int", {y, -1, -2})});
      case 41: return f("aten::linear", {x, y});
      case 42: return f("aten::bmm", {x, f("aten::transpose.int", {x, -1, -2})});
      case 43: return f("aten::addmm", {y, x, z});
      case 44: return f("aten::baddbmm", {y, x, f("aten::transpose.int", {x, -1, -2})});
      case 45: return f("aten::layer_norm", {x, literal_sizes(a, random_.between(std::min<std::int64_t>(1, r), r))});
      case 46: return f("aten::batch_norm", {x, nullptr, nullptr, y, z, keep, 0.1, 1e-5, false});
      case 47: return f("aten::group_norm", {x, random_.between(1, 2)});
      case 48: return f("aten::instance_norm", {x, nullptr, nullptr, nullptr, nullptr, true, 0.1, 1e-5, false});
      case 49: return f(random_.chance(50) ? "aten::conv1d" : "aten::conv2d", {x, y});
      case 50: return f("aten::max_pool1d", {x, Argument::list({2})});
      case 51: return f("aten::avg_pool2d", {x, Argument::list({1, 2})});
      case 52:
        return f("aten::constant_pad_nd",
                 {x, r > 2 && keep ? Argument::list({1, 0, 0, 1}) : Argument::list({0, 1}), 0.5});
      case 53: return f("aten::add.Tensor", {f(random_.chance(50) ? "aten::ones" : "aten::zeros", {form(a)}), x});
      case 54: return f("aten::add.Tensor", {f("aten::new_ones", {y, form(a)}), x});
      case 55:
      case 56: return f("operator.getitem", {x, index()});
      default: return other(x, y, r, d);
    }
  }

  Node& other(Node& x, Node& y, std::int64_t r, std::int64_t d) {
    switch (random_.below(12)) {
      case 0: return f("aten::view_as", {x, y});
      case 1: return f("aten::triu", {x});
      case 2: return f("aten::flip", {x, some_dims(r)});
      case 3: return f("aten::roll", {x, Argument::list({1}), Argument::list({d})});
      case 4: return f("aten::glu", {x, d});
      case 5: return f("aten::type_as", {x, y});
      case 6: return part(f("aten::topk", {x, 1, d}));
      case 7: return part(f("aten::sort", {x, d}));
      case 8: return f("aten::t", {x});
      case 9: return f("aten::mul.Tensor", {x, f("aten::size.int", {y, d})});
      case 10: return f("aten::embedding", {x, f("aten::argmax", {y, d})});
      default: return f("aten::linalg_vector_norm", {x, 2, Argument::list({d})});
    }
  }

  /// Runs the program up to the call.
  bool keep(Node& made) {
    HostileProgram so_far = program_.clone();
    so_far.graph.output(*so_far.graph.find(made.name()));
    at::Tensor tensor;
    try {
      c10::IValue value = so_far.build()->run({program_.inputs[0].begin(), program_.inputs[0].end()});
      if (!value.isTensor() || value.toTensor().numel() > 4096 || !value.toTensor().is_floating_point()) return false;
      tensor = value.toTensor();
    } catch (const std::exception&) {
      return false;
    }
    values_.push_back(&made);
    tensors_.push_back(tensor);
    last_ = &made;
    return true;
  }

  void drop_after(Node* last) {
    std::vector<Node*> dropped;
    bool behind = last == nullptr;
    for (Node& node : program_.graph.nodes()) {
      if (behind && node.is(Op::call_function)) dropped.push_back(&node);
      behind = behind || &node == last;
    }
    for (std::size_t i = dropped.size(); i-- > 0;) program_.graph.erase_node(*dropped[i]);
  }

  void return_some() {
    std::vector<Argument> results{*values_.back()};
    while (random_.chance(25)) results.emplace_back(*values_[late()]);
    program_.graph.output(results.size() == 1 ? results[0] : Argument::tuple(results));
  }

  Random random_;
  HostileProgram program_;
  std::vector<Node*> values_;
  std::vector<at::Tensor> tensors_;
  Node* last_ = nullptr;  // of the calls
};

/// The same with batches that are cut.
Rewritten cut(GraphModule& module, const HostileProgram& program, std::int64_t size) {
  std::vector<TensorInfo> inputs;
  for (const at::Tensor& input : program.inputs[0]) inputs.push_back(tensor_info(input));
  rules::ProgramFacts facts(module, inputs);
  Shapes shapes;
  if (facts.across_samples(shapes) || !facts.known()) return {};
  MicroBatches how{.size = size};
  for (const Node* input : module.graph().placeholders()) {
    how.inputs.push_back(std::as_const(shapes)[*input].tensor()->sizes);
    how.inputs.back()[0] = -1;
  }
  module.set_micro_batches(how);
  return {true};
}

TEST(BatchPrograms, CutBatchesGiveWhatTheWholeGives) {
  HostileRun run(3000);
  run.run([](std::uint64_t seed) {
    const auto size = static_cast<std::int64_t>(1 + seed % 3);
    return Trial{Drawing(seed).draw(),
                 [size](GraphModule& module, const HostileProgram& program) { return cut(module, program, size); },
                 "micro-batches of " + std::to_string(size)};
  });
  EXPECT_EQ(run.wrong(), 0u) << run;
  EXPECT_GT(run.changed(), run.programs() / 20);
}

}  // namespace fx::batch_programs_test
