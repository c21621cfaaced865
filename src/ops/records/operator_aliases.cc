// Names that LibTorch takes for one operator, as torch::jit's NormalizeOps knows them, and split by a list.
#include <algorithm>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/schema_registry.h>

namespace fx::internal {

namespace {

struct AliasRow {
  std::string_view alias;
  std::string_view name;
  bool in_place = true;  // so are the names with an underscore
};

// clang-format off
constexpr AliasRow kAliases[] = {
    {"absolute", "abs"}, {"clip", "clamp"}, {"arccos", "acos"}, {"arcsin", "asin"}, {"arctan", "atan"}, {"arctan2", "atan2"},
    {"arccosh", "acosh"}, {"arcsinh", "asinh"}, {"arctanh", "atanh"}, {"fix", "trunc"}, {"negative", "neg"},
    {"subtract", "sub"}, {"multiply", "mul"}, {"divide", "div"}, {"true_divide", "div"}, {"greater", "gt"},
    {"greater_equal", "ge"}, {"less", "lt"}, {"less_equal", "le"}, {"not_equal", "ne"}, {"swapdims", "transpose"},
    {"swapaxes", "transpose"},
    {"det", "linalg_det", false}, {"inverse", "linalg_inv", false}, {"matrix_exp", "linalg_matrix_exp", false},
    {"matrix_power", "linalg_matrix_power", false}, {"linalg_matmul", "matmul", false}, {"ger", "outer", false},
    {"orgqr", "linalg_householder_product", false}, {"adjoint", "mH", false}, {"moveaxis", "movedim", false},
    {"row_stack", "vstack", false}, {"concat", "cat", false}, {"concatenate", "cat", false},
    {"special_erf", "erf", false}, {"special_erfc", "erfc", false}, {"special_erfinv", "erfinv", false},
    {"special_exp2", "exp2", false}, {"special_expm1", "expm1", false}, {"special_log1p", "log1p", false},
    {"special_logit", "logit", false}, {"special_logsumexp", "logsumexp", false}, {"special_round", "round", false},
    {"special_sinc", "sinc", false}, {"special_digamma", "digamma", false}, {"special_i0", "i0", false},
    {"special_xlogy", "xlogy", false}, {"special_softmax", "softmax", false},
    {"special_log_softmax", "log_softmax", false}, {"special_polygamma", "polygamma", false},
    {"special_expit", "sigmoid", false}, {"special_psi", "digamma", false}, {"special_gammaln", "lgamma", false},
    {"special_gammainc", "igamma", false}, {"special_gammaincc", "igammac", false},
    {"special_multigammaln", "mvlgamma", false}, {"split_with_sizes", "split", false},
};
// Overloads that go by another name there, with their dots.
struct OverloadRow {
  std::string_view alias;
  std::string_view overload;
  std::string_view agreed;
};
constexpr OverloadRow kOverloads[] = {
    {"swapdims", "", ".int"}, {"swapaxes", "", ".int"}, {"special_softmax", "", ".int"}, {"special_log_softmax", "", ".int"},
    {"special_xlogy", "", ".Tensor"}, {"special_xlogy", ".other_scalar", ".Scalar_Other"},
    {"special_xlogy", ".self_scalar", ".Scalar_Self"}, {"split_with_sizes", "", ".sizes"},
};
// clang-format on

constexpr std::string_view kNamespace = "aten::";

// `add_`, `.Tensor`
struct Parts {
  std::string_view packet;
  std::string_view overload;  // with its dot
};

Parts parts_of(std::string_view target) {
  const std::string_view packet = packet_of(target);
  return {packet.substr(kNamespace.size()), target.substr(packet.size())};
}

bool names(const AliasRow& row, std::string_view name, std::string_view packet) {
  return packet == name || (row.in_place && packet.ends_with('_') && packet.substr(0, packet.size() - 1) == name);
}

std::string joined(std::string_view name, bool in_place, std::string_view overload) {
  return std::string(kNamespace).append(name).append(in_place ? "_" : "").append(overload);
}

}  // namespace

std::string agreed_name(std::string_view target) {
  if (!target.starts_with(kNamespace)) return std::string(target);
  auto [packet, overload] = parts_of(target);
  for (const AliasRow& row : kAliases) {
    if (!names(row, row.alias, packet)) continue;
    for (const OverloadRow& known : kOverloads) {
      if (known.alias != row.alias || known.overload != overload) continue;
      overload = known.agreed;
      break;
    }
    return joined(row.name, packet != row.alias, overload);
  }
  return std::string(target);
}

}  // namespace fx::internal
