#include <fxgraph/shapes/brief_errors.h>

#include <c10/util/Backtrace.h>
#include <c10/util/Exception.h>
#include <c10/util/Logging.h>

#include <string_view>

namespace fx::internal {
namespace {

thread_local int depth = 0;

// LibTorch does not tell who lists the calls: it shows in an error. Its own list begins with a first frame.
bool is_by_libtorch() {
  const c10::Error error({"", "", 0}, "");
  return std::string_view(error.what()).find("frame #0: ") != std::string_view::npos;
}

bool install() {
  if (!is_by_libtorch()) return false;
  c10::SetStackTraceFetcher([] { return depth > 0 ? std::string() : c10::get_backtrace(/*frames_to_skip=*/2); });
  return true;
}

}  // namespace

BriefErrors::BriefErrors() {
  static const bool installed = install();
  (void)installed;
  ++depth;
}

BriefErrors::~BriefErrors() { --depth; }

}  // namespace fx::internal
