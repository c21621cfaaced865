#include "tests/rewriter/subgraph_rewriter_cases.h"

namespace fx::testing {

namespace {

const Source kNegPlusRelu = {"x", R"(
  n = aten::neg(%x)
  r = aten::relu(%x)
  a = aten::add.Tensor(%n, %r)
  return a)"};

const Source kHost = {"x", R"(
  neg = aten::neg(%x)
  relu = aten::relu(%x)
  add = aten::add.Tensor(%neg, %relu)
  out = aten::add.Tensor(%add, %add)
  return out)"};

const Source kDequantizeSigmoidTo = {"x", R"(
  d = call_method[target=dequantize](%x)
  s = aten::sigmoid(%d)
  t = call_method[target=to](%s, torch.float16)
  return t)"};

const Source kCatCatAddmm = {"x w1 w2 b1 b2", R"(
  m1 = aten::cat([%w1, %w2])
  m2 = aten::cat([%x, %b2])
  t = aten::t(%m2)
  r = aten::addmm(%b1, %m1, %t)
  return r)"};

}  // namespace

const std::vector<SubgraphRewriterCase>& subgraph_rewriter_cases() {
  static const std::vector<SubgraphRewriterCase> cases = {
      {"test_subgraph_rewriter_preserves_logic", kHost, kNegPlusRelu, kNegPlusRelu, R"(
       n = aten::neg(%x)
       r = aten::relu(%x)
       a = aten::add.Tensor(%n, %r)
       out = aten::add.Tensor(%a, %a)
       return out)",
       1, Computes::same},
      {"test_subgraph_rewriter_with_oneliner_pattern",
       {"x", R"(
       val = aten::neg(%x)
       add = aten::add.Tensor(%val, %val)
       return add)"},
       {"x", "n = aten::neg(%x)\nreturn n"},
       {"x", "r = aten::relu(%x)\nreturn r"},
       R"(
       r = aten::relu(%x)
       add = aten::add.Tensor(%r, %r)
       return add)"},
      {"test_subgraph_rewriter_with_trivial_replacement",
       {"x", R"(
       val = aten::neg(%x)
       val_1 = aten::neg(%val)
       add = aten::add.Tensor(%val_1, %val_1)
       return add)"},
       {"x", "n = aten::neg(%x)\nreturn n"},
       {"x", "return %x"},
       R"(
       add = aten::add.Tensor(%x, %x)
       return add)",
       2},
      {"test_subgraph_rewriter_single_pattern_match", kHost, kNegPlusRelu, {"x", "r = aten::relu(%x)\nreturn r"}, R"(
       r = aten::relu(%x)
       out = aten::add.Tensor(%r, %r)
       return out)"},
      {"test_subgraph_rewriter_multiple_pattern_match",
       {"x w1 w2", R"(
       cat = aten::cat([%w1, %w2])
       m1 = aten::sum(%cat)
       cat_1 = aten::cat([%w1, %w2])
       m2 = aten::sum(%cat_1)
       max = aten::max(%m1)
       add = aten::add.Tensor(%x, %max)
       max_1 = aten::max(%m2)
       add_1 = aten::add.Tensor(%add, %max_1)
       return add_1)"},
       {"w1 w2", R"(
       cat = aten::cat([%w1, %w2])
       sum = aten::sum(%cat)
       return sum)"},
       {"w1 w2", R"(
       stack = aten::stack([%w1, %w2])
       return stack)"},
       R"(
       stack = aten::stack([%w1, %w2])
       stack_1 = aten::stack([%w1, %w2])
       max = aten::max(%stack)
       add = aten::add.Tensor(%x, %max)
       max_1 = aten::max(%stack_1)
       add_1 = aten::add.Tensor(%add, %max_1)
       return add_1)",
       2},
      {"test_subgraph_rewriter_graph_argument_order",
       {"x y", "m = aten::mm(%x, %y)\nreturn m"},
       {"x y", "mm = aten::mm(%x, %y)\nreturn mm"},
       {"x y", "mm = aten::mm(%x, %y)\nreturn mm"},
       "mm = aten::mm(%x, %y)\nreturn mm",
       1,
       Computes::same},
      {"test_subgraph_rewriter_correct_output_replacement",
       {"x y", R"(
       neg = aten::neg(%y)
       relu = aten::relu(%x)
       val = aten::add.Tensor(%neg, %relu)
       add = aten::add.Tensor(%val, %val)
       return add)"},
       {"x", "r = aten::relu(%x)\nreturn r"},
       {"x", "n = aten::neg(%x)\nreturn n"},
       R"(
       neg = aten::neg(%y)
       n = aten::neg(%x)
       val = aten::add.Tensor(%neg, %n)
       add = aten::add.Tensor(%val, %val)
       return add)"},
      {"test_subgraph_rewriter_traced_as_callable", kHost, kNegPlusRelu, {"x", "s = aten::sigmoid(%x)\nreturn s"}, R"(
       s = aten::sigmoid(%x)
       out = aten::add.Tensor(%s, %s)
       return out)"},
      {"test_subgraph_rewriter_pattern_is_entire_graph",
       {"x", "a = aten::neg(%x)\nadd = aten::add.Tensor(%a, %a)\nreturn add"},
       {"x", "a = aten::neg(%x)\nadd = aten::add.Tensor(%a, %a)\nreturn add"},
       {"x", "s = aten::sigmoid(%x)\ncat = aten::cat([%s, %s])\nreturn cat"},
       "s = aten::sigmoid(%x)\ncat = aten::cat([%s, %s])\nreturn cat"},
      {"test_subgraph_rewriter_pattern_output_pattern_node_can_have_users_that_are_not_matched",
       {"x", R"(
       y = aten::relu(%x)
       neg = aten::neg(%y)
       sub = aten::sub.Tensor(%neg, %y)
       return sub)"},
       {"x", "r = aten::relu(%x)\nreturn r"},
       {"x", "s = aten::sigmoid(%x)\nreturn s"},
       R"(
       s = aten::sigmoid(%x)
       neg = aten::neg(%s)
       sub = aten::sub.Tensor(%neg, %s)
       return sub)"},
      {"test_subgraph_rewriter_internal_pattern_nodes_cannot_have_users_that_are_not_matched",
       {"x w1 w2 b1 b2", R"(
       m0 = aten::cat([%w1, %w2])
       m1 = aten::cat([%w1, %w2])
       m2 = aten::cat([%x, %b2])
       t = aten::t(%m2)
       t0 = aten::addmm(%b1, %m1, %t)
       t1 = aten::sum.dim_IntList(%w1, [1])
       t_1 = aten::t(%m2)
       t2 = aten::addmm(%b1, %m1, %t_1)
       s1 = aten::sum(%t1)
       s2 = aten::sum(%t2)
       return (s1, s2))"},
       kCatCatAddmm,
       {"x w1 w2 b1 b2", "c = aten::cat([%x, %w1, %w2])\nreturn c"},
       R"(
       m0 = aten::cat([%w1, %w2])
       m1 = aten::cat([%w1, %w2])
       m2 = aten::cat([%x, %b2])
       t = aten::t(%m2)
       t0 = aten::addmm(%b1, %m1, %t)
       t1 = aten::sum.dim_IntList(%w1, [1])
       t_1 = aten::t(%m2)
       t2 = aten::addmm(%b1, %m1, %t_1)
       s1 = aten::sum(%t1)
       s2 = aten::sum(%t2)
       return (s1, s2))",
       0,
       Computes::same},
      {"test_subgraph_rewriter_placeholder_matching",
       {"x", R"(
       add = aten::add.Tensor(%x, 3)
       dequantize = call_method[target=dequantize](%add)
       sigmoid = aten::sigmoid(%dequantize)
       to = call_method[target=to](%sigmoid, torch.float16)
       return to)"},
       kDequantizeSigmoidTo,
       {"x", "return %x"},
       "add = aten::add.Tensor(%x, 3)\nreturn add"},
      {"test_subgraph_rewriter_replace_consecutive_submodules",
       {"x", R"(
       a = aten::sigmoid(%x)
       b = aten::sigmoid(%a)
       c = aten::sigmoid(%b)
       return c)"},
       {"x", "s = aten::sigmoid(%x)\nreturn s"},
       {"x", "exp = aten::exp(%x)\nreturn exp"},
       R"(
       exp = aten::exp(%x)
       exp_1 = aten::exp(%exp)
       exp_2 = aten::exp(%exp_1)
       return exp_2)",
       3},
      {"test_subgraph_rewriter_with_overlapping_matches",
       {"x", R"(
       a = aten::sigmoid(%x)
       b = aten::sigmoid(%a)
       c = aten::sigmoid(%b)
       d = aten::sigmoid(%c)
       return d)"},
       {"x", "s = aten::sigmoid(%x)\ns_1 = aten::sigmoid(%s)\nreturn s_1"},
       {"x", "neg = aten::neg(%x)\nreturn neg"},
       R"(
       neg = aten::neg(%x)
       neg_1 = aten::neg(%neg)
       return neg_1)",
       2},
      {"test_subgraph_rewriter_replace_with_multiple_outputs",
       {"x", R"(
       y = aten::sigmoid(%x)
       z = aten::relu(%x)
       add = aten::add.Tensor(%y, %z)
       return add)"},
       {"a", R"(
       b = aten::sigmoid(%a)
       c = aten::relu(%a)
       return (b, c))"},
       {"x", R"(
       exp = aten::exp(%x)
       abs = aten::abs(%x)
       return (exp, abs))"},
       R"(
       exp = aten::exp(%x)
       abs = aten::abs(%x)
       add = aten::add.Tensor(%exp, %abs)
       return add)"},
      {"test_subgraph_rewriter_replace_with_duplicated_outputs",
       {"x1 x2", R"(
       x = aten::sub.Tensor(%x1, %x2)
       y = aten::sigmoid(%x)
       z = aten::relu(%x)
       add = aten::add.Tensor(%y, %z)
       return add)"},
       {"a1 a2", R"(
       a = aten::sub.Tensor(%a1, %a2)
       b = aten::sigmoid(%a)
       c = aten::relu(%a)
       return (b, c, a))"},
       {"x1 x2", R"(
       exp = aten::exp(%x1)
       abs = aten::abs(%x2)
       return (abs, abs, exp))"},
       R"(
       exp = aten::exp(%x1)
       abs = aten::abs(%x2)
       add = aten::add.Tensor(%abs, %abs)
       return add)"},
      {"test_subgraph_rewriter_with_unused_args",
       {"x y z", "add = aten::add.Tensor(%x, %y)\nreturn add"},
       {"x y", "add = aten::add.Tensor(%x, %y)\nreturn add"},
       {"x y", "sub = aten::sub.Tensor(%x, %y)\nreturn sub"},
       "sub = aten::sub.Tensor(%x, %y)\nreturn sub"},
      {"test_subgraph_rewriter_with_unused_results",
       {"x y cache index", R"(
       m = aten::mul.Tensor(%x, %y)
       n = aten::index_copy(%cache, 0, %index, %m)
       p = aten::copy(%cache, %n)
       q = aten::copy_(%cache, %p)
       u = aten::relu(%cache)
       return u)"},
       {"self_tensor src_tensor", R"(
       p = aten::copy(%self_tensor, %src_tensor)
       q = aten::copy_(%self_tensor, %p)
       return q)"},
       {"self_tensor src_tensor", "copy = aten::copy_(%self_tensor, %src_tensor)\nreturn copy"},
       R"(
       m = aten::mul.Tensor(%x, %y)
       n = aten::index_copy(%cache, 0, %index, %m)
       copy = aten::copy_(%cache, %n)
       u = aten::relu(%cache)
       return u)",
       1,
       Computes::same},
      {"test_subgraph_rewriter_call_method",
       {"x", R"(
       dequantize = call_method[target=dequantize](%x)
       sigmoid = call_method[target=sigmoid](%dequantize)
       to = call_method[target=to](%sigmoid, torch.float16)
       return to)"},
       {"x", R"(
       dequantize = call_method[target=dequantize](%x)
       sigmoid = call_method[target=sigmoid](%dequantize)
       to = call_method[target=to](%sigmoid, torch.float16)
       return to)"},
       {"x", "return %x"},
       "return x",
       1,
       Computes::other,
       true},
      {"test_subgraph_rewriter_nodes_with_kwargs",
       {"in0", R"(
       w0 = get_attr[target=w0]()
       b0 = get_attr[target=b0]()
       lin_res = aten::linear(%in0, %w0, bias=%b0)
       mul_res = aten::mul.Tensor(%in0, %lin_res)
       sum_res = aten::add.Tensor(%mul_res, %in0)
       return sum_res)"},
       {"a b bias", R"(
       lin_res = aten::linear(%a, %b, bias=%bias)
       mul_res = aten::mul.Tensor(%a, %lin_res)
       return (lin_res, mul_res))"},
       {"a b bias", R"(
       gemm = my::gemm_bias_mul(%a, %b, %bias)
       lin = operator.getitem(%gemm, 0)
       mul = operator.getitem(%gemm, 1)
       return (lin, mul))"},
       R"(
       w0 = get_attr[target=w0]()
       b0 = get_attr[target=b0]()
       gemm = my::gemm_bias_mul(%in0, %w0, %b0)
       lin = operator.getitem(%gemm, 0)
       mul = operator.getitem(%gemm, 1)
       sum_res = aten::add.Tensor(%mul, %in0)
       return sum_res)"},
      // Anchors 1 and 3 fit, anchor 2, the product with a sigmoid, does not.
      {"test_subgraph_rewriter_local_revert",
       {"in0 in1 w b", R"(
       lin_1 = aten::linear(%in1, %w, bias=%b)
       lin_2 = aten::linear(%lin_1, %w, bias=%b)
       mul_1 = aten::mul.Tensor(%in1, %lin_2)
       sum_1 = aten::add.Tensor(%mul_1, %in1)
       lin_3 = aten::linear(%sum_1, %w, bias=%b)
       sigmoid = aten::sigmoid(%lin_3)
       mul_2 = aten::mul.Tensor(%lin_3, %sigmoid)
       lin_4 = aten::linear(%in0, %w, bias=%b)
       lin_5 = aten::linear(%lin_4, %w, bias=%b)
       mul_3 = aten::mul.Tensor(%in0, %lin_5)
       sum_2 = aten::add.Tensor(%mul_3, %in0)
       cat = aten::cat([%mul_2, %sum_2], dim=1)
       return cat)"},
       {"a b bias c", R"(
       lin_res = aten::linear(%a, %b, bias=%bias)
       mul_res = aten::mul.Tensor(%c, %lin_res)
       return (lin_res, mul_res))"},
       {"a b bias c", R"(
       gemm = my::gemm_bias_mul_with_c(%a, %b, %bias, %c)
       lin = operator.getitem(%gemm, 0)
       mul = operator.getitem(%gemm, 1)
       return (lin, mul))"},
       R"(
       lin_1 = aten::linear(%in1, %w, bias=%b)
       gemm = my::gemm_bias_mul_with_c(%lin_1, %w, %b, %in1)
       lin = operator.getitem(%gemm, 0)
       mul = operator.getitem(%gemm, 1)
       sum_1 = aten::add.Tensor(%mul, %in1)
       lin_3 = aten::linear(%sum_1, %w, bias=%b)
       sigmoid = aten::sigmoid(%lin_3)
       mul_2 = aten::mul.Tensor(%lin_3, %sigmoid)
       lin_4 = aten::linear(%in0, %w, bias=%b)
       gemm_1 = my::gemm_bias_mul_with_c(%lin_4, %w, %b, %in0)
       lin_6 = operator.getitem(%gemm_1, 0)
       mul_4 = operator.getitem(%gemm_1, 1)
       sum_2 = aten::add.Tensor(%mul_4, %in0)
       cat = aten::cat([%mul_2, %sum_2], dim=1)
       return cat)",
       2},
      {"test_matching_pattern_with_list_type_arg",
       {"x", "a = aten::_reshape_alias_copy(%x, [1, 2], [3, 4])\nreturn a"},
       {"x arg0 arg1", "r = aten::_reshape_alias_copy(%x, %arg0, %arg1)\nreturn r"},
       {"x arg0 arg1", "r = aten::_reshape_alias_copy(%x, %arg1, %arg0)\nreturn r"},
       "r = aten::_reshape_alias_copy(%x, [3, 4], [1, 2])\nreturn r"},
      {"test_matching_variable_arguments",
       {"x", "m = aten::max_pool2d(%x, [2, 2], stride=[2, 2])\nreturn m"},
       {"x kernel_size stride", "p = aten::max_pool2d(%x, %kernel_size, %stride, padding=[0, 0])\nreturn p"},
       {"x kernel_size stride", "p = aten::max_pool2d(%x, %kernel_size, %stride, padding=[0, 0])\nreturn p"},
       "p = aten::max_pool2d(%x, [2, 2], [2, 2], padding=[0, 0])\nreturn p",
       1,
       Computes::same},
  };
  return cases;
}

}  // namespace fx::testing
