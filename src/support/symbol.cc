#include <fxgraph/support/symbol.h>

#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <ostream>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

namespace fx {

namespace internal {
constinit SymbolEntry first_symbols[kSymbolChunk];
constinit std::atomic<SymbolEntry*> more_symbols[1u << 16];
}  // namespace internal

namespace {

using internal::kSymbolChunk;
using internal::kSymbolChunkBits;
using internal::more_symbols;
using internal::symbol_entry;
using internal::SymbolEntry;

class Table {
 public:
  Table() { intern(std::string_view()); }

  std::uint32_t find(std::string_view text) {
    std::shared_lock lock(mutex_);
    const auto it = ids_.find(text);
    return it == ids_.end() ? 0 : it->second;
  }

  std::uint32_t intern(std::string_view text) {
    if (const std::uint32_t id = find(text)) return id;
    std::unique_lock lock(mutex_);
    if (const auto it = ids_.find(text); it != ids_.end()) return it->second;
    const auto id = static_cast<std::uint32_t>(count_);
    if ((id >> kSymbolChunkBits) >= std::size(more_symbols)) throw std::bad_alloc();
    auto& chunk = more_symbols[id >> kSymbolChunkBits];
    if (id >= kSymbolChunk && !chunk.load(std::memory_order_relaxed))
      chunk.store(new SymbolEntry[kSymbolChunk], std::memory_order_release);
    SymbolEntry& entry = symbol_entry(Symbol::from_id(id));
    entry.text = store(text);
    ids_.emplace(entry.text, id);
    ++count_;
    return id;
  }

 private:
  std::string_view store(std::string_view text) {
    if (text.empty()) return {};
    if (used_ + text.size() > capacity_) {
      capacity_ = std::max<std::size_t>(text.size(), 64 * 1024);
      used_ = 0;
      blocks_.push_back(std::make_unique<char[]>(capacity_));
    }
    char* place = blocks_.back().get() + used_;
    std::memcpy(place, text.data(), text.size());
    used_ += text.size();
    return {place, text.size()};
  }

  std::shared_mutex mutex_;
  std::unordered_map<std::string_view, std::uint32_t> ids_;
  std::size_t count_ = 0;
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::size_t used_ = 0, capacity_ = 0;
};

// Never destroyed: symbols may be read by static destructors.
Table& table() {
  static Table* const instance = new Table;
  return *instance;
}

// A hash of the length and the last 16 bytes.
std::uint64_t hash_of_end(std::string_view text) {
  std::uint64_t a = 0, b = 0;
  if (text.size() >= 8) {
    std::memcpy(&a, text.data() + (text.size() >= 16 ? text.size() - 16 : 0), 8);
    std::memcpy(&b, text.data() + text.size() - 8, 8);
  } else {
    std::memcpy(&a, text.data(), text.size());
  }
  const std::uint64_t hash = (a ^ text.size()) * 0x9E3779B97F4A7C15ull;
  return (hash ^ (hash >> 32) ^ b) * 0xD6E8FEB86659FD93ull;
}

// A small per-thread cache in front of the lock: programs use the same few dozen targets again and again.
std::uint32_t intern_cached(std::string_view text) {
  if (text.empty()) return 0;
  thread_local std::array<std::uint32_t, 512> cache{};
  std::uint32_t& slot = cache[hash_of_end(text) >> 55];  // 9 bits: 512 slots
  if (slot != 0 && Symbol::from_id(slot) == text) return slot;
  return slot = table().intern(text);
}

}  // namespace

Symbol::Symbol(std::string_view text) : id_(intern_cached(text)) {}

Symbol Symbol::find(std::string_view text) { return from_id(table().find(text)); }

std::ostream& operator<<(std::ostream& out, Symbol symbol) { return out << symbol.view(); }

}  // namespace fx
