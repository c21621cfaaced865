#include <fxgraph/matchers/tensor_text.h>

#include <array>
#include <charconv>

#include <fxgraph/matchers/pattern_data.h>

namespace fx::internal {

namespace {

constexpr std::uint32_t bit(DType dtype) { return std::uint32_t{1} << static_cast<unsigned>(dtype); }

/// Words for dtypes; the first that says a set is the one that is printed.
struct TypeWord {
  std::string_view word;
  std::uint64_t dtypes;
};

constexpr std::uint32_t kFloating =
    bit(DType::float16) | bit(DType::bfloat16) | bit(DType::float32) | bit(DType::float64);
constexpr std::uint32_t kIntegral =
    bit(DType::uint8) | bit(DType::int8) | bit(DType::int16) | bit(DType::int32) | bit(DType::int64);

constexpr std::array kTypeWords = {
    TypeWord{"tensor", ~std::uint32_t{0}},    TypeWord{"floating", kFloating},
    TypeWord{"integral", kIntegral},          TypeWord{"f16", bit(DType::float16)},
    TypeWord{"bf16", bit(DType::bfloat16)},   TypeWord{"f32", bit(DType::float32)},
    TypeWord{"f64", bit(DType::float64)},     TypeWord{"i8", bit(DType::int8)},
    TypeWord{"i16", bit(DType::int16)},       TypeWord{"i32", bit(DType::int32)},
    TypeWord{"i64", bit(DType::int64)},       TypeWord{"u8", bit(DType::uint8)},
    TypeWord{"boolean", bit(DType::boolean)},
};

/// The dtypes of a word; 0 for another word.
std::uint64_t dtypes_of(std::string_view word) {
  for (const TypeWord& known : kTypeWords) {
    if (known.word == word) return known.dtypes;
  }
  const std::optional<DType> dtype = parse_dtype(word);
  return dtype && to_string(*dtype) == word ? bit(*dtype) : 0;
}

std::uint64_t read_dtypes(PatternLexer& lexer) {
  constexpr std::string_view kExpected = "tensor, floating, integral or a dtype such as f32";
  const auto one = [&] {
    const std::uint64_t dtypes = lexer.peek().kind == PatternToken::Kind::word ? dtypes_of(lexer.peek().text) : 0;
    if (dtypes == 0) lexer.fail(std::string(kExpected));
    lexer.take();
    return dtypes;
  };
  if (!lexer.accept("{")) return one();
  std::uint64_t dtypes = 0;
  do {
    dtypes |= one();
  } while (lexer.accept(","));
  lexer.expect("}");
  return dtypes;
}

match::Expr read_size(PatternLexer& lexer) {
  const PatternToken token = lexer.peek();
  if (lexer.accept("*")) return match::any();
  std::int64_t size = 0;
  if (token.kind == PatternToken::Kind::number &&
      std::from_chars(token.text.data(), token.text.data() + token.text.size(), size).ptr ==
          token.text.data() + token.text.size()) {
    lexer.take();
    return match::Expr(size);
  }
  const bool name = token.kind == PatternToken::Kind::word && token.text.find_first_of(".:%") == std::string_view::npos;
  if (!name) lexer.fail("a size: a number, a name, * or ...");
  lexer.take();
  return match::lit_int(token.text);
}

void read_sizes(PatternLexer& lexer, ExprNode& node) {
  node.tensor->sized = true;
  while (!lexer.is("]")) {
    if (lexer.peek().kind == PatternToken::Kind::ellipsis) {
      if (node.tensor->open >= 0) lexer.fail("']': `...` stands once among the sizes");
      node.tensor->open = static_cast<int>(node.dims.size());
      lexer.take();
    } else {
      node.dims.push_back(read_size(lexer));
    }
    if (!lexer.accept(",")) break;
  }
  lexer.expect("]");
}

}  // namespace

bool is_tensor_type(PatternLexer lexer) {
  const auto dtype = [&] { return lexer.peek().kind == PatternToken::Kind::word && dtypes_of(lexer.peek().text) != 0; };
  if (!lexer.accept("{")) {
    lexer.cut_modifiers();
    return dtype() && !lexer.is_word("bool");  // `c: bool` is a literal
  }
  do {
    if (!dtype()) return false;
    lexer.take();
  } while (lexer.accept(","));
  return lexer.accept("}") && !lexer.is("(");
}

void read_tensor_type(PatternLexer& lexer, ExprNode& node) {
  if (node.tensor) lexer.fail_at(lexer.peek().at, "the tensor is described twice; say all of it in one place");
  lexer.cut_modifiers();
  node.tensor.emplace();
  node.tensor->dtypes = read_dtypes(lexer);
  if (lexer.accept("[")) read_sizes(lexer, node);
  if (!lexer.is_word("on")) return;
  lexer.take();
  if (lexer.peek().kind != PatternToken::Kind::word) lexer.fail("a device");
  lexer.cut_modifiers();
  std::string device(lexer.take().text);
  if (lexer.accept(":")) device += ":" + std::string(lexer.take().text);
  node.tensor->device = parse_device(device);
  if (!node.tensor->device) lexer.fail("a device such as cpu or cuda:0 before it");
}

void parse_tensor_test(std::string_view type, ExprNode& node) {
  PatternLexer lexer(type);
  read_tensor_type(lexer, node);
  if (lexer.peek().kind != PatternToken::Kind::end) lexer.fail("the end of the type");
}

std::string print_tensor_test(const PatternNode& node, const std::function<std::string(std::uint32_t)>& dim) {
  const TensorTest& test = *node.tensor;
  std::string text;
  for (const TypeWord& known : kTypeWords) {
    if (known.dtypes == test.dtypes) text = known.word;
  }
  for (unsigned i = 0; text.empty() && i < 32; ++i) {
    if (test.dtypes == std::uint64_t{1} << i) text = to_string(static_cast<DType>(i));
  }
  if (text.empty()) {
    for (unsigned i = 0; i < 32; ++i) {
      if (test.dtypes >> i & 1) text += (text.empty() ? "{" : ", ") + std::string(to_string(static_cast<DType>(i)));
    }
    text += "}";
  }
  if (test.sized) {
    std::vector<std::string> sizes;
    for (const std::uint32_t size : node.dims) sizes.push_back(dim(size));
    if (test.open >= 0) sizes.insert(sizes.begin() + test.open, "...");
    text += "[";
    for (std::size_t i = 0; i < sizes.size(); ++i) text += (i > 0 ? ", " : "") + sizes[i];
    text += "]";
  }
  if (test.device) text += " on " + to_string(*test.device);
  return text;
}

}  // namespace fx::internal
