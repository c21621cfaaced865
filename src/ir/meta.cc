#include <fxgraph/ir/meta.h>

namespace fx {

void Meta::erase(Symbol key) {
  if (first_.first != key) {
    std::erase_if(others_, [&](const Entry& entry) { return entry.first == key; });
  } else if (others_.empty()) {
    first_ = {};
  } else {
    first_ = std::move(others_.front());
    others_.erase(others_.begin());
  }
}

std::vector<Symbol> Meta::keys() const {
  std::vector<Symbol> keys;
  if (!empty()) keys.push_back(first_.first);
  for (const Entry& entry : others_) keys.push_back(entry.first);
  return keys;
}

}  // namespace fx
