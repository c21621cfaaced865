// Messages name the line of the program that they are about.
#include <fxgraph/trace/program_place.h>

#include "tests/trace/trace_testing.h"

namespace program {

int multiplies = 0, joins = 0, chooses = 0;

struct Net : torch::nn::Module {
  torch::Tensor w = register_parameter("w", torch::rand({3, 3}));
  torch::nn::Conv2d conv = register_module("conv", torch::nn::Conv2d(3, 4, 3));
  __attribute__((noinline)) torch::Tensor forward(torch::Tensor x) {
    x = x.relu();
    multiplies = __LINE__ + 1;
    return x.matmul(w);
  }
};

struct Chooses : torch::nn::Module {
  __attribute__((noinline)) torch::Tensor forward(torch::Tensor x) {
    chooses = __LINE__ + 1;
    if (x.size(0) == 2) return x.relu();
    return x.sigmoid();
  }
};

struct Calls : torch::nn::Module {
  torch::nn::Conv2d conv = register_module("conv", torch::nn::Conv2d(3, 4, 3));
  __attribute__((noinline)) torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(x);
    joins = __LINE__ + 1;
    return conv->forward(x) + 1;
  }
};

}  // namespace program

namespace fx::program_place_test {

using ::testing::HasSubstr;

std::string line(int number) { return "program_place_test.cc:" + std::to_string(number); }

int noted = 0;
__attribute__((noinline)) internal::CallPlace note_place() {
  noted = __LINE__ + 1;
  internal::CallPlace place = internal::calling_place();
  return place;
}

// What called the tracer is no place in the program, be it main() or the C library.
TEST(ProgramPlace, LiesBehindTheEntry) {
  EXPECT_EQ(internal::words_for(note_place()), "");
  const internal::ProgramEntry entry;
  const internal::CallPlace place = note_place();
  EXPECT_EQ(place.count, 3);  // the question, the function, and the entry itself
  EXPECT_THAT(internal::words_for(place), HasSubstr(line(noted)));
}

TEST(ProgramPlace, FixedSizesNameTheirLine) {
  const auto gm = symbolic_trace(std::make_shared<program::Net>(), {torch::rand({2, 3})});
  EXPECT_THAT(gm->sizes().str(), HasSubstr("x[1] = 3")) << gm->sizes();
  EXPECT_THAT(gm->sizes().str(), HasSubstr("(" + line(program::multiplies) + ", program::Net::forward)"));
  EXPECT_FX_ERROR(gm->forward(torch::rand({2, 4})), execution, HasSubstr(line(program::multiplies)));
}

TEST(ProgramPlace, LeafModulesAreNamedByTheirCall) {
  const auto gm = symbolic_trace(std::make_shared<program::Calls>(), {torch::rand({2, 3, 8, 8})});
  EXPECT_THAT(gm->sizes().str(), HasSubstr("(" + line(program::joins) + ", program::Calls::forward)"));
}

TEST(ProgramPlace, ChoicesNameTheirLine) {
  const auto gm = symbolic_trace(std::make_shared<program::Chooses>(), {torch::rand({2, 3})});
  const std::string after = "program_place_test.cc:" + std::to_string(program::chooses + 1);
  EXPECT_THAT(gm->sizes().str(), ::testing::AnyOf(HasSubstr(after), HasSubstr(line(program::chooses)))) << gm->sizes();
}

}  // namespace fx::program_place_test
