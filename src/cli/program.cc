// The command line: options, help, and how errors become exit codes.
#include <fmt/format.h>
#include <fxgraph/config.h>
#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>

#include <fxgraph/cli/commands.h>
#include <fxgraph/cli/manual.h>
#include <fxgraph/cli/many_files.h>
#include <fxgraph/cli/options.h>

namespace fx::cli {

namespace {

constexpr const char* kFileHelp =
    "FX text (.fx), a TorchScript file (.pt), an archive of torch.export (.pt2), or - for text from standard input";
constexpr const char* kInputHelp =
    "an input's shape, once per input in order: 1x3x224x224, 2x16:int64, or :int64 without dimensions";
constexpr const char* kPatternHelp =
    "an expression, aten::relu(aten::add(x, y)), or a graph in FX text: the text itself, or a file that holds it";

int run_guarded(const std::function<int()>& command, Backend* backend) {
  try {
    const int code = command();
    if (flush_output()) return code;
    std::cerr << "fxgraph: cannot write to standard output: " << std::strerror(errno) << '\n';
  } catch (const MissingOption& error) {
    std::cerr << "fxgraph: " << error.what() << '\n';
    return kUsage;
  } catch (const std::bad_alloc&) {
    std::cerr << "fxgraph: out of memory\n";
  } catch (const std::exception& error) {
    std::cerr << "fxgraph: " << (backend ? backend->describe(error) : error.what()) << '\n';
  }
  return kFailed;
}

int need_backend(Backend* backend, const std::function<int(Backend&)>& command) {
  if (!backend) {
    throw Error(ErrorKind::unsupported,
                "this command needs LibTorch; build with FXGRAPH_WITH_TORCH=ON and keep fxgraph-torch beside fxgraph");
  }
  return command(*backend);
}

// Declares every command on `app`; parsing sets `chosen` to what is to be done.
class Commands {
 public:
  Commands(CLI::App& app, Backend* backend, const std::function<void()>& hand_over)
      : app_(app), backend_(backend), hand_over_(hand_over) {
    declare_show();
    declare_lint();
    declare_report();
    declare_match();
    declare_rewrite();
    declare_optimize();
    declare_quantize();
    declare_rules();
    declare_run();
    declare_pipeline();
    declare_diff();
    declare_draw();
    declare_convert();
    declare_manual();
  }

  int run() {
    return run_guarded(
        [this] {
          try {
            for (const std::string& library : libraries_) {
              need_backend(backend_, [&](Backend& backend) {
                backend.open_library(library);
                return kDone;
              });
            }
            return chosen_();
          } catch (const UnknownName&) {
            if (hand_over_) hand_over_();  // returns when there is nobody else to ask
            throw;
          }
        },
        backend_);
  }

 private:
  CLI::App* command(const std::string& name, const std::string& help, std::function<int()> action) {
    CLI::App* sub = app_.add_subcommand(name, help);
    sub->callback([this, action = std::move(action)] { chosen_ = action; });
    sub->add_option("--library", libraries_, "a shared library that registers operators; may be given again")
        ->allow_extra_args(false);
    return sub;
  }
  static void add_json(CLI::App* sub, bool& json) {
    sub->add_option_function<std::string>(
           "--format", [&json](const std::string& format) { json = format == "json"; }, "text or json")
        ->check(CLI::IsMember({"text", "json"}));
  }
  static void add_threads(CLI::App* sub, int& threads) {
    sub->add_option("--threads", threads, "threads that an operator may use; default: LibTorch's")
        ->check(CLI::Range(1, 4096));
  }
  /// One value each time it is given: what follows it may be the file.
  static void add_inputs(CLI::App* sub, InputOptions& inputs) {
    CLI::Option* shapes = sub->add_option("--input", inputs.shapes, kInputHelp)->allow_extra_args(false);
    sub->add_option("--values", inputs.values,
                    "in place of --input: a file with the inputs, a tuple of tensors, numbers and lists of them, as "
                    "torch.save writes it")
        ->excludes(shapes);
  }
  static void add_allowed(CLI::App* sub, std::vector<std::string>& allowed) {
    sub->add_option("--allow", allowed, "a namespace of operators of your own, mylib::, to be taken at its word")
        ->allow_extra_args(false);
  }
  static void add_output(CLI::App* sub, std::string& output,
                         const std::string& help = "where to write (default: standard output)") {
    sub->add_option("-o,--output", output, help);
  }

  void declare_show() {
    CLI::App* sub = command("show", "Print a program", [this] { return show(show_, backend_); });
    sub->add_option("FILE", show_.file, kFileHelp)->required();
    sub->add_option("--format", show_.format, "what to print it as: a table, a graph, source code, counts")
        ->check(CLI::IsMember(show_formats()))
        ->capture_default_str();
    add_inputs(sub, show_.inputs);
  }
  void declare_lint() {
    CLI::App* sub =
        command("lint", "Check every invariant and list what is broken", [this] { return lint(lint_, backend_); });
    sub->add_option("FILE", lint_.file, kFileHelp)->required();
    add_inputs(sub, lint_.inputs);
    add_allowed(sub, lint_.allowed);
    add_json(sub, lint_.json);
  }
  void declare_report() {
    CLI::App* sub = command("report", "Say what is dead, what lives where, what it costs",
                            [this] { return report(report_, backend_); });
    sub->add_option("FILE", report_.file, kFileHelp)->required();
    sub->add_flag("--dead-code", report_.dead_code, "nodes, attributes and inputs that nothing needs, and why");
    sub->add_flag("--liveness", report_.liveness, "how many values, and with --input how many bytes, are alive where");
    sub->add_flag("--uses", report_.uses, "the values with the most users");
    sub->add_flag("--dominance", report_.dominance, "the nodes that everything passes through");
    sub->add_flag("--cost", report_.cost, "FLOPs and bytes per node and module (needs --input)");
    sub->add_flag("--formulas", report_.formulas,
                  "peak, storages, FLOPs and bytes as formulas of the sizes that vary (needs --input)");
    sub->add_flag("--measure", report_.measure, "with --cost: the time that each takes, on random inputs");
    add_threads(sub, report_.threads);
    add_inputs(sub, report_.inputs);
    sub->add_option("--format", report_.format, "text, json, or html: one page with the picture")
        ->check(CLI::IsMember({"text", "json", "html"}))
        ->capture_default_str();
    add_output(sub, report_.output);
    CLI::Option* baseline = sub->add_option("--baseline", report_.baseline,
                                            "an older report in JSON: say what got worse, and exit 1 past the limit");
    sub->add_option("--limit", report_.limit, "how much worse is allowed")->needs(baseline)->capture_default_str();
  }
  static void add_reading(CLI::App* sub, bool& leaves, bool& definitions) {
    sub->add_flag("--leaves", leaves, "called modules match by their names and types alone");
    sub->add_flag("--definitions", definitions, "values match by what they are defined as and add up to, too");
  }
  void declare_match() {
    CLI::App* sub = command("match", "Find a pattern", [this] { return match(match_, backend_); });
    sub->add_option("FILE", match_.files, kFileHelp)->required();
    CLI::Option* one = sub->add_option("--pattern", match_.pattern, kPatternHelp);
    CLI::Option* several = sub->add_option("--patterns", match_.patterns,
                                           "a file with several, each under a line [name]: prints how often each fits");
    one->excludes(several);
    sub->add_option("--expect", match_.expect,
                    "exit 1 unless there are so many matches; with --patterns a file with the table that is expected");
    add_reading(sub, match_.leaves, match_.definitions);
    sub->add_flag("--see-through", match_.see_through, "look through clone, contiguous, detach and the like");
    add_inputs(sub, match_.inputs);
    add_allowed(sub, match_.allowed);
    sub->add_flag("--explain", match_.explain, "say why the places that almost fit do not");
    add_json(sub, match_.json);
  }
  void declare_rewrite() {
    CLI::App* sub = command("rewrite", "Replace a pattern", [this] { return rewrite(rewrite_, backend_); });
    sub->add_option("FILE", rewrite_.file, kFileHelp)->required();
    sub->add_option("--pattern", rewrite_.pattern, kPatternHelp)->required();
    sub->add_option("--replacement", rewrite_.replacement, kPatternHelp)->required();
    add_reading(sub, rewrite_.leaves, rewrite_.definitions);
    sub->add_flag("--verify", rewrite_.verify, "compare before and after on the inputs (needs --input or --values)");
    add_inputs(sub, rewrite_.inputs);
    sub->add_flag(
        "--allow-output-aliases", rewrite_.allow_output_aliases,
        "results of the program may share memory with each other, with inputs and weights, where they did not");
    add_allowed(sub, rewrite_.allowed);
    add_output(sub, rewrite_.output, "where to write the result: .fx, or .pt or .pt2 for a program with weights");
    add_json(sub, rewrite_.json);
  }
  void declare_optimize() {
    CLI::App* sub = command("optimize", "Apply rules, verify, save", [this] {
      return need_backend(backend_, [this](Backend& backend) {
        if (files_.size() > 1) return optimize_each("/proc/self/exe", files_, optimize_, jobs_);
        optimize_.file = files_.at(0);
        return backend.optimize(optimize_);
      });
    });
    sub->add_option("FILE", files_, kFileHelp)->required();
    sub->add_option("--jobs", jobs_, "with several files: how many at once")->check(CLI::Range(1, 1024));
    sub->add_option("--rules", optimize_.rules, "rules or groups to apply (see fxgraph rules); default: inference")
        ->delimiter(',')
        ->allow_extra_args(false);
    add_inputs(sub, optimize_.inputs);
    sub->add_option("--target", optimize_.target,
                    "cpu: call what is measured to be fastest on this machine, with packed weights (needs --input)")
        ->check(CLI::IsMember({"cpu"}));
    sub->add_flag("--concurrent", optimize_.concurrent,
                  "with --target: several threads may run one loaded copy of the result at once");
    sub->add_flag("--whole-batches", optimize_.whole_batches,
                  "with --target: do not cut batches into micro-batches, whatever is faster");
    sub->add_flag("--keep-sizes", optimize_.keep_sizes,
                  "refuse rules after which the program would take fewer types or numbers of dimensions");
    sub->add_option("--dtype", optimize_.dtype,
                    "bf16, with --target: convolutions and products of matrices in bfloat16 where that is faster")
        ->check(CLI::IsMember({"bf16", "bfloat16"}));
    add_threads(sub, optimize_.threads);
    sub->add_flag("--verify", optimize_.verify, "compare before and after on random inputs (needs --input)");
    add_output(sub, optimize_.output, "where to save the result: .pt, .pt2 or .fx; the folder, with several files");
    sub->add_option_function<std::string>(
           "--report", [this](const std::string& format) { optimize_.json = format == "json"; }, "text or json")
        ->check(CLI::IsMember({"text", "json"}));
  }
  void declare_quantize() {
    CLI::App* sub = command("quantize", "Turn weights and values into 8-bit numbers", [this] {
      return need_backend(backend_, [this](Backend& backend) { return backend.quantize(quantize_); });
    });
    sub->add_option("FILE", quantize_.file, kFileHelp)->required();
    add_inputs(sub, quantize_.inputs);
    sub->add_option("--calibrate", quantize_.calibrate,
                    "samples: a list of tensors or tuples that torch.save wrote, or 'random'; static mode needs it");
    add_output(sub, quantize_.output, "where to save the result: .pt");
    sub->add_option("--mode", quantize_.mode, "static, dynamic or weight-only")
        ->check(CLI::IsMember({"static", "dynamic", "weight-only"}));
    sub->add_option("--backend", quantize_.backend, "auto (the fastest here), onednn, qnnpack, fbgemm or reference")
        ->check(CLI::IsMember({"auto", "onednn", "qnnpack", "fbgemm", "reference"}));
    sub->add_option("--config", quantize_.config, "a file: what is quantized and how, as JSON (docs/quantization.md)");
    sub->add_option("--min-sqnr", quantize_.min_sqnr, "the least signal-to-noise ratio of the results, like 30dB");
    sub->add_option("--min-agreement", quantize_.min_agreement, "the least share of rows with the same largest result")
        ->check(CLI::Range(0.0, 1.0));
    sub->add_option("--keep-float", quantize_.keep_float,
                    "auto: the fewest layers that reach the goal; or expressions for module paths, with commas");
    sub->add_flag("--equalize", quantize_.equalize, "balance the weights of neighbouring layers first");
    sub->add_flag("--correct-bias", quantize_.correct_bias, "make up for the mean error of rounded weights");
    sub->add_flag("--compare", quantize_.compare, "show how much each value differs, worst first");
    sub->add_flag("--reasons", quantize_.reasons, "show for each node whether it is quantized, and why not");
    sub->add_option("--report", quantize_.report, "text, json, or html: one page with everything, to standard output")
        ->check(CLI::IsMember({"text", "json", "html"}));
  }
  void declare_rules() {
    CLI::App* sub = command("rules", "List the rules, or describe one", [this] {
      return need_backend(backend_, [this](Backend& backend) { return backend.rules(rule_, rules_json_); });
    });
    sub->add_option("NAME", rule_, "a rule");
    add_json(sub, rules_json_);
  }
  void declare_run() {
    CLI::App* sub = command("run", "Run a program on random inputs, or on yours", [this] {
      return need_backend(backend_, [this](Backend& backend) {
        return std::filesystem::is_directory(run_.file) ? backend.run_stage(run_) : backend.run(run_);
      });
    });
    sub->add_option("FILE", run_.file, "a program, or a folder with the stages of a pipeline")->required();
    sub->add_option("--rank", run_.rank, "of a pipeline: which stage this is; default: the launcher's environment");
    sub->add_option("--world", run_.world, "of a pipeline: how many ranks there are; default: likewise");
    sub->add_option("--master", run_.master, "of a pipeline: HOST:PORT of the first rank; default: likewise");
    sub->add_option("--micro-batches", run_.micro_batches,
                    "of a pipeline: into how many a batch is cut; default: what the plan was made for")
        ->check(CLI::Range(1, 1000000));
    sub->add_option("--timeout", run_.timeout, "of a pipeline: seconds that anything may wait for another rank")
        ->check(CLI::Range(0.1, 1e6));
    add_output(sub, run_.output,
               "where the result goes, as torch.load reads it; of a pipeline the last rank writes it");
    add_inputs(sub, run_.inputs);
    sub->add_option("--repeat", run_.repeat, "how often; the median time is shown, and its spread")
        ->check(CLI::Range(1, 1000000));
    add_threads(sub, run_.threads);
    sub->add_flag("--hold-memory", run_.hold_memory, "keep the memory of a run for the next one");
    add_json(sub, run_.json);
  }
  void declare_pipeline() {
    CLI::App* sub = command("pipeline", "Cut a program into stages for as many processes", [this] {
      return need_backend(backend_, [this](Backend& backend) { return backend.pipeline(pipeline_); });
    });
    sub->add_option("FILE", pipeline_.file, kFileHelp)->required();
    sub->add_option("--stages", pipeline_.stages, "how many")->required()->check(CLI::Range(1, 10000));
    add_inputs(sub, pipeline_.inputs);
    add_output(sub, pipeline_.output, "the folder for plan.json, stage_0.pt, stage_1.pt, …");
    sub->get_option("--output")->required();
    sub->add_option("--micro-batches", pipeline_.micro_batches, "into how many a batch is cut; checked that it may be")
        ->check(CLI::Range(1, 1000000));
    sub->add_flag("--modelled", pipeline_.modelled, "balance by operations and bytes instead of times measured here");
    sub->add_option("--slack", pipeline_.slack, "percent that the slowest stage may be slower so that less is sent")
        ->check(CLI::Range(0.0, 1000.0))
        ->capture_default_str();
    sub->add_option("--max-weights", pipeline_.max_weights, "MiB of parameters that a stage may have")
        ->check(CLI::NonNegativeNumber);
    sub->add_option("--max-memory", pipeline_.max_memory,
                    "MiB of parameters and of activations at once that a stage may have")
        ->check(CLI::NonNegativeNumber);
    add_threads(sub, pipeline_.threads);
    sub->add_flag("--allow-random", pipeline_.allow_random, "each stage draws random numbers by itself");
    add_json(sub, pipeline_.json);
  }
  void declare_diff() {
    CLI::App* sub =
        command("diff", "Compare two programs; exit 1 when they differ", [this] { return diff(diff_, backend_); });
    sub->add_option("A", diff_.before, kFileHelp)->required();
    sub->add_option("B", diff_.after, kFileHelp)->required();
    add_inputs(sub, diff_.inputs);
    add_json(sub, diff_.json);
  }
  void declare_draw() {
    CLI::App* sub = command("draw", "Draw a program", [this] { return draw(draw_, backend_); });
    sub->add_option("FILE", draw_.file, kFileHelp)->required();
    sub->add_option("-o,--output", draw_.output, "OUT.svg, or OUT.dot for Graphviz")->required();
    add_inputs(sub, draw_.inputs);
  }

  void declare_convert() {
    CLI::App* sub = command("convert", "Write a program in another form", [this] {
      return need_backend(backend_, [this](Backend& backend) { return backend.convert(convert_); });
    });
    sub->add_option("FILE", convert_.file, kFileHelp)->required();
    sub->add_option("-o,--output", convert_.output, "OUT.pt, OUT.pt2 or OUT.fx")->required();
    add_inputs(sub, convert_.inputs);
    sub->add_flag("--fixed", convert_.fixed, "a .pt2 holds for the inputs' sizes alone, not for all that work");
  }

  // For whoever packages the program: not among the commands that help lists.
  void declare_manual() {
    CLI::App* sub = command("manual", "Print the manual page, or the completion for a shell", [this] {
      std::cout << (manual_ == "man" ? manual_page(app_) : bash_completion(app_));
      return kDone;
    });
    sub->add_option("FORMAT", manual_, "man, or bash for its completion")->check(CLI::IsMember({"man", "bash"}));
    sub->group("");
  }

  CLI::App& app_;
  Backend* backend_;
  const std::function<void()>& hand_over_;
  std::function<int()> chosen_;
  std::vector<std::string> libraries_;
  std::string manual_ = "man";
  ShowOptions show_;
  LintOptions lint_;
  ReportOptions report_;
  MatchOptions match_;
  RewriteOptions rewrite_;
  OptimizeOptions optimize_;
  QuantizeOptions quantize_;
  std::vector<std::string> files_;
  unsigned jobs_ = 1;
  RunOptions run_;
  PipelineCommand pipeline_;
  DiffOptions diff_;
  DrawOptions draw_;
  ConversionOptions convert_;
  std::string rule_;
  bool rules_json_ = false;
};

// What a report of a fault should begin with.
std::string versions(Backend* backend) {
  std::string text = "fxgraph " FXGRAPH_VERSION "\nBoost " FXGRAPH_BOOST_VERSION "\n";
  return text + (backend ? backend->versions() : "without LibTorch");
}

}  // namespace

int run_program(int argc, char** argv, Backend* backend, const std::function<void()>& hand_over) {
  CLI::App app("fxgraph: capture, analyse, rewrite and save LibTorch programs as graphs", "fxgraph");
  app.require_subcommand(1);
  app.set_version_flag("--version", [backend] { return versions(backend); });
  app.footer("Exit code: 0 done, 1 bad input or a failed check, 2 wrong usage. `fxgraph COMMAND --help` says more.");
  Commands commands(app, backend, hand_over);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError& error) {
    // Of a command that there is not CLI11 says only that one is required.
    const bool names_another = app.get_subcommands().empty() && app.remaining_size() > 0;
    app.exit(names_another ? static_cast<const CLI::ParseError&>(CLI::ExtrasError(app.remaining())) : error);
    return kUsage;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  }
  return commands.run();
}

}  // namespace fx::cli
