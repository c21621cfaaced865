// Everything public, in one include: `#include <fxgraph/fx.h>`.
//
// In a package built with LibTorch this brings modules and TorchScript too; a file that only works on graphs compiles
// in a fraction of the time with the narrow headers named here.
#pragma once

#include <fxgraph/analysis/batch.h>
#include <fxgraph/analysis/dead_code.h>
#include <fxgraph/analysis/dominators.h>
#include <fxgraph/analysis/effects.h>
#include <fxgraph/analysis/legalize.h>
#include <fxgraph/analysis/liveness.h>
#include <fxgraph/analysis/operator_counts.h>
#include <fxgraph/analysis/use_def.h>
#include <fxgraph/analysis/view.h>
#include <fxgraph/config.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/graph_hooks.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/matchers/explain.h>
#include <fxgraph/matchers/matcher.h>
#include <fxgraph/ops/effects.h>
#include <fxgraph/ops/normalize_args.h>
#include <fxgraph/ops/schema.h>
#include <fxgraph/report/report.h>
#include <fxgraph/rewriter/common_subexpression.h>
#include <fxgraph/rewriter/driver.h>
#include <fxgraph/rewriter/graph_transform_observer.h>
#include <fxgraph/rewriter/pass_manager.h>
#include <fxgraph/rewriter/replace_pattern.h>
#include <fxgraph/text/dot.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>

#if FXGRAPH_HAS_TORCH
#include <fxgraph/export/load.h>
#include <fxgraph/export/save.h>
#include <fxgraph/module/code.h>
#include <fxgraph/module/graph_module.h>
#include <fxgraph/module/inline_modules.h>
#include <fxgraph/module/interpreter.h>
#include <fxgraph/module/module_arguments.h>
#include <fxgraph/module/profile.h>
#include <fxgraph/rewriter/partition/const_subgraphs.h>
#include <fxgraph/rewriter/partition/inline_submodules.h>
#include <fxgraph/rewriter/partition/lower.h>
#include <fxgraph/rewriter/partition/minimizer.h>
#include <fxgraph/rewriter/partition/operator_support.h>
#include <fxgraph/rewriter/partition/partitioner.h>
#include <fxgraph/rewriter/partition/pipeline.h>
#include <fxgraph/rewriter/partition/pipeline_plan.h>
#include <fxgraph/rewriter/partition/process_group.h>
#include <fxgraph/rewriter/partition/source_partitions.h>
#include <fxgraph/rewriter/partition/split_module.h>
#include <fxgraph/rewriter/partition/submodule_inputs.h>
#include <fxgraph/rewriter/partition/xnnpack.h>
#include <fxgraph/rewriter/program/reinplace.h>
#include <fxgraph/rewriter/program/replace_pattern.h>
#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/rewriter/quantize/compare.h>
#include <fxgraph/rewriter/quantize/keep_float.h>
#include <fxgraph/rewriter/quantize/quantize.h>
#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/rewriter/rules/transformations.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/torchscript/export.h>
#include <fxgraph/torchscript/import.h>
#include <fxgraph/trace/decompose.h>
#include <fxgraph/trace/graph_appending_tracer.h>
#include <fxgraph/trace/symbolic_trace.h>
#include <fxgraph/trace/transformer.h>
#include <fxgraph/trace/wrap.h>
#endif
