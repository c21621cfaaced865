// MemberState::Repair: what it takes to put the members of objects back, worked out before a word is written.
//
// Words are taken one after the other, those first of which it is known what they own: what they will release and own
// again decides about others (`previous = current; current = x`). See trace/member_state.h.
#pragma once

#include <fxgraph/trace/member_state.h>

namespace fx::internal {

class MemberState::Repair {
 public:
  explicit Repair(MemberState& state);

  /// How often each tensor will be released by what owns it.
  const std::unordered_map<Word, std::size_t>& releases() const { return releases_; }
  void run();

 private:
  enum class Way : std::uint8_t {
    none,
    assign,     // what was there
    replace,    // by what was there; what is there now is not released
    disengage,  // an optional that was empty
  };
  struct Step {
    std::size_t region, at;
    Way way;
    std::size_t flag;  // of an optional
  };
  /// A region as it is now, and which of its words need nothing more.
  struct Now {
    std::vector<Word> words;
    std::vector<bool> settled;
  };

  void count_places();
  void plan_vectors(std::size_t region);
  void plan_vector(std::size_t region, std::size_t at, const std::vector<at::Tensor>& before);
  bool plan_tensors(bool in_doubt);
  void plan_exchanges();
  Way way_of(std::size_t region, std::size_t at, std::size_t& flag) const;
  void add(const Step& step);
  void restore_numbers(std::size_t region);
  void own_beside(std::size_t region, std::size_t at);
  bool is_owned(const at::Tensor& tensor) const;
  long released(Word tensor) const;

  MemberState& state_;
  std::vector<Now> now_;                          // by region
  std::unordered_map<Word, std::size_t> places_;  // of each proxy, in the objects and the vectors in them
  std::unordered_map<Word, long> gained_;         // owners, by the steps so far
  std::unordered_map<Word, std::size_t> releases_;
  std::vector<Step> steps_;
  struct VectorStep {
    std::size_t region, at;
    const std::vector<at::Tensor>* before;  // a copy would be an owner more
  };
  std::vector<VectorStep> vector_steps_;
};

}  // namespace fx::internal
