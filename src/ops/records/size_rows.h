// What rules of sizes are written with. A rule is a function that reads the arguments of one call, requires what the
// operator requires, and gives its results.
#pragma once

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/ops/records/operator_records.h>
#include <fxgraph/ops/records/size_inference.h>

namespace fx::internal {

using Sizes = std::vector<SizeExpr>;

/// One call, as rows see it. What cannot be read or decided ends the row: the call's results are not known then.
class SizeCall {
 public:
  SizeCall(const OperatorSchema& schema, std::span<const AbstractValue> arguments, SizeFacts& facts,
           FreshSymbols& fresh)
      : schema_(schema), arguments_(arguments), facts_(facts), fresh_(fresh) {}

  // ── Reading: the argument of this name ──────────────────────────────────────────────────────────────────────────
  const AbstractValue& argument(std::string_view name) const;
  /// True when the operator has it, and it is not None.
  bool given(std::string_view name) const;
  const TensorType& tensor(std::string_view name) const;
  const TensorType& self() const { return tensor("self"); }
  /// The type of a tensor of floats; of others the kernels tell.
  static DType float_type(const TensorType& tensor);
  /// Kernels take one type of floats; those that are wider than one of 16 bits refuse each other.
  static void require_type(const TensorType& tensor, DType dtype);
  /// The input of an operator that works on the last `count` dimensions of an image or a batch of them, where those of
  /// nothing are refused from dimension `from` on, or from the channels.
  const TensorType& image(std::size_t count, std::optional<std::size_t> from = {});
  /// Numbers that a list of one does not stand for.
  Sizes written_out(std::string_view name, std::size_t count) const;
  /// 2 of `max_pool2d`; 0 where no number is in the operator's name.
  std::size_t rank_of_name() const;
  /// The tensors of a list.
  std::vector<const TensorType*> tensors(std::string_view name) const;
  SizeExpr number(std::string_view name) const;
  /// A whole number that is no expression.
  std::int64_t literal(std::string_view name) const;
  /// A list of numbers; one number stands for `count`.
  Sizes numbers(std::string_view name, std::size_t count = 0) const;
  std::vector<std::int64_t> literals(std::string_view name, std::size_t count = 0) const;
  bool flag(std::string_view name) const;
  std::string text(std::string_view name) const;
  /// The dtype that is asked for; `otherwise` where none is.
  DType dtype(std::string_view name, DType otherwise) const;
  /// A dimension, counted from the front. Those of a tensor without any are 0 and -1.
  std::size_t dim(std::string_view name, std::size_t rank);
  std::size_t dim(std::int64_t written, std::size_t rank);
  /// Dimensions, each at most once, by position: true for those that are named; all when none is and `none_is_all`.
  std::vector<bool> dims(std::string_view name, std::size_t rank, bool none_is_all = true);

  // ── Deciding ────────────────────────────────────────────────────────────────────────────────────────────────────
  /// The operator refuses where it does not hold.
  void require(const SizeCondition& condition);
  /// One of them, each an equality or what a size is at least.
  void require_any(const std::vector<SizeCondition>& conditions);
  void require_equal(const SizeExpr& a, const SizeExpr& b) { require({SizeRelation::equal, a, b}); }
  void require_at_least(const SizeExpr& a, const SizeExpr& b) { require({SizeRelation::at_least, a, b}); }
  void require(bool condition, const char* what) const {
    if (!condition) refuse(what);
  }
  /// The operator refuses by what nothing is known of.
  void leave_unsaid(std::string what) { unsaid_ = std::move(what); }
  /// Whether it holds; ends the row where nothing decides.
  bool decide(const SizeCondition& condition) const;
  Answer answer(const SizeCondition& condition) const { return facts_.holds(condition); }
  bool is_certainly(const SizeExpr& a, std::int64_t b) const {
    return answer({SizeRelation::equal, a, b}) == Answer::yes;
  }
  [[noreturn]] static void refuse(std::string why);
  [[noreturn]] static void refuse_types(DType wanted, DType found);
  [[noreturn]] static void give_up(std::string why);
  [[noreturn]] static void give_up_rank(std::string why);  ///< not even how many dimensions there are
  /// A size of its own.
  SizeExpr fresh(SizeRange range) { return fresh_.next(facts_, range); }

  // ── Sizes ───────────────────────────────────────────────────────────────────────────────────────────────────────
  SizeExpr broadcast(std::span<const SizeExpr> sizes);
  Sizes broadcast(const std::vector<const Sizes*>& all);
  Sizes broadcast(const Sizes& a, const Sizes& b) { return broadcast({&a, &b}); }
  /// That of operands that go together element by element: broadcast, or, where the first is written, its own.
  Sizes common_sizes(std::span<const TensorType* const> operands);
  /// A tensor of this size is read at places that another names: there is one, or none is read.
  void require_places(const SizeExpr& size, const SizeExpr& reads) {
    require_any({{SizeRelation::at_least, size, 1}, {SizeRelation::equal, reads, 0}});
  }
  /// `x` expanded to exactly these sizes.
  void require_expands(const Sizes& x, const Sizes& to);
  /// Of a view or reshape of `numel` elements, one of whose sizes may be -1.
  Sizes reshaped(const SizeExpr& numel, Sizes sizes);

  // ── Element types ───────────────────────────────────────────────────────────────────────────────────────────────
  /// What arithmetic of the tensors and numbers among these arguments gives.
  DType promoted(std::initializer_list<std::string_view> names) const;
  DType promoted(std::span<const AbstractValue* const> values) const;

  // ── Giving ──────────────────────────────────────────────────────────────────────────────────────────────────────
  /// Strides that a row does not give are in order where those of all tensors that the call takes are, and where the
  /// operator puts them in order (gives_contiguous).
  void give(Sizes sizes, DType dtype) { give(TensorType{dtype, std::move(sizes), std::nullopt}); }
  void give(TensorType tensor);
  /// Of the sizes and the type of `self`.
  void give_same() { give(self().sizes, self().dtype); }
  void give(AbstractValue value) { results_.push_back(std::move(value)); }
  /// Several as one list.
  void give_list(std::vector<TensorType> tensors);

  /// What the operator of this name gives for these arguments, in its order.
  void give_as(Symbol target, std::span<const AbstractValue> arguments);

  const OperatorSchema& schema() const { return schema_; }
  std::span<const AbstractValue> arguments() const { return arguments_; }
  /// What is given to hold the result.
  bool is_out(std::size_t argument) const {
    return schema_.arguments[argument].keyword_only && schema_.arguments[argument].alias.writes;
  }
  InferredCall finished() &&;
  const std::vector<SizeCondition>& conditions() const { return conditions_; }

 private:
  bool gives_contiguous() const;
  /// Whether the memory format that is asked for puts the result in order; unknown where none is, or none of its own.
  Answer is_in_order(std::size_t rank) const;
  /// What is written in place keeps its form, which must be that of the result.
  void require_written(const TensorType& written, const TensorType& result);

  const OperatorSchema& schema_;
  std::span<const AbstractValue> arguments_;
  SizeFacts& facts_;
  FreshSymbols& fresh_;
  std::vector<SizeCondition> conditions_;
  std::vector<AbstractValue> results_;
  std::string unsaid_;
};

/// How a view of other sizes lies.
struct ViewStrides {
  std::optional<Sizes> strides;  ///< where one is certain
  bool is_decided = true;        ///< else whether there is one hangs on symbols
};

/// As LibTorch's computeStride has them. Where nothing tells whether two dimensions lie behind each other, each is
/// looked at by itself: what fits them so fits them in any case.
ViewStrides view_strides(const SizeCall& c, const TensorType& of, const Sizes& sizes);

/// The element types of LibTorch's promotion.
/// @{
DType promote(DType a, DType b);
bool is_float(DType dtype);
bool is_complex(DType dtype);
bool is_whole(DType dtype);  ///< bool among them
/// float32 of what is whole, as exp and division have it.
DType as_float(DType dtype);
/// float32 of complex64, as abs has it.
DType as_real(DType dtype);
/// @}

}  // namespace fx::internal
