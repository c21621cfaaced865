// Unique node names, as FX makes them.
//
// A name is a stem and an optional number, `add` or `add_3`. FX's rules: a free candidate is kept; a taken or reserved
// one gets the next number of its stem. Names of erased nodes are never given out again.
//
// Complexity: O(1) per name, whatever the order of requests; 8 bytes a node and nothing per name while numbers are
// handed out in order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fxgraph/support/flat_map.h>
#include <fxgraph/support/symbol.h>

namespace fx {

/// A node's name: a stem, and a number unless it is kNoNumber.
struct NodeName {
  static constexpr std::uint32_t kNoNumber = ~std::uint32_t{0};  ///< says that a name is the stem alone
  Symbol stem;                                                   ///< `add` of `add_3`
  std::uint32_t number = kNoNumber;                              ///< 3 of `add_3`

  /// Appends `stem` or `stem_number`.
  void append_to(std::string& out) const;
  /// The name as text.
  std::string str() const;
  /// Same stem, same number.
  friend bool operator==(const NodeName&, const NodeName&) = default;
};

/// Splits a trailing `_<digits>` off `text`.
NodeName split_name(std::string_view text);

/// The names that one graph has given out.
class Namespace {
 public:
  /// Returns a fresh name for `candidate`: itself when free.
  NodeName create(NodeName candidate);

 private:
  struct Stem {
    std::uint32_t dense = 0;  // the numbers 1 … dense are all taken
    std::uint32_t last = 0;   // where counting goes on; at least every number taken
    bool bare_taken = false;  // or reserved
    bool known = false;       // false: whether it is reserved was not asked yet
  };
  static std::uint64_t key(Symbol stem, std::uint32_t number) { return (std::uint64_t{stem.id()} << 32) | number; }
  bool taken(const Stem& record, NodeName name) const;
  void take(Stem& record, NodeName name);

  FlatMap<Stem> stems_;
  FlatMap<char> scattered_;  // (stem, number) pairs beyond `dense`
};

}  // namespace fx
