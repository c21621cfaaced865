// Which calls hand their input on as it is, and may be seen through.
#include <algorithm>
#include <array>

#include <fxgraph/matchers/compiled_pattern.h>

namespace fx::internal {

namespace {

/// When the result has the elements of the first argument.
enum class When : std::uint8_t {
  always,
  same_dtype,  ///< the result has the dtype that is there: asks for shapes
  eval,        ///< the argument `train` or `training` is False
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
    Copy{"aten::dropout", When::eval},
    Copy{"aten::feature_dropout", When::eval},
    Copy{"aten::alpha_dropout", When::eval},
    Copy{"aten::feature_alpha_dropout", When::eval},
};

bool keeps_dtype(const Node& node, const Node& input, const Shapes* shapes) {
  if (!shapes) return false;
  const TensorInfo* result = (*shapes)[node].tensor();
  const TensorInfo* given = (*shapes)[input].tensor();
  return result && given && result->dtype == given->dtype && result->device == given->device;
}

bool is_eval(const OperatorSchema& schema, const Node& node) {
  for (std::size_t i = 0; i < schema.arguments.size(); ++i) {
    if (schema.arguments[i].name != "train") continue;
    const Argument* value = bound_argument(schema, node, i);
    return value && value->is_bool() && !value->as_bool();
  }
  return false;
}

}  // namespace

Node* CompiledPattern::forwarded_operand(const Node& node) const {
  if (node.args().empty()) return nullptr;
  Node* input = node.args()[0].node_or_null();
  if (!input) return nullptr;
  if (node.is(Op::call_module)) {
    const std::string type = options_.module_type ? options_.module_type(node.target().view()) : "";
    return type == "Identity" || type.ends_with(".Identity") ? input : nullptr;
  }
  const OperatorSchema* schema = node.is(Op::call_function) || node.is(Op::call_method) ? schema_of(node) : nullptr;
  if (!schema) return nullptr;
  const std::string_view target = schema->target.view();
  const std::string_view name = target.substr(0, target.find('.'));
  const auto copy = std::find_if(kCopies.begin(), kCopies.end(), [&](const Copy& known) { return known.name == name; });
  if (copy == kCopies.end()) return nullptr;
  const bool fits = copy->when == When::always || (copy->when == When::eval && is_eval(*schema, node)) ||
                    (copy->when == When::same_dtype && keeps_dtype(node, *input, options_.shapes));
  return fits ? input : nullptr;
}

}  // namespace fx::internal
