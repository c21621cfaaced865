#include <fxgraph/trace/argument_inputs.h>

#include <fxgraph/run/value.h>
#include <fxgraph/trace/session.h>

namespace fx::internal {
namespace {

InputItem item_of(Argument argument) {
  InputItem item;
  item.node = argument.node_or_null();
  item.argument = std::move(argument);
  return item;
}

}  // namespace

bool ArgumentInputs::next(const Parameter& parameter, InputItem& item) {
  const std::size_t position = next_++;
  if (position >= arguments_.size()) {
    if (parameter.optional) return false;
    throw Error(ErrorKind::invalid_argument, "a function of more than " + std::to_string(arguments_.size()) +
                                                 " parameters is called with " + std::to_string(arguments_.size()));
  }
  item = item_of(arguments_[position]);
  return !item.argument.is_none();
}

at::Tensor ArgumentInputs::tensor(const InputItem& item) {
  if (item.argument.is_none()) return {};
  if (!item.node) wrong(item, "a tensor");
  return proxy_(*item.node);
}

c10::IValue ArgumentInputs::literal(const InputItem& item, ParameterKind kind) {
  const LiteralKind& wanted = literal_kind(kind);
  if (item.node) wrong(item, wanted.words);
  c10::IValue value = to_ivalue(item.argument);
  if (!wanted.fits(value)) wrong(item, wanted.words);
  return value;
}

std::vector<InputItem> ArgumentInputs::elements(const InputItem& item, std::size_t wanted) {
  std::vector<InputItem> parts;
  if (item.argument.is_sequence()) {
    for (const Argument& element : item.argument.elements()) parts.push_back(item_of(element));
  } else if (item.node && wanted != kAnyLength) {
    for (std::size_t i = 0; i < wanted; ++i) {
      parts.push_back(item_of(Argument(session().getitem(*item.node, static_cast<std::int64_t>(i)))));
    }
  } else {
    wrong(item, "a list or tuple");
  }
  if (wanted != kAnyLength && parts.size() != wanted) wrong(item, std::to_string(wanted) + " values");
  return parts;
}

std::vector<std::pair<std::string, InputItem>> ArgumentInputs::entries(const InputItem& item) {
  if (!item.argument.is_dict()) wrong(item, "a dict");
  std::vector<std::pair<std::string, InputItem>> result;
  const ArgumentSpan parts = item.argument.elements();
  for (std::size_t i = 0; i + 1 < parts.size(); i += 2) {
    result.emplace_back(std::string(parts[i].as_string()), item_of(parts[i + 1]));
  }
  return result;
}

void ArgumentInputs::wrong(const InputItem& item, std::string_view wanted) const {
  throw Error(ErrorKind::invalid_argument, "argument " + std::to_string(next_ - 1) +
                                               " of the traced function must be " + std::string(wanted) +
                                               ", but the node has " + to_string(item.argument));
}

}  // namespace fx::internal
