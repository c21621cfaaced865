#include <fxgraph/ops/schema_registry.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>

#include <fxgraph/ops/records/builtin_schemas.h>

namespace fx {

namespace internal {

namespace {

// The argument that is a number for one and a tensor for the other where all others are the same, or -1.
int one_number(const OperatorSchema& a, const OperatorSchema& b) {
  if (a.arguments.size() != b.arguments.size()) return -1;
  int found = -1;
  for (std::size_t i = 0; i < a.arguments.size(); ++i) {
    const SchemaType &one = a.arguments[i].type, &other = b.arguments[i].type;
    if (a.arguments[i].name != b.arguments[i].name) return -1;
    if (one.text == other.text) continue;
    const bool number = (one.is_tensor() && other.base == SchemaType::Base::scalar) ||
                        (one.base == SchemaType::Base::scalar && other.is_tensor());
    if (!number || one.list || other.list || found >= 0) return -1;
    found = static_cast<int>(i);
  }
  return found;
}

class Registry {
 public:
  const TargetInfo& make_info(Symbol target) {
    std::lock_guard lock(mutex_);
    auto& slot = symbol_entry(target).schema;
    if (const void* made = slot.load(std::memory_order_acquire)) return *static_cast<const TargetInfo*>(made);
    const Symbol canonical = canonical_target(target);
    const std::string_view packet = packet_of(canonical.view());
    TargetInfo& info = infos_.emplace_back();
    info.overloads = &overloads(Symbol(packet));
    for (const OperatorSchema* schema : *info.overloads) {
      if (schema->target == canonical) info.schema = schema;
    }
    info.exact = info.schema && (packet.size() != canonical.view().size() || info.overloads->size() == 1);
    info.name = Symbol(agreed_name(canonical.view()));
    if (info.schema) {
      for (const OperatorSchema* other : *info.overloads) {
        if (const int at = one_number(*info.schema, *other); at >= 0)
          info.counterparts.push_back(
              {other, Symbol(agreed_name(other->target.view())), static_cast<std::uint16_t>(at)});
      }
    }
    cached_.push_back(target);
    slot.store(&info, std::memory_order_release);
    return info;
  }

  const Overloads& locked_overloads(Symbol packet) {
    std::lock_guard lock(mutex_);
    return overloads(packet);
  }

  const OperatorSchema& add(OperatorSchema schema) {
    std::lock_guard lock(mutex_);
    const OperatorSchema& kept = schemas_.emplace_back(std::move(schema));
    Overloads& list = registered_[Symbol(packet_of(kept.target.view()))];
    const auto same = std::ranges::find(list, kept.target, &OperatorSchema::target);
    if (same != list.end()) {
      *same = &kept;
    } else {
      list.push_back(&kept);
    }
    forget();
    return kept;
  }

  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

  bool has_source() {
    std::lock_guard lock(mutex_);
    return source_.overloads != nullptr;
  }

  void set_source(SchemaSource source) {
    std::lock_guard lock(mutex_);
    source_ = source;
    forget();
  }

 private:
  const Overloads& overloads(Symbol packet) {
    const Overloads*& list = packets_[packet];
    if (!list) list = &lists_.emplace_back(collect(packet));
    return *list;
  }

  Overloads collect(Symbol packet) {
    Overloads list;
    if (const auto own = registered_.find(packet); own != registered_.end()) list = own->second;
    if (source_.overloads) {
      for (const std::string& declaration : source_.overloads(packet.view())) add_foreign(list, declaration);
    }
    for (const std::string_view declaration : builtin_declarations(packet.view()))
      add_to(list, parse_schema(declaration));
    return list;
  }

  // A newer LibTorch may declare types that this parser does not read; such an operator counts as unknown, which is
  // safe.
  void add_foreign(Overloads& list, const std::string& declaration) {
    try {
      add_to(list, parse_schema(declaration));
    } catch (const Error&) {
    }
  }

  // Who came first wins.
  void add_to(Overloads& list, OperatorSchema schema) {
    if (std::ranges::find(list, schema.target, &OperatorSchema::target) != list.end()) return;
    list.push_back(&schemas_.emplace_back(std::move(schema)));
  }

  // Makes every question be asked anew. What was answered stays valid, for those who hold it.
  void forget() {
    generation_.fetch_add(1, std::memory_order_release);
    packets_.clear();
    for (const Symbol target : cached_) symbol_entry(target).schema.store(nullptr, std::memory_order_release);
    cached_.clear();
  }

  std::mutex mutex_;
  std::atomic<std::uint64_t> generation_{0};
  SchemaSource source_;
  std::deque<OperatorSchema> schemas_;
  std::deque<Overloads> lists_;
  std::deque<TargetInfo> infos_;
  std::unordered_map<Symbol, Overloads> registered_;      // looked up only, never iterated
  std::unordered_map<Symbol, const Overloads*> packets_;  // likewise
  std::vector<Symbol> cached_;
};

// Never destroyed: schemas may be asked for by static destructors.
Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

}  // namespace

const TargetInfo& make_target_info(Symbol target) { return registry().make_info(target); }

const Overloads& overload_list(Symbol packet) { return registry().locked_overloads(packet); }

std::uint64_t schema_generation() { return registry().generation(); }

bool has_source() { return registry().has_source(); }

}  // namespace internal

const OperatorSchema* find_overload(Symbol target) { return internal::target_info(target).schema; }

std::string spelled_target(Symbol target) {
  std::string text = target_text(target);
  if (target.view().find('.') != std::string_view::npos) return text;
  const internal::TargetInfo& info = internal::target_info(target);
  if (info.overloads->empty()) return text;
  // TorchScript has `aten::add(Scalar a, Scalar b)`, of numbers alone; Python has not.
  const bool has_default =
      std::any_of(info.overloads->begin(), info.overloads->end(), [&](const OperatorSchema* schema) {
        const auto is_number = [](const SchemaArgument& argument) {
          return argument.type.base == SchemaType::Base::scalar;
        };
        const bool numbers =
            !schema->arguments.empty() && std::all_of(schema->arguments.begin(), schema->arguments.end(), is_number);
        return schema->target == target && !numbers;
      });
  if (!has_default) text.resize(text.rfind('.'));
  return text;
}

std::vector<const OperatorSchema*> overloads_of(Symbol packet) {
  return internal::overload_list(Symbol(packet_of(canonical_target(packet).view())));
}

const OperatorSchema& register_schema(std::string_view declaration, OperatorTraits traits) {
  OperatorSchema schema = parse_schema(declaration);
  OperatorTraits& all = schema.traits;
  all.writes |= traits.writes;
  all.random |= traits.random;
  all.side_effect |= traits.side_effect;
  all.view |= traits.view;
  all.pointwise |= traits.pointwise;
  all.reduction |= traits.reduction;
  all.commutative |= traits.commutative;
  all.zeros_by_order |= traits.zeros_by_order;
  return internal::registry().add(std::move(schema));
}

void set_schema_source(SchemaSource source) { internal::registry().set_source(source); }

std::vector<Symbol> builtin_targets() {
  std::vector<Symbol> targets;
  for (const std::string_view declaration : internal::builtin_declarations()) {
    targets.push_back(canonical_target(Symbol(declaration.substr(0, declaration.find('(')))));
  }
  std::sort(targets.begin(), targets.end());
  return targets;
}

}  // namespace fx
