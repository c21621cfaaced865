// Programs that tracers get wrong, as a table: modes, memory, data, gradients.
#include <ATen/autocast_mode.h>

#include "tests/trace/honest_case.h"

namespace fx::honest_programs_test {

using testing::Bag;
using Case = testing::HonestCase;
using torch::Tensor;
namespace F = torch::nn::functional;

class HonestProgram : public ::testing::TestWithParam<Case> {};

TEST_P(HonestProgram, IsRightOrRefused) { testing::expect_honest(GetParam(), testing::two_inputs()); }

struct StraightThrough : torch::autograd::Function<StraightThrough> {
  static Tensor forward(torch::autograd::AutogradContext*, Tensor x) { return x.round(); }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext*, torch::autograd::tensor_list grads) {
    return {grads[0] * 2};
  }
};

struct Reversed : torch::autograd::Function<Reversed> {
  static Tensor forward(torch::autograd::AutogradContext*, Tensor x) { return x; }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext*, torch::autograd::tensor_list grads) {
    return {grads[0] * -1};
  }
};

struct Saved : torch::autograd::Function<Saved> {
  static Tensor forward(torch::autograd::AutogradContext* context, Tensor x, double by) {
    context->save_for_backward({x});
    return x * by;
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               torch::autograd::tensor_list grads) {
    return {grads[0] * context->get_saved_variables()[0], Tensor()};
  }
};

const std::vector<Case>& modes() {
  static const auto& table = *new std::vector<Case>{
      {"dropout_module", "right", [](Bag& m, Tensor x) { return m.dropout(x) + 1; }},
      {"dropout_module_training", "right", [](Bag& m, Tensor x) { return m.dropout(x) + 1; }, true},
      {"dropout_function", "right",
       [](Bag& m, Tensor x) { return torch::dropout(x.matmul(m.w), 0.3, m.is_training()); }},
      {"dropout_function_training", "right",
       [](Bag& m, Tensor x) { return torch::dropout(x.matmul(m.w), 0.3, m.is_training()); }, true},
      {"dropout_functional", "right",
       [](Bag& m, Tensor x) { return F::dropout(x, F::DropoutFuncOptions().p(0.3).training(m.is_training())); }},
      {"dropout_in_place", "right",
       [](Bag& m, Tensor x) {
         return F::dropout(x * 2, F::DropoutFuncOptions().p(0.3).training(m.is_training()).inplace(true));
       }},
      {"dropout_always", "right", [](Bag&, Tensor x) { return F::dropout(x, F::DropoutFuncOptions().p(0.3)); }},
      {"dropout_with_module_frozen", "right",
       [](Bag& m, Tensor x) { return m.dropout(x) + torch::dropout(x, 0.5, m.is_training()); }, true},
      {"alpha_dropout", "right",
       [](Bag& m, Tensor x) {
         return F::alpha_dropout(x, F::AlphaDropoutFuncOptions().p(0.3).training(m.is_training()));
       }},
      {"dropout2d", "right",
       [](Bag& m, Tensor x) {
         return F::dropout2d(x.view({1, 2, 3, 1}), F::Dropout2dFuncOptions().p(0.5).training(m.is_training()))
             .view({2, 3});
       }},
      {"noise_in_training", "", [](Bag& m, Tensor x) { return m.is_training() ? x + torch::randn_like(x) : x * 1; }},
      {"noise_in_training_training", "",
       [](Bag& m, Tensor x) { return m.is_training() ? x + torch::randn_like(x) : x * 1; }, true},
      {"scale_in_training", "", [](Bag& m, Tensor x) { return m.is_training() ? x * 2 : x * 3; }},
      {"mode_of_a_child", "", [](Bag& m, Tensor x) { return m.inner->is_training() ? x.relu() : x.sigmoid(); }},
      {"batch_norm_module", "right", [](Bag& m, Tensor x) { return m.norm(x); }},
      {"batch_norm_module_training", "right", [](Bag& m, Tensor x) { return m.norm(x); }, true},
      {"batch_norm_function", "right",
       [](Bag& m, Tensor x) {
         return F::batch_norm(x, m.norm->running_mean, m.norm->running_var,
                              F::BatchNormFuncOptions().training(m.is_training()));
       }},
      {"unregistered_modules", "right",
       [](Bag& m, Tensor x) {
         for (auto& layer : m.unregistered) x = layer(x).relu();
         return x;
       }},
      // ── Gradients
      {"no_grad_region", "right",
       [](Bag& m, Tensor x) {
         Tensor y;
         {
           torch::NoGradGuard no_grad;
           y = x.matmul(m.w).relu();
         }
         return y + x.matmul(m.w);
       }},
      {"no_grad_module", "right",
       [](Bag& m, Tensor x) {
         Tensor y;
         {
           torch::NoGradGuard no_grad;
           y = m.linear(x);
         }
         return y * m.linear(x);
       }},
      {"no_grad_all", "right",
       [](Bag& m, Tensor x) {
         torch::NoGradGuard no_grad;
         return m.linear(x);
       }},
      {"no_grad_list", "right",
       [](Bag& m, Tensor x) {
         torch::NoGradGuard no_grad;
         const auto parts = x.matmul(m.w).chunk(2, 0);
         return torch::cat({parts[1], parts[0]}) * m.w.sum();
       }},
      {"no_grad_of_what_is_there", "right",
       [](Bag& m, Tensor x) {
         Tensor w, y;
         {
           torch::NoGradGuard no_grad;
           w = m.w.contiguous().to(torch::kFloat);
           y = x.to(m.w.scalar_type()).contiguous();
         }
         return y.matmul(w) * x;
       }},
      {"no_grad_of_what_gives_itself", "right",
       [](Bag& m, Tensor x) {
         Tensor a = x.matmul(m.w), b = a * 2, c = a * 3, d = a * 4, e = a * 5;
         {
           torch::NoGradGuard no_grad;
           a = torch::dropout(a, 0.5, false);
           b = torch::feature_dropout(b, 0.5, false);
           c = c.type_as(x);
           d = torch::atleast_2d(d);
           e = e.sum_to_size({2, 3});
         }
         return a.sin() + b.sin() + c.sin() + d.sin() + e.sin();
       }},
      {"no_grad_of_a_copy", "right",
       [](Bag& m, Tensor x) {
         Tensor w, y;
         {
           torch::NoGradGuard no_grad;
           w = m.w.t().contiguous();
           y = x.to(torch::kDouble);
         }
         return y.to(torch::kFloat).matmul(w) * m.w.sum() * x;
       }},
      {"no_grad_of_views", "right",
       [](Bag& m, Tensor x) {
         Tensor w, y;
         {
           torch::NoGradGuard no_grad;
           w = m.w.contiguous().view({3, 3}).expand({3, 3});
           y = x.reshape({2, 3}).contiguous() * 2;
         }
         return y.matmul(w) * m.w.sum() * x;
       }},
      {"inference_mode", "right",
       [](Bag& m, Tensor x) {
         Tensor y;
         {
           c10::InferenceMode inference;
           y = x.matmul(m.w).detach();
         }
         return y.clone();
       }},
      {"below_autograd_and_views", "right",
       [](Bag& m, Tensor x) {
         at::AutoDispatchBelowADInplaceOrView below;
         return x.matmul(m.w);
       }},
      {"below_autograd_for_a_part", "right",
       [](Bag& m, Tensor x) {
         Tensor y;
         {
           at::AutoDispatchBelowAutograd below;
           y = x.matmul(m.w);
           y.mul_(2);
         }
         return y * m.w.sum() + torch::zeros_like(y);
       }},
      {"sparse_factory", "right",
       [](Bag& m, Tensor x) {
         const Tensor at = torch::arange(3).repeat({2, 1});
         return x.matmul(torch::sparse_coo_tensor(at, m.w[0] * 2, {3, 3}).to_dense()) * m.w.sum();
       }},
      {"detach", "right", [](Bag& m, Tensor x) { return x.matmul(m.w).detach() * m.w.sum(); }},
      {"data", "right", [](Bag& m, Tensor x) { return x.matmul(m.w).data() * m.w.sum(); }},
      {"data_of_a_parameter", "right", [](Bag& m, Tensor x) { return x.matmul(m.w.data()) * m.w.sum(); }},
      {"detach_of_a_parameter", "right", [](Bag& m, Tensor x) { return x.matmul(m.w.detach()) * m.w.sum(); }},
      {"view_of_a_parameter", "", [](Bag& m, Tensor x) { return x.matmul(m.view); }},
      {"custom_function", "refused", [](Bag& m, Tensor x) { return StraightThrough::apply(x.matmul(m.w)); }},
      {"custom_function_of_input", "refused", [](Bag&, Tensor x) { return StraightThrough::apply(x) * 2; }},
      {"custom_function_saving", "refused", [](Bag& m, Tensor x) { return Saved::apply(x.matmul(m.w), 2.0); }},
      {"custom_function_without_operators", "refused", [](Bag& m, Tensor x) { return Reversed::apply(x.matmul(m.w)); }},
      {"custom_function_without_operators_before_others", "refused",
       [](Bag& m, Tensor x) { return Reversed::apply(x.matmul(m.w)) * 2; }},
      {"autograd_grad", "refused",
       [](Bag& m, Tensor x) {
         const Tensor y = x.matmul(m.w).sum();
         return torch::autograd::grad({y}, {m.w})[0];
       }},
      {"autograd_grad_of_input", "refused",
       [](Bag& m, Tensor x) {
         x = x.detach().requires_grad_();
         const Tensor y = x.matmul(m.w).pow(2).sum();
         return torch::autograd::grad({y}, {x}, {}, true, true)[0];
       }},
      {"backward", "refused",
       [](Bag& m, Tensor x) {
         x.matmul(m.w).sum().backward();
         return m.w.grad() * 2;
       }},
      {"hook", "refused",
       [](Bag& m, Tensor x) {
         Tensor y = x.matmul(m.w);
         y.register_hook([](Tensor grad) { return grad * 2; });
         return y;
       }},
      {"retain_grad", "",
       [](Bag& m, Tensor x) {
         Tensor y = x.matmul(m.w);
         y.retain_grad();
         return y;
       }},
      {"requires_grad_in_forward", "", [](Bag&, Tensor x) { return x.detach().clone().requires_grad_() * 2; }},
      {"factory_requires_grad", "", [](Bag&, Tensor x) { return x * torch::ones({3}, torch::requires_grad()); }},
      {"zero_grad", "",
       [](Bag& m, Tensor x) {
         m.zero_grad();
         return x.matmul(m.w);
       }},
      {"autocast", "refused",
       [](Bag& m, Tensor x) {
         struct Region {
           Region() { at::autocast::set_cpu_enabled(true); }
           ~Region() { at::autocast::set_cpu_enabled(false); }
         } region;
         return x.matmul(m.w);
       }},
  };
  return table;
}

INSTANTIATE_TEST_SUITE_P(Modes, HonestProgram, ::testing::ValuesIn(modes()),
                         [](const auto& info) { return std::string(info.param.name); });

const std::vector<Case>& memory_and_data() {
  static const auto& table = *new std::vector<Case>{
      {"borrowed", "right",
       [](Bag&, Tensor x) {
         float numbers[] = {1, 2, 3};
         return x * torch::from_blob(numbers, {3});
       }},
      {"borrowed_view", "right",
       [](Bag&, Tensor x) {
         float numbers[] = {1, 2, 3, 4, 5, 6};
         return x * torch::from_blob(numbers, {6}).view({2, 3});
       }},
      {"borrowed_and_reused", "right",
       [](Bag&, Tensor x) {
         float numbers[] = {1, 2, 3};
         const Tensor view = torch::from_blob(numbers, {3});
         x = x * view;
         numbers[0] = 7;
         return x + view;
       }},
      {"borrowed_and_cloned", "right",
       [](Bag&, Tensor x) {
         std::vector<float> numbers(3, 2.0F);
         return x * torch::from_blob(numbers.data(), {3}).clone();
       }},
      {"borrowed_and_written", "refused",
       [](Bag&, Tensor x) {
         float numbers[3] = {0, 0, 0};
         torch::from_blob(numbers, {3}).copy_(x.sum(0));
         return x * static_cast<double>(numbers[0] + 1);
       }},
      {"member_memory", "right", [](Bag& m, Tensor x) { return x * torch::from_blob(m.memory, {3}); }},
      {"tensor_literal", "right",
       [](Bag&, Tensor x) {
         return x * torch::tensor({1.0F, 2.0F, 3.0F});
       }},
      {"data_ptr", "refused", [](Bag&, Tensor x) { return x * static_cast<double>(x.data_ptr<float>()[0]); }},
      {"accessor", "refused", [](Bag&, Tensor x) { return x * static_cast<double>(x.accessor<float, 2>()[0][1]); }},
      {"accessor_of_a_factory", "refused",
       [](Bag&, Tensor x) {
         Tensor t = torch::zeros({3});
         auto a = t.accessor<float, 1>();
         for (int i = 0; i < 3; ++i) a[i] = static_cast<float>(i);
         return x * t;
       }},
      {"item", "refused", [](Bag&, Tensor x) { return x * x.sum().item<double>(); }},
      {"item_of_an_element", "refused", [](Bag&, Tensor x) { return x * x[0][1].item<double>(); }},
      {"item_of_a_constant", "right", [](Bag&, Tensor x) { return x * torch::arange(5).sum().item<double>(); }},
      {"item_of_a_literal", "right",
       [](Bag&, Tensor x) {
         return x * torch::tensor({1.0, 4.0}).max().item<double>();
       }},
      {"item_of_a_written_constant", "right",
       [](Bag&, Tensor x) {
         Tensor t = torch::zeros({3});
         t.select(0, 1).fill_(4);
         return x * t.sum().item<double>();
       }},
      {"item_of_a_constant_with_input_written", "refused",
       [](Bag&, Tensor x) {
         Tensor t = torch::zeros({3});
         t.select(0, 1).copy_(x.sum());
         return x * t.sum().item<double>();
       }},
      {"item_of_a_member", "right", [](Bag& m, Tensor x) { return x * m.table.max().item<double>(); }},
      {"item_of_a_member_that_is_written", "refused",
       [](Bag& m, Tensor x) {
         m.table += 1;
         return x / m.table.max().item<double>();
       }},
      {"item_of_a_member_before_it_is_written", "refused",
       [](Bag& m, Tensor x) {
         x = x / m.table.max().item<double>();
         m.table += 1;
         return x;
       }},
      {"item_of_a_view_of_a_member_that_is_written", "refused",
       [](Bag& m, Tensor x) {
         m.table.select(1, 0).add_(1);
         return x / m.table[0][0].item<double>();
       }},
      {"item_of_a_buffer_before_it_is_written", "refused",
       [](Bag& m, Tensor x) {
         x = x / m.running.max().item<double>();
         m.running += 1;
         return x;
       }},
      {"item_of_what_is_made_and_written", "right",
       [](Bag&, Tensor x) {
         Tensor number = torch::zeros({1});
         number += 2;
         return x / number.item<double>();
       }},
      {"item_of_chance", "refused", [](Bag&, Tensor x) { return x * torch::rand({1}).item<double>(); }},
      {"item_of_a_parameter", "right", [](Bag& m, Tensor x) { return x * m.w.max().item<double>(); }},
      {"item_of_a_buffer_that_changes", "refused",
       [](Bag& m, Tensor x) {
         m.running.add_(1);
         return x * m.running.sum().item<double>();
       }},
      {"branch_on_data", "refused", [](Bag&, Tensor x) { return x.sum().item<float>() > 0 ? x * 2 : x * 3; }},
      {"branch_on_any", "refused", [](Bag&, Tensor x) { return (x > 0).any().item<bool>() ? x * 2 : x * 3; }},
      {"branch_on_equal", "refused", [](Bag&, Tensor x) { return torch::equal(x, x * 1) ? x * 2 : x * 3; }},
      {"branch_on_allclose", "refused", [](Bag&, Tensor x) { return torch::allclose(x, x * 1) ? x * 2 : x * 3; }},
      {"branch_on_is_nonzero", "refused", [](Bag&, Tensor x) { return x.sum().is_nonzero() ? x * 2 : x * 3; }},
      {"loop_on_data", "refused",
       [](Bag&, Tensor x) {
         while (x.sum().item<float>() > 1) x = x / 2;
         return x;
       }},
      {"printed", "refused",
       [](Bag&, Tensor x) {
         std::ostringstream out;
         out << x;
         return x * static_cast<double>(out.str().size());
       }},
  };
  return table;
}

INSTANTIATE_TEST_SUITE_P(Data, HonestProgram, ::testing::ValuesIn(memory_and_data()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace fx::honest_programs_test
