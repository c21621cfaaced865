// softmax(q kᵀ · scale + mask) v is found and becomes one scaled dot-product attention.
#include <fxgraph/rewriter/rules/rules.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/rewriter/rules/free_sizes.h>
#include <fxgraph/rewriter/rules/operator_of.h>
#include <fxgraph/rewriter/rules/type_conditions.h>
#include <fxgraph/run/operators.h>

namespace fx::rules::fusion_attention {

namespace {

/// What a captured scale multiplies by: 1 when that part is not there, the reciprocal when it divides.
double factor(const Match& match, const char* part, const char* name) {
  if (!match.has(name)) return 1;
  const double value = match.literal(name);
  return packet_of(operator_of(match[part]).view()) == "aten::div" ? 1 / value : value;
}

double total_scale(const Match& match) {
  return factor(match, "left", "q_scale") * factor(match, "keys", "k_scale") * factor(match, "right", "r_scale") *
         factor(match, "scores", "scale");
}

/// What hides scores: `mask` is added to them; where `hidden` is True, or `shown` is False, they become -inf.
constexpr std::array<const char*, 3> kMasks = {"mask", "hidden", "shown"};

const char* mask_of(const Match& match) {
  for (const char* name : kMasks) {
    if (match.has(name)) return name;
  }
  return nullptr;
}

/// The mask must not make the scores larger.
bool broadcasts_to_scores(const Match& match, const std::vector<std::int64_t>& mask) {
  std::vector<std::int64_t> scores = match.info("q").sizes();
  const std::vector<std::int64_t>& keys = match.info("k").sizes();
  if (mask.size() > scores.size()) return false;
  scores.back() = keys[keys.size() - 2];
  for (std::size_t i = 1; i <= mask.size(); ++i) {
    const std::int64_t size = mask[mask.size() - i];
    if (size != 1 && !may_be_equal(size, scores[scores.size() - i])) return false;
  }
  return true;
}

Decision is_mask(const Match& match) {
  const char* name = mask_of(match);
  if (!name) return true;
  const bool added = name == kMasks[0];
  const TensorFacts mask = match.info(name);
  const bool fits = mask && broadcasts_to_scores(match, mask.sizes()) &&
                    (added ? same_type(match, name, "q") : mask.is_of({DType::boolean}));
  if (!fits) return refuse("its mask is not one of the scores' shape and type");
  if (added) return true;  // with zeros for NaN where it hides a whole row, as the preconditions say
  for (const char* fill : {"hidden_fill", "shown_fill"}) {
    if (match.has(fill) && !(match.literal(fill) < 0 && std::isinf(match.literal(fill))))
      return refuse("its mask fills with " + to_string(match.argument(fill)) + ", not with -inf");
  }
  // Newer LibTorch gives zeros for it.
  if (find_torch_operator("aten::_safe_softmax")) return refuse("a row that is masked altogether would not be NaN");
  return true;
}

/// Scores may be made wider for the softmax, not narrower.
bool keeps_precision(const Match& match) {
  for (const char* name : {"wide", "probs_type"}) {
    if (!match.has(name)) continue;
    const Argument& type = match.argument(name);
    const bool wide = type == Argument(DType::float32) || type == Argument(DType::float64);
    const bool narrow = match.info("q").dtype() == DType::float64 && type == Argument(DType::float32);
    if (!(wide && !narrow) && !(type == Argument(match.info("q").dtype()))) return false;
  }
  return true;
}

/// Else the operator takes it from the size of a head.
bool takes_scale() { return find_torch_operator("aten::scaled_dot_product_attention") != nullptr; }

Decision is_attention(const Match& match) {
  for (const char* name : {"q", "k", "v"}) {
    if (!match.info(name)) return refuse("the shapes of query, key and value are not known; give --input");
  }
  const std::vector<std::int64_t>&q = match.info("q").sizes(), &k = match.info("k").sizes(),
        &v = match.info("v").sizes();
  const std::size_t rank = q.size();
  if (rank < 3 || rank > 4 || k.size() != rank || v.size() != rank) return false;
  if (!is_floating(match, "q") || !same_type(match, "q", "k") || !same_type(match, "q", "v")) return false;
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    if (!may_be_equal(q[i], k[i]) || !may_be_equal(q[i], v[i])) return false;
  }
  if (q.back() == 0) return false;
  if (q.back() < 0 && !takes_scale()) return refuse("the size of a head differs from call to call");
  // `transpose(1, 2)` is the last two of three dimensions, `transpose(2, 3)` those of four.
  if (match.has("a")) {
    const auto from_end = [&](const char* name) {
      const double dim = match.literal(name);
      return dim < 0 ? -dim : static_cast<double>(rank) - dim;
    };
    const double a = from_end("a"), b = from_end("b");
    if (std::min(a, b) != 1 || std::max(a, b) != 2) return false;
  }
  if (!keeps_precision(match)) return refuse("its scores are cast to a narrower type");
  if (const Decision mask = is_mask(match); !mask) return mask;
  const double scale = total_scale(match);
  return std::isfinite(scale) && scale != 0;
}

/// With a scale argument where LibTorch has one; else the query is scaled beforehand, when it must be.
Node& attention(const Match& match, Rewriter& rewriter) {
  const char* name = mask_of(match);
  Argument mask = name ? match.argument(name) : Argument();
  // LibTorch's bool mask says what is shown.
  if (match.has("hidden")) mask = rewriter.call_function("aten::logical_not", std::vector<Argument>{mask});
  const double scale = total_scale(match);
  Node &q = match["q"], &k = match["k"], &v = match["v"];
  if (takes_scale()) {
    const std::vector<NamedArgument> kwargs = {{"scale", Argument(scale)}};
    return rewriter.call_function("aten::scaled_dot_product_attention", std::vector<Argument>{q, k, v, mask}, kwargs);
  }
  const double own = scale * std::sqrt(static_cast<double>(match.info("q").last_size()));
  Node& query = std::abs(own - 1) < 1e-6 ? q : rewriter.call_function("aten::mul.Scalar", {q, own});
  Node& both = rewriter.call_function("aten::_scaled_dot_product_attention", {query, k, v, mask});
  return rewriter.call_function(python::kGetItem, {both, 0});
}

std::vector<Rewrite> rewrites() {
  return {
      {.pattern = R"(
keys = scaled(k: node, k_scale)
turned = aten::transpose.int(keys, a: int, b: int) | aten::permute(keys, [0, 1, 3, 2]) | aten::permute(keys, [0, 2, 1])
       | aten::mT(keys)
right = scaled(turned, r_scale)
left = scaled(q: node, q_scale)
scores = scaled(matrix_product(left, right), scale)
masked = commutative(aten::add.Tensor(scores, mask: node)) | aten::masked_fill.Scalar(scores, hidden: node, hidden_fill: float)
       | aten::where.ScalarOther(shown: node, scores, shown_fill: float) | scores
probs = aten::softmax.int(cast(masked, wide), -1, maybe(probs_type: literal))
back = cast(probs, back_type)
kept = aten::dropout(back, _, False) | back
return matrix_product(kept, v: node))",
       .when = is_attention,
       .replacement = attention,
       .needs = {.finite_inputs = true},
       .examples = {"aten::matmul(aten::softmax.int(aten::matmul(q, aten::transpose.int(k, -2, -1)), -1), v)",
                    "aten::matmul(aten::softmax.int(aten::mul.Scalar(aten::matmul(q, aten::transpose.int(k, -1, -2)), "
                    "0.5), -1), v)",
                    "aten::bmm(aten::softmax.int(aten::add.Tensor(aten::bmm(aten::div.Scalar(q, 2.0), "
                    "aten::transpose.int(k, 1, 2)), "
                    "mask), -1), v)",
                    "aten::matmul(aten::softmax.int(aten::masked_fill.Scalar(aten::matmul(q, aten::transpose.int(k, "
                    "-2, -1)), aten::gt.Scalar(m, 0.5), -inf), -1), v)",
                    "aten::matmul(aten::to.dtype(aten::softmax.int(aten::to.dtype(aten::where.ScalarOther(aten::gt."
                    "Scalar(m, -0.5), aten::matmul(q, aten::transpose.int(k, -2, -1)), -inf), lit(torch.float32)), "
                    "-1), lit(torch.float32)), v)",
                    "aten::matmul(aten::dropout(aten::softmax.int(aten::add.Tensor(mask, aten::matmul(q, "
                    "aten::permute(k, [0, 1, 3, "
                    "2]))), -1), 0.1, False), v)"}},
  };
}

}  // namespace

std::span<const OptimizeRule> family() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "recognise-attention",
          .summary = "Calls scaled dot-product attention where softmax(q kᵀ · scale + mask) v is written out",
          .preconditions =
              "shapes known (--input): three or four dimensions, equal batches; the scale a literal, on q, on k or on "
              "the "
              "scores; a mask is added, of the scores' type, or fills with -inf by bools; no cast to a narrower type; "
              "dropout off; a row that an added mask hides altogether may be zeros for NaN",
          .order = 260,
          .group = Group::fusion,
          .promise = Promise::approximate,
          .rewrites = rewrites,
      },
  };
  return kFamily;
}

}  // namespace fx::rules::fusion_attention
