#include <fxgraph/ir/namespace.h>

#include <algorithm>
#include <array>
#include <charconv>

#include <fxgraph/ir/target.h>

namespace fx {

namespace {
constexpr std::uint32_t kNumberLimit = 1'000'000'000;
}  // namespace

void NodeName::append_to(std::string& out) const {
  out += stem.view();
  if (number == kNoNumber) return;
  std::array<char, 12> buffer;
  buffer[0] = '_';
  out.append(buffer.data(), std::to_chars(buffer.data() + 1, buffer.data() + buffer.size(), number).ptr);
}

std::string NodeName::str() const {
  std::string out;
  append_to(out);
  return out;
}

NodeName split_name(std::string_view text) {
  const std::size_t digits = text.find_last_not_of("0123456789") + 1;
  const std::size_t count = text.size() - digits;
  // Numbers of ten digits and more stay part of the stem: they cannot be counted on in 32 bits.
  // So do those written with a leading zero: `x_01` and `x_1` are two names.
  const bool numbered =
      count > 0 && count < 10 && digits > 0 && text[digits - 1] == '_' && (text[digits] != '0' || count == 1);
  if (!numbered) return {Symbol(text), NodeName::kNoNumber};
  std::uint32_t number = 0;
  std::from_chars(text.data() + digits, text.data() + text.size(), number);
  return {Symbol(text.substr(0, digits - 1)), number};
}

bool Namespace::taken(const Stem& record, NodeName name) const {
  if (name.number == NodeName::kNoNumber) return record.bare_taken;
  if (name.number >= 1 && name.number <= record.dense) return true;
  return scattered_.find(key(name.stem, name.number)) != nullptr;
}

void Namespace::take(Stem& record, NodeName name) {
  if (name.number == NodeName::kNoNumber) {
    record.bare_taken = true;
    return;
  }
  if (name.number == record.dense + 1) {
    ++record.dense;
    while (scattered_.find(key(name.stem, record.dense + 1))) ++record.dense;
  } else {
    scattered_[key(name.stem, name.number)] = 1;
  }
  record.last = std::max(record.last, name.number);
}

NodeName Namespace::create(NodeName candidate) {
  Stem& record = stems_[candidate.stem.id()];
  if (!record.known) {
    record.known = true;
    record.bare_taken = is_reserved_name(candidate.stem.view());
  }
  if (taken(record, candidate)) {
    // A number of ten digits would read back as part of the stem; the first gap is free too.
    candidate.number = record.last + 1 < kNumberLimit ? record.last + 1 : record.dense + 1;
  }
  take(record, candidate);
  return candidate;
}

}  // namespace fx
