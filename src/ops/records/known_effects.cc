// What functions outside ATen do, as data.
#include <algorithm>
#include <iterator>

#include <fxgraph/ops/records/python_names.h>

namespace fx::internal {

namespace {

// clang-format off
#define F "torch.nn.functional."

// Sorted.
constexpr KnownRow kKnown[] = {
    {".__len__", KnownEffect::pure},
    {".is_shared", KnownEffect::pure},
    {".new", KnownEffect::pure},
    {".new_tensor", KnownEffect::pure},
    {".numpy", KnownEffect::aliases},
    {".share_memory_", KnownEffect::writes_first},
    {".storage", KnownEffect::aliases},
    {".tolist", KnownEffect::pure},
    {".untyped_storage", KnownEffect::aliases},
    {"builtins.abs", KnownEffect::pure},
    {"builtins.all", KnownEffect::pure},
    {"builtins.any", KnownEffect::pure},
    {"builtins.bool", KnownEffect::pure},
    {"builtins.complex", KnownEffect::pure},
    {"builtins.dict", KnownEffect::aliases},
    {"builtins.divmod", KnownEffect::pure},
    {"builtins.enumerate", KnownEffect::aliases},
    {"builtins.float", KnownEffect::pure},
    {"builtins.getattr", KnownEffect::aliases},
    {"builtins.hasattr", KnownEffect::pure},
    {"builtins.int", KnownEffect::pure},
    {"builtins.isinstance", KnownEffect::pure},
    {"builtins.len", KnownEffect::pure},
    {"builtins.list", KnownEffect::aliases},
    {"builtins.max", KnownEffect::aliases},
    {"builtins.min", KnownEffect::aliases},
    {"builtins.pow", KnownEffect::pure},
    {"builtins.print", KnownEffect::side_effect},
    {"builtins.range", KnownEffect::pure},
    {"builtins.reversed", KnownEffect::aliases},
    {"builtins.round", KnownEffect::pure},
    {"builtins.setattr", KnownEffect::keeps},
    {"builtins.slice", KnownEffect::pure},
    {"builtins.sorted", KnownEffect::aliases},
    {"builtins.str", KnownEffect::pure},
    {"builtins.sum", KnownEffect::aliases},
    {"builtins.tuple", KnownEffect::aliases},
    {"builtins.type", KnownEffect::pure},
    {"builtins.zip", KnownEffect::aliases},
    {"operator.concat", KnownEffect::aliases},
    {"operator.contains", KnownEffect::pure},
    {"operator.delitem", KnownEffect::writes_first},
    {"operator.getitem", KnownEffect::aliases},
    {"operator.index", KnownEffect::pure},
    {"operator.is_", KnownEffect::pure},
    {"operator.is_not", KnownEffect::pure},
    {"operator.not_", KnownEffect::pure},
    {"operator.setitem", KnownEffect::keeps},
    {"operator.truth", KnownEffect::pure},
    {"torch.Size", KnownEffect::pure},
    {"torch._assert", KnownEffect::side_effect},
    {"torch._check", KnownEffect::side_effect},
    {"torch.amp.autocast_mode._enter_autocast", KnownEffect::side_effect},
    {"torch.amp.autocast_mode._exit_autocast", KnownEffect::side_effect},
    {"torch.autograd.grad_mode.set_grad_enabled", KnownEffect::side_effect},
    {"torch.broadcast_shapes", KnownEffect::pure},
    {"torch.device", KnownEffect::pure},
    {"torch.finfo", KnownEffect::pure},
    {"torch.from_numpy", KnownEffect::aliases},
    {"torch.get_default_dtype", KnownEffect::pure},
    {"torch.iinfo", KnownEffect::pure},
    {"torch.is_storage", KnownEffect::pure},
    {"torch.is_tensor", KnownEffect::pure},
    {"torch.jit.isinstance", KnownEffect::pure},
    {"torch.manual_seed", KnownEffect::side_effect},
    {F "affine_grid", KnownEffect::pure},
    {F "assert_int_or_pair", KnownEffect::side_effect},
    {F "binary_cross_entropy", KnownEffect::pure},
    {F "binary_cross_entropy_with_logits", KnownEffect::pure},
    {F "cosine_embedding_loss", KnownEffect::pure},
    {F "cross_entropy", KnownEffect::pure},
    {F "ctc_loss", KnownEffect::pure},
    {F "embedding", KnownEffect::writes_any},
    {F "embedding_bag", KnownEffect::writes_any},
    {F "fractional_max_pool2d", KnownEffect::random},
    {F "fractional_max_pool3d", KnownEffect::random},
    {F "gaussian_nll_loss", KnownEffect::pure},
    {F "grid_sample", KnownEffect::pure},
    {F "gumbel_softmax", KnownEffect::random},
    {F "hinge_embedding_loss", KnownEffect::pure},
    {F "huber_loss", KnownEffect::pure},
    {F "interpolate", KnownEffect::pure},
    {F "kl_div", KnownEffect::pure},
    {F "l1_loss", KnownEffect::pure},
    {F "local_response_norm", KnownEffect::pure},
    {F "lp_pool1d", KnownEffect::pure},
    {F "lp_pool2d", KnownEffect::pure},
    {F "margin_ranking_loss", KnownEffect::pure},
    {F "max_unpool1d", KnownEffect::pure},
    {F "max_unpool2d", KnownEffect::pure},
    {F "max_unpool3d", KnownEffect::pure},
    {F "mse_loss", KnownEffect::pure},
    {F "multi_head_attention_forward", KnownEffect::random},
    {F "multi_margin_loss", KnownEffect::pure},
    {F "multilabel_margin_loss", KnownEffect::pure},
    {F "multilabel_soft_margin_loss", KnownEffect::pure},
    {F "nll_loss", KnownEffect::pure},
    {F "normalize", KnownEffect::writes_out},
    {F "poisson_nll_loss", KnownEffect::pure},
    {F "smooth_l1_loss", KnownEffect::pure},
    {F "soft_margin_loss", KnownEffect::pure},
    {F "softmin", KnownEffect::pure},
    {F "softsign", KnownEffect::pure},
    {F "tanhshrink", KnownEffect::pure},
    {F "triplet_margin_loss", KnownEffect::pure},
    {F "upsample", KnownEffect::pure},
    {F "upsample_bilinear", KnownEffect::pure},
    {F "upsample_nearest", KnownEffect::pure},
    {"torch.norm", KnownEffect::writes_out},
    {"torch.tensordot", KnownEffect::writes_out},
};
// clang-format on
#undef F

static_assert(std::ranges::is_sorted(kKnown, {}, &KnownRow::name));

}  // namespace

const KnownEffect* known_effect(std::string_view name) {
  static constexpr KnownEffect kPure = KnownEffect::pure;
  if (name.starts_with("math.")) return &kPure;
  const auto row = std::ranges::lower_bound(kKnown, name, {}, &KnownRow::name);
  return row != std::end(kKnown) && row->name == name ? &row->effect : nullptr;
}

bool is_mode_switch(Symbol target) {
  static const Symbol kSwitches[] = {"aten::set_grad_enabled",
                                     "torch.set_grad_enabled",
                                     "torch._C._set_grad_enabled",
                                     "torch.autograd.grad_mode.set_grad_enabled",
                                     "torch.amp.autocast_mode._enter_autocast",
                                     "torch.amp.autocast_mode._exit_autocast"};
  return std::ranges::find(kSwitches, target) != std::end(kSwitches);
}

}  // namespace fx::internal
