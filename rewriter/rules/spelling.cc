#include <fxgraph/rewriter/rules/spelling.h>

#include <algorithm>
#include <array>
#include <utility>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/schema.h>

namespace fx::rules {

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kWords = {{
    {"$add", "{aten::add.Tensor, aten::add.Scalar}"},
    {"$sub", "{aten::sub.Tensor, aten::sub.Scalar}"},
    {"$mul", "{aten::mul.Tensor, aten::mul.Scalar}"},
    {"$div", "{aten::div.Tensor, aten::div.Scalar}"},
}};

}  // namespace

std::string spelled(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    bool replaced = false;
    for (const auto& [word, meaning] : kWords) {
      if (!text.substr(at).starts_with(word)) continue;
      result += meaning;
      at += word.size();
      replaced = true;
    }
    if (!replaced) result += text[at++];
  }
  return result;
}

Argument list_of(const std::vector<std::int64_t>& numbers) {
  return Argument::list(std::vector<Argument>(numbers.begin(), numbers.end()));
}

bool is_floating(DType type) {
  return type == DType::float16 || type == DType::bfloat16 || type == DType::float32 || type == DType::float64;
}

bool is_floating(const Match& match, std::string_view name) {
  const TensorInfo* info = match.info(name);
  return info && is_floating(info->dtype);
}

namespace {

// LibTorch has these for real floating-point numbers alone. Sorted.
constexpr std::array<std::string_view, 17> kFloatOnly = {
    "aten::batch_norm",  "aten::celu",      "aten::elu",           "aten::gelu",       "aten::group_norm",
    "aten::hardsigmoid", "aten::hardswish", "aten::instance_norm", "aten::layer_norm", "aten::log_sigmoid",
    "aten::log_softmax", "aten::mish",      "aten::selu",          "aten::silu",       "aten::softmax",
    "aten::softplus",    "aten::softshrink"};
// These give what they are given, as far as its type goes. Sorted.
constexpr std::array<std::string_view, 34> kSameType = {"aten::adaptive_avg_pool2d",
                                                        "aten::alias",
                                                        "aten::avg_pool2d",
                                                        "aten::clamp",
                                                        "aten::clamp_max",
                                                        "aten::clamp_min",
                                                        "aten::clone",
                                                        "aten::contiguous",
                                                        "aten::detach",
                                                        "aten::dropout",
                                                        "aten::exp",
                                                        "aten::expand",
                                                        "aten::flatten",
                                                        "aten::leaky_relu",
                                                        "aten::max_pool2d",
                                                        "aten::mean",
                                                        "aten::neg",
                                                        "aten::permute",
                                                        "aten::relu",
                                                        "aten::relu6",
                                                        "aten::reshape",
                                                        "aten::rsqrt",
                                                        "aten::select",
                                                        "aten::sigmoid",
                                                        "aten::slice",
                                                        "aten::sqrt",
                                                        "aten::squeeze",
                                                        "aten::sum",
                                                        "aten::t",
                                                        "aten::tanh",
                                                        "aten::transpose",
                                                        "aten::unsqueeze",
                                                        "aten::view",
                                                        "aten::view_as"};
static_assert(std::ranges::is_sorted(kFloatOnly) && std::ranges::is_sorted(kSameType));

bool names_dtype(const Node& node, const OperatorSchema& schema) {
  const int index = schema.index_of(Symbol("dtype"));
  const Argument* dtype = index < 0 ? nullptr : bound_argument(schema, node, static_cast<std::size_t>(index));
  return dtype && !dtype->is_none();
}

/// Adds the values that must be floating for `node` to be; false when nothing is known of it.
bool add_sources(const Node& node, std::vector<const Node*>& open) {
  const bool call = node.is(Op::call_function) || node.is(Op::call_method);
  const OperatorSchema* schema = call ? schema_of(node) : nullptr;
  if (!schema || names_dtype(node, *schema) || node.args().empty()) return false;
  const std::string_view packet = packet_of(schema->target.view());
  if (std::ranges::binary_search(kFloatOnly, packet)) return true;
  const Node* first = node.args()[0].node_or_null();
  if (!first) return false;
  open.push_back(first);
  if (std::ranges::binary_search(kSameType, packet)) return true;
  if (packet != "aten::add" && packet != "aten::sub" && packet != "aten::mul" && packet != "aten::div") return false;
  const Argument* other = node.args().size() > 1 ? &node.args()[1] : nullptr;
  if (other && other->is_node()) open.push_back(&other->node());
  return other && (other->is_node() || other->is_int() || other->is_float());
}

}  // namespace

Decision surely_floating(const Match& match, std::string_view name) {
  if (match.info(name)) return is_floating(match, name);
  constexpr std::size_t kMost = 64;
  std::vector<const Node*> open = {&match[name]};
  for (std::size_t next = 0; next < open.size(); ++next) {
    if (next == kMost || !add_sources(*open[next], open))
      return refuse("whether its input is of a floating-point type is not known; give --input");
  }
  return true;
}

bool same_type(const Match& match, std::string_view a, std::string_view b) {
  return match.info(a) && match.info(b) && match.info(a)->dtype == match.info(b)->dtype;
}

}  // namespace fx::rules
