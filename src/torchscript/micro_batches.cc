#include <fxgraph/torchscript/micro_batches.h>

#include <torch/csrc/jit/api/module.h>

#include <string>
#include <vector>

#include <fxgraph/torchscript/file_mode.h>

namespace fx::internal {
namespace {

namespace jit = torch::jit;

/// What puts the results of the parts together: `each` says which part of one is meant. Empty for a type that cannot
/// be. The recursion is over the nesting of tuples.
std::string joined(const c10::TypePtr& type, const std::string& each) {
  if (type->kind() == c10::TypeKind::TensorType)
    return "torch.cat([fxgraph_part" + each + " for fxgraph_part in fxgraph_parts])";
  if (const auto* list = type->castRaw<c10::ListType>()) {
    if (list->getElementType()->kind() != c10::TypeKind::TensorType) return {};
    return "[torch.cat([fxgraph_part" + each + "[fxgraph_i] for fxgraph_part in fxgraph_parts]) for fxgraph_i in " +
           "range(len(fxgraph_parts[0]" + each + "))]";
  }
  const auto* tuple = type->castRaw<c10::TupleType>();
  if (!tuple || tuple->elements().empty()) return {};
  std::string all;
  for (std::size_t i = 0; i < tuple->elements().size(); ++i) {
    const std::string one = joined(tuple->elements()[i], each + "[" + std::to_string(i) + "]");
    if (one.empty()) return {};
    all += one + ", ";
  }
  return "(" + all + ")";
}

/// Names of the text's own begin with fxgraph_: inputs are called `batch` and `parts`, too.
struct Text {
  std::string parameters, whole, part, is_other;
  std::string first;  ///< the input that says how many samples there are
};

Text text_of(const c10::FunctionSchema& schema, const MicroBatches& cut) {
  Text text;
  for (std::size_t i = 1; i < schema.arguments().size(); ++i) {
    const c10::Argument& input = schema.arguments()[i];
    text.parameters += ", " + input.name() + ": " + input.type()->annotation_str();
    text.whole += input.name() + ", ";
    const MicroBatches::Sizes& sizes = cut.inputs.at(i - 1);
    if (sizes.empty()) {
      text.part += input.name() + ", ";
      continue;
    }
    text.part += input.name() + ".narrow(0, fxgraph_start, fxgraph_end - fxgraph_start), ";
    text.is_other += (text.is_other.empty() ? "" : " or ") + input.name() + ".dim() != " + std::to_string(sizes.size());
    for (std::size_t d = 1; d < sizes.size(); ++d) {
      if (sizes[d] < 0) continue;
      text.is_other += " or " + input.name() + ".size(" + std::to_string(d) + ") != " + std::to_string(sizes[d]);
    }
    if (text.first.empty()) {
      text.first = input.name();
    } else {
      text.is_other += " or " + input.name() + ".size(0) != " + text.first + ".size(0)";
    }
  }
  return text;
}

}  // namespace

void add_forward_in_micro_batches(jit::Module& module, const MicroBatches& cut) {
  const c10::FunctionSchema& schema = module.get_method(kMicroBatchMethod).function().getSchema();
  const c10::TypePtr result = schema.returns().at(0).type();
  const Text text = text_of(schema, cut);
  const std::string all = joined(result, "");
  const std::string call = std::string("self.") + kMicroBatchMethod, size = std::to_string(cut.size);
  std::string source = "def forward(self" + text.parameters + ") -> " + result->annotation_str() + ":\n";
  if (!all.empty()) {
    source += "  if not (" + text.is_other + ") and " + text.first + ".size(0) > " + size + ":\n" +
              "    fxgraph_batch = " + text.first + ".size(0)\n" + "    fxgraph_count = (fxgraph_batch + " +
              std::to_string(cut.size - 1) + ") // " + size + "\n" + "    fxgraph_parts: List[" +
              result->annotation_str() + "] = []\n" + "    for fxgraph_i in range(fxgraph_count):\n" +
              "      fxgraph_start = fxgraph_batch * fxgraph_i // fxgraph_count\n" +
              "      fxgraph_end = fxgraph_batch * (fxgraph_i + 1) // fxgraph_count\n" + "      fxgraph_parts.append(" +
              call + "(" + text.part + "))\n" + "    return " + all + "\n";
  }
  source += "  return " + call + "(" + text.whole + ")\n";
  module.define(source);
  const c10::TypePtr list = c10::ListType::ofInts();
  c10::impl::GenericList saved(list);
  saved.push_back(MicroBatches::Sizes{cut.size});
  for (const MicroBatches::Sizes& sizes : cut.inputs) saved.push_back(sizes);
  module.register_attribute(kMicroBatches, c10::ListType::create(list), saved);
}

MicroBatches saved_micro_batches(const jit::Module& module) {
  if (!module.find_method(kMicroBatchMethod) || !module.hasattr(kMicroBatches)) return {};
  const c10::IValue saved = module.attr(kMicroBatches);
  if (!saved.isList()) return {};
  std::vector<MicroBatches::Sizes> lists;
  for (const c10::IValue& list : saved.toListRef()) {
    if (!list.isIntList()) return {};
    lists.push_back(list.toIntVector());
  }
  if (lists.empty() || lists.front().size() != 1) return {};
  return {lists.front().front(), {lists.begin() + 1, lists.end()}};
}

}  // namespace fx::internal
