// The activations that a stage holds at once. Internal to rewriter/partition/stage_cuts.cc and minimum_cut.cc.
//
// A stage holds a storage that its calls touch. One that it makes it holds from there to its last use, or to the end of
// the stage when another stage uses it; one that it is given it holds all the time.
#pragma once

#include <cstdint>
#include <vector>

#include <fxgraph/rewriter/partition/stage_cuts.h>

namespace fx {

/// Storages of a program, over the places of its calls.
class StorageLives {
 public:
  StorageLives(const StageProblem& problem, const std::vector<Node*>& calls);

  /// Those that a call makes, looks at or gives.
  const std::vector<std::uint32_t>& touched(std::size_t place) const { return touched_[place]; }
  /// Where it is made; -1 for an input of the program.
  std::int64_t made(std::uint32_t storage) const { return made_[storage]; }
  std::int64_t last(std::uint32_t storage) const { return last_[storage]; }
  std::size_t size() const { return made_.size(); }

 private:
  std::vector<std::vector<std::uint32_t>> touched_;
  std::vector<std::int64_t> made_, last_;
};

/// The peak of a stage whose calls are a run of neighbours, while that moves. O(touched · log calls) a step.
class WindowPeak {
 public:
  WindowPeak(const StageProblem& problem, const StorageLives& lives, std::size_t calls);

  /// The call behind the last one comes in.
  void push();
  /// The first one goes.
  void pop();
  std::int64_t bytes() const;

 private:
  void add(std::uint32_t storage, std::int64_t sign);
  void add(std::size_t node, std::size_t begin, std::size_t end, std::size_t from, std::size_t to, std::int64_t bytes);
  std::int64_t most(std::size_t node, std::size_t begin, std::size_t end, std::size_t from, std::size_t to) const;

  const StageProblem& problem_;
  const StorageLives& lives_;
  std::size_t calls_, from_ = 0, to_ = 0;
  std::vector<std::uint32_t> touches_;  // by storage: by how many calls of the window
  std::vector<bool> given_;             // by storage: counted as given
  std::int64_t given_bytes_ = 0;
  std::vector<std::int64_t> add_, most_;  // a tree over the places
};

/// The peaks of all stages, for calls anywhere. O(touched).
std::vector<std::int64_t> stage_peaks(const StageProblem& problem, const std::vector<Node*>& calls,
                                      const NodeMap<std::uint32_t>& stage);

}  // namespace fx
