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

namespace {

using internal::SymbolEntry;

constexpr std::size_t kChunkBits = 12;
constexpr std::size_t kChunkSize = std::size_t{1} << kChunkBits;
constexpr std::size_t kMaxChunks = std::size_t{1} << 16;  // 2^28 symbols

// Entries live in chunks that never move, so that reading an entry needs no lock.
class Table {
 public:
  Table() { intern(std::string_view()); }

  SymbolEntry& entry(std::uint32_t id) {
    return chunks_[id >> kChunkBits].load(std::memory_order_acquire)[id & (kChunkSize - 1)];
  }

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
    if ((id >> kChunkBits) >= kMaxChunks) throw std::bad_alloc();
    auto& chunk = chunks_[id >> kChunkBits];
    if (!chunk.load(std::memory_order_relaxed)) chunk.store(new SymbolEntry[kChunkSize], std::memory_order_release);
    SymbolEntry& entry = chunk.load(std::memory_order_relaxed)[id & (kChunkSize - 1)];
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
  std::array<std::atomic<SymbolEntry*>, kMaxChunks> chunks_{};
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
  if (slot != 0 && table().entry(slot).text == text) return slot;
  return slot = table().intern(text);
}

}  // namespace

Symbol::Symbol(std::string_view text) : id_(intern_cached(text)) {}

Symbol Symbol::find(std::string_view text) { return from_id(table().find(text)); }

std::string_view Symbol::view() const { return table().entry(id_).text; }

std::ostream& operator<<(std::ostream& out, Symbol symbol) { return out << symbol.view(); }

namespace internal {
SymbolEntry& symbol_entry(Symbol symbol) { return table().entry(symbol.id()); }
}  // namespace internal

}  // namespace fx
