#include <fxgraph/trace/leaf_alone.h>

#include <algorithm>

#include <fxgraph/trace/cleanup.h>
#include <fxgraph/trace/dispatch.h>
#include <fxgraph/trace/outputs.h>

namespace fx::internal {
namespace {

c10::IValue proxy_for(LeafAlone& alone, const Argument& input, const Session& program, const ValueOfNode& value_of) {
  if (input.is_tuple()) {
    std::vector<c10::IValue> parts;
    for (const Argument& part : input.elements()) parts.push_back(proxy_for(alone, part, program, value_of));
    return c10::ivalue::Tuple::create(std::move(parts));
  }
  // One value given twice is one placeholder: attention computes differently then.
  const auto known = std::find(alone.inputs.begin(), alone.inputs.end(), &input.node());
  if (known != alone.inputs.end()) return alone.proxies[static_cast<std::size_t>(known - alone.inputs.begin())];
  Node& placeholder = alone.session->create_node(Op::placeholder, "x", {}, {}, "x");
  alone.inputs.push_back(&input.node());
  const at::Tensor value = value_of(input.node());
  return alone.proxies.emplace_back(value.defined()
                                        ? alone.session->proxy(placeholder, value, program.device_of(input.node()))
                                        : alone.session->proxy(placeholder));
}

}  // namespace

std::vector<std::uint32_t> LeafAlone::operators() const {
  std::vector<std::uint32_t> calls;
  for (std::uint32_t call = 0; call < log.size(); ++call) {
    if (log[call].op == Op::call_function) calls.push_back(call);
  }
  return calls;
}

std::unique_ptr<LeafAlone> trace_leaf_alone(torch::nn::Module& leaf, const ModuleType& type, const CallInputs& inputs,
                                            const Session& program, const ValueOfNode& value_of) {
  auto alone = std::make_unique<LeafAlone>();
  alone->session = std::make_shared<Session>(*alone, program.engine());
  alone->session->record_contiguous(program.records_contiguous());
  for (const auto& list : {leaf.parameters(), leaf.buffers()}) {
    for (const torch::Tensor& tensor : list) {
      if (const std::string* path = program.attribute_path(tensor)) alone->session->add_attribute(*path, tensor);
    }
  }
  try {
    alone->session->follow(&alone->log);
    torch::jit::Stack stack;
    for (const Argument& input : inputs) stack.push_back(proxy_for(*alone, input, program, value_of));
    RecordingScope recording(*alone->session);
    type.call(leaf, stack);
    alone->session->follow(nullptr);
    alone->result = ivalue_to_argument(*alone->session, stack.back());
    alone->graph.output(alone->result);
  } catch (const std::exception&) {
    return nullptr;
  }
  erase_unused_getitems(alone->graph);
  return alone;
}

}  // namespace fx::internal
