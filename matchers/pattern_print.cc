// The expression form of a pattern.
#include <re2/re2.h>

#include <fxgraph/matchers/pattern_data.h>
#include <fxgraph/matchers/pattern_parser.h>

namespace fx::internal {

namespace {

/// Prints operands first: named calls are statements of their own, and so is every call that is used twice.
class Printer {
 public:
  explicit Printer(const PatternData& data)
      : data_(data), mentions_(data.nodes.size()), names_(data.nodes.size()), told_(data.nodes.size()) {
    for (const PatternNode& node : data.nodes) {
      node.for_each_child([&](std::uint32_t child) { ++mentions_[child]; });
    }
    for (const std::uint32_t output : data.outputs) ++mentions_[output];
    name_shared();
  }

  std::string print() {
    for (std::uint32_t i = 0; i < data_.nodes.size(); ++i) {
      if (!is_statement(i)) continue;
      out_ += names_[i] + " = ";
      body(i);
      out_ += '\n';
      told_[i] = true;
    }
    out_ += "return ";
    for (std::size_t i = 0; i < data_.outputs.size(); ++i) {
      if (i > 0) out_ += ", ";
      reference(data_.outputs[i]);
    }
    out_ += '\n';
    return std::move(out_);
  }

 private:
  bool is_compound(std::uint32_t i) const {
    const PatternKind kind = data_.nodes[i].kind;
    return kind == PatternKind::call || kind == PatternKind::one_of || kind == PatternKind::sequence ||
           kind == PatternKind::negation || kind == PatternKind::transparent || kind == PatternKind::dominated;
  }
  bool is_statement(std::uint32_t i) const { return is_compound(i) && !names_[i].empty(); }

  void name_shared() {
    int number = 0;
    for (std::uint32_t i = 0; i < data_.nodes.size(); ++i) {
      names_[i] = data_.nodes[i].name.str();
      if (!names_[i].empty() && !PatternLexer::is_one_word(names_[i])) names_[i].insert(0, 1, '%');  // `%1`, no number
      if (!names_[i].empty() || mentions_[i] < 2 || data_.nodes[i].kind == PatternKind::literal) continue;
      do {
        names_[i] = "_" + std::to_string(++number);
      } while (data_.find(Symbol(names_[i])) >= 0);
    }
  }

  /// What a name alone says. `x` beside `...x` is the list of what `...x` took.
  static bool is_name(PatternKind kind) { return kind == PatternKind::any || kind == PatternKind::rest; }

  void reference(std::uint32_t i) {
    if (told_[i]) {
      out_ += names_[i];
    } else {
      told_[i] = !names_[i].empty();
      if (!names_[i].empty() && !is_name(data_.nodes[i].kind)) out_ += names_[i] + ": ";
      body(i);
    }
  }

  void body(std::uint32_t i) {
    const PatternNode& node = data_.nodes[i];
    const bool typed = node.kind == PatternKind::value && node.tensor && !names_[i].empty();  // `x: f32[N, C]`
    const bool prefixed = node.kind == PatternKind::negation || node.kind == PatternKind::transparent;
    const bool enclosed = prefixed && is_modified(node);
    if (enclosed) out_ += '(';
    switch (node.kind) {
      case PatternKind::any:
      case PatternKind::rest: out_ += names_[i].empty() ? "_" : names_[i]; break;
      case PatternKind::value: out_ += typed ? tensor(node) : "node"; break;
      case PatternKind::call: call(node); break;
      case PatternKind::attribute: bracketed("get_attr", node.targets, '[', ']'); break;
      case PatternKind::constant: out_ += "constant"; break;
      case PatternKind::literal: literal(node); break;
      case PatternKind::hole: out_ += hole_word(node.hole); break;
      case PatternKind::sequence: list(node.unordered ? "unordered[" : "[", node, "]"); break;
      case PatternKind::one_of: alternatives(node); break;
      case PatternKind::absent: out_ += "None"; break;
      case PatternKind::negation: prefix('!', node); break;
      case PatternKind::transparent: prefix('~', node); break;
      case PatternKind::dominated: list("dominates(", node, ")"); break;
    }
    if (enclosed) out_ += ')';
    modifiers(node, typed);
  }

  static bool is_modified(const PatternNode& node) { return node.has_conditions() || node.tensor; }

  void modifiers(const PatternNode& node, bool typed) {
    if (node.min_uses == 1 && node.max_uses == 1) {
      out_ += ".used_once";
    } else if (node.min_uses != 0 || node.max_uses != kManyUses) {
      out_ += ".uses(" + std::to_string(node.min_uses) + ", " +
              (node.max_uses == kManyUses ? "*" : std::to_string(node.max_uses)) + ")";
    }
    for (std::size_t i = 0; i < node.conditions.size(); ++i) {
      const Condition& condition = node.conditions[i];
      out_ += (i == 0 ? ".if(" : ", ") + (condition.text.empty() ? predicate(condition.what) : condition.text);
    }
    if (!node.conditions.empty()) out_ += ')';
    if (node.tensor && !typed) out_ += ".is(" + tensor(node) + ")";
  }

  static std::string predicate(const std::string& name) {
    return PatternLexer::is_one_word(name) ? name : to_string(Argument(name));
  }

  std::string tensor(const PatternNode& node) const {
    return print_tensor_test(node, [&](std::uint32_t dim) -> std::string {
      const PatternNode& size = data_.nodes[dim];
      return size.kind == PatternKind::literal ? to_string(size.literal) : names_[dim].empty() ? "*" : names_[dim];
    });
  }

  void prefix(char mark, const PatternNode& node) {
    out_ += mark;
    reference(node.args[0]);
  }

  static std::string_view hole_word(HoleKind hole) {
    constexpr std::string_view kWords[] = {"literal", "int", "float", "bool", "str"};
    return kWords[static_cast<std::size_t>(hole)];
  }

  void literal(const PatternNode& node) {
    const Argument& value = node.literal;
    const std::string text = to_string(value);
    if (node.tolerance >= 0) {
      out_ += "near(" + text + ", " + to_string(Argument(node.tolerance)) + ")";
    } else if (value.is_number() || value.is_bool() || value.is_none() || value.is_string()) {
      out_ += value.is_int() || value.is_float() || !value.is_number() ? text : "lit(" + text + ")";
    } else {
      out_ += "lit(" + text + ")";
    }
  }

  void call(const PatternNode& node) {
    if (node.commutative) out_ += "commutative(";
    if (node.op == Op::call_function && reads_as_other(node)) {
      bracketed("call_function", node.targets, '[', ']');
    } else if (node.op == Op::call_function) {
      targets(node.targets);
    } else {
      bracketed(to_string(node.op), node.targets, '[', ']');
      bracketed("", node.types, '<', '>');
    }
    if (!node.bare) list("(", node, ")");
    if (node.commutative) out_ += ')';
  }

  /// A function that has the name of a formula, or looks like a value where it has no arguments.
  static bool reads_as_other(const PatternNode& node) {
    const TargetSet& set = node.targets;
    const bool word = set.names().size() == 1 && set.spellings().empty() && set.expressions().empty() &&
                      set.tags().empty() && PatternLexer::is_one_word(set.names()[0].view());
    return word && !PatternParser::reads_as_target(set.names()[0].view(), !node.bare);
  }

  /// The target as a word, or, when it is none, as the expression that it alone matches.
  static std::string target_text(const std::string& name) {
    if (PatternLexer::is_one_word(name)) return name;
    std::string expression = re2::RE2::QuoteMeta(name);
    for (std::size_t at; (at = expression.find('\n')) != std::string::npos;) expression.replace(at, 1, "n");
    return "/" + expression + "/";
  }

  void bracketed(std::string_view word, const TargetSet& set, char open, char close) {
    out_ += word;
    if (set.accepts_all()) return;
    out_ += open;
    targets(set);
    out_ += close;
  }

  void targets(const TargetSet& set) {
    std::vector<std::string> parts;
    for (const Symbol name : set.names()) parts.push_back(target_text(name.str()));
    for (const Symbol name : set.spellings()) parts.push_back("spelt(" + to_string(Argument(name.view())) + ")");
    for (const std::string& expression : set.expressions()) parts.push_back("/" + expression + "/");
    for (const Tag tag : set.tags()) parts.push_back("#" + std::string(to_string(tag)));
    if (parts.empty()) parts.push_back("call_function");
    if (parts.size() > 1) out_ += '{';
    for (std::size_t i = 0; i < parts.size(); ++i) out_ += (i > 0 ? ", " : "") + parts[i];
    if (parts.size() > 1) out_ += '}';
  }

  void list(std::string_view open, const PatternNode& node, std::string_view close) {
    bool first = true;
    const auto comma = [&] {
      if (!first) out_ += ", ";
      first = false;
    };
    out_ += open;
    for (const std::uint32_t arg : node.args) {
      comma();
      reference(arg);
    }
    for (const auto& [name, arg] : node.kwargs) {
      comma();
      out_ += name.str() + "=";
      reference(arg);
    }
    if (node.open) {
      comma();
      out_ += "..." + (node.tail == kNoPattern ? "" : names_[node.tail]);
    }
    out_ += close;
  }

  void alternatives(const PatternNode& node) {
    if (data_.nodes[node.args.back()].kind == PatternKind::absent) {
      out_ += "maybe(";
      reference(node.args[0]);
      out_ += ')';
      return;
    }
    out_ += '(';
    for (std::size_t i = 0; i < node.args.size(); ++i) {
      if (i > 0) out_ += " | ";
      reference(node.args[i]);
    }
    out_ += ')';
  }

  const PatternData& data_;
  std::vector<int> mentions_;
  std::vector<std::string> names_;
  std::vector<bool> told_;
  std::string out_;
};

}  // namespace

std::string print_pattern(const PatternData& data) { return Printer(data).print(); }

}  // namespace fx::internal
