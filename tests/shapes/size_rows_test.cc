// Every row of sizes beside the operator itself, on drawn calls: what is known is what LibTorch gives, and what is
// refused it refuses. With symbols in the place of sizes the conditions hold of every call that LibTorch takes.
#include <fxgraph/ops/records/size_inference.h>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <sstream>
#include <string>

#include <fxgraph/ops/records/size_rows.h>
#include <fxgraph/run/missing_operators.h>
#include <fxgraph/run/unsafe_kernels.h>
#include <fxgraph/support/error.h>
#include "tests/shapes/call_hints.h"
#include "tests/shapes/drawn_calls.h"
#include "tests/support/night.h"

namespace fx::size_rows_test {

using testing::Arguments;
using testing::DrawnCalls;
using testing::Hint;
using testing::IValue;
using testing::name_of;

struct Operator {
  c10::OperatorHandle handle;
  OperatorSchema schema;
};

std::vector<Operator> all_operators() {
  install_missing_operators();
  std::vector<Operator> all;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto handle = c10::Dispatcher::singleton().findSchema(name);
    const bool is_own = name.name.starts_with("quantized_decomposed::");  // computed in TorchScript
    if (!handle || !(is_own || name.name.starts_with("aten::"))) continue;
    std::ostringstream text;
    text << handle->schema();
    OperatorSchema schema = parse_schema(text.str());
    const bool is_out = std::ranges::any_of(
        schema.arguments, [](const SchemaArgument& each) { return each.alias.writes && each.keyword_only; });
    const bool by_names = text.str().find("str dim") != std::string::npos ||
                          text.str().find("str[1] dim") != std::string::npos ||
                          text.str().find("out_dim") != std::string::npos ||
                          name.overload_name.find("names") != std::string::npos || name.overload_name == "data";
    if (!is_own && missing_operator_body(schema.target)) continue;
    if (!is_out && !by_names && has_size_row(schema)) all.push_back({*handle, std::move(schema)});
  }
  std::ranges::sort(all, {}, [](const Operator& each) { return each.schema.target.str(); });
  return all;
}

// ── Values ──────────────────────────────────────────────────────────────────────────────────────────────────────────

using SizeOf = std::function<SizeExpr(std::int64_t)>;

AbstractValue abstract_tensor(const at::Tensor& tensor, const SizeOf& size_of) {
  TensorType type{static_cast<DType>(tensor.scalar_type())};
  for (const std::int64_t size : tensor.sizes()) type.sizes.push_back(size_of(size));
  const bool is_in_order = tensor.strides() == at::empty(tensor.sizes()).strides();
  if (std::ranges::all_of(type.sizes, &SizeExpr::is_integer)) {
    type.strides.emplace(tensor.strides().begin(), tensor.strides().end());
  } else if (is_in_order) {
    type.strides = contiguous_strides(type.sizes);
  }
  return type;
}

AbstractValue abstract_value(const IValue& value, const SchemaType& type, const SizeOf& size_of) {
  if (value.isNone()) return AbstractValue::literal(Argument());
  if (value.isTensor()) return abstract_tensor(value.toTensor(), size_of);
  if (value.isList()) {
    AbstractValue::List list;
    for (const IValue& each : value.toListRef()) list.push_back(abstract_value(each, type, size_of));
    return list;
  }
  if (type.base == SchemaType::Base::dtype) return AbstractValue::literal(static_cast<DType>(value.toInt()));
  if (type.base == SchemaType::Base::memory_format)
    return AbstractValue::literal(MemoryFormat{Symbol("contiguous_format")});
  if (value.isInt()) return SizeExpr(value.toInt());
  if (value.isBool()) return AbstractValue::literal(value.toBool());
  if (value.isDouble()) return AbstractValue::literal(value.toDouble());
  if (value.isString()) return AbstractValue::literal(value.toStringRef());
  if (value.isDevice()) return AbstractValue::literal(Device{Symbol("cpu")});
  return {};
}

std::vector<AbstractValue> abstract_values(const Operator& op, const Arguments& arguments, const SizeOf& size_of) {
  std::vector<AbstractValue> values;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    values.push_back(abstract_value(arguments[i], op.schema.arguments[i].type, size_of));
  return values;
}

std::string words(const IValue& value) {
  std::ostringstream out;
  if (value.isTensor()) {
    out << value.toTensor().scalar_type() << value.toTensor().sizes();
    if (!value.toTensor().is_contiguous()) out << "/" << value.toTensor().strides();
  } else if (value.isList() && !value.isIntList()) {
    for (const IValue& each : value.toListRef()) out << words(each) << "; ";
  } else {
    out << value;
  }
  return out.str();
}
std::string words(const Arguments& arguments) {
  std::string text;
  for (const IValue& each : arguments) text += (text.empty() ? "" : ", ") + words(each);
  return "(" + text + ")";
}

// ── Calls ───────────────────────────────────────────────────────────────────────────────────────────────────────────

struct Outcome {
  std::vector<IValue> results{};
  std::string error{};
};

// Kernels that end the process or read what is not theirs: windows by no numbers, padding by too few, normalisation of
// nothing, with half of its statistics or others than it has channels, cells of two widths. Transposed convolutions of
// bfloat16 mix up sizes, and `detach_` refuses views.
bool crashes(const Operator& op, const Arguments& arguments) {
  const auto find = [&](const char* name) -> const IValue* {
    const int at = op.schema.index_of(Symbol(name));
    return at >= 0 ? &arguments[static_cast<std::size_t>(at)] : nullptr;
  };
  const std::string& name = op.handle.schema().name();
  if (name == "aten::_local_scalar_dense" && arguments[0].toTensor().numel() == 0) return true;
  const bool pads = name.find("_pad") != std::string::npos;
  for (const char* each : {"kernel_size", "padding", "output_padding"}) {
    const IValue* list = find(each);
    if (!list || !list->isList()) continue;
    const std::size_t least = pads ? 2 * static_cast<std::size_t>(name[name.size() - 2] - '0') : 1;
    if (list->toListRef().size() < least) return true;
  }
  const bool is_bfloat16 = arguments[0].isTensor() && arguments[0].toTensor().scalar_type() == at::kBFloat16;
  if (is_bfloat16 && name.find("::conv") + 1 + name.find("::_conv") + 1 != 0) return true;
  const auto rows = [](const at::Tensor& weight) { return weight.dim() > 0 ? weight.size(0) : 0; };
  if (name.ends_with("_cell") && rows(find("w_ih")->toTensor()) != rows(find("w_hh")->toTensor())) return true;
  if (name == "aten::detach_" && arguments[0].toTensor().is_view()) return true;
  const IValue *mean = find("running_mean"), *var = find("running_var");
  if (!mean) return false;
  const at::Tensor& input = arguments[0].toTensor();
  const auto misfits = [&](const IValue& vector) {
    return vector.isTensor() && vector.toTensor().sizes() != input.sizes().slice(1, 1);
  };
  const bool is_native =
      name == "aten::native_batch_norm" && (mean->isNone() || input.numel() == 0 || input.dim() < 2 ||
                                            std::any_of(arguments.begin() + 1, arguments.begin() + 5, misfits));
  return is_native || mean->isNone() != var->isNone();
}

Outcome run(const Operator& op, Arguments stack) {
  try {
    make_safe(op.handle.schema(), stack.data());
    op.handle.callBoxed(&stack);
    return {std::move(stack), {}};
  } catch (const std::exception& error) {
    const std::string text = error.what();
    return {{}, text.substr(0, text.find('\n')) + " "};
  }
}

using Symbols = std::map<std::string, std::int64_t>;

// What is refused for numbers that say nothing of sizes, or for data, as an index into nothing is; and what the CPU has
// no kernel for, other devices have.
bool is_of_sizes(const std::string& error, const std::string& arguments) {
  constexpr const char* kOfNumbers[] = {"lambda must be",  "divisor must be", "possible modes", "norm to be integer",
                                        "random_ expects", "ZeroDivision",    "out of bounds",  "out of range in self"};
  return (arguments + error).find("BFloat16") == std::string::npos &&
         std::ranges::none_of(kOfNumbers, [&](const char* text) { return error.find(text) != std::string::npos; });
}

/// Why the value is not this one, or nothing. What new symbols stand for is not told.
std::string difference(const AbstractValue& expected, const IValue& value, const Symbols& symbols) {
  if (value.isTensorList()) {
    const std::vector<at::Tensor> tensors = value.toTensorVector();
    if (!expected.list() || expected.list()->size() != tensors.size()) return "another number of tensors";
    std::string all;
    for (std::size_t i = 0; i < tensors.size(); ++i) all += difference((*expected.list())[i], tensors[i], symbols);
    return all;
  }
  if (expected.number() && value.isInt()) return "";  // that data decide
  if (!value.isTensor() || !expected.tensor()) return "no tensor";
  const TensorType& type = *expected.tensor();
  const at::Tensor& tensor = value.toTensor();
  const auto differs = [&](const std::vector<SizeExpr>& exprs, at::IntArrayRef numbers) {
    if (exprs.size() != numbers.size()) return true;
    for (std::size_t i = 0; i < exprs.size(); ++i) {
      const std::optional<std::int64_t> number = exprs[i].evaluate(symbols);
      // Where there is one element at most no stride counts.
      const bool counts = numbers.data() != tensor.strides().data() || tensor.size(static_cast<std::int64_t>(i)) > 1;
      if (number && *number != numbers[i] && counts) return true;
    }
    return false;
  };
  if (differs(type.sizes, tensor.sizes())) return "sizes " + type.str() + " of " + words(value);
  if (type.dtype != static_cast<DType>(tensor.scalar_type())) return "type " + type.str() + " of " + words(value);
  if (type.strides && tensor.numel() > 0 && differs(*type.strides, tensor.strides())) {
    std::string text = "strides";
    for (const SizeExpr& each : *type.strides) text += " " + each.str();
    return text + " of " + words(value);
  }
  return "";
}

std::string difference(const InferredCall& made, const Outcome& outcome, const Symbols& symbols) {
  std::string all;
  if (made.results.size() != outcome.results.size()) return "another number of results";
  for (std::size_t i = 0; i < made.results.size(); ++i) all += difference(made.results[i], outcome.results[i], symbols);
  return all;
}

bool holds(const SizeCondition& condition, const Symbols& symbols) {
  const auto a = condition.left.evaluate(symbols), b = condition.right.evaluate(symbols);
  if (!a || !b) return true;
  return SizeFacts().holds({condition.relation, *a, *b}) == Answer::yes;
}

bool has_nothing(const IValue& value) {
  if (value.isTensorList()) return std::ranges::any_of(value.toListRef(), has_nothing);
  return value.isTensor() && value.toTensor().numel() == 0;
}

// What only data decide, by rows that are of other overloads.
bool is_of_data(const OperatorSchema& schema) {
  constexpr std::string_view kOfData[] = {"narrow.Tensor",
                                          "repeat_interleave.Tensor",
                                          "repeat_interleave.self_Tensor",
                                          "tensor_split.tensor_indices_or_sections",
                                          "where",
                                          "item",
                                          "_local_scalar_dense"};
  return std::ranges::find(kOfData, name_of(schema.target.view())) != std::end(kOfData);
}

// Of sizes of 0 and 1 these take what they refuse of others: networks broadcast a state, others look at nothing.
bool is_lenient(const OperatorSchema& schema) {
  constexpr std::string_view kLenient[] = {"native_dropout",  "conv",       "_conv", "addmv", "scatter",
                                           "pixel_unshuffle", "max_pool1d", "gru",   "rnn_"};
  return std::ranges::any_of(
      kLenient, [&](std::string_view prefix) { return name_of(schema.target.view()).starts_with(prefix); });
}

/// Calls the operator with drawn arguments and reports what is wrong, a few times.
class RowTest {
 public:
  explicit RowTest(const Operator& op) : op_(op) {
    const Hint& hint = testing::hint_of(op.schema);
    DrawnCalls calls(op.schema, hint.lines, hint.common, 20240607);
    const std::uint64_t count = testing::by_night(600);
    for (std::uint64_t i = 0; i < count && wrong_ < 3; ++i) {
      const Arguments arguments = calls.next();
      if (crashes(op, arguments)) continue;
      // Arguments as they are before operators in place write them.
      const std::vector<AbstractValue> numbers =
          abstract_values(op, arguments, [](std::int64_t s) { return SizeExpr(s); });
      is_of_nothing_ = std::ranges::any_of(arguments, has_nothing);
      const bool plain = std::ranges::all_of(arguments, &RowTest::is_plain);
      Symbols symbols;
      SizeFacts facts;
      const std::vector<AbstractValue> exprs = symbolic(arguments, i % 2 == 0, symbols, facts);
      const std::string text = words(arguments);
      const Outcome outcome = run(op, arguments);
      is_of_nothing_ |= std::ranges::any_of(outcome.results, has_nothing);
      with_numbers(numbers, plain, outcome, text);
      with_symbols(exprs, facts, symbols, outcome, text);
    }
    if (is_of_data(op.schema)) return;
    EXPECT_GE(decided_ * 10, calls_) << name() << ": " << why_;
    EXPECT_GE(plain_decided_ * 2, plain_taken_) << name() << ": " << why_;
    EXPECT_GE(taken_ * 5, calls_) << name() << " refuses most of what is drawn: " << error_;
  }

 private:
  static bool is_plain(const IValue& value) {
    if (value.isTensorList()) return std::ranges::all_of(value.toListRef(), &RowTest::is_plain);
    return !value.isTensor() || (value.toTensor().is_contiguous() && value.toTensor().scalar_type() == at::kFloat);
  }
  std::string name() const { return op_.schema.target.str(); }
  void report(const std::string& what, const std::string& text) {
    if (++wrong_ <= 3) ADD_FAILURE() << name() << text << ": " << what;
  }

  std::vector<AbstractValue> symbolic(const Arguments& arguments, bool shares, Symbols& symbols, SizeFacts& facts) {
    return abstract_values(op_, arguments, [&](std::int64_t size) {
      const std::string symbol = "s" + std::to_string(size) + (shares ? "" : "_" + std::to_string(symbols.size()));
      symbols[symbol] = size;
      facts.declare(symbol, {0, std::nullopt});
      return SizeExpr::symbol(symbol);
    });
  }

  void with_numbers(const std::vector<AbstractValue>& values, bool plain, const Outcome& outcome,
                    const std::string& text) {
    SizeFacts facts;
    FreshSymbols fresh;
    const InferredCall made = infer(op_.schema, values, facts, fresh);
    const bool taken = outcome.error.empty(), decided = made.outcome != InferredCall::Outcome::unknown;
    ++calls_;
    taken_ += taken;
    decided_ += decided;
    plain_taken_ += plain && taken;
    plain_decided_ += plain && taken && decided;
    if (plain && taken && !decided) why_ = made.why + " " + text;
    if (!taken) error_ = outcome.error + text;
    if (made.outcome == InferredCall::Outcome::refused && taken && !is_of_nothing_)
      report("is taken, not refused: " + made.why, text);
    if (made.outcome != InferredCall::Outcome::known) return;
    if (!taken) {
      if (made.unsaid.empty() && is_of_sizes(outcome.error, text)) report("is refused: " + outcome.error, text);
      return;
    }
    if (const std::string other = difference(made, outcome, {}); !other.empty()) report(other, text);
  }

  void with_symbols(const std::vector<AbstractValue>& values, SizeFacts& facts, const Symbols& symbols,
                    const Outcome& outcome, const std::string& text) {
    if (!outcome.error.empty()) return refused_with_symbols(values, facts, symbols, outcome, text);
    const auto is_small = [](const auto& each) { return each.second < 2; };
    if (is_lenient(op_.schema) && (is_of_nothing_ || std::ranges::any_of(symbols, is_small))) return;
    FreshSymbols fresh;
    const InferredCall made = infer(op_.schema, values, facts, fresh);
    if (made.outcome == InferredCall::Outcome::refused && !is_of_nothing_)
      return report("with symbols is refused: " + made.why, text);
    if (made.outcome != InferredCall::Outcome::known) return;
    for (const SizeCondition& condition : made.conditions) {
      if (holds(condition, symbols)) continue;
      if (is_of_nothing_) return;
      return report("is taken although not " + condition.str(), text);
    }
    if (const std::string other = difference(made, outcome, symbols); !other.empty())
      report("with symbols: " + other, text);
  }

  // A condition says so, or something is named that is none of sizes.
  void refused_with_symbols(const std::vector<AbstractValue>& values, SizeFacts& facts, const Symbols& symbols,
                            const Outcome& outcome, const std::string& text) {
    FreshSymbols fresh;
    const InferredCall made = infer(op_.schema, values, facts, fresh);
    const bool is_said = made.outcome != InferredCall::Outcome::known || !made.unsaid.empty() ||
                         !std::ranges::all_of(made.conditions, [&](const auto& each) { return holds(each, symbols); });
    if (!is_said && is_of_sizes(outcome.error, text)) report("with symbols nothing says: " + outcome.error, text);
  }

  const Operator& op_;
  // Of tensors without elements LibTorch refuses little: there is nothing that kernels are reached for.
  bool is_of_nothing_ = false;
  int wrong_ = 0, calls_ = 0, taken_ = 0, decided_ = 0, plain_taken_ = 0, plain_decided_ = 0;
  std::string why_, error_;
};

TEST(SizeRows, AreWhatOperatorsDo) {
  const at::NoGradGuard no_grad;
  const std::vector<Operator> all = all_operators();
  EXPECT_GE(all.size(), 600u);
  for (const Operator& op : all) const RowTest test(op);
}

TEST(SizeRows, AreOfOperatorsThatThereAre) {
  const auto names = c10::Dispatcher::singleton().getAllOpNames();
  for (const auto& rows : internal::operator_records()) {
    for (const internal::OperatorRecord& row : rows) {
      for_each_name(row, [&](const std::string& name) {
        // Of the library itself, of TorchScript, and of newer releases.
        if (name.starts_with("fxgraph::") || name.starts_with("prim::") ||
            name == "aten::scaled_dot_product_attention" || name == "aten::tensor" || name == "aten::as_tensor" ||
            !row.sizes)
          return;
        EXPECT_TRUE(std::ranges::any_of(names, [&](const auto& each) { return each.name == name; })) << name;
      });
    }
  }
}

}  // namespace fx::size_rows_test
