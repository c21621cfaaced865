// A scripted module whose forward is given as code, and inputs for it.
#pragma once

#include <torch/script.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fx::testing {

/// With a buffer `table` of six numbers.
inline torch::jit::Module module_of(const std::string& code) {
  torch::jit::Module module(c10::QualifiedName("__torch__.mine.M"), std::make_shared<torch::jit::CompilationUnit>(),
                            true);
  module.register_attribute("training", c10::BoolType::get(), false);
  module.register_buffer("table", torch::arange(6, torch::kFloat));
  module.define(code);
  return module;
}

/// Numbers that grow from -1 on.
inline c10::IValue ones(std::vector<std::int64_t> sizes) {
  return torch::arange(c10::multiply_integers(sizes), torch::kFloat).view(sizes) / 7 - 1;
}

}  // namespace fx::testing
