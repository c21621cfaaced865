// Python's indexing in TorchScript IR: tuples, lists and dicts by key, tensors by ints, slices, None, `...` and
// tensors.
#include <torch/csrc/jit/frontend/schema_matching.h>

#include <fxgraph/run/value.h>
#include <fxgraph/torchscript/method_builder.h>

namespace fx::internal {

namespace {

namespace jit = torch::jit;
using jit::NamedValue;
using jit::Value;

class Indexing {
 public:
  Indexing(jit::Graph& graph, const std::function<Value*(Node&)>& value_of) : graph_(graph), value_of_(value_of) {}

  Value* get(Value* base, const Argument& index) {
    if (const auto tuple = base->type()->cast<c10::TupleType>()) return tuple_element(base, *tuple, index);
    if (!base->type()->isSubtypeOf(*c10::TensorType::get()))
      return call(c10::aten::__getitem__, {NamedValue(base), NamedValue(scalar(index))});
    return tensor(base, index.is_tuple() ? index.elements() : ArgumentSpan(&index, 1, sizeof(Argument)));
  }

 private:
  Value* tuple_element(Value* base, const c10::TupleType& type, const Argument& index) {
    if (!index.is_int()) throw Error(ErrorKind::unsupported, "a tuple indexed by something that is no literal int");
    const auto size = static_cast<std::int64_t>(type.elements().size());
    const std::int64_t i = index.as_int() < 0 ? index.as_int() + size : index.as_int();
    if (i < 0 || i >= size)
      throw Error(ErrorKind::invalid_argument,
                  "index " + std::to_string(index.as_int()) + " of " + std::to_string(size) + " results");
    // The tuple that packs an operator's results need not be made at all.
    if (base->node()->kind() == c10::prim::TupleConstruct) return base->node()->inputs()[static_cast<std::size_t>(i)];
    Value* position = graph_.insertConstant(i);
    return graph_.insertNode(graph_.createTupleIndex(base, position, type.elements()[static_cast<std::size_t>(i)]))
        ->output();
  }

  // Each item but None consumes a dimension; `...` leaves those before the items that follow it, which are counted from
  // the end.
  Value* tensor(Value* base, ArgumentSpan items) {
    Value* const whole = base;
    bool after_ellipsis = false;
    std::int64_t dim = 0;
    std::vector<Value*> indices;  // tensor indices by dimension, null between
    for (std::size_t i = 0; i < items.size(); ++i) {
      const Argument& item = items[i];
      if (item.kind() == ArgumentKind::ellipsis) {
        if (after_ellipsis) throw Error(ErrorKind::unsupported, "two `...` in one index");
        after_ellipsis = true;
        continue;
      }
      if (after_ellipsis) dim = -consumed(items.subspan(i)) - item.is_none();
      base = one(base, item, dim, indices);
    }
    if (!indices.empty()) return gather(base, indices, after_ellipsis);
    return base == whole ? call(c10::aten::alias, {NamedValue(whole)}) : base;  // a tensor of its own all the same
  }

  static std::int64_t consumed(ArgumentSpan items) {
    std::int64_t count = 0;
    for (const Argument& item : items) count += !item.is_none();
    return count;
  }

  Value* one(Value* base, const Argument& item, std::int64_t& dim, std::vector<Value*>& indices) {
    if (item.is_none()) {
      return call(c10::aten::unsqueeze, {NamedValue(base), NamedValue(graph_.insertConstant(dim++))});
    }
    if (item.is_slice()) {
      const ArgumentSpan parts = item.elements();
      Value* step = parts[2].is_none() ? graph_.insertConstant(1) : scalar(parts[2]);
      base = call(c10::aten::slice, {NamedValue(base), NamedValue(graph_.insertConstant(dim)),
                                     NamedValue(scalar(parts[0])), NamedValue(scalar(parts[1])), NamedValue(step)});
      ++dim;
      return base;
    }
    Value* index = scalar(item);
    if (index->type()->isSubtypeOf(*c10::IntType::get())) {
      // The dimension goes away: the next item is at the same place.
      return call(c10::aten::select, {NamedValue(base), NamedValue(graph_.insertConstant(dim)), NamedValue(index)});
    }
    if (!index->type()->isSubtypeOf(*c10::TensorType::get()) || dim < 0)
      throw Error(ErrorKind::unsupported,
                  "TorchScript takes what is indexed for a tensor, and " +
                      (dim < 0 ? "a tensor index beside `...`" : "an index of the type " + index->type()->repr_str()) +
                      " is none of a tensor's; give the input its type, or save the program as .pt2");
    indices.resize(static_cast<std::size_t>(dim), nullptr);
    indices.push_back(index);
    ++dim;
    return base;
  }

  Value* gather(Value* base, const std::vector<Value*>& indices, bool after_ellipsis) {
    if (after_ellipsis) throw Error(ErrorKind::unsupported, "a tensor index beside `...`");
    const c10::TypePtr optional_tensor = c10::OptionalType::ofTensor();
    std::vector<Value*> list;
    for (Value* index : indices) list.push_back(index ? index : graph_.insertConstant(c10::IValue()));
    Value* packed = graph_.insertNode(graph_.createList(optional_tensor, list))->output();
    return call(c10::aten::index, {NamedValue(base), NamedValue(packed)});
  }

  Value* scalar(const Argument& item) {
    if (const Node* node = item.node_or_null()) return value_of_(const_cast<Node&>(*node));
    return graph_.insertConstant(to_ivalue(item));
  }

  Value* call(c10::Symbol name, const std::vector<NamedValue>& inputs) {
    static const jit::SourceRange kNoSource(std::make_shared<jit::Source>(std::string("fx graph")), 0, 8);
    return jit::emitBuiltinCall(kNoSource, graph_, name, inputs, {});
  }

  jit::Graph& graph_;
  const std::function<Value*(Node&)>& value_of_;
};

}  // namespace

torch::jit::Value* build_getitem(torch::jit::Graph& graph, torch::jit::Value* base, const Argument& index,
                                 const std::function<torch::jit::Value*(Node&)>& value_of) {
  return Indexing(graph, value_of).get(base, index);
}

}  // namespace fx::internal
