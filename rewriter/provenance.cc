#include <fxgraph/rewriter/provenance.h>

#include <new>

namespace fx {

Provenance::Provenance(Symbol rule, std::span<Node* const> sources) {
  void* memory = ::operator new(sizeof(Record) + sources.size() * sizeof(NodeName));
  record_ = new (memory) Record{{1}, static_cast<std::uint32_t>(sources.size()), rule};
  for (std::size_t i = 0; i < sources.size(); ++i) new (record_->names() + i) NodeName(sources[i]->name_parts());
}

void Provenance::release() noexcept {
  if (!record_ || --record_->references > 0) return;
  record_->~Record();
  ::operator delete(record_);
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
