// Concatenations of one, of concatenations, and of the parts of a split.
#include <fxgraph/rewriter/rules/rules.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include <fxgraph/ops/call.h>
#include <fxgraph/ops/element.h>

namespace fx::rules::simplify_concat {

namespace {

std::optional<std::int64_t> literal_of(const Argument* argument) {
  if (!argument || !argument->is_int()) return {};
  return argument->as_int();
}

/// The concatenation that stands in the list and joins along the same dimension for this one only, or nothing.
Call inner_concatenation(const Argument& element, std::int64_t dim) {
  const Node* node = element.node_or_null();
  const Call call = node && node->num_users() == 1 ? call_of(*node) : Call();
  if (!call || operator_name(call.schema()) != "aten::cat") return {};
  const Argument* list = call.argument(0);
  return list && list->is_sequence() && literal_of(call.argument(1)) == dim ? call : Call();
}

/// Whether what it joins is of one type: else it rounds some of it, on the way to a wider type perhaps.
Decision is_of_one_type(const Match& match, const Call& concatenation) {
  std::optional<DType> first;
  for (const Argument& part : concatenation.argument(0)->elements()) {
    const Node* node = part.node_or_null();
    const TensorFacts info = node ? match.info(*node) : TensorFacts();
    if (!info) return refuse("the types of what it joins are not known; give --input");
    if (first && *first != info.dtype()) return refuse("it joins values of different types");
    first = info.dtype();
  }
  return true;
}

Decision holds_concatenation(const Match& match) {
  const Argument& list = match.argument("list");
  if (!list.is_sequence()) return false;
  bool found = false;
  for (const Argument& element : list.elements()) {
    const Call inner = inner_concatenation(element, static_cast<std::int64_t>(match.literal("d")));
    if (!inner) continue;
    if (Decision decision = is_of_one_type(match, inner); !decision) return decision;
    found = true;
  }
  return found;
}

Node& flattened(const Match& match, Rewriter& rewriter) {
  std::vector<Argument> elements;
  for (const Argument& element : match.argument("list").elements()) {
    if (const Call inner = inner_concatenation(element, static_cast<std::int64_t>(match.literal("d")))) {
      const ArgumentSpan parts = inner.argument(0)->elements();
      elements.insert(elements.end(), parts.begin(), parts.end());
    } else {
      elements.push_back(element);
    }
  }
  return rewriter.call_function("aten::cat", {Argument::list(elements), match.argument("d")});
}

/// What was split, when the list holds all of its parts in order; null otherwise.
Node* split_whole(const Match& match) {
  const Argument& list = match.argument("list");
  if (!list.is_sequence() || list.elements().empty()) return nullptr;
  const Node* split = nullptr;
  for (std::size_t i = 0; i < list.elements().size(); ++i) {
    const Node* part = list.elements()[i].node_or_null();
    const std::optional<Element> taken = part ? taken_element(*part) : std::nullopt;
    if (!taken || (split && split != taken->of) || taken->index != static_cast<std::int64_t>(i)) return nullptr;
    split = taken->of;
  }
  static constexpr std::string_view kSplits[] = {"aten::chunk", "aten::split_with_sizes", "aten::split.sizes"};
  const Call call = call_of(*split);
  if (!call || std::ranges::find(kSplits, call.schema().target.view()) == std::end(kSplits)) return nullptr;
  if (literal_of(call.argument(2)) != static_cast<std::int64_t>(match.literal("d"))) return nullptr;
  const Argument* sizes = call.argument(1);
  const std::size_t count = !sizes                 ? 0
                            : sizes->is_int()      ? static_cast<std::size_t>(sizes->as_int())
                            : sizes->is_sequence() ? sizes->elements().size()
                                                   : 0;
  return count == list.elements().size() ? call.argument(0)->node_or_null() : nullptr;
}

std::vector<Rewrite> concatenations() {
  return {
      {.name = "one",
       .pattern = "aten::cat([x: node], _)",
       .replacement = "x",
       .examples = {"aten::cat([x], 0)", "aten::cat([x], -1)"}},
      {.name = "nested",
       .pattern = "aten::cat(list: any, d: int)",
       .when = holds_concatenation,
       .replacement = flattened,
       .examples = {"aten::cat([aten::cat([x, y], 0), z], 0)", "aten::cat([x, aten::cat([y, z], -1)], -1)",
                    "aten::cat([aten::cat([x, y], 1), aten::cat([z], 1)], 1)",
                    "torch.cat([torch.cat([x, y], dim=1), z], dim=1)"}},
      {.name = "of-split",
       .pattern = "aten::cat(list: any, d: int)",
       .when = [](const Match& m) -> Decision { return split_whole(m) != nullptr; },
       .replacement = [](const Match& m, Rewriter&) { return std::vector<Argument>{Argument(split_whole(m))}; },
       .examples = {"s = aten::chunk(x, 2, 0)\nreturn aten::cat([operator.getitem(s, 0), operator.getitem(s, 1)], 0)",
                    "s = aten::split_with_sizes(x, [1, 2], 0)\nreturn aten::cat([operator.getitem(s, 0), "
                    "operator.getitem(s, 1)], 0)",
                    "s = torch.chunk(x, chunks=2, dim=1)\nreturn torch.cat([operator.getitem(s, 0), "
                    "operator.getitem(s, 1)], dim=1)"}},
  };
}

}  // namespace

std::span<const OptimizeRule> family() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "concatenations",
          .summary = "Drops cat of one and cat of all parts of a split, makes cat of cat one",
          .preconditions = "the same dimension, written the same way; an inner cat has no other user, and is known to "
                           "join values of "
                           "one type (--input); parts complete and in order",
          .order = 250,
          .group = Group::simplify,
          .inference = true,
          .promise = Promise::bit_exact,
          .rewrites = concatenations,
      },
  };
  return kFamily;
}

}  // namespace fx::rules::simplify_concat
