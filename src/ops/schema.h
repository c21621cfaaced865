// Operator schemas: what an operator takes, what it returns, what it writes and what its results alias.
//
// A schema is parsed from its declaration,
//   aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
// and found again by its canonical target, `aten::add_.Tensor`. A built-in list knows the operators that models are
// made of; where LibTorch is linked it supplies every operator it has registered (set_schema_source), and a program
// adds its own (register_schema). Who is registered later wins: a program's own, then LibTorch's, then the built-in
// ones.
//
// Thread-safety: all functions may be called from any thread; schemas live as long as the process.
// Complexity: find_overload is three loads after the first question for a target; no other question allocates
// but overloads_of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/ir/graph.h>

namespace fx {

/// The type of an argument or result, as far as rewriting cares: its base, whether None may stand for it, and lists.
struct SchemaType {
  /// What the type is made of; `int[]` is a list of `integer`.
  enum class Base : std::uint8_t {
    tensor,
    scalar,    ///< `Scalar`, `number`: any number
    integer,   ///< `int`, `SymInt`
    floating,  ///< `float`, `SymFloat`
    boolean,   ///< `bool`, `SymBool`
    complex,
    string,
    dtype,  ///< `ScalarType`
    device,
    layout,
    memory_format,
    generator,
    other,  ///< type variables, `Any`, dictionaries, tuples, classes, lists of lists
  };
  Base base = Base::other;         ///< without list, optional and size
  bool optional = false;           ///< `Tensor?`
  bool list = false;               ///< `int[]`, `Tensor[]`, `int[2]`
  bool optional_elements = false;  ///< `Tensor?[]`
  std::uint8_t fixed_size = 0;     ///< `int[2]`: 2; a single value is accepted and repeated
  std::string text;                ///< as written, without alias annotation

  /// True for tensors and lists of tensors.
  bool is_tensor() const { return base == Base::tensor; }
};

/// `(a!)`, `(a)`, `(a! -> b)`, `(a -> *)`, `(*)`.
struct AliasInfo {
  std::uint32_t sets = 0;        ///< bit i: alias set 'a' + i; none: a fresh value
  std::uint32_t sets_after = 0;  ///< the sets after the call: `sets` unless an arrow says otherwise
  bool wildcard = false;         ///< may alias anything
  bool wildcard_after = false;   ///< after the call something unknown may alias it: `-> *`
  bool writes = false;           ///< `!`: the call writes to it
  std::uint16_t position = 0;    ///< where in SchemaType::text the annotation is written

  /// True when the declaration has no annotation there.
  bool empty() const { return !sets && !wildcard; }
};

/// One argument of a declaration.
struct SchemaArgument {
  Symbol name;                            ///< keywords are matched by it
  SchemaType type;                        ///< what may be passed
  AliasInfo alias;                        ///< what the call may do to it, and what the results share with it
  bool keyword_only = false;              ///< comes behind the `*` of the declaration
  std::optional<Argument> default_value;  ///< none: it must be passed
  // What the declaration does not say and the operator does:
  bool hidden_write = false;  ///< may be written all the same: the running statistics of batch_norm
  bool hidden_alias = false;  ///< the result may be it or share its storage: dropout in eval mode returns its input
};

/// One result of a declaration.
struct SchemaReturn {
  Symbol name;      ///< often empty
  SchemaType type;  ///< what is returned
  AliasInfo alias;  ///< which arguments it shares storage with
};

/// What the operator does beside computing its results, and the groups that patterns name.
struct OperatorTraits {
  bool writes = false;       ///< some argument may be written
  bool random = false;       ///< draws from a random generator
  bool side_effect = false;  ///< asserts, prints, changes global state
  bool view = false;         ///< some result aliases an argument that is not written
  bool pointwise = false;    ///< each output element depends on the input elements at its (broadcast) place only
  bool reduction = false;    ///< combines elements along dimensions
  bool commutative = false;  ///< the first two arguments may be swapped when every other has its default (add's alpha)
  bool zeros_by_order = false;  ///< of 0.0 and -0.0 gives the one that stands first, or last: max, min
  bool may_copy = false;        ///< a view, or a copy where no view will do: reshape, contiguous, to
  bool reads_strides = false;   ///< asks how its input lies in memory: stride, is_contiguous
  bool reads_storage = false;   ///< reads its input's storage by strides of its own, or asks where in it that lies
  bool restructures = false;    ///< gives what it writes other sizes or strides: t_, resize_, out= of another size
  /// Gives something else for an input that lies otherwise in memory.
  bool reads_layout() const { return reads_strides || reads_storage; }
};

/// An argument that turns an effect of the operator off when it is this literal: dropout draws nothing when `train` is
/// False.
struct EffectSwitch {
  /// Which effect is turned off.
  enum class Effect : std::uint8_t { random, writes, aliases };
  std::uint32_t argument;  ///< its position
  Argument off;            ///< the literal
  Effect effect;           ///< what does not happen then
};

/// A declaration, parsed, with what is known of the operator beside it.
class OperatorSchema {
 public:
  Symbol target;                          ///< canonical: `aten::add.Tensor`
  std::vector<SchemaArgument> arguments;  ///< in the order of the declaration
  std::vector<SchemaReturn> returns;      ///< one for each result
  bool varargs = false;                   ///< `...` after the arguments
  bool varreturns = false;                ///< `-> ...`
  OperatorTraits traits;                  ///< of the operator as a whole
  std::vector<EffectSwitch> switches;     ///< what literals among the arguments turn off

  /// True when a tensor, or a list of them, is among its results.
  bool returns_tensors() const {
    for (const SchemaReturn& each : returns) {
      if (each.type.is_tensor()) return true;
    }
    return false;
  }
  /// True when it gives what it writes other sizes or strides.
  bool is_inplace_view() const { return traits.restructures; }
  /// Position of the argument `name`, or -1.
  int index_of(Symbol name) const;
  /// The argument that result `i` is, of an operator that writes in place.
  std::optional<std::size_t> written_argument(std::size_t i) const;
  /// How many arguments may be given by position.
  std::size_t num_positional() const { return num_positional_; }
  /// The declaration, normalised: parse_schema reads it back to the same.
  std::string str() const;

 private:
  friend OperatorSchema parse_schema(std::string_view declaration);
  std::size_t num_positional_ = 0;
};

/// Parses one declaration, as LibTorch 1.13 to 2.x print them. The name may also be that of a plain function
/// (`my_module.scale(Tensor x, float by) -> Tensor`). Throws Error(syntax) with the column and what was expected.
OperatorSchema parse_schema(std::string_view declaration);

/// Returns the overload of this name, in any spelling that canonical_target knows, or null. A name without overload
/// means the one named "default" only. A node's target does not tell what it calls: ask call_of (fxgraph/ops/call.h).
const OperatorSchema* find_overload(Symbol target);

/// The target as Python spells it: `torch.ops.aten.relu.default`; without an overload, `torch.ops.aten.add`, when the
/// operator is known to have none of the name "default".
std::string spelled_target(Symbol target);

/// Returns all overloads of `packet` (`aten::add`): a program's own first, then in LibTorch's order.
std::vector<const OperatorSchema*> overloads_of(Symbol packet);

/// Adds the schema of an operator or function of the user's own, or replaces one. `traits` adds what a declaration
/// cannot say. From then on calls of it have these effects: how a pure function keeps from being taken for one that may
/// do anything.
const OperatorSchema& register_schema(std::string_view declaration, OperatorTraits traits = {});

/// Who is asked for the schemas of an operator before the built-in ones are. LibTorch's is installed by src/run.
struct SchemaSource {
  /// Returns the declarations of all overloads of `packet`, empty when there are none. Called under a lock, once per
  /// packet: it must not ask for schemas itself. A declaration that does not parse counts as absent.
  std::vector<std::string> (*overloads)(std::string_view packet) = nullptr;
};
/// Replaces the source; what was asked before is forgotten. Schemas that were handed out stay valid.
void set_schema_source(SchemaSource source);

/// Every target of the built-in list, sorted.
std::vector<Symbol> builtin_targets();

/// True when `a` and `b` are the same value for an argument of this type: 1 and [1, 1] are for `int[2]`, 1 and 1.0 for
/// `float`, a list and a tuple of equal elements for any list. Numbers for `Scalar` must agree in kind, which decides
/// dtypes.
bool same_argument(const SchemaType& type, const Argument& a, const Argument& b);

/// Returns why the call does not fit the schema (too many arguments, unknown or doubled keyword, missing argument,
/// wrong kind), or nothing when it fits. Nodes fit everything: their types are not known here.
std::optional<std::string> check_call(const OperatorSchema& schema, ArgumentSpan args, KwargSpan kwargs);

/// Picks the overload of `packet` that the call fits best: the first that fits with the fewest conversions (an int for
/// a float, a number for a tensor). A node counts as a tensor unless the call or annotation that makes it says
/// otherwise (`x.size(0)`, `x.shape[1] // 2`). Null when none fits; `why` then says what was tried.
const OperatorSchema* resolve_overload(Symbol packet, ArgumentSpan args, KwargSpan kwargs, std::string* why = nullptr);

/// Rewrites every call of torch's functions (`torch.relu`, `torch.nn.functional.relu`), Python's operators
/// (`operator.add`) and tensor methods that one ATen overload does exactly into a call of that overload, arguments
/// included, and spells out the overload of operators called without one; returns how many nodes changed. Calls that no
/// single overload does (`operator.getitem`, functionals with control flow) stay. Names, order and notes stay. A
/// placeholder without annotation is taken to be a tensor.
std::size_t normalize_operators(Graph& graph);

}  // namespace fx
