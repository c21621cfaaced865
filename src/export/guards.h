// Guards: what an exported program holds for. Sizes have ranges; what they must satisfy beside these is Python's text:
//
//   L['v'].size()[0] == L['w'].size()[0]
//   2*(L['flat_args'][1].size()[0] // 4) >= 2
//
// These are conditions of SizeExpr, whose symbols are what is asked of an input: `L['flat_args'][1].size()[0]`. Checked
// is all of it by a GraphModule: one placeholder per argument, an assertion per dimension, per value that is always the
// same and per container, no result. The graph calls it as `_guards_fn`, the name that torch.export uses.
//
// Costs: linear in the texts and inputs. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/export/input_notes.h>
#include <fxgraph/module/graph_module.h>
#include <fxgraph/symbolic/size_facts.h>

namespace fx::pt2 {

inline constexpr const char* kGuards = "_guards_fn";

/// What is asked of an input.
struct AskedSize {
  std::string kind;         ///< `value`, `size`, `stride`, `dim`, `numel`
  std::size_t leaf = 0;     ///< the input, among all values of the call
  std::int64_t number = 0;  ///< the dimension that is asked for, of the second and third

  /// As guards name it, whoever called it what.
  SizeExpr symbol() const;
  /// What a symbol of a guard asks.
  static AskedSize of(std::string_view symbol);
};

/// The step from a container to what is in it: a key or an index.
struct GuardStep {
  std::string key;  ///< empty: an index
  std::int64_t index = 0;
};

/// Which value of the call a path names: `L['d']['a'][0]` is d, a, 0. Nothing for one that is not there.
using GuardPath = std::function<std::optional<std::size_t>(const std::vector<GuardStep>&)>;

/// The condition; nothing for a text that says something else than is read here.
std::optional<SizeExpr> parse_guard(std::string_view text, const GuardPath& leaf_of);
/// Python's text.
std::string guard_text(const SizeExpr& guard);
/// A condition as a guard.
SizeExpr guard_of(const SizeCondition& condition);

/// An input, or a part of one: a value of the call, or a container and how it is packed.
struct CheckedInput {
  static constexpr std::size_t kNone = SIZE_MAX;

  Node* node = nullptr;              ///< in the program: a placeholder, or a getitem of what is checked before it
  std::size_t leaf = kNone;          ///< of a value: its place among all of the call
  const CallValue* value = nullptr;  ///< of a value
  const TreeSpec* spec = nullptr;    ///< of a container
  std::string type{};                ///< its annotation, where there is one
};

/// A guard, and what is said when it does not hold.
struct StatedGuard {
  SizeExpr guard;
  std::string message;
};
/// In the metadata of the program: conditions on its inputs that have reasons, `[[guard, reason], …]`.
inline constexpr const char* kReasonsNote = "fxgraph_reasons";

/// It takes the inputs that are in no other. `check_sizes`: of tensors and numbers, too. `reasons` come first: what
/// follows from them is not said again. Null when there is nothing to check. Throws Error(unsupported) for a size whose
/// symbols no input tells.
std::shared_ptr<GraphModule> make_guards(const std::vector<CheckedInput>& inputs, const SizeRanges& ranges,
                                         const std::vector<StatedGuard>& reasons,
                                         const std::vector<StatedGuard>& guards, bool check_sizes);

/// The program as text, which holds no modules: what is asked of its inputs is written out.
std::string text_of(const GraphModule& module);

}  // namespace fx::pt2
