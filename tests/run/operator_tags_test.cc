// What the tables of src/ops say of operators, against the tags that LibTorch has for them. It knows more of them with
// each version, and none for what is composed of others, so that the tables are not made of the tags.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/records/operator_flags.h>
#include <fxgraph/ops/schema.h>
#include <fxgraph/run/operators.h>
#include "tests/program/every_operator.h"

namespace fx::operator_tags_test {

c10::OperatorHandle operator_of(Symbol target) {
  const std::string name(packet_of(target.view()));
  const bool has_overload = target.view().size() > name.size();
  return *c10::Dispatcher::singleton().findOp({name, has_overload ? target.str().substr(name.size() + 1) : ""});
}

/// The operators that have the tag and of which the tables do not say so. There are at least `known` with the tag.
std::vector<std::string> not_said(at::Tag tag, bool OperatorTraits::*trait, std::size_t known) {
  std::vector<std::string> missing;
  std::size_t tagged = 0;
  for (const Symbol target : testing::dispatcher_operators()) {
    if (!operator_of(target).hasTag(tag)) continue;
    ++tagged;
    const OperatorSchema* schema = find_overload(target);
    if (schema && !(schema->traits.*trait)) missing.push_back(target.str());
  }
  EXPECT_GE(tagged, known);
  return missing;
}

TEST(OperatorTags, WhatDrawsRandomNumbersIsSaidToDoSo) {
  EXPECT_THAT(not_said(at::Tag::nondeterministic_seeded, &OperatorTraits::random, 50), ::testing::IsEmpty());
}

TEST(OperatorTags, WhatGivesOtherSizesInPlaceIsSaidToDoSo) {
  EXPECT_THAT(not_said(at::Tag::inplace_view, &OperatorTraits::restructures, 5), ::testing::IsEmpty());
}

// Of an index the types say, and numbers that data decide are not sizes.
TEST(OperatorTags, WhatDataSizeIsSaidToBeSo) {
  std::vector<std::string> missing;
  std::size_t tagged = 0;
  for (const Symbol target : testing::dispatcher_operators()) {
    if (!operator_of(target).hasTag(at::Tag::dynamic_output_shape) || target == "aten::index.Tensor") continue;
    ++tagged;
    if (!has_flag(target, OperatorFlag::sizes_of_data)) missing.push_back(target.str());
  }
  EXPECT_GE(tagged, 10);
  EXPECT_THAT(missing, ::testing::IsEmpty());
}

TEST(OperatorTags, NumbersThatAreMadeOfDataAreSaidToBe) {
  std::vector<std::string> missing;
  for (const Symbol target : testing::dispatcher_operators()) {
    if (operator_of(target).hasTag(at::Tag::data_dependent_output) && !has_flag(target, OperatorFlag::reads_data))
      missing.push_back(target.str());
  }
  EXPECT_THAT(missing, ::testing::IsEmpty());
}

// No tag says so of what is composed of those that have one, nor, in LibTorch 1.13, of attention with dropout.
TEST(OperatorTags, WhatDrawsWithoutATagIsComposed) {
  install_schema_source();
  std::vector<std::string> others;
  for (const Symbol target : testing::dispatcher_operators()) {
    const OperatorSchema* schema = find_overload(target);
    if (!schema || !schema->traits.random) continue;
    const c10::OperatorHandle found = operator_of(target);
    if (!found.hasTag(at::Tag::nondeterministic_seeded) &&
        !found.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)) {
      others.push_back(target.str());
    }
  }
  EXPECT_THAT(others, ::testing::IsSubsetOf({"aten::_scaled_dot_product_attention_forward"}));
}

}  // namespace fx::operator_tags_test
