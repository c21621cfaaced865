// What LibTorch's kernels would read beyond tensors (src/run/unsafe_kernels.h).
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <torch/torch.h>
#include <unistd.h>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/module/interpreter.h>
#include <fxgraph/text/parse.h>

namespace fx::unsafe_kernels_test {

// Numbers right before memory that nobody may read.
class LastNumbers {
 public:
  explicit LastNumbers(std::vector<float> numbers)
      : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))),
        pages_(
            static_cast<char*>(mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
        size_(static_cast<std::int64_t>(numbers.size())),
        first_(reinterpret_cast<float*>(pages_ + page_) - size_) {
    mprotect(pages_ + page_, page_, PROT_NONE);
    std::copy(numbers.begin(), numbers.end(), first_);
  }
  ~LastNumbers() { munmap(pages_, 2 * page_); }
  LastNumbers(const LastNumbers&) = delete;
  LastNumbers& operator=(const LastNumbers&) = delete;
  torch::Tensor tensor() const { return torch::from_blob(first_, {size_}); }

 private:
  std::size_t page_;
  char* pages_;
  std::int64_t size_;
  float* first_;
};

TEST(UnsafeKernels, MediansOfExpandedTensorsReadNothingBeyond) {
  const LastNumbers numbers({3, -1, 2});
  const torch::Tensor row = numbers.tensor();
  for (const char* median : {"median", "nanmedian"}) {
    for (const torch::Tensor& x :
         {row.expand({4, 3}), row.unsqueeze(1).expand({3, 4}), row.unsqueeze(1).expand({3, 1})}) {
      for (const char* dim : {"0", "1", "-1"}) {
        GraphModule module(
            GraphModule::Attributes(),
            parse_graph(std::string("graph():\n%x = placeholder[target=x]\n%m = call_function[target=torch.ops.aten.") +
                        median + ".dim](args = (%x, " + dim + "))\nreturn m"));
        const auto wanted = x.clone(at::MemoryFormat::Contiguous).median(std::stoi(dim));
        for (const c10::IValue& result : {module.run({x}), Interpreter(module).run({x})}) {
          EXPECT_TRUE(result.toTuple()->elements()[0].toTensor().equal(std::get<0>(wanted))) << median << dim;
          EXPECT_TRUE(result.toTuple()->elements()[1].toTensor().equal(std::get<1>(wanted))) << median << dim;
        }
      }
    }
  }
}

}  // namespace fx::unsafe_kernels_test
