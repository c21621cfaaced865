// A C++ model traced, written as an archive of torch.export, read again and compared at other sizes; then Python does
// the same (tests/newest/check_written.py).
#pragma once

#include <torch/torch.h>

#include <string>
#include <utility>
#include <vector>

#include <fxgraph/export/load.h>
#include <fxgraph/export/save.h>
#include <fxgraph/text/size_report.h>
#include "tests/pt2/kept_archive.h"
#include "tests/support/scratch_folder.h"
#include "tests/trace/trace_testing.h"

namespace fx::testing {

using Inputs = std::vector<c10::IValue>;

inline c10::IValue tuple_of(Inputs values) { return c10::ivalue::Tuple::create(std::move(values)); }

class SavedArchiveTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(5); }

  ScratchFolder scratch_;

  // Traces `model` on the first inputs, writes and reads it, and compares it on all.
  template <typename Model, typename Run>
  void check(const std::string& name, Model model, Run run, const std::vector<Inputs>& all) {
    KeptArchive archive("traced_" + name);
    model->eval();
    const auto traced = symbolic_trace(model, all[0]);
    traced->save(archive.path());
    const auto again = load_exported(archive.path());
    again->graph().lint();
    for (const auto& item : model->named_parameters()) {
      EXPECT_TRUE(again->is_parameter(item.key())) << item.key();
      EXPECT_TRUE(at::equal(again->attribute(item.key()), item.value())) << item.key();
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      const c10::IValue wanted = run(model, all[i]);
      EXPECT_TRUE(same_value(again->run(all[i]), wanted, 1e-5)) << name << " at sizes " << i << '\n'
                                                                << SizeReport(traced->graph());
      archive.gives(all[i], wanted);
    }
  }
};

}  // namespace fx::testing
