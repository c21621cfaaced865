// ProxyImpl: the TensorImpl behind a proxy. See trace/proxy.h.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>

#include <memory>

#include <fxgraph/ir/node.h>
#include <fxgraph/nn/torch_compat.h>
#include <fxgraph/trace/dispatch_keys.h>
#include <fxgraph/trace/proxy_list.h>

namespace fx::internal {

class Session;

class ProxyImpl final : public c10::TensorImpl {
 public:
  /// `value` is a meta tensor with the shape, or undefined when that is not known. `device` is the one that the value
  /// would have; a proxy with a value must have one.
  ProxyImpl(std::shared_ptr<Session> session, Node* node, at::Tensor value, std::optional<c10::Device> device);
  /// A literal (`torch::tensor({1, 2})`): has data, stands for no node until it is used. It is under construction until
  /// LibTorch hands it out as a variable.
  ProxyImpl(std::shared_ptr<Session> session, const at::Tensor& constant, bool under_construction);
  ~ProxyImpl() override;

  /// Makes this an ordinary tensor, wherever its handles lie: another one for `value`. The trace must have ended.
  void become(const at::Tensor& value);

  const std::shared_ptr<Session>& session() const { return session_; }
  Node* node() const { return node_; }
  /// The node, to be named in a message: null when the trace has ended and its graph may be gone.
  const Node* open_node() const;
  /// The graph is going, and the proxy stays: it stands for nothing any more.
  void forget_node() { node_ = nullptr; }
  void rebind(Node& node) {
    node_ = &node;
    was_constant_ = false;
  }
  bool is_constant() const { return is_constant_; }
  bool is_under_construction() const { return under_construction_ && autograd_meta() == under_construction_; }
  /// Meta tensor, or the data of a constant, or undefined.
  const at::Tensor& value() const { return value_; }
  /// Turns a constant into an ordinary proxy of its get_attr.
  void settle(Node& get_attr, at::Tensor value);
  /// Whether the program has made it require gradients.
  bool was_made_to_require_grad() const;
  /// Forgets that.
  void forget_made_to_require_grad();
  /// What the value looks like from now on: an operator has changed its shape in place.
  void reshape(at::Tensor value) { value_ = std::move(value); }
  /// True from settle() until the first write.
  bool was_constant() const { return was_constant_; }
  std::optional<c10::Device> known_device() const { return device_; }

  c10::intrusive_ptr<c10::TensorImpl> shallow_copy_and_detach(const c10::VariableVersion& version_counter,
                                                              bool allow_tensor_metadata_change) const override;
  c10::intrusive_ptr<c10::TensorImpl> shallow_copy_and_detach(c10::VariableVersion&& version_counter,
                                                              bool allow_tensor_metadata_change) const override;
  void shallow_copy_from(const c10::intrusive_ptr<c10::TensorImpl>& impl) override;
  bool has_storage() const override;
  const c10::Storage& storage() const override;

 protected:
  const char* tensorimpl_type_name() const override { return "fx::Proxy"; }
  c10::IntArrayRef sizes_custom() const override { return rank_for("sizes()").sizes(); }
  c10::SymIntArrayRef sym_sizes_custom() const override { return rank_for("sizes()").sym_sizes(); }
  c10::IntArrayRef strides_custom() const override { return layout_for("strides()").strides(); }
  c10::SymIntArrayRef sym_strides_custom() const override { return layout_for("strides()").sym_strides(); }
  std::int64_t numel_custom() const override { return shape_for("numel()").numel(); }
  c10::SymInt sym_numel_custom() const override { return shape_for("numel()").sym_numel(); }
  std::int64_t storage_offset_custom() const override { return layout_for("storage_offset()").storage_offset(); }
  c10::SymInt sym_storage_offset_custom() const override { return layout_for("storage_offset()").sym_storage_offset(); }
  std::int64_t size_custom(std::int64_t dim) const override {
    return (dim < 0 ? rank_for("size()") : shape_for("size()")).size(dim);
  }
  std::int64_t dim_custom() const override;
  c10::Device device_custom() const override;
  // Not marked override: a version of LibTorch asks the first three of these or the last two.
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Winconsistent-missing-override"
#endif
  virtual bool is_contiguous_custom(at::MemoryFormat format) const { return is_contiguous_for_all(format); }
  virtual bool is_strides_like_custom(at::MemoryFormat format) const;
  virtual bool is_non_overlapping_and_dense_custom() const {
    return layout_for("is_non_overlapping_and_dense()").is_non_overlapping_and_dense();
  }
  virtual TorchTruth sym_is_contiguous_custom(at::MemoryFormat format) const { return is_contiguous_custom(format); }
  virtual TorchTruth sym_is_non_overlapping_and_dense_custom() const { return is_non_overlapping_and_dense_custom(); }
#ifdef __clang__
#pragma clang diagnostic pop
#endif

 private:
  friend class ProxyList;
  class Gradients;

  const at::Tensor& shape_for(const char* call) const;
  const at::Tensor& rank_for(const char* call) const;
  const at::Tensor& layout_for(const char* call) const;
  bool is_contiguous_for_all(at::MemoryFormat format) const;
  c10::intrusive_ptr<c10::TensorImpl> copy() const;

  std::shared_ptr<Session> session_;
  Node* node_ = nullptr;
  at::Tensor value_;
  std::optional<c10::Device> device_;
  ProxyList::Links links_;
  bool is_constant_ = false;
  /// What LibTorch replaces when it hands the literal out.
  const c10::AutogradMetaInterface* under_construction_ = nullptr;
  bool was_constant_ = false;
  // The rank that a function was told which only checks it, when the graph had so many nodes: good until the next.
  struct Told {
    std::int64_t rank = 0;
    std::uint32_t at = 0;
  };
  mutable Told told_;
};

/// The impl of a proxy, or null.
ProxyImpl* proxy_impl(const at::Tensor& tensor);
/// Whether it was a proxy until become().
bool was_proxy(const at::Tensor& tensor);

template <typename Visit>
void ProxyList::for_each(Visit&& visit) {
  const Lock lock(busy_);
  for (ProxyImpl* proxy = newest_; proxy; proxy = proxy->links_.older) visit(*proxy);
}

}  // namespace fx::internal
