#include <fxgraph/rewriter/provenance.h>

#include <algorithm>
#include <new>

namespace fx {

namespace {

constexpr std::size_t kMostBytes = 4096;             // of a piece; more only for a record that needs more
constexpr std::uint32_t kMostReferences = 1u << 31;  // to one

}  // namespace

void Provenance::Piece::release(std::uint32_t count) noexcept {
  if (references.fetch_sub(count, std::memory_order_acq_rel) == count) ::operator delete(this);
}

void ProvenanceLog::add(std::span<Node* const> sources) {
  const std::size_t bytes = sizeof(Provenance::Record) + sources.size() * sizeof(NodeName);
  if (static_cast<std::size_t>(end_ - next_) < bytes) {
    leave();
    const std::size_t size = std::max(bytes_, sizeof(Provenance::Record) + bytes);
    bytes_ = std::min(2 * bytes_, kMostBytes);
    next_ = static_cast<std::byte*>(::operator new(size));
    end_ = next_ + size;
    piece_ = new (next_) Provenance::Piece{{kMostReferences}};
    next_ += sizeof(Provenance::Record);  // aligned as records are
  }
  record_ = new (next_) Provenance::Record{piece_, rule_, static_cast<std::uint32_t>(sources.size())};
  for (std::size_t i = 0; i < sources.size(); ++i) new (record_->names() + i) NodeName(sources[i]->name_parts());
  next_ += bytes;
}

/// Gives back the references that nobody took.
void ProvenanceLog::leave() {
  if (piece_) piece_->release(kMostReferences - std::exchange(given_, 0));
  piece_ = nullptr;
  record_ = nullptr;
  next_ = end_ = nullptr;
}

std::vector<std::string> Provenance::sources() const {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < record_->size; ++i) names.push_back(record_->names()[i].str());
  return names;
}

std::string Provenance::str() const {
  std::string text = rule().str() + ":";
  for (std::uint32_t i = 0; i < record_->size; ++i) {
    text += i == 0 ? " " : ", ";
    record_->names()[i].append_to(text);
  }
  return text;
}

std::string provenance_of(const Node& node) {
  const Meta* meta = node.find_meta();
  if (!meta) return {};
  if (const Provenance* record = meta->get<Provenance>(meta_key::kProvenance)) return record->str();
  const std::string* text = meta->get<std::string>(meta_key::kProvenance);
  return text ? *text : std::string();
}

}  // namespace fx
