// What people ask for, one function each: docs/recipes.md shows them with the question.
#include <fxgraph/fx.h>
#include <torch/torch.h>

#include <iostream>

struct Net : torch::nn::Module {
  torch::nn::Conv2d conv1 = register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).padding(1)));
  torch::nn::Conv2d conv2 = register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 8, 3).padding(1)));
  torch::nn::Dropout dropout = register_module("dropout", torch::nn::Dropout(0.5));
  torch::nn::Linear fc = register_module("fc", torch::nn::Linear(8, 10));

  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(conv1(x));
    x = x + torch::relu(conv2(x));
    return fc(dropout(x.mean({2, 3})));
  }
};

struct ScaleImpl : torch::nn::Module {
  explicit ScaleImpl(double by) : by(by) {}
  torch::Tensor forward(torch::Tensor x) { return x * by; }
  double by;
};

std::shared_ptr<fx::GraphModule> traced() {
  auto net = std::make_shared<Net>();
  net->eval();
  return fx::symbolic_trace(net, {torch::rand({2, 3, 16, 16})});
}

void features() {
  // [features]
  auto gm = traced();
  fx::Graph& graph = gm->graph();
  const fx::Argument logits = graph.output_node()->arg(0);
  const fx::Argument conv2 = *graph.find_nodes(fx::Op::call_module, "conv2").front();
  graph.output_node()->update_arg(0, fx::Argument::tuple(std::vector<fx::Argument>{logits, conv2}));
  auto results = gm->run({torch::rand({2, 3, 16, 16})}).toTuple();  // the logits, and what conv2 gave
  // [end]
  TORCH_CHECK(results->elements()[1].toTensor().size(1) == 8);
}

void activations() {
  // [activations]
  auto gm = traced();
  fx::RewriteReport report = fx::replace_pattern(*gm, "aten::relu(x)", "aten::silu(x)");
  std::cout << report << '\n';
  // [end]
  TORCH_CHECK(gm->graph().count(fx::Op::call_function, "aten::silu") == 2);
}

void shapes() {
  // [shapes]
  auto gm = traced();
  fx::Shapes shapes = fx::propagate_shapes(*gm, {torch::rand({2, 3, 16, 16})});
  for (const fx::Node& node : gm->graph().nodes()) {
    if (const fx::TensorInfo* tensor = shapes[node].tensor())
      std::cout << node << ": " << fx::to_string(*tensor) << '\n';
  }
  // [end]
}

void not_a_number() {
  // [not a number]
  struct FindNaN : fx::Interpreter {
    using Interpreter::Interpreter;
    fx::Value run_node(const fx::Node& node) override {
      fx::Value value = Interpreter::run_node(node);
      const bool is_float = value.isTensor() && value.toTensor().is_floating_point();
      if (is_float && !first && value.toTensor().isnan().any().item<bool>()) first = &node;
      return value;
    }
    const fx::Node* first = nullptr;
  };
  auto gm = traced();
  gm->attribute("conv2.weight").data()[0][0][0][0] = std::nan("");
  FindNaN finder(*gm);
  finder.run({torch::rand({2, 3, 16, 16})});
  std::cout << "the first value that is no number is " << *finder.first << '\n';
  // [end]
  TORCH_CHECK(finder.first->target() == "conv2");
}

void dead_weights() {
  // [dead weights]
  auto gm = traced();
  gm->register_parameter("forgotten", torch::rand({4}));
  std::cout << gm->delete_all_unused_submodules() << " modules and " << gm->delete_all_unused_attributes()
            << " tensors that nothing reads were dropped\n";
  // [end]
  TORCH_CHECK(!gm->find_attribute("forgotten").defined());
}

void slowest() {
  // [slowest]
  auto gm = traced();
  fx::NodeTimes times = fx::profile(*gm, {torch::rand({2, 3, 16, 16})});
  const fx::Node* slowest = nullptr;
  for (const fx::Node& node : gm->graph().nodes()) {
    if (!slowest || fx::summarize(times[node]).seconds > fx::summarize(times[*slowest]).seconds) slowest = &node;
  }
  std::cout << *slowest << " takes " << fx::summarize(times[*slowest]).seconds * 1e6 << " us\n";
  // [end]
}

void held_memory() {
  // [held memory]
  auto gm = traced();
  gm->hold_memory();
  for (int batch = 0; batch < 3; ++batch) gm->forward(torch::rand({64, 3, 16, 16}));  // the first asks for all of it
  std::cout << gm->held_bytes() / 1024 << " KiB for as many forwards as one likes\n";
  // [end]
  TORCH_CHECK(gm->held_bytes() > 0);
}

void no_match() {
  // [no match]
  auto gm = traced();
  const fx::Pattern pattern = "aten::relu(aten::conv2d(x, w, b, ...))";
  const fx::Node* relu = gm->graph().find_nodes(fx::Op::call_function, "aten::relu").front();
  std::cout << fx::explain(gm->graph(), pattern, *relu) << '\n';  // it meets a call of the module conv1
  TORCH_CHECK(fx::find(gm->graph(), pattern).empty());
  fx::optimize(*gm, {.rules = {"inline-modules"}});  // writes such modules out as operators
  TORCH_CHECK(!fx::find(gm->graph(), pattern).empty());
  // [end]
}

void freeze_part() {
  // [freeze]
  auto gm = traced();
  for (const fx::Node& node : gm->graph().nodes()) {
    if (node.is(fx::Op::call_module) && node.target().view().starts_with("conv"))
      for (torch::Tensor& parameter : gm->submodule(node.target().str())->parameters())
        parameter.set_requires_grad(false);
  }
  // [end]
  TORCH_CHECK(!gm->attribute("conv1.weight").requires_grad() && gm->attribute("fc.weight").requires_grad());
}

void own_modules() {
  // [own modules]
  fx::register_module_type<ScaleImpl>("mine.Scale",  // its class in Python
                                      {.follows_mode = [](const ScaleImpl&) { return false; },
                                       .hyper_parameters = [](const ScaleImpl& scale) -> fx::HyperParameters {
                                         return {{.name = "by", .value = scale.by, .by_position = true}};
                                       },
                                       .cpp_type = "mine::Scale",  // TORCH_MODULE(Scale)
                                       .cpp_header = "mine/scale.h"});
  fx::Graph graph;
  graph.output(graph.call_module("scale", {&graph.placeholder("x")}));
  fx::GraphModule gm({{"scale", std::make_shared<ScaleImpl>(2.0)}}, std::move(graph));
  const std::string source = fx::code(gm, fx::Language::cpp);  // … add_module("scale", mine::Scale(2.0), …
  // [end]
  TORCH_CHECK(source.find("mine::Scale(2.0)") != std::string::npos);
}

int main() {
  torch::manual_seed(1);
  features();
  activations();
  shapes();
  not_a_number();
  dead_weights();
  slowest();
  held_memory();
  no_match();
  freeze_part();
  own_modules();
  return 0;
}
