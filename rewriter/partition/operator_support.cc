#include <fxgraph/rewriter/partition/operator_support.h>

#include <algorithm>

#include <fxgraph/ir/target.h>
#include <fxgraph/nn/nn_modules.h>

namespace fx {
namespace {

std::string type_name(std::string_view qualified) {
  const std::size_t dot = qualified.rfind('.');
  return std::string(dot == std::string_view::npos ? qualified : qualified.substr(dot + 1));
}

/// A list of operators, and what is asked of each.
class Table {
 public:
  explicit Table(std::map<std::string, std::optional<SupportedDTypes>> rows) {
    for (auto& [name, dtypes] : rows) rows_[canonical_target(Symbol(name)).str()] = std::move(dtypes);
  }

  std::optional<std::string> operator()(const CallFacts& call) const {
    const std::optional<SupportedDTypes>* row = find(call);
    if (!row) return call.op() + " is not among the operators supported";
    return *row ? refuse_dtypes(call, **row) : std::nullopt;
  }

 private:
  const std::optional<SupportedDTypes>* find(const CallFacts& call) const {
    std::vector<std::string> names = {call.node().target().str(), call.op()};
    if (call.node().is(Op::call_module)) {
      names[0] = qualify_module_type(call.op());
      names.push_back(type_name(call.op()));
    } else if (call.called()) {
      names.push_back(call.called().schema().target.str());
    }
    for (const std::string& name : names) {
      if (const auto row = rows_.find(name); row != rows_.end()) return &row->second;
    }
    return nullptr;
  }

  std::optional<std::string> refuse_dtypes(const CallFacts& call, const SupportedDTypes& wanted) const {
    const auto refuse = [&](const Argument& argument, const std::set<DType>& dtypes) -> std::optional<std::string> {
      const Node* value = argument.node_or_null();
      if (!value || dtypes.empty()) return std::nullopt;
      const TensorInfo* info = call.info(*value);
      if (!info) return "the type of %" + value->name() + " is not known";
      if (dtypes.contains(info->dtype)) return std::nullopt;
      return call.op() + " does not take " + std::string(to_string(info->dtype)) + " for that argument";
    };
    const bool is_row_as_spelt = rows_.contains(call.node().target().str());
    const ArgumentSpan args = call.called() && !is_row_as_spelt ? call.called().args() : call.node().args();
    for (std::size_t i = 0; i < std::min(args.size(), wanted.args.size()); ++i) {
      if (auto why = refuse(args[i], wanted.args[i])) return why;
    }
    for (const auto& [name, dtypes] : wanted.kwargs) {
      const Argument* argument = call.called().argument(name);
      if (!argument) argument = call.node().kwarg(Symbol(name));
      if (argument) {
        if (auto why = refuse(*argument, dtypes)) return why;
      }
    }
    return std::nullopt;
  }

  std::map<std::string, std::optional<SupportedDTypes>> rows_;
};

/// Asks every tensor of a call; `ask` returns what is wrong with it.
OperatorSupport of_all_tensors(std::function<std::optional<std::string>(const TensorInfo&)> ask) {
  return OperatorSupport([ask = std::move(ask)](const CallFacts& call) -> std::optional<std::string> {
    std::vector<const Node*> values(call.inputs().begin(), call.inputs().end());
    values.push_back(&call.node());
    for (const Node* value : values) {
      const std::vector<TensorInfo>* tensors = call.infos(*value);
      if (!tensors) return "what %" + value->name() + " holds is not known: give example inputs";
      for (const TensorInfo& tensor : *tensors) {
        if (auto why = ask(tensor)) return "%" + value->name() + " is " + to_string(tensor) + ": " + *why;
      }
    }
    return std::nullopt;
  });
}

}  // namespace

CallFacts::CallFacts(const GraphModule& module, const Node& node, const Shapes* shapes)
    : module_(&module), node_(&node), shapes_(shapes), inputs_(node.all_input_nodes()) {
  if (node.is(Op::call_module)) {
    op_ = module.module_type(node.target().str());
    if (op_.empty()) op_ = node.target().str();
    return;
  }
  call_ = call_of(node);
  op_ = call_ ? std::string(packet_of(call_.schema().target.view())) : node.target().str();
}

const std::vector<TensorInfo>* CallFacts::infos(const Node& value) const {
  return shapes_ && value.id() < shapes_->size() ? &(*shapes_)[value].tensors : nullptr;
}

const TensorInfo* CallFacts::info(const Node& value) const {
  return shapes_ && value.id() < shapes_->size() ? (*shapes_)[value].tensor() : nullptr;
}

const TensorInfo* CallFacts::input(std::size_t i) const { return i < inputs_.size() ? info(*inputs_[i]) : nullptr; }

std::optional<std::size_t> CallFacts::rank(std::size_t i) const {
  const TensorInfo* tensor = input(i);
  return tensor ? std::optional<std::size_t>(tensor->sizes.size()) : std::nullopt;
}

torch::Tensor CallFacts::constant(const Node& value) const {
  return value.is(Op::get_attr) ? module_->find_attribute(value.target().str()) : torch::Tensor();
}

OperatorSupport::OperatorSupport()
    : test_([](const CallFacts&) -> std::optional<std::string> { return "nothing is supported"; }) {}

OperatorSupport support_table(std::map<std::string, std::optional<SupportedDTypes>> operators) {
  return OperatorSupport(Table(std::move(operators)));
}

OperatorSupport support_operators(std::vector<std::string> operators) {
  std::map<std::string, std::optional<SupportedDTypes>> rows;
  for (std::string& name : operators) rows.emplace(std::move(name), std::nullopt);
  return support_table(std::move(rows));
}

OperatorSupport create_op_support(std::function<bool(const CallFacts&)> supported, std::string why_not) {
  return OperatorSupport([supported = std::move(supported), why = std::move(why_not)](const CallFacts& call) {
    return supported(call) ? std::nullopt : std::optional<std::string>(why);
  });
}

OperatorSupport chain(std::vector<OperatorSupport> all) {
  return OperatorSupport([all = std::move(all)](const CallFacts& call) -> std::optional<std::string> {
    for (const OperatorSupport& one : all) {
      if (auto why = one.why_not(call)) return why;
    }
    return std::nullopt;
  });
}

OperatorSupport any_chain(std::vector<OperatorSupport> any) {
  return OperatorSupport([any = std::move(any)](const CallFacts& call) -> std::optional<std::string> {
    std::string reasons;
    for (const OperatorSupport& one : any) {
      const std::optional<std::string> why = one.why_not(call);
      if (!why) return std::nullopt;
      reasons += (reasons.empty() ? "" : "; ") + *why;
    }
    return reasons.empty() ? "nothing is supported" : reasons;
  });
}

OperatorSupport support_dtypes(std::set<DType> dtypes) {
  return of_all_tensors([dtypes = std::move(dtypes)](const TensorInfo& tensor) {
    return dtypes.contains(tensor.dtype) ? std::nullopt : std::optional<std::string>("that type is not supported");
  });
}

OperatorSupport support_device(Device device) {
  return of_all_tensors([device](const TensorInfo& tensor) {
    return tensor.device == device ? std::nullopt : std::optional<std::string>("it lies on another device");
  });
}

OperatorSupport support_ranks(std::size_t least, std::size_t most) {
  return of_all_tensors([least, most](const TensorInfo& tensor) -> std::optional<std::string> {
    if (tensor.sizes.size() >= least && tensor.sizes.size() <= most) return std::nullopt;
    return "from " + std::to_string(least) + " to " + std::to_string(most) + " dimensions are supported";
  });
}

OperatorSupport support_sizes(std::int64_t most) {
  return of_all_tensors([most](const TensorInfo& tensor) -> std::optional<std::string> {
    const std::int64_t count = tensor.numel();
    if (count >= 1 && count <= most) return std::nullopt;
    return "from 1 to " + std::to_string(most) + " elements are supported";
  });
}

OperatorSupport decline_if_input_dtype(DType dtype) {
  return OperatorSupport([dtype](const CallFacts& call) -> std::optional<std::string> {
    for (const Node* input : call.inputs()) {
      const TensorInfo* info = call.info(*input);
      if (info && info->dtype == dtype) {
        return "%" + input->name() + " is " + std::string(to_string(dtype)) + ", which is declined";
      }
    }
    return std::nullopt;
  });
}

OperatorSupport decline_if_node_in_names(std::set<std::string> names) {
  return OperatorSupport([names = std::move(names)](const CallFacts& call) -> std::optional<std::string> {
    if (!names.contains(call.node().name())) return std::nullopt;
    return "%" + call.node().name() + " is declined by name";
  });
}

}  // namespace fx
