#include <fxgraph/torchscript/both_modes.h>

#include <vector>

namespace fx::internal {

namespace jit = torch::jit;

std::shared_ptr<jit::Graph> in_both_modes(const jit::Graph& training, const jit::Graph& evaluation) {
  if (training.inputs().size() != evaluation.inputs().size() || training.outputs().size() != 1 ||
      evaluation.outputs().size() != 1)
    return nullptr;
  auto built = std::make_shared<jit::Graph>();
  std::vector<jit::Value*> inputs;
  for (std::size_t i = 0; i < training.inputs().size(); ++i) {
    const jit::Value& input = *training.inputs()[i];
    if (*input.type() != *evaluation.inputs()[i]->type()) return nullptr;
    inputs.push_back(built->addInput(input.debugName())->setType(input.type()));
  }
  const auto type = c10::unifyTypes(training.outputs()[0]->type(), evaluation.outputs()[0]->type());
  if (!type) return nullptr;
  jit::Value* mode = built->insertGetAttr(inputs.at(0), "training");
  jit::Node* branch = built->insertNode(built->create(c10::prim::If, {mode}, 0));
  for (const jit::Graph* body : {&training, &evaluation}) {
    jit::Block* block = branch->addBlock();
    const jit::WithInsertPoint inside(block);
    block->registerOutput(jit::insertGraph(*built, const_cast<jit::Graph&>(*body), inputs).at(0));
  }
  built->registerOutput(branch->addOutput()->setType(*type));
  return built;
}

}  // namespace fx::internal
