// A small open-addressing hash map from 64-bit keys to small values.
//
// For the tables on hot paths (names, targets, common subexpressions), where a node-based map costs an allocation per
// entry. Linear probing over a power-of-two table at most half full. Keys may be anything but `kEmptyKey`. No erase.
// Iteration is deliberately absent, so that the order of the table can never show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fx {

template <typename Value>
class FlatMap {
 public:
  static constexpr std::uint64_t kEmptyKey = ~std::uint64_t{0};

  std::size_t size() const { return size_; }

  /// Returns the value of `key`, or null.
  const Value* find(std::uint64_t key) const {
    if (cells_.empty()) return nullptr;
    const Cell& cell = cells_[probe(key)];
    return cell.key == key ? &cell.value : nullptr;
  }
  Value* find(std::uint64_t key) { return const_cast<Value*>(static_cast<const FlatMap*>(this)->find(key)); }

  /// Returns the value of `key`, made with `Value()` if it is new. The reference lives until the next insertion.
  Value& operator[](std::uint64_t key) {
    Value* known = find(key);
    return known ? *known : insert(key);
  }

  void reserve(std::size_t count) {
    while (2 * (count + 1) > cells_.size()) grow();
  }

 private:
  struct Cell {
    std::uint64_t key = kEmptyKey;
    Value value{};
  };

  std::size_t probe(std::uint64_t key) const {
    std::uint64_t hash = key * 0x9E3779B97F4A7C15ull;
    std::size_t at = (hash ^ (hash >> 32)) & mask_;
    while (cells_[at].key != key && cells_[at].key != kEmptyKey) at = (at + 1) & mask_;
    return at;
  }

  [[gnu::noinline]] Value& insert(std::uint64_t key) {
    if (2 * (size_ + 1) > cells_.size()) grow();
    Cell& cell = cells_[probe(key)];
    cell.key = key;
    ++size_;
    return cell.value;
  }

  void grow() {
    std::vector<Cell> old(cells_.empty() ? 16 : 2 * cells_.size());
    old.swap(cells_);
    mask_ = cells_.size() - 1;
    for (Cell& cell : old) {
      if (cell.key != kEmptyKey) cells_[probe(cell.key)] = std::move(cell);
    }
  }

  std::vector<Cell> cells_;
  std::size_t mask_ = 0;  // one less than there are cells
  std::size_t size_ = 0;
};

}  // namespace fx
