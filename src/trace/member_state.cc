#include <fxgraph/trace/member_state.h>

#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/trace/borrowed.h>
#include <fxgraph/trace/left_over.h>

namespace fx::internal {
namespace {

using torch::nn::Module;

constexpr std::size_t kLargestObject = std::size_t{1} << 20;
constexpr std::size_t kNear = 8;  // words

// Types that have nothing but what is registered.
bool has_members(const Module& module) {
  return !(dynamic_cast<const GraphModule*>(&module) || dynamic_cast<const LeafModule*>(&module) ||
           dynamic_cast<const Holder*>(&module));
}

// Their tensors are registered, each and every one.
bool is_of_torch(const Module& module) { return module.name().starts_with("torch::nn::"); }

struct Extent {
  Word begin = 0, end = 0;
};

// Where the members of what derives from Module begin: the first small ones lie behind its own last one, inside of
// sizeof(Module).
std::size_t size_of_base() {
  struct Derived : Module {
    char first = 0;
  };
  static const std::size_t size = [] {
    const Derived derived;
    return static_cast<std::size_t>(word_of(&derived.first) - word_of(static_cast<const Module*>(&derived)));
  }();
  return size;
}

// A shared pointer's own words.
std::array<Word, 2> words_of(const std::shared_ptr<Module>& module) {
  std::array<Word, 2> words;
  static_assert(sizeof(module) == sizeof(words));
  std::memcpy(words.data(), static_cast<const void*>(&module), sizeof(module));
  return words;
}

// From the object to the end of what was allocated for it; nothing where that is not known.
Extent extent_of(const std::shared_ptr<Module>& module) {
  if (const auto* borrowed = std::get_deleter<Borrowed>(module))
    return {word_of(borrowed->begin), word_of(borrowed->begin) + borrowed->size};
#if defined(__GLIBC__) && defined(__GLIBCXX__)
  const Word object = word_of(dynamic_cast<const void*>(module.get()));
  const Word control = words_of(module)[1];
  if (control == 0) return {};
  const auto* counted = static_cast<const std::_Sp_counted_base<__gnu_cxx::__default_lock_policy>*>(pointer(control));
  const std::string_view type = typeid(*counted).name();
  Word allocation = 0;
  if (type.starts_with("St23_Sp_counted_ptr_inplace") && type.find("SaI") != std::string_view::npos) {
    allocation = control;  // std::make_shared
  } else if (type.starts_with("St15_Sp_counted_ptrI") && words_at(control + 2 * kWord, 1)[0] == object) {
    allocation = object;  // new; the pointer that will be deleted stands behind the counts
  }
  const std::size_t size = allocation ? malloc_usable_size(pointer(allocation)) : 0;
  const std::size_t before = object - allocation;
  return size > before && size < kLargestObject ? Extent{object, object + (size - before)} : Extent();
#else
  return {};
#endif
}

// The tensors of what may be a vector of them; nothing when it is none.
std::optional<std::vector<at::Tensor>> tensors_between(Word begin, Word end) {
  std::vector<Word> words;
  if (!read_words(begin, (end - begin) / kWord, words)) return std::nullopt;
  std::vector<at::Tensor> tensors = tensors_at(words);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!tensors[i].defined() && words[i] != undefined_word()) return std::nullopt;
  }
  return tensors;
}

}  // namespace

void MemberState::add(const std::shared_ptr<Module>& module) {
  const std::size_t number = objects_++;
  if (!module) return;
  modules_.push_back(module);
  for (const Word word : words_of(module)) registered_.insert(word);
  registered_.insert(word_of(dynamic_cast<const void*>(module.get())));
  const auto add_tensor = [&](const at::Tensor& tensor) {
    if (tensor.defined() && registered_.insert(word_of(tensor.unsafeGetTensorImpl())).second)
      held_.emplace(word_of(tensor.unsafeGetTensorImpl()), tensor);
  };
  for (const at::Tensor& tensor : module->parameters(/*recurse=*/false)) add_tensor(tensor);
  for (const at::Tensor& tensor : module->buffers(/*recurse=*/false)) add_tensor(tensor);
  if (!knows_heap() || !has_members(*module)) return;
  const bool known = is_of_torch(*module);
  const Extent extent = extent_of(module);
  const Word base = word_of(static_cast<const Module*>(module.get()));
  const auto add_region = [&](Word from, Word to) {
    if (from < to && (to - from) / kWord > 0)
      regions_.push_back({number, from, known, std::vector<Word>((to - from) / kWord), {}, {}});
  };
  add_region(extent.begin, std::min(extent.end, base));
  const std::size_t before = regions_.size();
  add_region(base + size_of_base() / kWord * kWord, extent.end);
  if (regions_.size() > before && size_of_base() % kWord != 0) regions_.back().packed = 1;
}

void MemberState::begin() {
  std::vector<Word> all;
  for (Region& region : regions_) {
    region.before = region.last = words_at(region.begin, region.before.size());
    region.times.assign(region.before.size(), 0);
    if (!region.is_known) all.insert(all.end(), region.before.begin(), region.before.end());
  }
  hold(all);
  if (!all.empty()) {
    exact_.emplace();
    blocks_.read(all, [&](Word word) { return registered_.contains(word); });
    hold(blocks_.addresses());
  }
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    if (!regions_[i].is_known) find_vectors(i);
  }
  const auto captured = LeftOver::captured();
  for (const auto& [word, tensor] : held_) {
    const auto known = captured.find(tensor.unsafeGetTensorImpl());
    if (tensor.defined()) owners_.emplace(word, tensor.use_count() - (known == captured.end() ? 0 : known->second));
  }
}

void MemberState::hold(const std::vector<Word>& words) {
  held_.emplace(undefined_word(), at::Tensor());
  const std::vector<at::Tensor> tensors = tensors_at(words);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (tensors[i].defined()) held_.emplace(words[i], tensors[i]);
  }
}

void MemberState::find_vectors(std::size_t region) {
  const std::vector<Word>& words = regions_[region].before;
  for (std::size_t i = 0; i + 2 < words.size(); ++i) {
    if (words[i] == words[i + 1] || !may_be_vector(words[i], words[i + 1], words[i + 2])) continue;
    std::optional<std::vector<at::Tensor>> tensors = tensors_between(words[i], words[i + 1]);
    if (!tensors) continue;
    vectors_.push_back({region, i, std::move(*tensors)});
    i += 2;
  }
}

const at::Tensor* MemberState::tensor_before(Word word) const {
  const auto held = held_.find(word);
  return held == held_.end() ? nullptr : &held->second;
}

bool MemberState::has_changed() const {
  return std::any_of(regions_.begin(), regions_.end(), [](const Region& region) {
    return words_at(region.begin, region.before.size()) != region.before;
  });
}

std::vector<MemberState::Change> MemberState::changes() const {
  std::vector<Change> result;
  for (const Region& region : regions_) {
    const std::vector<Word> now = words_at(region.begin, region.before.size());
    std::vector<Word> changed;
    std::vector<at::Tensor> before;
    for (std::size_t i = 0; i < now.size(); ++i) {
      const at::Tensor* was = now[i] == region.before[i] ? nullptr : tensor_before(region.before[i]);
      if (!was) continue;
      changed.push_back(now[i]);
      before.push_back(*was);
    }
    const std::vector<at::Tensor> tensors = tensors_at(changed);
    for (std::size_t i = 0; i < changed.size(); ++i) {
      if (tensors[i].defined()) result.push_back({region.object, before[i], tensors[i]});
    }
  }
  return result;
}

// Only to tell: words that are no addresses, were none, and have no changed address near them but those of containers
// that are known.
std::vector<std::size_t> MemberState::counting() {
  std::vector<std::size_t> objects;
  for (Region& region : regions_) {
    const std::vector<Word> now = words_at(region.begin, region.before.size());
    if (now == region.last) continue;
    const std::vector<at::Tensor> tensors = tensors_at(now);
    std::vector<bool> are_tensors;
    for (const at::Tensor& tensor : tensors) are_tensors.push_back(tensor.defined());
    const std::vector<bool> settled(now.size(), false);
    const std::vector<bool> contained =
        ObjectWords{region.begin, region.last, now, settled, are_tensors, region.packed}.of_containers();
    std::vector<std::size_t> numbers, addresses;
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (now[i] == region.last[i] || are_tensors[i] || contained[i] || now[i] == undefined_word()) continue;
      (is_mapped(now[i]) || is_mapped(region.last[i]) ? addresses : numbers).push_back(i);
    }
    for (const std::size_t i : numbers) {
      const std::size_t from = i < kNear ? 0 : i - kNear;
      const auto near = std::lower_bound(addresses.begin(), addresses.end(), from);
      if (near != addresses.end() && *near <= i + kNear) continue;
      if (++region.times[i] < 2) continue;
      if (objects.empty() || objects.back() != region.object) objects.push_back(region.object);
    }
    region.last = now;
  }
  return objects;
}

}  // namespace fx::internal
