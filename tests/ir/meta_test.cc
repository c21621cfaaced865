// Notes at a node.
#include <gtest/gtest.h>

#include <string>

#include <fxgraph/ir/graph.h>

namespace fx::meta_test {

TEST(Meta, NotesAreForgottenOneByOne) {
  Graph graph;
  Meta& notes = graph.placeholder("x").meta();
  for (const char* key : {"a", "b", "c"}) notes.set(key, std::string(key));
  for (const auto& [gone, left] :
       {std::pair("a", "bc"), std::pair("none", "bc"), std::pair("c", "b"), std::pair("b", "")}) {
    notes.erase(gone);
    std::string text;
    for (const Symbol key : notes.keys()) text += *notes.get<std::string>(key);
    EXPECT_EQ(text, left) << gone;
    EXPECT_EQ(notes.empty(), text.empty());
  }
}

}  // namespace fx::meta_test
