// Inline parts of ir/graph.h. Included from there only.
#pragma once

#include "ir/graph.h"

namespace fx {

// Erased nodes keep their links, so that an iterator standing on one leads back to the living.
template <typename NodeType>
inline Node* NodeIterator<NodeType>::step(Node* node, bool backward) {
  do {
    node = backward ? node->previous_ : node->next_;
  } while (node->erased_);
  return node;
}

}  // namespace fx
