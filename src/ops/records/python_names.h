// Which operators Python's functions and tensor methods stand for, as data.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <fxgraph/support/symbol.h>

namespace fx::internal {

/// A function or method with its Python parameters, and the call of an operator that does the same.
///
///   name        `torch.nn.functional.softmax`; a method starts with a dot: `.float`
///   parameters  `input, p=0.5, *rest`, in Python's order
///   when        conditions on them, all of which must hold: `dim!=None, return_indices=False`
///   call        `aten::softmax.int(input, dim, dtype)`: operator (with or without overload) and its arguments, which
///   are
///               parameters, literals, `parameter|literal` (the literal stands for None), `parameter@words` (the number
///               of a word, see python_words), `parameter@once`, `@left` and their like (see PythonItem), or `keyword=`
///               one of those. Without parentheses: the arguments are those of the operator already. Empty: no single
///               operator does it, but under these conditions the function has no effects.
///
/// A parameter `inplace` that is True calls the in-place form; one that is no literal makes the row not apply. Several
/// rows of one name are tried in order.
struct FunctionRow {
  std::string_view name;
  std::string_view parameters;
  std::string_view when;
  std::string_view call;
};
std::span<const FunctionRow> python_functions();

/// Words that Python takes where the operator takes their number: `mean` of the words `reduction` is 1.
struct WordRow {
  std::string_view words;
  std::string_view word;
  std::int64_t number;
};
std::span<const WordRow> python_words();

/// A function of module `operator`: the operators tried for it, and for a literal first operand, which tensors do not
/// have, the operator that takes the operands the other way round.
struct OperatorRow {
  std::string_view name;      // `operator.sub`
  std::string_view packet;    // `aten::sub`
  std::string_view numbers;   // the same on plain numbers, where it is another operator: `aten::floordiv`
  std::string_view mirrored;  // `aten::rsub`
};
std::span<const OperatorRow> python_operators();

/// Functions and methods that do more than one operator does, with effects like that operator's.
struct LikeRow {
  std::string_view name;
  std::string_view packet;
};
std::span<const LikeRow> like_operators();
/// TorchScript's operator that does what the function does, given the same arguments, where fx::Call knows none: on
/// numbers, strings and lists, and beside functions that turn their arguments round for some of them. Empty for others.
std::string_view script_operator(std::string_view name);

/// Functions outside ATen of which it is known what they do.
enum class KnownEffect : std::uint8_t {
  pure,
  aliases,
  random,
  side_effect,
  writes_first,
  keeps,  ///< writes to the first, which may hold the others from then on
  writes_any,
  writes_out,  ///< writes to an argument and returns it
};
struct KnownRow {
  std::string_view name;
  KnownEffect effect;
};
/// The effect of `name`, or null. Names under `math.` are all pure.
const KnownEffect* known_effect(std::string_view name);

/// True for what switches a mode of the thread: whether gradients are wanted, or autocast.
bool is_mode_switch(Symbol target);

/// Python modules whose functions are operators of the same name, with what stands before it: `torch.linalg.` is
/// `aten::linalg_`.
struct PrefixRow {
  std::string_view prefix;
  std::string_view packet_prefix;
};
std::span<const PrefixRow> operator_modules();

/// Python's other spelling of a keyword: `axis` for `dim`.
struct KeywordRow {
  std::string_view python;
  std::string_view aten;
};
std::span<const KeywordRow> keyword_synonyms();

}  // namespace fx::internal
