#include "tests/partition/ranks_cases.h"

#include <torch/torch.h>

#include <fxgraph/text/parse.h>

namespace fx::testing {

using torch::Tensor;

const std::vector<RanksCase>& ranks_cases() {
  static const std::vector<RanksCase> kCases = {
      {"views", R"(%x = placeholder[target=x]
    %a = call_function[target=aten::mul.Tensor](args = (%x, 2.0))
    %t = call_function[target=aten::t](args = (%a,))
    %e = call_function[target=aten::exp](args = (%t,))
    %row = call_function[target=aten::select.int](args = (%e, 1, 0))
    %wide = call_function[target=aten::expand](args = (%row, [3, 4]))
    %b = call_function[target=aten::neg](args = (%wide,))
    return (b, t, row))",
       4},
      {"written_later", R"(%x = placeholder[target=x]
    %a = call_function[target=aten::mul.Tensor](args = (%x, 2.0))
    %v = call_function[target=aten::view](args = (%a, [-1]))
    %b = call_function[target=aten::exp](args = (%v,))
    %n = call_function[target=aten::neg_](args = (%v,))
    %c = call_function[target=aten::add.Tensor](args = (%a, 1.0))
    %d = call_function[target=aten::sin](args = (%c,))
    return (b, d))",
       3},
      {"buffer", R"(%x = placeholder[target=x]
    %seen = get_attr[target=seen]
    %s = call_function[target=aten::sum.dim_IntList](args = (%x, [0]))
    %a = call_function[target=aten::exp](args = (%x,))
    %w = call_function[target=aten::add_.Tensor](args = (%seen, %s))
    %b = call_function[target=aten::tanh](args = (%a,))
    %c = call_function[target=aten::add.Tensor](args = (%b, %seen))
    %d = call_function[target=aten::neg](args = (%c,))
    return d)",
       2},
      {"tied", R"(%x = placeholder[target=x]
    %w = get_attr[target=w]
    %u = get_attr[target=u]
    %a = call_function[target=aten::mm](args = (%x, %w))
    %b = call_function[target=aten::tanh](args = (%a,))
    %c = call_function[target=aten::mm](args = (%b, %u))
    %d = call_function[target=aten::sigmoid](args = (%c,))
    %e = call_function[target=aten::mm](args = (%d, %w))
    return e)",
       3, 2, true},
      {"skips", R"(%x = placeholder[target=x]
    %w = get_attr[target=w]
    %a = call_function[target=aten::mm](args = (%x, %w))
    %t = call_function[target=aten::t](args = (%w,))
    %b = call_function[target=aten::tanh](args = (%a,))
    %c = call_function[target=aten::mm](args = (%b, %t))
    %d = call_function[target=aten::mul.Tensor](args = (%c, %a))
    %e = call_function[target=aten::add.Tensor](args = (%d, %x))
    return e)",
       4, 3, true},
      {"detached", R"(%x = placeholder[target=x]
    %w = get_attr[target=w]
    %a = call_function[target=aten::mm](args = (%x, %w))
    %g = call_function[target=aten::gt.Scalar](args = (%a, 0.0))
    %d = call_function[target=aten::detach](args = (%a,))
    %b = call_function[target=aten::where.self](args = (%g, %a, %d))
    %c = call_function[target=aten::mul.Tensor](args = (%b, %d))
    return c)",
       3, 2, true},
      {"numbers", R"(%x = placeholder[target=x]
    %n = call_function[target=aten::size.int](args = (%x, 0))
    %m = call_function[target=operator.mul](args = (%n, 2))
    %f = call_function[target=aten::mean](args = (%x,))
    %i = call_function[target=aten::item](args = (%f,))
    %a = call_function[target=aten::add.Tensor](args = (%x, %m))
    %b = call_function[target=aten::mul.Tensor](args = (%a, %i))
    return {'b': b, 'n': n, 'none': None, 'i': i})",
       3},
      {"sizes", R"(%x = placeholder[target=x]
    %s = call_method[target=size](args = (%x,))
    %a = call_function[target=aten::exp](args = (%x,))
    %v = call_function[target=aten::view](args = (%a, [-1]))
    %b = call_function[target=aten::neg](args = (%v,))
    %r = call_function[target=aten::reshape](args = (%b, %s))
    return (r, s, [a, b]))",
       3},
      {"lists", R"(%x = placeholder[target=x]
    %p = call_function[target=aten::split.Tensor](args = (%x, 2, 1))
    %q = call_function[target=operator.getitem](args = (%p, 1))
    %a = call_function[target=aten::exp](args = (%q,))
    %c = call_function[target=aten::cat](args = (%p, 1))
    %d = call_function[target=aten::cat](args = ([%a, %c, %a], 1))
    %e = call_function[target=aten::neg](args = (%d,))
    return (e, p))",
       2},
      {"types", R"(%x = placeholder[target=x]
    %n = placeholder[target=n]
    %i = call_function[target=aten::argmax](args = (%x, 1))
    %h = call_function[target=aten::to.dtype](args = (%x, torch.float16))
    %c = call_function[target=aten::complex](args = (%x, %x))
    %j = call_function[target=aten::conj](args = (%c,))
    %o = call_function[target=aten::eq.Tensor](args = (%i, %n))
    %e = call_function[target=aten::slice.Tensor](args = (%h, 0, 0, 0))
    %f = call_function[target=aten::to.dtype](args = (%e, torch.float64))
    %k = call_function[target=aten::imag](args = (%j,))
    return (i, o, k, f, h))",
       4},
      {"twice", R"(%x = placeholder[target=x]
    %n = placeholder[target=n]
    %a = call_function[target=aten::exp](args = (%x,))
    %b = call_function[target=aten::neg](args = (%a,))
    %c = call_function[target=aten::add.Tensor](args = (%b, %a))
    return (a, a, (n, [c, a]), x))",
       3, 3},
      {"given_on", R"(%x = placeholder[target=x]
    %n = placeholder[target=n]
    %a = call_function[target=aten::exp](args = (%x,))
    %b = call_function[target=aten::neg](args = (%x,))
    %c = call_function[target=aten::abs](args = (%b,))
    %d = call_function[target=aten::index_select](args = (%c, 1, %n))
    return (d, a))",
       4},
      {"nothing_given", R"(%w = get_attr[target=w]
    %a = call_function[target=aten::exp](args = (%w,))
    %b = call_function[target=aten::neg](args = (%a,))
    return b)",
       2},
      {"norm", R"(%x = placeholder[target=x]
    %a = call_module[target=first](args = (%x,))
    %b = call_module[target=norm](args = (%a,))
    %c = call_function[target=aten::tanh](args = (%b,))
    %d = call_module[target=second](args = (%c,))
    %e = call_module[target=first](args = (%d,))
    return e)",
       3, 2, true},
      {"strides", R"(%x = placeholder[target=x]
    %a = call_function[target=aten::exp](args = (%x,))
    %t = call_function[target=aten::t](args = (%a,))
    %u = call_function[target=aten::unsqueeze](args = (%a, 0))
    %wide = call_function[target=aten::expand](args = (%u, [3, 6, 4]))
    %part = call_function[target=aten::slice.Tensor](args = (%a, 1, 1, 3))
    %row = call_function[target=aten::select.int](args = (%t, 0, 2))
    %b = call_function[target=aten::tanh](args = (%x,))
    %c = call_function[target=aten::sigmoid](args = (%b,))
    %d = call_function[target=aten::exp](args = (%c,))
    %i = call_method[target=stride](args = (%wide,))
    %j = call_method[target=stride](args = (%part,))
    %k = call_method[target=is_contiguous](args = (%t,))
    %l = call_method[target=stride](args = (%row,))
    return (d, i, j, k, l, wide, part))",
       3},
      {"modules_weight", R"(%x = placeholder[target=x]
    %w = get_attr[target=first.weight]
    %o = call_function[target=aten::mul_.Scalar](args = (%w, 0.5))
    %a = call_module[target=first](args = (%x,))
    %b = call_function[target=aten::tanh](args = (%a,))
    %c = call_function[target=aten::exp](args = (%b,))
    %d = call_module[target=second](args = (%c,))
    return d)",
       2},
      {"beside", R"(%x = placeholder[target=x]
    %a = call_function[target=aten::exp](args = (%x,))
    %rows = call_function[target=aten::slice.Tensor](args = (%a, 0, 2, 4))
    %m = call_method[target=storage_offset](args = (%rows,))
    %n = call_function[target=aten::as_strided](args = (%rows, [2, 2], [1, 2]))
    %b = call_function[target=aten::tanh](args = (%n,))
    %c = call_function[target=aten::sigmoid](args = (%b,))
    return (c, m, n))",
       2},
      {"layouts", R"(%x = placeholder[target=x]
    %q = call_function[target=aten::quantize_per_tensor](args = (%x, 0.1, 3, torch.quint8))
    %s = call_function[target=aten::to_sparse](args = (%x,))
    %a = call_function[target=aten::tanh](args = (%x,))
    %b = call_function[target=aten::sigmoid](args = (%a,))
    %c = call_function[target=aten::exp](args = (%b,))
    %d = call_function[target=aten::dequantize.self](args = (%q,))
    %e = call_method[target=to_dense](args = (%s,))
    %f = call_function[target=aten::add.Tensor](args = (%c, %d))
    %g = call_function[target=aten::add.Tensor](args = (%f, %e))
    return g)",
       4},
      {"unused", R"(%x = placeholder[target=x]
    %n = placeholder[target=n]
    %w = get_attr[target=w]
    %a = call_function[target=aten::mm](args = (%x, %w))
    %p = call_function[target=aten::exp](args = (%x,))
    %b = call_function[target=aten::tanh](args = (%a,))
    return b)",
       3, 4, true},
  };
  return kCases;
}

std::shared_ptr<GraphModule> ranks_module(const RanksCase& one) {
  torch::manual_seed(11);
  const Tensor w = torch::randn({4, 4}).requires_grad_();
  torch::nn::BatchNorm1d norm(4);
  GraphModule::Attributes attributes = {{"w", w},
                                        {"u", w},
                                        {"seen", torch::zeros({4})},
                                        {"first", torch::nn::Linear(4, 4).ptr()},
                                        {"second", torch::nn::Linear(4, 4).ptr()},
                                        {"norm", norm.ptr()}};
  auto module = std::make_shared<GraphModule>(attributes, parse_graph(std::string("graph():\n    ") + one.text));
  module->train(one.train);
  return module;
}

std::vector<c10::IValue> ranks_inputs(const GraphModule& module, std::int64_t batch) {
  torch::manual_seed(12);
  std::vector<c10::IValue> inputs = {torch::randn({batch, 4}), torch::randint(0, 4, {batch})};
  inputs.resize(module.graph().placeholders().size());
  return inputs;
}

}  // namespace fx::testing
