// What the file's own errors say.
#include <torch/csrc/jit/ir/constants.h>

#include <sstream>

#include <fxgraph/torchscript/importer.h>

namespace fx::torchscript {

// The message without running what computes it: what is not known shows in words, `{x.size(0)}`.
std::string Importer::text_of(const JitValue* value, Frame& frame) {
  const JitNode& maker = *value->node();
  const bool in_percent = maker.kind() == torch::jit::aten::percentFormat;
  if (in_percent || maker.kind() == torch::jit::aten::format) {
    std::string text = text_of(maker.inputs()[0], frame);
    std::size_t from = 0;
    for (const JitValue* part : maker.inputs().slice(1)) {
      const std::size_t hole = text.find(in_percent ? "%" : "{}", from);
      if (hole == std::string::npos) break;
      const std::string written = text_of(part, frame);
      text.replace(hole, 2, written);
      from = hole + written.size();
    }
    return text;
  }
  if (maker.kind() == torch::jit::aten::add && value->type()->kind() == c10::TypeKind::StringType)
    return text_of(maker.inputs()[0], frame) + text_of(maker.inputs()[1], frame);
  if (maker.kind() == torch::jit::aten::str) return text_of(maker.inputs()[0], frame);
  const auto found = frame.values.find(value);
  c10::optional<c10::IValue> constant = torch::jit::toIValue(value);
  if (found != frame.values.end() && found->second.is_constant()) constant = found->second.constant;
  if (!constant) return "{" + words_of(value, frame) + "}";
  std::ostringstream text;
  constant->isString() ? text << constant->toStringRef() : text << *constant;
  return text.str();
}

// Empty for what does not ask for sizes.
std::string Importer::words_of(const JitValue* value, Frame& frame) {
  const auto found = frame.values.find(value);
  if (found != frame.values.end() && found->second.is_node()) return in_words(Argument(*found->second.node), 0, {});
  if (const auto constant = torch::jit::toIValue(value); constant && constant->isInt())
    return std::to_string(constant->toInt());
  const JitNode& maker = *value->node();
  const std::string of = maker.inputs().empty() ? std::string() : words_of(maker.inputs()[0], frame);
  if (of.empty()) return {};
  if (maker.kind() == torch::jit::aten::len) return "len(" + of + ")";
  const std::string second = maker.inputs().size() > 1 ? words_of(maker.inputs()[1], frame) : std::string();
  if (maker.kind() == torch::jit::aten::__getitem__) return of + "[" + second + "]";
  const std::string_view name = maker.kind().toUnqualString();
  const bool asks = name == "size" || name == "dim" || name == "numel";
  return asks ? of + "." + std::string(name) + "(" + second + ")" : std::string();
}

}  // namespace fx::torchscript
