// The nodes of a text by the names that the text gives them. Internal to src/text.
//
// Names come as `stem` or `stem_7`. Numbers of one stem are mostly dense and asked for near one another, so each stem
// keeps an array by number: on a million nodes that is one cache miss where a hash of the whole name is two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <fxgraph/ir/node.h>

namespace fx::internal {

class NameTable {
 public:
  /// The node of this name, or null.
  Node* find(std::string_view name) const;
  /// The place of this name's node, null when the name is new. The name must outlive the table, the place lives until
  /// the next call.
  Node*& operator[](std::string_view name);
  /// The known name with the fewest edits to `name`, or an empty text when nothing is near.
  std::string_view nearest(std::string_view name) const;

 private:
  struct Stem {
    std::string_view text;
    Node* node = nullptr;         // of the stem itself
    std::vector<Node*> numbered;  // of stem_0, stem_1, …
    std::uint32_t count = 0;      // of the names in `numbered`
    bool far_numbers = false;     // some numbers are kept with their whole names
  };
  struct Cell {
    std::uint32_t hash = 0;
    std::uint32_t stem = 0;  // 1 + index; 0: empty
  };
  struct Split {
    std::string_view stem;
    std::uint32_t number = 0;
    bool numbered = false;
  };

  static Split split(std::string_view name);
  static std::uint32_t hash_of(std::string_view text);
  const Stem* find_stem(std::string_view text) const;
  Stem& stem(std::string_view text);
  std::size_t probe(std::uint32_t hash, std::string_view text) const;
  void grow();

  std::vector<Stem> stems_;
  std::vector<Cell> cells_;
};

/// The number of single-character edits that turn `a` into `b`, or `limit` when there are at least that many.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit);

}  // namespace fx::internal
