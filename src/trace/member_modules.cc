// MemberState: pointers to modules that the program has registered, in the objects and in vectors in them.
#include <fxgraph/trace/member_state.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace fx::internal {
namespace {

using torch::nn::Module;
using Pointer = std::shared_ptr<void>;
static_assert(sizeof(Pointer) == 2 * kWord);

// What all pointers that share an object have in common: the second word, with GNU's library.
Word owner_word(const std::shared_ptr<Module>& module) {
  std::array<Word, 2> words{};
  std::memcpy(words.data(), static_cast<const void*>(&module), sizeof(module));
  return words[1];
}

}  // namespace

void MemberState::release(const std::vector<std::shared_ptr<Module>>& modules) {
#if defined(__GLIBCXX__)
  struct Place {
    std::size_t region, at;
    std::size_t count;  // of pointers at the end of a vector, 0 for one that is a member
  };
  for (const std::shared_ptr<Module>& module : modules) {
    const Word owner = owner_word(module);
    std::vector<Place> places;
    std::size_t pointers = 0;
    for (std::size_t r = 0; r < regions_.size(); ++r) {
      const Region& region = regions_[r];
      const std::vector<Word> now = words_at(region.begin, region.before.size());
      for (std::size_t i = 0; i + 1 < now.size(); ++i) {
        if (now[i] && now[i + 1] == owner && region.before[i + 1] != owner) {
          places.push_back({r, i, 0});
          ++pointers;
          continue;
        }
        if (i + 2 >= now.size() || (now[i] == region.before[i] && now[i + 1] == region.before[i + 1])) continue;
        std::vector<Word> elements;
        if (now[i] == now[i + 1] || !may_be_vector(now[i], now[i + 1], now[i + 2]) ||
            !read_words(now[i], (now[i + 1] - now[i]) / kWord, elements) || elements.size() % 2 != 0)
          continue;
        const auto mine = [&](std::size_t at) { return elements[at + 1] == owner; };
        if (!mine(elements.size() - 2)) continue;
        places.push_back({r, i, 1});
        ++pointers;
      }
    }
    // The caller's and the registration own it, too. One that does not is a weak pointer, or a copy of the words.
    if (static_cast<std::size_t>(module.use_count()) < pointers + 2) continue;
    for (const Place& place : places) {
      const Region& region = regions_[place.region];
      void* const at = pointer(region.begin + place.at * kWord);
      if (place.count > 0) {
        static_cast<std::vector<Pointer>*>(at)->pop_back();
        continue;
      }
      const auto before = std::find_if(modules_.begin(), modules_.end(), [&](const std::shared_ptr<Module>& known) {
        return region.before[place.at + 1] != 0 && owner_word(known) == region.before[place.at + 1];
      });
      auto& member = *static_cast<Pointer*>(at);
      if (before == modules_.end())
        member.reset();
      else
        member = Pointer(*before, pointer(region.before[place.at]));
    }
  }
#endif
}

}  // namespace fx::internal
