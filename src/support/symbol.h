// Interned strings: operator targets, module paths, argument names, name stems.
//
// A Symbol is a 32-bit number that stands for a text, the same number for the same text everywhere in the process, so
// that comparing, hashing and switching on targets costs one compare and a pattern's target can be compared with a
// graph's.
//
// Complexity: interning is one hash look-up (usually answered by a per-thread cache), reading the text back is two
// loads. Thread-safety: all functions may be called from any thread. Interned texts live as long as the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

namespace fx {

/// A text as a number: cheap to copy, compare and hash.
class Symbol {
 public:
  /// The empty text.
  constexpr Symbol() = default;
  /// Interns `text`: the same text gives the same symbol.
  /// @{
  Symbol(std::string_view text);  // NOLINT: a target is written as a string wherever one is wanted
  Symbol(const char* text) : Symbol(std::string_view(text)) {}
  Symbol(const std::string& text) : Symbol(std::string_view(text)) {}
  /// @}

  /// Returns the symbol of `text` if it was ever interned, else the empty symbol: a look-up that leaves no trace.
  static Symbol find(std::string_view text);
  /// The symbol of this id(), which must have come from one.
  static constexpr Symbol from_id(std::uint32_t id) { return Symbol(id, 0); }

  constexpr std::uint32_t id() const { return id_; }  ///< 0 for the empty text; numbers differ from run to run
  /// True for the empty text, which is also what find() returns for an unknown one.
  constexpr bool empty() const { return id_ == 0; }
  /// The text, valid as long as the process.
  std::string_view view() const;
  /// A copy of the text.
  std::string str() const { return std::string(view()); }

  /// Equal when the texts are.
  /// @{
  friend constexpr bool operator==(Symbol a, Symbol b) { return a.id_ == b.id_; }
  friend bool operator==(Symbol a, std::string_view b) { return a.view() == b; }
  friend bool operator==(Symbol a, const char* b) { return a.view() == b; }
  /// @}
  /// Orders by text, so that sorted output does not depend on what was interned first.
  friend bool operator<(Symbol a, Symbol b) { return a.view() < b.view(); }

 private:
  constexpr Symbol(std::uint32_t id, int) : id_(id) {}
  std::uint32_t id_ = 0;
};

/// Prints the text.
std::ostream& operator<<(std::ostream& out, Symbol symbol);

namespace internal {

/// What the process remembers of one symbol. The atomic fields are caches filled on first use by the layer named; zero
/// or null means "not computed yet".
struct SymbolEntry {
  std::string_view text;
  std::atomic<std::uint32_t> canonical_target{0};  ///< ir: the canonical spelling of this operator target
  std::atomic<std::uint64_t> node_name{0};         ///< ir: what nodes with this target are called
  std::atomic<const void*> schema{nullptr};        ///< ops: what it knows of this operator or function
};

/// Entries lie in chunks that never move, so that reading one takes no lock; the first chunk is there from the start,
/// and holds all that most processes have.
inline constexpr std::uint32_t kSymbolChunkBits = 12;
inline constexpr std::uint32_t kSymbolChunk = 1u << kSymbolChunkBits;
extern SymbolEntry first_symbols[kSymbolChunk];
extern std::atomic<SymbolEntry*> more_symbols[1u << 16];  // 2^28 symbols; that of the first chunk is not used

inline SymbolEntry& symbol_entry(Symbol symbol) {
  const std::uint32_t id = symbol.id();
  if (id < kSymbolChunk) return first_symbols[id];
  return more_symbols[id >> kSymbolChunkBits].load(std::memory_order_acquire)[id & (kSymbolChunk - 1)];
}

}  // namespace internal

inline std::string_view Symbol::view() const { return internal::symbol_entry(*this).text; }

}  // namespace fx

template <>
struct std::hash<fx::Symbol> {
  std::size_t operator()(fx::Symbol symbol) const noexcept { return symbol.id() * 0x9E3779B97F4A7C15ull; }
};
