// Calls of operators by chance: nearly all fit, and half of them are broken in one argument.
//
// What fits is written by a line for an operator: letters are sizes, drawn once for a call.
//   self:nab mat2:nbc      two batches of matrices
//   stride:1..2            a number between these; as many as the declaration has
//   size:a,bc              a list: a, and b times c
//   indices:ab@i           of int64 (@b of bool, @f of float32, else all of one type), `*` for up to two dimensions
//   more,
//                          `~` for sizes that broadcast with what follows, `{a+2b}` for one size, `,` for lists
//   bias:-                 None
//   equation:ij,jk         a word, of a string
// Lines are split by `|`. Arguments that are not written are drawn by their names and types.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/ops/schema.h>

namespace fx::testing {

using c10::IValue;
using Sizes = std::vector<std::int64_t>;
using Arguments = std::vector<IValue>;

inline std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

/// Draws calls of one operator.
class DrawnCalls {
 public:
  /// `lines` as above, of which each begins with `common`.
  DrawnCalls(const OperatorSchema& schema, std::string_view lines, std::string_view common, std::uint64_t seed)
      : schema_(schema), random_(seed) {
    for (const std::string_view line : parts_of(lines, '|')) {
      lines_.emplace_back();
      for (const std::string_view part : {common, line}) {
        for (const std::string_view item : parts_of(part, ' ')) {
          if (const std::size_t colon = item.find(':'); colon != item.npos)
            lines_.back().emplace(item.substr(0, colon), item.substr(colon + 1));
        }
      }
    }
  }

  Arguments next() {
    letters_.clear();
    batch_.reset();
    first_.reset();
    dtype_ = chance(60) ? at::kFloat : one_of(kTypes);
    line_ = &lines_[static_cast<std::size_t>(any(0, static_cast<std::int64_t>(lines_.size()) - 1))];
    for (const auto& [name, value] : *line_) {
      if (name.size() == 1) letters_[name[0]] = number(value);
    }
    Arguments arguments;
    for (const SchemaArgument& argument : schema_.arguments) arguments.push_back(drawn(argument));
    if (chance(50)) break_one(arguments);
    return arguments;
  }

 private:
  using Base = SchemaType::Base;
  using Line = std::map<std::string_view, std::string_view>;
  static constexpr std::array kTypes = {at::kDouble, at::kBFloat16, at::kLong, at::kInt,
                                        at::kBool,   at::kByte,     at::kFloat};

  std::int64_t any(std::int64_t from, std::int64_t to) {
    return from +
           static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(std::max<std::int64_t>(to - from, 0) + 1));
  }
  bool chance(int percent) { return any(1, 100) <= percent; }
  template <typename Values>
  typename Values::value_type one_of(const Values& values) {
    return values[static_cast<std::size_t>(any(0, static_cast<std::int64_t>(values.size()) - 1))];
  }
  std::int64_t size() { return chance(4) ? 0 : chance(15) ? 1 : one_of(std::array{2, 3, 4, 6, 2, 3, 8, 1}); }

  // ── Letters ───────────────────────────────────────────────────────────────────────────────────────────────────────
  std::int64_t letter(char name) {
    const auto [at, is_new] = letters_.emplace(name, 0);
    if (is_new) {
      const std::string_view few = "gklm", many = "hwd";
      at->second = few.find(name) != few.npos ? any(1, 3) : many.find(name) != many.npos ? any(4, 9) : size();
    }
    return at->second;
  }
  /// `2ab+c`, `-1`.
  std::int64_t sum(std::string_view text) {
    std::int64_t total = 0;
    for (std::string_view product : parts_of(text, '+')) {
      std::int64_t value = 1;
      if (product.starts_with("-")) value = -1, product.remove_prefix(1);
      for (const char each : product) value *= std::isdigit(each) ? each - '0' : letter(each);
      total += value;
    }
    return total;
  }
  std::int64_t number(std::string_view text) {
    const std::size_t dots = text.find("..");
    return dots == text.npos ? sum(text) : any(sum(text.substr(0, dots)), sum(text.substr(dots + 2)));
  }
  Sizes sizes(std::string_view text) {
    const bool broadcasts = text.starts_with("~");
    if (broadcasts) text.remove_prefix(1);
    Sizes sizes;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '*') {
        if (!batch_) {
          batch_.emplace();
          for (std::int64_t more = any(0, 2); more > 0; --more) batch_->push_back(size());
        }
        sizes.insert(sizes.end(), batch_->begin(), batch_->end());
      } else if (text[i] == '{') {
        const std::size_t end = text.find('}', i);
        sizes.push_back(sum(text.substr(i + 1, end - i - 1)));
        i = end;
      } else {
        sizes.push_back(sum(text.substr(i, 1)));
      }
    }
    return broadcasts ? broadcasting(sizes) : sizes;
  }
  Sizes broadcasting(Sizes sizes) {
    if (chance(50)) return sizes;
    sizes.erase(sizes.begin(), sizes.begin() + any(0, static_cast<std::int64_t>(sizes.size())));
    for (std::int64_t& each : sizes) {
      if (chance(30)) each = 1;
    }
    return sizes;
  }

  // ── Values ────────────────────────────────────────────────────────────────────────────────────────────────────────
  // Ones, by which all can be divided; as indices zeros, which are in every tensor.
  at::Tensor tensor(Sizes sizes, at::ScalarType dtype, bool zeros) {
    const auto make = [&] { return zeros ? at::zeros(sizes, dtype) : at::ones(sizes, dtype); };
    const auto rank = static_cast<std::int64_t>(sizes.size());
    if (rank >= 2 && chance(8)) {
      const std::int64_t a = any(0, rank - 1), b = any(0, rank - 1);
      std::swap(sizes[static_cast<std::size_t>(a)], sizes[static_cast<std::size_t>(b)]);
      return make().transpose(a, b);
    }
    if (rank == 4 && chance(5)) return make().contiguous(at::MemoryFormat::ChannelsLast);
    if (rank >= 1 && chance(3)) {
      sizes.back() *= 2;
      return make().slice(rank - 1, 0, sizes.back(), 2);
    }
    return make();
  }
  at::Tensor tensor(std::string_view text) {
    at::ScalarType dtype = dtype_;
    bool zeros = false;
    if (const std::size_t at = text.find('@'); at != text.npos) {
      const char type = text[at + 1];
      dtype = type == 'i' ? at::kLong : type == 'b' ? at::kBool : at::kFloat;
      zeros = type == 'i';
      text = text.substr(0, at);
    }
    return tensor(sizes(text), dtype, zeros);
  }
  IValue tensors(std::string_view text, const SchemaType& type) {
    c10::List<at::Tensor> list;
    c10::List<c10::optional<at::Tensor>> optionals;
    for (const std::string_view each : parts_of(text, ',')) {
      if (!type.optional_elements) {
        list.push_back(tensor(each));
      } else {
        optionals.push_back(each == "-" ? c10::optional<at::Tensor>() : tensor(each));
      }
    }
    return type.optional_elements ? IValue(optionals) : IValue(list);
  }
  at::Scalar scalar() { return chance(5) ? at::Scalar(true) : chance(60) ? at::Scalar(any(1, 2)) : at::Scalar(0.5); }
  std::int64_t rank() const { return first_ ? static_cast<std::int64_t>(first_->size()) : 1; }
  std::int64_t dim() { return any(-std::max<std::int64_t>(rank(), 1), std::max<std::int64_t>(rank(), 1) - 1); }

  IValue drawn(const SchemaArgument& argument) {
    const SchemaType& type = argument.type;
    const std::string_view name = argument.name.view();
    const auto written = line_->find(name);
    if (type.base == Base::string) return name == "equation" ? std::string(written->second) : word(name, type);
    // Tensors of another overload.
    const bool fits =
        written != line_->end() && (type.base != Base::scalar || written->second.find('@') == std::string::npos);
    if (!fits) return type.list && type.base != Base::boolean ? any_list(name, type) : any_value(name, type);
    const std::string_view text = written->second;
    if (text == "-" || (type.optional && chance(30))) return {};
    if (type.is_tensor()) {
      if (type.list) return tensors(text, type);
      at::Tensor made = tensor(text);
      if (!first_) first_ = made.sizes().vec();
      return made;
    }
    if (!type.list) {
      if (type.base == Base::boolean) return number(text) != 0;
      return number(text);
    }
    Sizes numbers;
    for (const std::string_view each : parts_of(text, ',')) {
      if (!each.empty()) numbers.push_back(number(each));
    }
    while (numbers.size() == 1 && numbers.size() < type.fixed_size && !chance(10)) {
      while (numbers.size() < type.fixed_size) numbers.push_back(number(text));
    }
    return numbers;
  }

  IValue word(std::string_view name, const SchemaType& type) {
    if (type.optional && chance(30)) return {};
    if (name == "padding") return one_of(std::array{"same", "valid"});
    if (name == "rounding_mode") return one_of(std::array{"floor", "trunc"});
    if (name == "approximate") return one_of(std::array{"none", "tanh"});
    if (name == "side") return {};
    if (schema_.target.view().find("scatter_reduce") != std::string::npos) return one_of(std::array{"sum", "amax"});
    if (name == "reduce") return one_of(std::array{"add", "multiply"});
    if (name == "mode") return one_of(std::array{"constant", "reflect", "replicate", "circular"});
    return one_of(std::array{"ij", "xy"});
  }

  IValue any_list(std::string_view name, const SchemaType& type) {
    if (type.is_tensor()) return tensors(chance(50) ? "*c,*c" : "ab,ab,ab", type);
    if (type.optional && chance(40)) return {};
    if (type.base == Base::floating) return std::vector<double>(static_cast<std::size_t>(any(1, 3)), 2.0);
    Sizes numbers;
    if (name.starts_with("dim") || name == "source" || name == "destination") {
      for (std::int64_t i = 0; i < rank(); ++i) {
        if (chance(40)) numbers.push_back(chance(50) ? i : i - rank());
      }
      return numbers;
    }
    const std::int64_t count = type.fixed_size > 1 ? type.fixed_size : name == "size" ? any(0, 4) : rank() + any(0, 1);
    while (static_cast<std::int64_t>(numbers.size()) < count) numbers.push_back(any(1, 3));
    return numbers;
  }

  IValue any_value(std::string_view name, const SchemaType& type) {
    if (type.is_tensor()) return any_tensor(name, type);
    if (type.base == Base::device && !type.optional) return c10::Device("cpu");
    if (type.base == Base::device || type.base == Base::layout || type.base == Base::memory_format ||
        type.base == Base::generator || name == "pin_memory")
      return type.optional ? IValue() : IValue(0);
    if (type.base == Base::dtype) {
      if (type.optional && chance(70)) return {};
      return static_cast<std::int64_t>(chance(60) ? at::kFloat : one_of(kTypes));
    }
    if (type.optional && chance(50)) return {};
    switch (type.base) {
      case Base::boolean: return chance(50);
      case Base::scalar: return scalar();
      case Base::floating: return 0.5;
      case Base::integer:
        return name.starts_with("dim") || name.starts_with("axis") || name == "source" || name == "destination" ||
                       name.ends_with("_dim")
                   ? dim()
               : name == "reduction" ? any(0, 2)
                                     : any(1, 3);
      default: return {};
    }
  }

  IValue any_tensor(std::string_view name, const SchemaType& type) {
    if (type.optional && chance(40)) return {};
    if (!first_) {
      first_.emplace();
      for (std::int64_t count = chance(8) ? 0 : any(1, 4); count > 0; --count) first_->push_back(size());
      return tensor(*first_, dtype_, false);
    }
    const bool is_index = name.starts_with("index") || name == "indices", is_mask = name == "mask";
    const at::ScalarType dtype = is_index ? at::kLong : is_mask ? at::kBool : chance(90) ? dtype_ : one_of(kTypes);
    return tensor(chance(50) ? *first_ : broadcasting(*first_), dtype, is_index);
  }

  // ── Breaking ──────────────────────────────────────────────────────────────────────────────────────────────────────
  at::Tensor broken(const at::Tensor& tensor) {
    const bool zeros = tensor.scalar_type() == at::kLong && !tensor.any().item<bool>();
    if (chance(25)) return tensor.to(one_of(kTypes));
    Sizes sizes = tensor.sizes().vec();
    const std::int64_t at = any(0, std::max<std::int64_t>(tensor.dim(), 1) - 1);
    if (sizes.empty() || chance(15)) {
      sizes.insert(sizes.begin() + std::min(at, tensor.dim()), any(1, 2));
    } else if (chance(20)) {
      sizes.erase(sizes.begin() + at);
    } else {
      sizes[static_cast<std::size_t>(at)] = any(0, 8);
    }
    if (sizes.size() > 5) sizes.pop_back();
    return this->tensor(sizes, tensor.scalar_type(), zeros);
  }
  std::int64_t broken_number() { return one_of(std::array{-5, -3, -2, -1, -1, 0, 0, 1, 2, 3, 5, 7}); }

  void break_one(Arguments& arguments) {
    const auto at = static_cast<std::size_t>(any(0, static_cast<std::int64_t>(arguments.size()) - 1));
    const SchemaType& type = schema_.arguments[at].type;
    IValue& value = arguments[at];
    if (type.optional && chance(20)) {
      value = IValue();
    } else if (value.isTensor()) {
      value = broken(value.toTensor());
    } else if (value.isTensorList()) {
      std::vector<at::Tensor> tensors = value.toTensorVector();
      if (tensors.empty()) return;
      at::Tensor& one = tensors[static_cast<std::size_t>(any(0, static_cast<std::int64_t>(tensors.size()) - 1))];
      one = broken(one);
      if (chance(15)) tensors.pop_back();
      value = c10::List<at::Tensor>(tensors);
    } else if (value.isIntList()) {
      Sizes numbers = value.toIntVector();
      if (numbers.empty() || chance(10)) {
        numbers.push_back(broken_number());
      } else if (chance(15)) {
        numbers.pop_back();
      } else {
        numbers[static_cast<std::size_t>(any(0, static_cast<std::int64_t>(numbers.size()) - 1))] = broken_number();
      }
      value = numbers;
    } else if (type.base == Base::scalar && !value.isNone()) {
      value = chance(50) ? IValue(any(-2, -1)) : IValue(1.5);  // by 0 some kernels divide
    } else if (value.isBool()) {
      value = !value.toBool();
    } else if (value.isInt() && type.base == Base::integer) {
      value = broken_number();
    }
  }

  const OperatorSchema& schema_;
  std::mt19937_64 random_;
  std::vector<Line> lines_;
  const Line* line_ = nullptr;
  std::map<char, std::int64_t> letters_;
  std::optional<Sizes> batch_, first_;
  at::ScalarType dtype_ = at::kFloat;
};

}  // namespace fx::testing
