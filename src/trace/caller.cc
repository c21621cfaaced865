#include <fxgraph/trace/caller.h>

#include <c10/util/Backtrace.h>
#include <c10/util/Type.h>
#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace fx::internal {
namespace {

struct RankQuestion {
  std::string_view function;  // mangled, without its parameters
  RankAnswer answer;
};
// LinearImpl takes addmm for rank 2, which is wrong for others, and matmul else, which is right for all. The
// normalisations check their input; those over a batch then call a function that checks it again in later versions,
// those over an instance one that chooses by it.
constexpr std::array<RankQuestion, 7> kRankQuestions = {{
    {"_ZN5torch2nn10LinearImpl7forward", {3, false}},
    {"_ZN5torch2nn15BatchNorm1dImpl16_check_input_dim", {3, true}},
    {"_ZN5torch2nn15BatchNorm2dImpl16_check_input_dim", {4, true}},
    {"_ZN5torch2nn15BatchNorm3dImpl16_check_input_dim", {5, true}},
    {"_ZN5torch2nn18InstanceNorm1dImpl16_check_input_dim", {3, false}},
    {"_ZN5torch2nn18InstanceNorm2dImpl16_check_input_dim", {4, false}},
    {"_ZN5torch2nn18InstanceNorm3dImpl16_check_input_dim", {5, false}},
}};

// Multiplies by one packed weight when query, key and value are equal, and by three slices of it else.
constexpr std::string_view kAttention = "_ZN5torch2nn22MultiheadAttentionImpl7forward";

// Wants the first offset to be 0 and the last to be no more than there is; so does aten::embedding_bag.
constexpr std::string_view kEmbeddingBag = "_ZN5torch2nn16EmbeddingBagImpl7forward";

// c10::TensorType::create(const at::Tensor&), for arguments of scripted functions.
constexpr std::string_view kTensorType = "_ZN3c1010TensorType6createERKN2at6TensorE";

constexpr std::string_view kCrossMapLrn = "_ZN5torch2nn17CrossMapLRN2dImpl7forward";

// The exported name of the function around `address`, empty when it has none.
std::string_view function_at(const void* address) {
  Dl_info info;
  return dladdr(address, &info) && info.dli_sname ? info.dli_sname : "";
}

bool is_within(std::string_view function) {
  std::array<void*, 24> frames;
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  for (int i = 1; i < count; ++i) {
    if (function_at(frames[static_cast<std::size_t>(i)]).starts_with(function)) return true;
  }
  return false;
}

}  // namespace

std::optional<RankAnswer> rank_for_caller() {
  // This function, the proxy's answer, the question itself, perhaps a functional between: the asker is not further
  // away.
  std::array<void*, 6> frames;
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  for (int i = 1; i < count; ++i) {
    const std::string_view name = function_at(frames[static_cast<std::size_t>(i)]);
    for (const RankQuestion& question : kRankQuestions) {
      if (name.starts_with(question.function)) return question.answer;
    }
  }
  return std::nullopt;
}

bool caller_takes_unequal() { return is_within(kAttention); }

bool caller_checks_offsets() { return is_within(kEmbeddingBag); }

bool caller_notes_type() { return is_within(kTensorType); }

bool caller_is_differentiable() { return is_within(kCrossMapLrn); }

std::string stack_of_calls() {
  const std::string frames = c10::get_backtrace(1, 128, /*skip_python_frames=*/true);  // the innermost first
  // What lies inside the operator is the dispatcher and the tracer.
  std::size_t from = 0;
  if (const std::size_t entry = frames.find(" at::_ops::"); entry != std::string::npos) {
    if (const std::size_t end = frames.find('\n', entry); end != std::string::npos) from = end + 1;
  }
  std::string out;
  for (std::size_t end = frames.size(); end > from;) {
    const std::size_t line = frames.rfind('\n', end - 1);
    const std::size_t begin = line == std::string::npos || line < from ? from : line + 1;
    if (begin < end) out.append(frames, begin, end - begin).append(1, '\n');
    end = begin > from ? begin - 1 : from;
  }
  return out;
}

}  // namespace fx::internal
