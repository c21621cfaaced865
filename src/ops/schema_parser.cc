// Reads operator declarations: recursive descent over one line of text.
//
//   declaration := name '(' arguments ')' '->' returns
//   arguments   := [argument {',' argument}], with '*' before the keyword-only ones and '...' for any more
//   argument    := type name ['=' default]
//   type        := base [alias] {'?' | '[' [size] ']' [alias]}
//   base        := identifier {'.' identifier} ['(' types ')'] | '(' types ')'
//   alias       := '(' sets ['!'] ['->' sets] ')',  sets := '*' | letter {'|' letter}
//   returns     := '...' | type [name] | '(' [type [name] {',' type [name]}] ')'
#include <algorithm>

#include <fxgraph/ops/records/traits_table.h>
#include <fxgraph/ops/schema.h>
#include <fxgraph/ops/schema_defaults.h>
#include <fxgraph/ops/schema_scanner.h>

namespace fx {

namespace {

using Base = SchemaType::Base;

struct BaseName {
  std::string_view name;
  Base base;
};
constexpr BaseName kBaseNames[] = {
    {"Tensor", Base::tensor},       {"Scalar", Base::scalar},  {"number", Base::scalar},
    {"int", Base::integer},         {"SymInt", Base::integer}, {"float", Base::floating},
    {"SymFloat", Base::floating},   {"bool", Base::boolean},   {"SymBool", Base::boolean},
    {"complex", Base::complex},     {"str", Base::string},     {"ScalarType", Base::dtype},
    {"Device", Base::device},       {"Layout", Base::layout},  {"MemoryFormat", Base::memory_format},
    {"Generator", Base::generator}, {"Dimname", Base::string},
};

// Types that take types: for any other name a parenthesis starts an alias annotation.
constexpr std::string_view kParametric[] = {"Dict", "Future", "RRef", "Await", "Union", "Tuple", "List", "Optional"};

class Parser {
 public:
  explicit Parser(std::string_view text) : in_(text) {}

  OperatorSchema parse() {
    OperatorSchema schema;
    const std::string_view name = in_.take_word(":.");
    if (name.empty()) in_.fail("the operator's name");
    schema.target = canonical_target(Symbol(name));
    read_arguments(schema);
    if (!in_.take("->")) in_.fail("'->' and what is returned");
    read_returns(schema);
    in_.skip_spaces();
    if (!in_.at_end()) in_.fail("the end of the declaration");
    return schema;
  }

 private:
  // ── Arguments and returns ──────────────────────────────────────────────────────────────────────────────────────────
  void read_arguments(OperatorSchema& schema) {
    in_.expect("(", "before the arguments");
    bool keyword_only = false;
    if (in_.take(")")) return;
    do {
      if (in_.take("...")) {
        schema.varargs = true;
      } else if (in_.take("*")) {
        if (keyword_only) in_.fail("one '*' only");
        keyword_only = true;
      } else {
        read_argument(schema, keyword_only);
      }
    } while (!schema.varargs && in_.take(","));
    in_.expect(")", schema.varargs ? "after '...'" : "or ',' after an argument");
  }

  void read_argument(OperatorSchema& schema, bool keyword_only) {
    SchemaArgument argument;
    read_type(argument.type, argument.alias);
    in_.skip_spaces();
    const std::size_t start = in_.position();
    const std::string_view name = in_.take_word();
    if (name.empty()) in_.fail("the argument's name");
    argument.name = Symbol(name);
    if (schema.index_of(argument.name) >= 0) {
      in_.seek(start);
      in_.fail("an argument name that is not taken");
    }
    argument.keyword_only = keyword_only;
    if (in_.take("=")) argument.default_value = in_full(argument.type, internal::read_default(in_, argument.type));
    schema.arguments.push_back(std::move(argument));
  }

  void read_returns(OperatorSchema& schema) {
    if (in_.take("...")) {
      schema.varreturns = true;
    } else if (in_.take("(")) {
      if (in_.take(")")) return;
      do {
        if (in_.take("...")) {
          schema.varreturns = true;
        } else {
          read_return(schema);
        }
      } while (in_.take(","));
      in_.expect(")", "or ',' after a result");
    } else {
      read_return(schema);
    }
  }

  void read_return(OperatorSchema& schema) {
    SchemaReturn result;
    read_type(result.type, result.alias);
    result.name = Symbol(in_.take_word());
    schema.returns.push_back(std::move(result));
  }

  // ── Types ──────────────────────────────────────────────────────────────────────────────────────────────────────────
  void read_type(SchemaType& type, AliasInfo& alias) {
    read_base(type, 0);
    if (in_.peek() == '(') read_alias(alias, type.text.size());
    for (;;) {
      if (in_.peek() == '(' && alias.empty()) {
        read_alias(alias, type.text.size());
      } else if (!read_suffix(type)) {
        return;
      }
    }
  }

  // Reads `?` or `[2]` if one comes next.
  bool read_suffix(SchemaType& type) {
    if (in_.peek() == '?') {
      type.text += in_.next();
      type.optional = true;
      return true;
    }
    if (in_.peek() != '[') return false;
    const std::size_t start = in_.position();
    in_.next();
    unsigned size = 0;
    while (std::isdigit(static_cast<unsigned char>(in_.peek()))) {
      size = std::min(1000u, 10 * size + static_cast<unsigned>(in_.next() - '0'));
    }
    if (in_.peek() != ']' || size > 255) in_.fail("a list's size up to 255, or ']'");
    in_.next();
    if (type.list) type.base = Base::other;  // a list of lists is beyond what rewriting looks at
    type.optional_elements = type.optional;
    type.optional = false;
    type.list = true;
    type.fixed_size = static_cast<std::uint8_t>(size);
    type.text += in_.since(start);
    return true;
  }

  /// A single number stands for a list of fixed size.
  static Argument in_full(const SchemaType& type, Argument value) {
    const bool one = type.fixed_size > 0 && !value.is_none() && !value.is_sequence();
    return one ? Argument::list(std::vector<Argument>(type.fixed_size, value)) : value;
  }

  void read_base(SchemaType& type, int depth) {
    if (depth > Argument::kMaxNesting) in_.fail("types nested less deeply");
    if (in_.take("(")) {
      read_type_list(type.text, depth);
      return;
    }
    if (!SchemaScanner::is_word(in_.peek())) in_.fail("a type");
    const std::string_view name = in_.take_word(".");
    type.text = name;
    for (const BaseName& row : kBaseNames) {
      if (row.name == name) type.base = row.base;
    }
    const bool parametric = std::ranges::find(kParametric, name) != std::end(kParametric);
    if (parametric && in_.peek() == '(') {
      in_.next();
      read_type_list(type.text, depth);
    }
  }

  // The types of `(int, Tensor)` after the parenthesis; appends all to `text`.
  void read_type_list(std::string& text, int depth) {
    text += '(';
    for (bool first = true; !in_.take(")"); first = false) {
      if (!first) {
        in_.expect(",", "or ')' after a type");
        text += ", ";
      }
      SchemaType element;
      read_base(element, depth + 1);
      while (read_suffix(element)) {
      }
      text += element.text;
    }
    text += ')';
  }

  void read_alias(AliasInfo& alias, std::size_t position) {
    in_.next();
    alias.position = static_cast<std::uint16_t>(position);
    read_sets(alias.sets, alias.wildcard);
    alias.writes = in_.take("!");
    alias.sets_after = alias.sets;
    alias.wildcard_after = alias.wildcard;
    if (in_.take("->")) {
      alias.sets_after = 0;
      alias.wildcard_after = false;
      read_sets(alias.sets_after, alias.wildcard_after);
    }
    in_.expect(")", "after an alias annotation");
  }

  void read_sets(std::uint32_t& sets, bool& wildcard) {
    do {
      if (in_.take("*")) {
        wildcard = true;
        continue;
      }
      const char c = in_.peek();
      if (c < 'a' || c > 'z' || SchemaScanner::is_word(in_.peek_at(1))) in_.fail("an alias set, 'a' to 'z' or '*'");
      sets |= 1u << (in_.next() - 'a');
    } while (in_.take("|"));
  }

  using SchemaScanner = internal::SchemaScanner;
  SchemaScanner in_;
};

}  // namespace

OperatorSchema parse_schema(std::string_view declaration) {
  OperatorSchema schema = Parser(declaration).parse();
  for (const SchemaArgument& argument : schema.arguments) schema.num_positional_ += !argument.keyword_only;
  internal::complete_schema(schema);
  return schema;
}

}  // namespace fx
