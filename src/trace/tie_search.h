// TieSearch: of dimensions that do not vary alone, one that follows from others: labels of b·t beside an input of (b,
// t), a mask over what is cached and what is new.
//
// What a size may be of others is listed by the sizes of the examples (trace/size_tie.h). All of it that has the same
// value at other sizes is tried at once, so that few runs leave one: at three choices of sizes at least, and wherever
// two of what is left are different. What would do at another size as well, while all others are as in the examples,
// follows from nothing.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <fxgraph/trace/size_groups.h>

namespace fx::internal {

class TieSearch {
 public:
  using Some = std::vector<std::uint32_t>;
  /// Whether the program goes the same way at these sizes.
  using Works = std::function<bool(const GroupSizes&)>;

  /// `stuck` do not vary alone, since the program throws; `active` are all that may vary. At most `tries` runs are
  /// made, which are taken from it.
  TieSearch(SizeGroups& groups, Some stuck, Some active, Works works, int& tries);

  /// Ties one of `stuck` to the product or sum of two others, one of them of size one: it looks as if it were equal to
  /// the other. Returns the groups that are tied, none where nothing does.
  Some tie_to_pairs_with_one();
  /// Ties one of `stuck` to the product or sum of any two others, to an area, or to one other.
  Some tie_to_any();

 private:
  /// Groups that have the size of one of those that matter, and go with it.
  using Companions = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  struct Question {
    std::uint32_t group;
    Some of;
    Companions companions;
  };

  SizedGroup sized(std::uint32_t group) const { return {group, groups_.groups[group].size}; }
  const SizeDimension& place(std::uint32_t group) const {
    return groups_.dimensions[groups_.groups[group].dimensions.front()];
  }
  bool is_of_another_input(std::uint32_t group, const Some& of) const;
  Companions companions_of(std::uint32_t group, const Some& of) const;
  bool moves(const Question& question, GroupSizes& sizes, std::size_t way) const;
  bool tries(const Question& question, GroupSizes sizes, std::int64_t size);
  bool is_one_of(const Question& question, const GroupSizes& sizes, std::vector<SizeTie>& ties);
  std::optional<GroupSizes> where_they_differ(const Question& question, const std::vector<SizeTie>& ties) const;
  bool is_determined(const Question& question, std::int64_t unit);
  void drop_needless(Question& question, const SizeTie& tie);
  std::optional<SizeTie> find(const Question& question, std::vector<SizeTie> ties);
  Some tie(std::uint32_t group, Some of, const std::vector<SizeTie>& ties);
  Some apply(const Question& question, SizeTie tie);
  Some tie_to_pairs(bool with_one);
  Some tie_to_area(std::uint32_t group);
  Some tie_to_one(std::uint32_t group);

  SizeGroups& groups_;
  const Some stuck_, active_;
  const Works works_;
  int& tries_left_;
  bool is_large_ = false;
};

}  // namespace fx::internal
