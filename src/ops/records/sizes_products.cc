// Products of matrices and vectors.
#include <algorithm>
#include <map>

#include <fxgraph/ops/records/einsum_equation.h>
#include <fxgraph/ops/records/size_rows.h>

namespace fx::internal {
namespace product_rows {
namespace {

/// All of one type of float; others are left to the kernels, which take another beside float32 or float64 where there
/// is nothing to multiply alone.
DType common_type(std::initializer_list<const TensorType*> tensors) {
  const DType first = (*tensors.begin())->dtype;
  for (const TensorType* each : tensors) {
    const auto is_wide = [](DType type) { return type == DType::float32 || type == DType::float64; };
    if (each->dtype != first && (is_wide(first) || is_wide(each->dtype))) SizeCall::refuse_types(first, each->dtype);
  }
  const DType dtype = SizeCall::float_type(**tensors.begin());
  for (const TensorType* each : tensors) SizeCall::require_type(*each, dtype);
  return dtype;
}

/// The same of a product that something is added to, of which kernels take more types.
DType common_type(const TensorType& added, std::initializer_list<const TensorType*> factors) {
  const DType dtype = common_type(factors);
  SizeCall::require_type(added, dtype);
  return dtype;
}

void require_rank(const SizeCall& c, const TensorType& tensor, std::size_t rank) {
  c.require(tensor.sizes.size() == rank, rank == 1 ? "a vector" : rank == 2 ? "a matrix" : "a batch of matrices");
}

Sizes product(SizeCall& c, const Sizes& a, const Sizes& b) {
  c.require(!a.empty() && !b.empty(), "at least one dimension");
  const SizeExpr& inner = b.size() == 1 ? b[0] : b[b.size() - 2];
  c.require_equal(a.back(), inner);
  const Sizes batch_a(a.begin(), a.end() - static_cast<std::ptrdiff_t>(std::min<std::size_t>(a.size(), 2)));
  const Sizes batch_b(b.begin(), b.end() - static_cast<std::ptrdiff_t>(std::min<std::size_t>(b.size(), 2)));
  Sizes sizes = c.broadcast(batch_a, batch_b);
  if (a.size() > 1) sizes.push_back(a[a.size() - 2]);
  if (b.size() > 1) sizes.push_back(b.back());
  return sizes;
}

/// Of two matrices, or two batches of as many, that do not broadcast.
Sizes product_of(SizeCall& c, const TensorType& a, const TensorType& b, std::size_t rank) {
  require_rank(c, a, rank);
  require_rank(c, b, rank);
  if (rank == 3) c.require_equal(a.sizes[0], b.sizes[0]);
  c.require_equal(a.sizes[rank - 1], b.sizes[rank - 2]);
  Sizes sizes = a.sizes;
  sizes.back() = b.sizes.back();
  return sizes;
}

template <std::size_t rank>
void plain_product(SizeCall& c) {
  const TensorType &a = c.self(), &b = c.tensor("mat2");
  c.give(product_of(c, a, b, rank), common_type({&a, &b}));
}

void matmul(SizeCall& c) {
  const TensorType &a = c.self(), &b = c.tensor("other");
  c.give(product(c, a.sizes, b.sizes), common_type({&a, &b}));
}

// (self, mat1, mat2), or of batches
template <std::size_t rank>
void added_product(SizeCall& c) {
  const TensorType &self = c.self(), &a = c.tensor(rank == 2 ? "mat1" : "batch1"),
                   &b = c.tensor(rank == 2 ? "mat2" : "batch2");
  Sizes sizes = product_of(c, a, b, rank);
  c.require_expands(self.sizes, sizes);
  if (rank == 3 && self.dtype != a.dtype) SizeCall::give_up("types that are promoted");
  c.give(std::move(sizes), common_type(self, {&a, &b}));
}

// (self, batch1, batch2): summed up over the batch
void summed_product(SizeCall& c) {
  const TensorType &self = c.self(), &a = c.tensor("batch1"), &b = c.tensor("batch2");
  require_rank(c, a, 3);
  require_rank(c, b, 3);
  c.require_equal(a.sizes[0], b.sizes[0]);
  c.require_equal(a.sizes[2], b.sizes[1]);
  Sizes sizes = {a.sizes[1], b.sizes[2]};
  if (c.schema().written_argument(0) && self.sizes != sizes) SizeCall::give_up("a tensor that may get other sizes");
  c.require_expands(self.sizes, sizes);
  c.give(std::move(sizes), common_type(self, {&a, &b}));
}

// (input, weight, bias)
void linear(SizeCall& c) {
  const TensorType &input = c.tensor("input"), &weight = c.tensor("weight");
  c.require(!input.sizes.empty(), "at least one dimension");
  if (weight.sizes.size() != 2) SizeCall::give_up("a weight that is no matrix");
  c.require_equal(input.sizes.back(), weight.sizes[1]);
  Sizes sizes = input.sizes;
  sizes.back() = weight.sizes[0];
  const TensorType* bias = c.given("bias") ? &c.tensor("bias") : nullptr;
  if (bias) c.require_expands(bias->sizes, sizes);
  const DType dtype = common_type({&input, &weight});
  if (bias && bias->dtype != dtype) SizeCall::give_up("a bias of another type, which some kernels add");
  c.give(std::move(sizes), dtype);
}

void matrix_vector(SizeCall& c) {
  const TensorType &a = c.self(), &b = c.tensor("vec");
  require_rank(c, a, 2);
  require_rank(c, b, 1);
  c.require_equal(a.sizes[1], b.sizes[0]);
  c.give({a.sizes[0]}, common_type({&a, &b}));
}

void added_matrix_vector(SizeCall& c) {
  const TensorType &self = c.self(), &a = c.tensor("mat"), &b = c.tensor("vec");
  require_rank(c, a, 2);
  require_rank(c, b, 1);
  c.require_equal(a.sizes[1], b.sizes[0]);
  if (self.sizes.empty() || a.numel() == SizeExpr(0)) SizeCall::give_up("a number to add to, or nothing to add");
  c.require_expands(self.sizes, {a.sizes[0]});
  c.give({a.sizes[0]}, common_type(self, {&a, &b}));
}

void dot(SizeCall& c) {
  const TensorType &a = c.self(), &b = c.tensor(c.given("tensor") ? "tensor" : "other");
  require_rank(c, a, 1);
  require_rank(c, b, 1);
  c.require_equal(a.sizes[0], b.sizes[0]);
  c.give(Sizes(), common_type({&a, &b}));
}

void outer(SizeCall& c) {
  const TensorType &a = c.self(), &b = c.tensor("vec2");
  require_rank(c, a, 1);
  require_rank(c, b, 1);
  const DType dtype = c.promoted({"self", "vec2"});
  if (dtype == DType::boolean) SizeCall::give_up("arithmetic of bool");
  c.give({a.sizes[0], b.sizes[0]}, dtype);
}

// (query, key, value, attn_mask, …)
void attention(SizeCall& c) {
  const TensorType &query = c.tensor("query"), &key = c.tensor("key"), &value = c.tensor("value");
  c.require(query.sizes.size() >= 2 && key.sizes.size() >= 2 && value.sizes.size() >= 2, "at least two dimensions");
  if (query.sizes.size() != key.sizes.size() || key.sizes.size() != value.sizes.size())
    SizeCall::give_up("tensors that broadcast");
  const std::size_t rank = query.sizes.size();
  Sizes sizes = query.sizes;
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    c.require_equal(query.sizes[i], key.sizes[i]);
    c.require_equal(key.sizes[i], value.sizes[i]);
  }
  for (const TensorType* each : {&query, &key}) SizeCall::float_type(*each);  // others become that when they are scaled
  c.require_equal(query.sizes[rank - 1], key.sizes[rank - 1]);
  c.require_equal(key.sizes[rank - 2], value.sizes[rank - 2]);
  sizes.back() = value.sizes.back();
  c.give(std::move(sizes), common_type({&query, &key, &value}));
}

/// Which operands go together, two at a time.
void require_path(const SizeCall& c, std::size_t operands) {
  const std::vector<std::int64_t> path = c.literals("path");
  c.require(path.size() == (operands == 1 ? 1 : 2 * (operands - 1)), "a pair of operands for each product");
  for (std::size_t i = 0; i + 1 < path.size(); i += 2) {
    const auto left = static_cast<std::int64_t>(operands - i / 2);
    const auto [a, b] = std::minmax(path[i], path[i + 1]);
    c.require(a >= 0 && b < left && a != b, "operands that are there");
  }
}

// (equation, tensors, path)
void einsum(SizeCall& c) {
  const std::string equation = c.text("equation");
  const std::vector<const TensorType*> tensors = c.tensors("tensors");
  c.require(!tensors.empty(), "at least one tensor");
  std::vector<std::size_t> ranks;
  for (const TensorType* each : tensors) ranks.push_back(each->sizes.size());
  const std::optional<EinsumEquation> read = EinsumEquation::read(equation, ranks);
  c.require(read.has_value(), "an equation of these tensors");
  if (c.given("path")) require_path(c, tensors.size());
  const DType dtype = SizeCall::float_type(*tensors[0]);
  std::map<int, Sizes> labelled;  // of each operand one
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i]->dtype != dtype) SizeCall::give_up("types that its kernel may refuse");
    std::map<int, SizeExpr> own;
    for (std::size_t dim = 0; dim < ranks[i]; ++dim) {
      const auto [first, is_new] = own.emplace(read->operands[i][dim], tensors[i]->sizes[dim]);
      if (is_new) labelled[first->first].push_back(first->second);
      if (!is_new) c.require_equal(first->second, tensors[i]->sizes[dim]);  // a diagonal
    }
  }
  std::map<int, SizeExpr> sizes;
  for (const auto& [label, all] : labelled) sizes.emplace(label, c.broadcast(all));
  Sizes output;
  for (const int label : read->output) output.push_back(sizes.at(label));
  c.give(AbstractValue(TensorType{dtype, std::move(output), std::nullopt}));  // it may be a view
}

// (x1, x2, p, …)
void distances(SizeCall& c) {
  const TensorType &a = c.tensor("x1"), &b = c.tensor("x2");
  c.require(a.sizes.size() >= 2 && b.sizes.size() >= 2, "at least two dimensions");
  c.require_equal(a.sizes.back(), b.sizes.back());
  Sizes sizes = c.broadcast(Sizes(a.sizes.begin(), a.sizes.end() - 2), Sizes(b.sizes.begin(), b.sizes.end() - 2));
  sizes.push_back(a.sizes[a.sizes.size() - 2]);
  sizes.push_back(b.sizes[b.sizes.size() - 2]);
  c.give(std::move(sizes), common_type({&a, &b}));
}

// (input1, input2, weight, bias)
void bilinear(SizeCall& c) {
  const TensorType &a = c.tensor("input1"), &b = c.tensor("input2"), &weight = c.tensor("weight");
  require_rank(c, weight, 3);
  c.require(!a.sizes.empty() && a.sizes.size() == b.sizes.size(), "inputs of as many dimensions");
  for (std::size_t i = 0; i + 1 < a.sizes.size(); ++i) c.require_equal(a.sizes[i], b.sizes[i]);
  c.require_equal(a.sizes.back(), weight.sizes[1]);
  c.require_equal(b.sizes.back(), weight.sizes[2]);
  if (weight.numel() == SizeExpr(0)) SizeCall::give_up("a weight without elements");
  for (const SizeExpr& size : weight.sizes) c.require_at_least(size, 1);
  Sizes sizes = a.sizes;
  sizes.back() = weight.sizes[0];
  if (c.given("bias")) {
    common_type({&a, &c.tensor("bias")});
    if (c.tensor("bias").sizes.size() != 1) SizeCall::give_up("a bias that is no vector");
    c.require_equal(c.tensor("bias").sizes[0], weight.sizes[0]);
  }
  c.give(std::move(sizes), common_type({&a, &b, &weight}));
}

// (self, p): the distances between its rows, each pair once
void pairs(SizeCall& c) {
  const TensorType& self = c.self();
  c.require(self.sizes.size() == 2, "a matrix");
  const SizeExpr& rows = self.sizes[0];
  c.give({floor_div(rows * (rows - 1), 2)}, SizeCall::float_type(self));
}

/// Of matrices that lie column by column, as LAPACK makes them.
TensorType by_columns(DType dtype, Sizes sizes) {
  Sizes strides = contiguous_strides(sizes);
  const std::size_t rank = sizes.size();
  strides[rank - 1] = sizes[rank - 2];
  strides[rank - 2] = 1;
  return {dtype, std::move(sizes), std::move(strides)};
}

const TensorType& square_matrices(SizeCall& c) {
  const TensorType& matrices = c.tensor(c.schema().arguments[0].name.view());
  c.require(matrices.sizes.size() >= 2, "matrices");
  SizeCall::float_type(matrices);
  if (matrices.dtype != DType::float32 && matrices.dtype != DType::float64) SizeCall::give_up("its kernel tells");
  c.require_equal(matrices.sizes[matrices.sizes.size() - 2], matrices.sizes.back());
  if (c.answer({SizeRelation::at_least, matrices.sizes.back(), 1}) != Answer::yes) SizeCall::give_up("no numbers");
  return matrices;
}

// (A, check_errors) -> (result, info)
void factored(SizeCall& c) {
  if (c.flag("check_errors")) SizeCall::give_up("numbers that may be refused");
  const TensorType& matrices = square_matrices(c);
  c.give(by_columns(matrices.dtype, matrices.sizes));
  c.give(Sizes(matrices.sizes.begin(), matrices.sizes.end() - 2), DType::int32);
}

// (A) -> (result, LU, pivots)
void determinant(SizeCall& c) {
  const TensorType& matrices = square_matrices(c);
  const Sizes batch(matrices.sizes.begin(), matrices.sizes.end() - 2),
      rows(matrices.sizes.begin(), matrices.sizes.end() - 1);
  c.give(batch, matrices.dtype);
  c.give(by_columns(matrices.dtype, matrices.sizes));
  c.give(rows, DType::int32);
}

// (A, B, left, check_errors) -> (result, LU, pivots, info)
void solved(SizeCall& c) {
  if (c.flag("check_errors")) SizeCall::give_up("numbers that may be refused");
  const TensorType &matrices = square_matrices(c), &right = c.tensor("B");
  const std::size_t rank = matrices.sizes.size();
  if (right.sizes.size() != rank) SizeCall::give_up("vectors, or batches of several ranks");
  const bool from_left = c.flag("left");
  c.require_equal(right.sizes[from_left ? rank - 2 : rank - 1], matrices.sizes.back());
  const Sizes batch(matrices.sizes.begin(), matrices.sizes.end() - 2),
      rows(matrices.sizes.begin(), matrices.sizes.end() - 1);
  Sizes sizes = c.broadcast(batch, Sizes(right.sizes.begin(), right.sizes.end() - 2));
  sizes.insert(sizes.end(), right.sizes.end() - 2, right.sizes.end());
  const DType dtype = common_type({&matrices, &right});
  TensorType result = by_columns(dtype, std::move(sizes));
  if (!from_left) result.strides = contiguous_strides(result.sizes);
  c.give(std::move(result));
  c.give(by_columns(dtype, matrices.sizes));
  c.give(rows, DType::int32);
  c.give(batch, DType::int32);
}

// (A, full_matrices, compute_uv) -> (U, S, Vh)
void singular_values(SizeCall& c) {
  const TensorType& matrices = c.tensor("A");
  const std::size_t rank = matrices.sizes.size();
  c.require(rank >= 2, "matrices");
  if (c.given("driver")) SizeCall::give_up("its kernel tells");
  const SizeExpr &rows = matrices.sizes[rank - 2], &columns = matrices.sizes[rank - 1], few = min(rows, columns);
  const DType dtype = SizeCall::float_type(matrices);
  const bool full = c.flag("full_matrices"), vectors = c.flag("compute_uv");
  const auto of_batch = [&](std::initializer_list<SizeExpr> sizes) {
    Sizes all(matrices.sizes.begin(), matrices.sizes.end() - 2);
    all.insert(all.end(), sizes);
    return all;
  };
  const auto give_vectors = [&](const Sizes& sizes) {
    c.give(vectors ? by_columns(dtype, sizes) : TensorType{dtype, {0}, Sizes{1}});
  };
  give_vectors(of_batch({rows, full ? rows : few}));
  c.give(of_batch({few}), dtype);
  give_vectors(of_batch({full ? columns : few, columns}));
}

// (self): of the diagonal
void trace(SizeCall& c) {
  require_rank(c, c.self(), 2);
  const DType dtype = c.self().dtype;
  if (dtype == DType::boolean || !(is_whole(dtype) || is_float(dtype))) SizeCall::give_up("its kernel tells");
  c.give(Sizes(), is_whole(dtype) ? DType::int64 : dtype);
}

using enum OperatorFlag;

constexpr OperatorRecord kRows[] = {
    {"_linalg_solve_ex", solved},
    {"_linalg_svd", singular_values},
    {"trace", trace},
    {"linalg_inv_ex linalg_cholesky_ex", factored},
    {"_linalg_det", determinant},
    {"mm", plain_product<2>, gives_contiguous, cost::matrices<0>},
    {"bmm", plain_product<3>, gives_contiguous, cost::matrices<0>},
    {"matmul", matmul, gives_contiguous, cost::matrices<0>},
    {"linalg_matmul", matmul},
    {"addmm", added_product<2>, gives_contiguous, cost::matrices<1>},
    {"baddbmm", added_product<3>, gives_contiguous, cost::matrices<1>},
    {"addbmm", summed_product, {}, cost::matrices<1>},
    {"linear", linear, gives_contiguous, cost::linear},
    {"mv", matrix_vector, {}, cost::matrices<0>},
    {"addmv", added_matrix_vector},
    {"dot", dot, {}, cost::matrices<0>},
    {"vdot", dot},
    {"outer", outer, gives_contiguous},
    {"ger", outer},
    {"scaled_dot_product_attention", attention, is_composite, cost::attention},
    {"einsum", einsum, is_composite, cost::einsum},
    {"cdist", distances, is_composite},
    {"pdist", pairs},
    {"bilinear", bilinear},
};

}  // namespace
}  // namespace product_rows

std::span<const OperatorRecord> product_operators() { return product_rows::kRows; }

}  // namespace fx::internal
