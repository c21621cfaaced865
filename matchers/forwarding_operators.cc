// Which calls hand their input on as it is, and may be seen through.
#include <algorithm>
#include <array>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/matchers/compiled_pattern.h>

namespace fx::internal {

namespace {

/// When the result has the elements of the first argument.
enum class When : std::uint8_t {
  always,
  same_dtype,  ///< the result has the dtype that is there: asks for shapes
  idle,        ///< it draws nothing: in evaluation, or with a probability of 0
};

struct Copy {
  std::string_view name;  ///< operator without overload
  When when;
};

constexpr std::array kCopies = {
    Copy{"aten::alias", When::always},
    Copy{"aten::clone", When::always},
    Copy{"aten::contiguous", When::always},
    Copy{"aten::detach", When::always},
    Copy{"aten::lift_fresh", When::always},
    Copy{"aten::lift_fresh_copy", When::always},
    Copy{"aten::to", When::same_dtype},
    Copy{"aten::_to_copy", When::same_dtype},
    Copy{"aten::type_as", When::same_dtype},
    Copy{"aten::dropout", When::idle},
    Copy{"aten::feature_dropout", When::idle},
    Copy{"aten::alpha_dropout", When::idle},
    Copy{"aten::feature_alpha_dropout", When::idle},
};

bool keeps_dtype(const Node& node, const Node& input, const Shapes* shapes) {
  if (!shapes) return false;
  const TensorInfo* result = (*shapes)[node].tensor();
  const TensorInfo* given = (*shapes)[input].tensor();
  return result && given && result->dtype == given->dtype && result->device == given->device;
}

}  // namespace

Node* CompiledPattern::forwarded_operand(const Node& node) const {
  if (node.is(Op::call_module)) {
    Node* input = node.args().empty() ? nullptr : node.args()[0].node_or_null();
    const std::string type = options_.modules.type_of(node.target().view());
    return type == "Identity" || type.ends_with(".Identity") ? input : nullptr;
  }
  const Call& call = called(node);
  const Argument* first = call && !call.schema().arguments.empty() ? call.argument(0) : nullptr;
  Node* input = first ? first->node_or_null() : nullptr;
  if (!input) return nullptr;
  const std::string_view name = packet_of(call.schema().target.view());
  const auto copy = std::find_if(kCopies.begin(), kCopies.end(), [&](const Copy& known) { return known.name == name; });
  if (copy == kCopies.end()) return nullptr;
  const bool fits = copy->when == When::always || (copy->when == When::idle && !effects_of(node).random) ||
                    (copy->when == When::same_dtype && keeps_dtype(node, *input, options_.shapes));
  return fits ? input : nullptr;
}

}  // namespace fx::internal
