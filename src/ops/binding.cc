// Reading calls through their schemas.
#include <fxgraph/ops/schema_registry.h>

namespace fx {

namespace {

using Base = SchemaType::Base;

bool same_element(Base base, const Argument& a, const Argument& b) {
  if (a == b) return true;
  const bool as_float = base == Base::floating && (a.is_int() || a.is_float()) && (b.is_int() || b.is_float());
  if (as_float) return Argument(a.as_float()) == Argument(b.as_float());
  return false;
}

bool same_elements(const SchemaType& type, ArgumentSpan a, ArgumentSpan b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!same_element(type.base, a[i], b[i])) return false;
  }
  return true;
}

// A single value stands for `fixed_size` copies of it.
bool same_repeated(const SchemaType& type, const Argument& one, ArgumentSpan many) {
  if (type.fixed_size == 0 || many.size() != type.fixed_size) return false;
  for (const Argument& element : many) {
    if (!same_element(type.base, one, element)) return false;
  }
  return true;
}

}  // namespace

bool same_argument(const SchemaType& type, const Argument& a, const Argument& b) {
  if (a == b) return true;
  if (!type.list) return same_element(type.base, a, b);
  if (a.is_sequence() && b.is_sequence()) return same_elements(type, a.elements(), b.elements());
  if (a.is_sequence()) return same_repeated(type, b, a.elements());
  if (b.is_sequence()) return same_repeated(type, a, b.elements());
  return same_element(type.base, a, b);
}

}  // namespace fx
