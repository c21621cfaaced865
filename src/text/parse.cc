// The statements of FX text. Values are parsed by ValueParser.
#include <fxgraph/text/parse.h>

#include <array>
#include <optional>
#include <vector>

#include <fxgraph/text/name_table.h>
#include <fxgraph/text/scanner.h>
#include <fxgraph/text/syntax.h>
#include <fxgraph/text/value_parser.h>

namespace fx {

namespace {

using internal::NameTable;
using internal::Scanner;
using internal::ValueParser;

// The most frequent first.
constexpr std::array kOps = {Op::call_function, Op::call_module, Op::call_method,
                             Op::placeholder,   Op::get_attr,    Op::output};

class GraphParser {
 public:
  GraphParser(std::string_view text, const std::string& file) : in_(text, file), values_(in_, names_) {}

  Graph parse() {
    in_.accept("\xEF\xBB\xBF");  // a byte order mark
    parse_header();
    for (in_.skip_to_statement(); !in_.at_end(); in_.skip_to_statement()) {
      if (output_at_) fail_after_output();
      if (in_.peek() == '%') {
        parse_node();
      } else if (in_.statement_at(in_.position()) || in_.rest() == "return") {
        parse_return();
      } else {
        in_.fail("'%' and a node's name, or 'return'");
      }
      in_.expect_line_end();
    }
    return std::move(graph_);
  }

 private:
  // `graph():`, `graph(%x, %y : torch.Tensor):`
  void parse_header() {
    in_.skip_to_statement();
    const auto expect = [&](std::string_view word) {
      in_.skip_blanks();
      if (!in_.accept(word)) in_.fail("'graph():' at the start of the text");
    };
    expect("graph");
    expect("(");
    skip_space();
    while (!in_.accept(')')) {
      parse_parameter();
      skip_space();
      if (in_.peek() != ')' && !in_.accept(',')) in_.fail("',' or ')' after a parameter of the graph");
      skip_space();
    }
    expect(":");
    in_.expect_line_end();
  }

  void parse_parameter() {
    in_.accept('%');
    const std::size_t start = in_.position();
    const std::string_view name = in_.take_name();
    if (name.empty()) in_.fail("the name of a parameter, or ')'");
    Node*& place = names_[name];
    if (place) in_.fail_at(start, "the parameter " + std::string(name) + " stands here twice; rename one");
    Node& node = graph_.create_node(Op::placeholder, name, {}, {}, name);
    place = &node;
    bare_parameters_.push_back(true);
    in_.skip_blanks();
    if (!in_.accept(':')) return;
    in_.skip_blanks();
    const std::size_t type = in_.position();
    int depth = 0;  // a type's own commas are inside brackets
    for (; !in_.at_end() && in_.peek() != '\n'; in_.advance()) {
      const char c = in_.peek();
      if (depth == 0 && (c == ',' || c == ')')) break;
      depth += (c == '[' || c == '(') - (c == ']' || c == ')');
    }
    set_type(node, in_.from(type));
  }

  void skip_space() {
    for (in_.skip_blanks(); in_.accept('\n');) in_.skip_blanks();
  }

  // `%name : TYPE [num_users=K] = opcode[target=T](args = (…), kwargs = {…})`
  void parse_node() {
    const std::size_t start = in_.position();
    in_.advance();
    const std::string_view name = in_.take_name();
    if (name.empty()) in_.fail("a node's name after '%'");
    in_.skip_blanks();
    std::string_view type;
    if (in_.accept(':')) type = parse_annotation();
    in_.expect('=');
    const Op op = parse_op();
    const Symbol target = parse_target(op);
    args_.clear();
    kwargs_.clear();
    parse_arguments(op);
    define(start, name, type, op, target);
  }

  // What stands between `:` and `=`: a type, a count of users, both or neither.
  std::string_view parse_annotation() {
    in_.skip_blanks();
    std::string_view type;
    if (in_.peek() == '\'' || in_.peek() == '"') {
      quoted_type_ = in_.take_quoted();
      type = quoted_type_;
      in_.skip_blanks();
    } else if (in_.peek() != '[' || !count_ahead()) {
      const std::size_t start = in_.position();
      while (!in_.at_end() && in_.peek() != '=' && in_.peek() != '\n' && !(in_.peek() == '[' && count_ahead()))
        in_.advance();
      type = in_.from(start);
      while (!type.empty() && internal::is_blank(type.back())) type.remove_suffix(1);
    }
    if (in_.accept("[num_users=") || in_.accept("[#users=")) {
      while (internal::is_digit(in_.peek())) in_.advance();
      in_.expect(']');
    }
    return type;
  }

  bool count_ahead() const { return in_.rest().starts_with("[num_users=") || in_.rest().starts_with("[#users="); }

  Op parse_op() {
    in_.skip_blanks();
    const std::size_t start = in_.position();
    const std::string_view word = in_.take_name();
    for (const Op op : kOps) {
      if (word == to_string(op)) return op;
    }
    in_.seek(start);
    std::string_view nearest;
    std::size_t best = 5;
    for (const Op op : kOps) {
      const std::size_t distance = internal::edit_distance(word, to_string(op), best);
      if (distance < best) {
        best = distance;
        nearest = to_string(op);
      }
    }
    in_.fail("an opcode (placeholder, get_attr, call_function, call_method, call_module, output)",
             nearest.empty() || word.empty() ? std::string() : "did you mean " + std::string(nearest) + "?");
  }

  Symbol parse_target(Op op) {
    if (!in_.accept("[target=")) in_.fail("'[target=' after the opcode");
    const std::size_t start = in_.position();
    if (in_.peek() == '\'' || in_.peek() == '"') {
      const Symbol target(in_.take_quoted());
      in_.expect(']');
      return target;
    }
    in_.skip_word();
    int depth = 0;
    for (; !in_.at_end(); in_.advance()) {
      const char c = in_.peek();
      if (c == '\n' || (internal::is_control(c) && c != '\r')) break;
      if (c == ']' && depth == 0) break;
      depth += (c == '[') - (c == ']');
    }
    const std::string_view text = in_.from(start);
    if (in_.peek() != ']') in_.fail("']' to close the target");
    if (text.empty()) in_.fail("a target");
    in_.advance();
    return internal::read_target(op, text, target_buffer_);
  }

  void parse_arguments(Op op) {
    if (in_.accept("(args = (")) {
      values_.parse_elements(')', false, args_);
    } else if (op == Op::placeholder && in_.accept("(default=")) {
      args_.push_back(values_.parse({.closing = ')', .in_dict = true}));
      in_.expect(')');
      return;
    } else {
      in_.skip_blanks();
      if (!in_.accept('(')) {
        if (op == Op::placeholder || op == Op::get_attr) return;
        in_.fail("'(args = (…), kwargs = {…})' after the target",
                 "write (args = (), kwargs = {}) for a call without arguments");
      }
      skip_space();
      expect_keyword("args");
      in_.expect('(');
      values_.parse_elements(')', false, args_);
    }
    if (in_.accept(", kwargs = {")) {
      values_.parse_kwargs(kwargs_);
    } else {
      skip_space();
      if (in_.accept(',')) {
        skip_space();
        expect_keyword("kwargs");
        in_.expect('{');
        values_.parse_kwargs(kwargs_);
      }
    }
    skip_space();
    if (!in_.accept(')')) in_.fail("')' to close the call");
  }

  void expect_keyword(std::string_view keyword) {
    if (!in_.accept(keyword)) in_.fail("'" + std::string(keyword) + " ='");
    in_.expect('=');
    in_.skip_blanks();
  }

  void define(std::size_t start, std::string_view name, std::string_view type, Op op, Symbol target) {
    Node*& node = names_[name];
    if (node && op == Op::placeholder && is_bare_parameter(*node)) {
      node->set_target(target);
      node->set_args(args_);
    } else {
      if (node) {
        in_.fail_at(start, "expected a new name, found %" + std::string(name) +
                               ", which is defined above already; rename one of them");
      }
      node = &graph_.create_node(op, target, args_, kwargs_, name);
    }
    if (op == Op::output) output_at_ = start;
    set_type(*node, type);
  }

  // A parameter of `graph(%x)` may have its own line too, once.
  bool is_bare_parameter(const Node& node) {
    if (node.id() >= bare_parameters_.size() || !bare_parameters_[node.id()]) return false;
    bare_parameters_[node.id()] = false;
    return true;
  }

  void set_type(Node& node, std::string_view type) {
    if (!type.empty()) node.meta().set(meta_key::kType, std::string(type));
  }

  void parse_return() {
    output_at_ = in_.position();
    in_.accept("return");
    in_.skip_blanks();
    Argument value;
    if (!in_.at_line_end()) value = values_.parse({.closing = '\n', .plain = true});
    graph_.output(value);
  }

  [[noreturn]] void fail_after_output() {
    const std::string line = std::to_string(in_.location(*output_at_).line);
    if (in_.peek() != '%' && in_.statement_at(in_.position())) {
      in_.fail_at(in_.position(), "expected the end of the text, found a second return; the first is at line " + line +
                                      ": return several values as one tuple");
    }
    in_.fail("the end of the text after 'return' at line " + line, "move this line up");
  }

  Graph graph_;
  Scanner in_;
  NameTable names_;
  ValueParser values_;
  std::vector<Argument> args_;  // of the statement being read; kept for their storage
  std::vector<NamedArgument> kwargs_;
  std::vector<bool> bare_parameters_;  // by id: those of the header that have no line of their own so far
  std::string target_buffer_, quoted_type_;
  std::optional<std::size_t> output_at_;
};

}  // namespace

Graph parse_graph(std::string_view text, const std::string& file) { return GraphParser(text, file).parse(); }

}  // namespace fx
