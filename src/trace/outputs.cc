#include <fxgraph/trace/outputs.h>

#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>
#include <fxgraph/trace/session.h>

namespace fx::internal {

Argument ivalue_to_argument(Session& session, const c10::IValue& value) {
  if (value.isTensor()) return session.argument_for(value.toTensor());
  if (value.isTuple() || value.isList()) {
    std::vector<Argument> elements;
    if (value.isTuple()) {
      for (const c10::IValue& element : value.toTupleRef().elements()) {
        elements.push_back(ivalue_to_argument(session, element));
      }
      return Argument::tuple(elements);
    }
    for (const c10::IValue& element : value.toListRef()) elements.push_back(ivalue_to_argument(session, element));
    return Argument::list(elements);
  }
  if (value.isGenericDict()) {
    std::vector<Argument> pairs;
    for (const auto& item : value.toGenericDict()) {
      pairs.push_back(ivalue_to_argument(session, item.key()));
      pairs.push_back(ivalue_to_argument(session, item.value()));
    }
    return Argument::dict(pairs);
  }
  if (std::optional<Argument> literal = to_argument(value)) return std::move(*literal);
  throw Error(ErrorKind::unsupported, "symbolic_trace: the program returns a " + value.tagKind() +
                                          "; return tensors, numbers, strings or containers of such");
}

}  // namespace fx::internal
