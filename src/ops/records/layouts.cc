#include <fxgraph/ops/records/layouts.h>

#include <algorithm>
#include <array>
#include <span>

#include <fxgraph/ops/records/size_rows.h>

namespace fx::internal {

namespace {

// They give contiguous results whatever the strides of what they take. Packets, sorted.
constexpr std::array<std::string_view, 18> kContiguous = {"aten::addmm",
                                                          "aten::baddbmm",
                                                          "aten::bmm",
                                                          "aten::contiguous",
                                                          "aten::embedding",
                                                          "aten::index_select",
                                                          "aten::layer_norm",
                                                          "aten::linear",
                                                          "aten::log_softmax",
                                                          "aten::masked_select",
                                                          "aten::matmul",
                                                          "aten::mm",
                                                          "aten::one_hot",
                                                          "aten::outer",
                                                          "aten::repeat",
                                                          "aten::softmax",
                                                          "fxgraph::packed_linear",
                                                          "prepacked::linear_clamp_run"};
static_assert(std::ranges::is_sorted(kContiguous));

constexpr std::array<std::string_view, 5> kCopies = {"aten::alpha_dropout", "aten::clone", "aten::dropout",
                                                     "aten::feature_alpha_dropout", "aten::feature_dropout"};

// What lies one element after the other does so behind them. Sorted.
constexpr std::array<std::string_view, 13> kWholeViews = {
    "aten::_reshape_alias", "aten::_unsafe_view", "aten::alias",      "aten::detach",  "aten::flatten",
    "aten::ravel",          "aten::reshape",      "aten::reshape_as", "aten::squeeze", "aten::unflatten",
    "aten::unsqueeze",      "aten::view",         "aten::view_as"};
static_assert(std::ranges::is_sorted(kWholeViews));

// They raise where the strides do not do.
constexpr std::array<std::string_view, 6> kViews = {"aten::_unsafe_view", "aten::unflatten",       "aten::view",
                                                    "aten::view_as",      "aten::view_as_complex", "aten::view_copy"};
// They give something else for other strides, beside those that read them (OperatorTraits::reads_layout()).
constexpr std::array<std::string_view, 11> kReaders = {
    "mkldnn_prepacked::conv2d_run",
    // LibTorch takes the elements of a tensor that lies in another order for those of one that does not.
    "aten::fractional_max_pool2d_backward", "aten::fractional_max_pool3d_backward",
    "aten::max_pool3d_with_indices_backward", "aten::narrow_copy",
    // They take their source element by element in the order in which the others lie in memory.
    "aten::index_put", "aten::index_put_", "aten::masked_scatter", "aten::masked_scatter_", "aten::put", "aten::put_"};

bool is_among(std::span<const std::string_view> packets, std::string_view packet) {
  return std::ranges::find(packets, packet) != packets.end();
}

}  // namespace

bool gives_contiguous(std::string_view packet) { return std::ranges::binary_search(kContiguous, packet); }
bool looks_at_all(std::string_view packet) { return std::ranges::binary_search(kWholeViews, packet); }
bool raises_by_strides(std::string_view packet) { return is_among(kViews, packet); }
bool differs_by_strides(std::string_view packet) { return is_among(kReaders, packet); }
bool copies_in_order(std::string_view packet) { return is_among(kCopies, packet); }

bool SizeCall::gives_contiguous() const {
  if (internal::gives_contiguous(packet_of(schema_.target.view()))) return true;
  const auto is_contiguous = [](const AbstractValue& value) {
    return !value.tensor() || value.tensor()->is_contiguous();
  };
  return std::ranges::all_of(arguments_, [&](const AbstractValue& value) {
    return value.list() ? std::ranges::all_of(*value.list(), is_contiguous) : is_contiguous(value);
  });
}

/// Whether the memory format that is asked for puts the result in order; unknown where none is, or none of its own.
Answer SizeCall::is_in_order(std::size_t rank) const {
  if (!given("memory_format")) return Answer::unknown;
  const Argument* format = argument("memory_format").literal();
  if (!format || format->kind() != ArgumentKind::memory_format) give_up("memory_format is not known");
  const std::string_view name = format->as_memory_format().name.view();
  if (name == "preserve_format") return Answer::unknown;
  if (name == "contiguous_format") return Answer::yes;
  require(rank == (name == "channels_last" ? 4 : 5), "as many dimensions as the memory format has");
  return Answer::no;
}

}  // namespace fx::internal
