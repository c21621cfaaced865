// What a node holds of keyword arguments.
#include <fxgraph/ir/graph.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/error_of.h"

namespace fx::keyword_arguments_test {

using testing::error_of;
using ::testing::HasSubstr;

TEST(KeywordArguments, AreSoMany) {
  Graph graph;
  std::vector<NamedArgument> kwargs;
  for (int i = 0; i < 65536; ++i) kwargs.push_back({"k" + std::to_string(i), i});
  Node& node = graph.call_function("mine.f");
  Node& gone = graph.call_function("mine.f");
  graph.erase_node(gone);
  for (const std::string& error : {error_of([&] { graph.call_function("mine.f", {}, kwargs); }),
                                   error_of([&] { node.set_args_kwargs({}, kwargs); }),
                                   error_of([&] { graph.restore_node(gone, nullptr, {}, kwargs); })})
    EXPECT_THAT(error, HasSubstr("a node holds at most 65535 keyword arguments"));
  EXPECT_TRUE(gone.is_erased());
  EXPECT_EQ(graph.size(), 1u);
  kwargs.pop_back();
  node.set_args_kwargs({}, kwargs);
  EXPECT_EQ(node.kwargs().size(), 65535u);
}

TEST(KeywordArguments, AreGivenOnceEach) {
  Graph graph;
  Node& node = graph.call_function("mine.f");
  for (const std::size_t others : {0u, 30u}) {
    std::vector<NamedArgument> kwargs = {{"alpha", 1}, {"alpha", 2}};
    for (std::size_t i = 0; i < others; ++i) kwargs.push_back({"k" + std::to_string(i), 1});
    EXPECT_THAT(error_of([&] { graph.call_function("mine.f", {}, kwargs); }), HasSubstr("alpha is given twice"));
    EXPECT_THAT(error_of([&] { node.set_args_kwargs({}, kwargs); }), HasSubstr("alpha is given twice"));
  }
  EXPECT_EQ(graph.size(), 1u);
  EXPECT_TRUE(node.kwargs().empty());
}

}  // namespace fx::keyword_arguments_test
