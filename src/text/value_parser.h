// Parses what stands in args and kwargs: nodes, literals, containers, and the bare strings of Python's text.
// text/parse.h says what each spelling becomes. Internal to src/text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/ir/argument.h>
#include <fxgraph/text/name_table.h>
#include <fxgraph/text/scanner.h>

namespace fx::internal {

/// Where a value stands, which decides where a bare one ends and what it means.
struct ValueContext {
  char closing;          ///< `)` `]` `}`, or '\n' for the rest of the line
  bool plain = false;    ///< in `return` and slices: bare names are nodes, strings are quoted
  bool in_dict = false;  ///< a value of a dictionary: commas that no key follows belong to a bare string
  bool key = false;      ///< a key of a dictionary: ends at `:`
};

class ValueParser {
 public:
  ValueParser(Scanner& scanner, const NameTable& names) : in_(scanner), names_(names) {}

  Argument parse(const ValueContext& context);
  /// Parses elements up to and with `closing`, whose opening bracket was just taken; true when a comma ended them.
  bool parse_elements(char closing, bool plain, std::vector<Argument>& elements);
  /// Parses `key: value` pairs up to and with `}`, whose opening bracket was just taken.
  void parse_kwargs(std::vector<NamedArgument>& kwargs);

 private:
  // Counts the containers that the parser is inside.
  class Nested {
   public:
    Nested(ValueParser& parser, std::size_t opening) : depth_(parser.depth_) {
      if (depth_ == Argument::kMaxNesting) parser.fail_nesting(opening);
      ++depth_;
    }
    ~Nested() { --depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    int& depth_;
  };

  Argument parse_node();
  Argument parse_tuple(bool plain);
  Argument parse_dict(bool plain);
  Argument parse_word(const ValueContext& context);
  Argument parse_bare(std::size_t start, const ValueContext& context);
  Argument parse_slice(std::size_t start);
  Argument parse_device();
  Argument parse_complex(std::size_t start);
  bool parse_python_complex(Argument& value);
  bool parse_object(std::size_t start, const ValueContext& context, Argument& value);
  Argument parse_plain_name(std::size_t start, std::string_view word);

  bool ends_value(const ValueContext& context) const;
  bool ends_bare(std::size_t position, const ValueContext& context) const;
  bool is_glued(std::size_t comma, const ValueContext& context) const;
  bool key_follows(std::size_t position) const;
  void skip_space(std::size_t opening);
  [[noreturn]] void fail_unclosed(std::size_t opening) const;
  [[noreturn]] void fail_nesting(std::size_t opening) const;
  [[noreturn]] void fail_unknown(std::size_t position, std::string_view name) const;
  void refuse_hidden_nodes(std::size_t start, std::string_view object) const;

  Scanner& in_;
  const NameTable& names_;
  int depth_ = 0;
  std::size_t no_object_before_ = 0;  // a search for an object's end failed up to here: do not search again
};

}  // namespace fx::internal
