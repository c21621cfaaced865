#include <fxgraph/text/name_table.h>

#include <algorithm>
#include <cstring>

#include <fxgraph/text/syntax.h>

namespace fx::internal {

// `stem_7` -> (stem, 7). A number with a leading zero or more than eight digits stays in the stem.
NameTable::Split NameTable::split(std::string_view name) {
  std::size_t at = name.size();
  while (at > 0 && is_digit(name[at - 1])) --at;
  const std::size_t digits = name.size() - at;
  if (digits == 0 || digits > 8 || at < 2 || name[at - 1] != '_' || (digits > 1 && name[at] == '0'))
    return {name, 0, false};
  std::uint32_t number = 0;
  for (const char c : name.substr(at)) number = number * 10 + static_cast<std::uint32_t>(c - '0');
  return {name.substr(0, at - 1), number, true};
}

std::uint32_t NameTable::hash_of(std::string_view text) {
  std::uint64_t hash = text.size();
  std::size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + i, 8);
    hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 32;
  }
  std::uint64_t tail = 0;
  for (; i < text.size(); ++i) tail = (tail << 8) | static_cast<unsigned char>(text[i]);
  hash = (hash ^ tail) * 0x9E3779B97F4A7C15ull;
  return static_cast<std::uint32_t>(hash >> 32);
}

std::size_t NameTable::probe(std::uint32_t hash, std::string_view text) const {
  const std::size_t mask = cells_.size() - 1;
  std::size_t at = hash & mask;
  while (cells_[at].stem != 0 && !(cells_[at].hash == hash && stems_[cells_[at].stem - 1].text == text))
    at = (at + 1) & mask;
  return at;
}

const NameTable::Stem* NameTable::find_stem(std::string_view text) const {
  if (cells_.empty()) return nullptr;
  const Cell& cell = cells_[probe(hash_of(text), text)];
  return cell.stem == 0 ? nullptr : &stems_[cell.stem - 1];
}

NameTable::Stem& NameTable::stem(std::string_view text) {
  if (2 * (stems_.size() + 1) > cells_.size()) grow();
  const std::uint32_t hash = hash_of(text);
  Cell& cell = cells_[probe(hash, text)];
  if (cell.stem == 0) {
    stems_.push_back({text, nullptr, {}, 0, false});
    cell = {hash, static_cast<std::uint32_t>(stems_.size())};
  }
  return stems_[cell.stem - 1];
}

void NameTable::grow() {
  std::vector<Cell> old(cells_.empty() ? 64 : 2 * cells_.size());
  old.swap(cells_);
  const std::size_t mask = cells_.size() - 1;
  for (const Cell& cell : old) {
    if (cell.stem == 0) continue;
    std::size_t at = cell.hash & mask;
    while (cells_[at].stem != 0) at = (at + 1) & mask;
    cells_[at] = cell;
  }
}

Node* NameTable::find(std::string_view name) const {
  if (const Split parts = split(name); parts.numbered) {
    const Stem* known = find_stem(parts.stem);
    if (known && parts.number < known->numbered.size() && known->numbered[parts.number])
      return known->numbered[parts.number];
  }
  const Stem* whole = find_stem(name);
  return whole ? whole->node : nullptr;
}

Node*& NameTable::operator[](std::string_view name) {
  const Split parts = split(name);
  if (!parts.numbered) return stem(name).node;
  Stem& known = stem(parts.stem);
  if (known.far_numbers) {
    if (const Stem* whole = find_stem(name); whole && whole->node) return stem(name).node;
  }
  if (parts.number < known.numbered.size()) return known.numbered[parts.number];
  // A number far beyond the names of its stem goes with its whole name, so that no array outgrows the text.
  if (parts.number > 2 * known.count + 16) {
    known.far_numbers = true;
    return stem(name).node;
  }
  ++known.count;
  known.numbered.resize(parts.number + 1, nullptr);
  return known.numbered[parts.number];
}

std::string_view NameTable::nearest(std::string_view name) const {
  const std::string_view wanted = split(name).stem;
  std::size_t best = std::max<std::size_t>(1, wanted.size() / 3) + 1;
  std::string_view nearest;
  for (const Stem& candidate : stems_) {
    if (!candidate.node) continue;
    const std::size_t distance = edit_distance(name, candidate.text, best);
    if (distance < best) {
      best = distance;
      nearest = candidate.text;
    }
  }
  return nearest;
}

std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit) {
  if (a.size() > b.size() + limit || b.size() > a.size() + limit || a.size() > 256) return limit;
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return std::min(row[b.size()], limit);
}

}  // namespace fx::internal
