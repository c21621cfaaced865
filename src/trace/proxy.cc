#include <fxgraph/trace/proxy.h>

#include <c10/core/MemoryFormat.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <vector>

#include <fxgraph/trace/caller.h>
#include <fxgraph/trace/proxy_impl.h>
#include <fxgraph/trace/session.h>
#include <fxgraph/trace/trace_error.h>

namespace fx {
namespace internal {

// A type that LibTorch has no word for: it refuses whoever asks which it is (trace_error.h). The undefined one compares
// unequal to all others, and is neither floating nor whole.
caffe2::TypeMeta unknown_type() { return caffe2::TypeMeta::Make<std::string>(); }

// The tracer is asked before whoever resolves conjugates and negatives; whether a value is one shows in its keys alone.
c10::DispatchKeySet proxy_keys(const at::Tensor& value) {
  constexpr c10::DispatchKeySet kShown({c10::DispatchKey::Conjugate, c10::DispatchKey::Negative});
  const c10::DispatchKeySet own(kProxyKey);
  return value.defined() ? own | (value.key_set() & kShown) : own;
}

// Asks the session when the program asks whether a proxy requires gradients.
class ProxyImpl::Gradients final : public torch::autograd::AutogradMeta {
 public:
  explicit Gradients(const ProxyImpl& proxy) : proxy_(proxy) {}
  bool requires_grad() const override {
    return AutogradMeta::requires_grad() || (proxy_.session_ && proxy_.node_ && proxy_.session_->requires_grad(proxy_));
  }

 private:
  const ProxyImpl& proxy_;
};

bool ProxyImpl::was_made_to_require_grad() const {
  return autograd_meta() && static_cast<const torch::autograd::AutogradMeta*>(autograd_meta())->requires_grad_;
}

void ProxyImpl::forget_made_to_require_grad() { set_autograd_meta(std::make_unique<Gradients>(*this)); }

ProxyImpl::ProxyImpl(std::shared_ptr<Session> session, Node* node, at::Tensor value, std::optional<c10::Device> device)
    : c10::TensorImpl(proxy_keys(value), value.defined() ? value.dtype() : caffe2::TypeMeta(),
                      device ? decltype(device_opt_)(*device) : decltype(device_opt_)()),
      session_(std::move(session)),
      node_(node),
      value_(std::move(value)),
      device_(device) {
  set_custom_sizes_strides(SizesStridesPolicy::CustomSizes);
  set_autograd_meta(std::make_unique<Gradients>(*this));
  if (!value_.defined())
    data_type_ = session_ && session_->told_type() ? c10::scalarTypeToTypeMeta(*session_->told_type()) : unknown_type();
  if (!device_) set_custom_device(true);
  if (session_) session_->proxies().add(*this);
}

ProxyImpl::~ProxyImpl() {
  if (session_) session_->proxies().remove(*this);
}

void ProxyList::add(ProxyImpl& proxy) {
  const Lock lock(busy_);
  proxy.links_ = {newest_, nullptr};
  if (newest_) newest_->links_.newer = &proxy;
  newest_ = &proxy;
}

void ProxyList::remove(ProxyImpl& proxy) {
  const Lock lock(busy_);
  const Links links = proxy.links_;
  (links.newer ? links.newer->links_.older : newest_) = links.older;
  if (links.older) links.older->links_.newer = links.newer;
}

// From now on it answers as any tensor: with the keys of one, nothing of a proxy is asked any more.
void ProxyImpl::become(const at::Tensor& value) {
  session_->proxies().remove(*this);
  session_.reset();
  node_ = nullptr;
  value_ = at::Tensor();
  set_custom_sizes_strides(SizesStridesPolicy::Default);
  set_custom_device(false);
  c10::TensorImpl::shallow_copy_from(value.getIntrusivePtr());
  set_autograd_meta(nullptr);
  if (!value.requires_grad()) return;
  if (value.is_leaf() && value.use_count() == 1) {
    set_requires_grad(true);
  } else {
    // Gradients go where those of `value` go: to a parameter, or on to what it was made of.
    const auto self = c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(this);
    torch::autograd::impl::set_gradient_edge(at::Tensor(self), torch::autograd::impl::gradient_edge(value));
  }
}

ProxyImpl::ProxyImpl(std::shared_ptr<Session> session, const at::Tensor& constant, bool under_construction)
    : ProxyImpl(std::move(session), nullptr, constant, constant.device()) {
  storage_ = constant.storage();
  is_constant_ = true;
  under_construction_ = under_construction ? autograd_meta() : nullptr;
}

void ProxyImpl::settle(Node& get_attr, at::Tensor value) {
  node_ = &get_attr;
  value_ = std::move(value);
  storage_ = {};
  is_constant_ = false;
  was_constant_ = true;
}

const Node* ProxyImpl::open_node() const { return session_->is_open() ? node_ : nullptr; }

const at::Tensor& ProxyImpl::shape_for(const char* call) const {
  if (!value_.defined()) throw unknown_shape(open_node(), call);
  session_->asked(node_);
  return value_;
}

// Who is given all sizes learns how many there are; who counts from behind takes another one of more.
const at::Tensor& ProxyImpl::rank_for(const char* call) const {
  const at::Tensor& value = shape_for(call);
  session_->note_rank_query(node_);
  return value;
}

// A scripted function notes the strides of what it is given, and does nothing else for them.
const at::Tensor& ProxyImpl::layout_for(const char* call) const {
  if (!caller_notes_type()) session_->asked_layout();
  return shape_for(call);
}

bool ProxyImpl::is_strides_like_custom(at::MemoryFormat format) const {
  if (!value_.defined()) return false;
  session_->asked_layout();
  return format == at::MemoryFormat::ChannelsLast     ? value_.unsafeGetTensorImpl()->is_strides_like_channels_last()
         : format == at::MemoryFormat::ChannelsLast3d ? value_.unsafeGetTensorImpl()->is_strides_like_channels_last_3d()
                                                      : false;
}

// contiguous() asks before it does anything, and not to be is right for whoever asks to save work.
bool ProxyImpl::is_contiguous_for_all(at::MemoryFormat format) const {
  if (!is_constant_ && session_->asks_contiguity(node_)) return false;
  return value_.defined() && value_.is_contiguous(format);
}

std::int64_t ProxyImpl::dim_custom() const {
  if (value_.defined()) {
    session_->note_rank_query(node_);
    return value_.dim();
  }
  const Node* node = open_node();
  const std::uint32_t now = node ? node->graph().id_bound() : 0;
  if (const std::optional<RankAnswer> answer = rank_for_caller()) {
    if (answer->checked_again) told_ = {answer->rank, now};
    return answer->rank;
  }
  if (node && told_.at == now) return told_.rank;
  throw unknown_shape(node, "dim()");
}

c10::Device ProxyImpl::device_custom() const { throw unknown_shape(open_node(), "device()"); }

bool ProxyImpl::has_storage() const {
  if (is_constant_ || !session_) return true;
  throw no_data(open_node(), "data_ptr()");
}

const c10::Storage& ProxyImpl::storage() const {
  if (is_constant_ || !session_) return storage_;
  throw no_data(open_node(), "storage()");
}

c10::intrusive_ptr<c10::TensorImpl> ProxyImpl::copy() const {
  if (is_constant_) return c10::make_intrusive<ProxyImpl>(session_, value_, /*under_construction=*/false);
  return c10::make_intrusive<ProxyImpl>(session_, node_, value_, device_);
}

c10::intrusive_ptr<c10::TensorImpl> ProxyImpl::shallow_copy_and_detach(const c10::VariableVersion& version_counter,
                                                                       bool allow_tensor_metadata_change) const {
  if (!session_) return c10::TensorImpl::shallow_copy_and_detach(version_counter, allow_tensor_metadata_change);
  auto result = copy();
  result->set_version_counter(version_counter);
  return result;
}

// data() and variable_data() forbid changes of the shape; whoever else copies handles allows them.
c10::intrusive_ptr<c10::TensorImpl> ProxyImpl::shallow_copy_and_detach(c10::VariableVersion&& version_counter,
                                                                       bool allow_tensor_metadata_change) const {
  if (!session_) {
    return c10::TensorImpl::shallow_copy_and_detach(std::move(version_counter), allow_tensor_metadata_change);
  }
  const bool data = !allow_tensor_metadata_change && !is_constant_ && session_->is_open();
  auto result = data ? session_->without_grad(*this) : copy();
  result->set_version_counter(std::move(version_counter));
  return result;
}

void ProxyImpl::shallow_copy_from(const c10::intrusive_ptr<c10::TensorImpl>& impl) {
  if (!session_) return c10::TensorImpl::shallow_copy_from(impl);
  if (!impl->key_set().has(kProxyKey)) {
    throw trace_error(open_node(), "set_data()",
                      "replaces a traced value by an ordinary tensor; assign the variable instead");
  }
  const auto& other = static_cast<const ProxyImpl&>(*impl);
  node_ = other.node_;
  value_ = other.value_;
}

bool was_proxy(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  return typeid(impl) == typeid(ProxyImpl) && !impl.key_set().has(kProxyKey);
}

ProxyImpl* proxy_impl(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.key_set().has(kProxyKey)) return nullptr;
  // set_data() gives an ordinary tensor the keys of a proxy.
  c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (typeid(impl) != typeid(ProxyImpl)) {
    throw trace_error(nullptr, "set_data()",
                      "gives a parameter a traced value, which a graph cannot hold; write it in place (copy_) instead");
  }
  return static_cast<ProxyImpl*>(&impl);
}

}  // namespace internal

bool is_proxy(const at::Tensor& tensor) { return internal::proxy_impl(tensor) != nullptr; }

Node* node_of(const at::Tensor& tensor) {
  const internal::ProxyImpl* proxy = internal::proxy_impl(tensor);
  return proxy && proxy->session()->is_open() ? proxy->node() : nullptr;
}

}  // namespace fx
