// Everything public, in one include: #include <fxgraph/fx.h>.
//
// With LibTorch's headers in reach this brings modules and TorchScript too; a file that only works on graphs compiles
// in a fraction of the time with the narrow headers named here.
#pragma once

#include "analysis/dead_code.h"
#include "analysis/dominators.h"
#include "analysis/effects.h"
#include "analysis/liveness.h"
#include "analysis/report.h"
#include "analysis/use_def.h"
#include "analysis/view.h"
#include "ir/graph.h"
#include "ir/node_map.h"
#include "matchers/explain.h"
#include "matchers/matcher.h"
#include "ops/effects.h"
#include "ops/schema.h"
#include "rewriter/common_subexpression.h"
#include "rewriter/driver.h"
#include "rewriter/pass_manager.h"
#include "rewriter/replace_pattern.h"
#include "text/parse.h"
#include "text/print.h"

#if __has_include(<torch/nn/module.h>)
#include "module/code.h"
#include "module/graph_module.h"
#include "module/inline_modules.h"
#include "module/interpreter.h"
#include "module/shape_prop.h"
#include "rewriter/program/replace_pattern.h"
#include "rewriter/program/split_module.h"
#include "rewriter/program/verify.h"
#include "rewriter/rules/optimize.h"
#include "torchscript/export.h"
#include "torchscript/import.h"
#include "trace/decompose.h"
#include "trace/graph_appending_tracer.h"
#include "trace/symbolic_trace.h"
#include "trace/transformer.h"
#include "trace/wrap.h"
#endif
