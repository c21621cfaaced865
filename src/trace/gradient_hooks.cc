#include <fxgraph/trace/gradient_hooks.h>

#include <ATen/core/Tensor.h>
#include <ATen/core/VariableHooksInterface.h>
#include <torch/version.h>

#include <fxgraph/trace/proxy_impl.h>
#include <fxgraph/trace/session.h>

namespace fx::internal {

#if TORCH_VERSION_MAJOR < 2
namespace {

using at::TensorBase;

class GradientHooks final : public at::impl::VariableHooksInterface {
 public:
  explicit GradientHooks(at::impl::VariableHooksInterface& others) : others_(others) {}

  const std::shared_ptr<torch::autograd::Node>& grad_fn(const TensorBase& tensor) const override {
    ask(tensor, "grad_fn()");
    return others_.grad_fn(tensor);
  }
  bool is_leaf(const TensorBase& tensor) const override {
    ask(tensor, "is_leaf()");
    return others_.is_leaf(tensor);
  }
  // LibTorch's asks whether it is a leaf.
  void requires_grad_(const TensorBase& tensor, bool required) const override {
    if (!proxy_of(tensor)) return others_.requires_grad_(tensor, required);
    tensor.set_requires_grad(required);
  }

  TensorBase tensor_data(const TensorBase& tensor) const override { return others_.tensor_data(tensor); }
  TensorBase variable_data(const TensorBase& tensor) const override { return others_.variable_data(tensor); }
  unsigned _register_hook(const TensorBase& tensor, std::function<TensorBase(const TensorBase&)> hook) const override {
    return others_._register_hook(tensor, std::move(hook));
  }
  void remove_hook(const TensorBase& tensor, unsigned at) const override { others_.remove_hook(tensor, at); }
  bool is_view(const TensorBase& tensor) const override { return others_.is_view(tensor); }
  const TensorBase& base(const TensorBase& tensor) const override { return others_.base(tensor); }
  const std::string& name(const TensorBase& tensor) const override { return others_.name(tensor); }
  std::int64_t output_nr(const TensorBase& tensor) const override { return others_.output_nr(tensor); }
  void set_data(const TensorBase& tensor, const TensorBase& data) const override { others_.set_data(tensor, data); }
  TensorBase data(const TensorBase& tensor) const override { return others_.data(tensor); }
  std::int64_t _version(const TensorBase& tensor) const override { return others_._version(tensor); }
  void retain_grad(const TensorBase& tensor) const override { others_.retain_grad(tensor); }
  bool retains_grad(const TensorBase& tensor) const override { return others_.retains_grad(tensor); }
  void _backward(const at::Tensor& tensor, at::TensorList inputs, const c10::optional<at::Tensor>& gradient,
                 c10::optional<bool> retain, bool create) const override {
    others_._backward(tensor, inputs, gradient, retain, create);
  }

 private:
  static const ProxyImpl* proxy_of(const TensorBase& tensor) {
    if (!tensor.defined() || !tensor.key_set().has(kProxyKey)) return nullptr;
    return dynamic_cast<const ProxyImpl*>(tensor.unsafeGetTensorImpl());
  }
  static void ask(const TensorBase& tensor, const char* call) {
    const ProxyImpl* proxy = proxy_of(tensor);
    if (proxy && proxy->session() && proxy->session()->is_open() && proxy->node())
      proxy->session()->requires_grad(*proxy, call);
  }

  at::impl::VariableHooksInterface& others_;
};

}  // namespace

void install_gradient_hooks() {
  // Never taken back, as the tracer's kernels are not.
  static const auto* const hooks = [] {
    auto* made = new GradientHooks(*at::impl::GetVariableHooks());
    at::impl::SetVariableHooks(made);
    return made;
  }();
  (void)hooks;
}
#else
void install_gradient_hooks() {}
#endif

}  // namespace fx::internal
