// Bad texts: place, expectation, finding and cure, word for word.
#include <gmock/gmock.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <fxgraph/text/parse.h>

#include "tests/support/scratch_folder.h"

namespace fx::errors_test {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string error_of(const std::string& text) {
  try {
    parse_graph(text, "g.fx");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::syntax);
    EXPECT_TRUE(error.location().known());
    return error.what();
  }
  return "no error";
}

std::string in_graph(const std::string& lines) {
  return error_of("graph():\n    %x : [num_users=1] = placeholder[target=x]\n" + lines);
}
std::string in_args(const std::string& args) {
  return in_graph("    %y : = call_function[target=f](args = (" + args + "), kwargs = {})\n");
}

TEST(ParseErrors, Header) {
  EXPECT_EQ(error_of(""), "g.fx:1:1: expected 'graph():' at the start of the text, found the end of the text");
  EXPECT_EQ(error_of("\n\n  %x = placeholder[target=x]"),
            "g.fx:3:3: expected 'graph():' at the start of the text, found '%'");
  EXPECT_EQ(error_of("graph:"), "g.fx:1:6: expected 'graph():' at the start of the text, found ':'");
  EXPECT_EQ(error_of("graph() x"), "g.fx:1:9: expected 'graph():' at the start of the text, found 'x'");
  EXPECT_EQ(error_of("graph(): x"), "g.fx:1:10: expected the end of the line, found 'x'");
  EXPECT_EQ(error_of("graph(%x, %x):"), "g.fx:1:12: the parameter x stands here twice; rename one");
  EXPECT_EQ(error_of("graph(%x"),
            "g.fx:1:9: expected ',' or ')' after a parameter of the graph, found the end of the text");
  EXPECT_EQ(error_of("\x7f"
                     "ELF"),
            "g.fx:1:1: expected 'graph():' at the start of the text, found byte 0x7f");
}

TEST(ParseErrors, Statements) {
  EXPECT_EQ(in_graph("    y = 3"), "g.fx:3:5: expected '%' and a node's name, or 'return', found 'y'");
  EXPECT_EQ(in_graph("    % y"), "g.fx:3:6: expected a node's name after '%', found ' '");
  EXPECT_EQ(in_graph("    %y call"), "g.fx:3:8: expected '=', found 'call'");
  EXPECT_EQ(in_graph("    %y : int\n"), "g.fx:3:13: expected '=', found the end of the line");
  EXPECT_EQ(
      in_graph("    %y : = call_fuction[target=f](args = (), kwargs = {})"),
      "g.fx:3:12: expected an opcode (placeholder, get_attr, call_function, call_method, call_module, output), found "
      "'call_fuction'; did you mean call_function?");
  EXPECT_THAT(in_graph("    %y : = frobnicate[target=f]"), ::testing::EndsWith("found 'frobnicate'"));
  EXPECT_EQ(in_graph("    %y : = get_attr"),
            "g.fx:3:20: expected '[target=' after the opcode, found the end of the text");
  EXPECT_EQ(in_graph("    %y : = get_attr[target=a\n"),
            "g.fx:3:29: expected ']' to close the target, found the end of the line");
  EXPECT_EQ(in_graph("    %y : = get_attr[target=]"), "g.fx:3:28: expected a target, found ']'");
  EXPECT_EQ(in_graph("    %y : = get_attr[target=a] b"), "g.fx:3:31: expected the end of the line, found 'b'");
  EXPECT_EQ(
      in_graph("    %y : = call_function[target=f]\n"),
      "g.fx:3:35: expected '(args = (…), kwargs = {…})' after the target, found the end of the line; write (args = (), "
      "kwargs = {}) for a call without arguments");
  EXPECT_EQ(in_graph("    %y : = call_function[target=f](%x)"), "g.fx:3:36: expected 'args =', found '%'");
  EXPECT_EQ(in_graph("    %x : = get_attr[target=w]"),
            "g.fx:3:5: expected a new name, found %x, which is defined above already; rename one of them");
}

TEST(ParseErrors, Returns) {
  EXPECT_EQ(
      in_graph("    return x\n    return x"),
      "g.fx:4:5: expected the end of the text, found a second return; the first is at line 3: return several values as "
      "one tuple");
  EXPECT_EQ(in_graph("    return x\n    %y : = get_attr[target=w]"),
            "g.fx:4:5: expected the end of the text after 'return' at line 3, found '%'; move this line up");
  EXPECT_EQ(in_graph("    return x x"), "g.fx:3:14: expected the end of the line, found 'x'");
  EXPECT_EQ(
      in_graph("    return relu(x)"),
      "g.fx:3:17: the node x is inside a Python object, where its use would be lost; return a tuple or a list instead");
}

TEST(ParseErrors, UnknownNames) {
  EXPECT_EQ(in_args("%late"),
            "g.fx:3:44: expected a node defined above, found %late, which is defined nowhere; define it, or put a "
            "string in quotes");
  EXPECT_EQ(
      in_graph("    %y : = call_function[target=f](args = (%late,), kwargs = {})\n    %late : = get_attr[target=w]\n"),
      "g.fx:3:44: expected a node defined above, found %late, which is defined below at line 4; move its definition "
      "up");
  EXPECT_THAT(in_graph("    %weight : = get_attr[target=w]\n    return wieght"),
              HasSubstr("found %wieght; did you mean %weight?"));
  EXPECT_THAT(in_args("%y"), HasSubstr("found %y, the node of this line; a node cannot use itself"));
}

TEST(ParseErrors, Values) {
  EXPECT_EQ(in_args("'abc"),
            "g.fx:3:44: this string is not closed on its line; write its closing ', and line breaks as \\n");
  EXPECT_EQ(in_args("'a' b"), "g.fx:3:48: expected ',' or ')', found 'b'");
  EXPECT_EQ(in_args("%x %x"), "g.fx:3:47: expected ',' or ')', found '%'");
  EXPECT_EQ(in_args("%"),
            "g.fx:3:45: expected a node's name after '%', found ')'; put a string that begins with % in quotes");
  EXPECT_EQ(in_args("[1, 2"), "g.fx:4:1: expected ']' to close the '[' at 3:44, found the end of the text");
  EXPECT_EQ(in_args("(1, [2)\n    return x"),
            "g.fx:3:51: expected ']' to close the '[' at 3:48, found the end of the line");
  EXPECT_EQ(in_graph("    %y : = call_function[target=f](args = (%x,\n    return x"),
            "g.fx:3:47: expected ')' to close the '(' at 3:43, found the end of the line");
  EXPECT_EQ(in_graph("    %y : = call_function[target=f](args = (), kwargs = {a: 1"),
            "g.fx:3:61: expected '}' to close the '{' at 3:56, found the end of the text");
  EXPECT_EQ(in_graph("    %y : = call_function[target=f](args = (), kwargs = {a: 1, a: 2})"),
            "g.fx:3:63: the keyword a stands here twice; remove one");
  EXPECT_EQ(in_graph("    %y : = call_function[target=f](args = (), kwargs = {a = 1})"),
            "g.fx:3:59: expected ':' after the keyword, found '='");
  EXPECT_THAT(in_args("slice()"), HasSubstr("a slice has one to three bounds"));
  EXPECT_THAT(in_args("complex('a')"), HasSubstr("a complex number has one or two numbers"));
  EXPECT_THAT(in_args("device(3)"), HasSubstr("expected a quoted device type"));
  EXPECT_THAT(in_args("device('cuda', x)"), HasSubstr("expected a device index"));
  EXPECT_THAT(in_args(std::string(65, '[')), HasSubstr("containers nest more than 64 deep here"));
  EXPECT_THAT(in_args(std::string(5, '[') + "\x01"), HasSubstr("found byte 0x01"));
  EXPECT_THAT(in_args("a" + std::string(70000, 'b') + " c"), HasSubstr("put long strings in quotes"));
  EXPECT_THAT(in_graph("    return [1, -]"), HasSubstr("expected a value, found '-'"));
}

TEST(ParseErrors, ColumnsCountCharacters) { EXPECT_EQ(in_args("'éé' b"), "g.fx:3:49: expected ',' or ')', found 'b'"); }

class Files : public ::testing::Test {
 protected:
  std::string write(std::string_view text) {
    std::ofstream(path_, std::ios::binary) << text;
    return path_;
  }
  testing::ScratchFolder scratch_;
  const std::string path_ = scratch_ / "text.fx";
};

TEST_F(Files, AreRead) {
  EXPECT_EQ(load_graph_text(write("graph(%x):\n  return x")).size(), 2u);
  std::string large = "graph():\n    %x : [num_users=0] = placeholder[target=x]\n";
  for (int i = 0; i < 5000; ++i) large += "    %w_" + std::to_string(i) + " : [num_users=0] = get_attr[target=w]\n";
  EXPECT_EQ(load_graph_text(write(large)).size(), 5001u);
}

TEST_F(Files, ErrorsNameThem) {
  const auto message = [](const std::string& path) -> std::string {
    try {
      load_graph_text(path);
    } catch (const Error& error) {
      return std::string(to_string(error.kind())) + " " + error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message("/nonexistent/g.fx"), "io cannot read /nonexistent/g.fx: No such file or directory");
  EXPECT_THAT(message("/"), StartsWith("io cannot read /: "));
  write("graph():\n  x");
  EXPECT_EQ(message(path_), "syntax " + path_ + ":2:3: expected '%' and a node's name, or 'return', found 'x'");
  write("");
  EXPECT_EQ(message(path_),
            "syntax " + path_ + ":1:1: expected 'graph():' at the start of the text, found the end of the text");
}

// A large file that is no graph is refused by its first block, without reading the rest.
TEST_F(Files, GarbageFailsFast) {
  write("PK\x03\x04");
  std::filesystem::resize_file(path_, std::uintmax_t{1} << 40);  // sparse: a terabyte that takes no room
  EXPECT_THROW(load_graph_text(path_), Error);
}

}  // namespace fx::errors_test
