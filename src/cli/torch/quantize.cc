// fxgraph quantize: calibrate, convert, compare, save, and say what stayed float and why.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include <fxgraph/cli/options.h>
#include <fxgraph/cli/torch/backend.h>
#include <fxgraph/cli/torch/quantize_page.h>
#include <fxgraph/cli/torch/samples.h>
#include <fxgraph/module/state_keeper.h>
#include <fxgraph/rewriter/quantize/compare.h>
#include <fxgraph/rewriter/quantize/keep_float.h>
#include <fxgraph/rewriter/quantize/quantize.h>
#include <fxgraph/run/value.h>

namespace fx::cli {

namespace {

constexpr std::size_t kRandomSamples = 16;
constexpr std::size_t kMeasuredSamples = 8;  // for what runs the program often
constexpr int kTimedRounds = 7;

[[noreturn]] void bad(const std::string& message) { throw Error(ErrorKind::invalid_argument, message); }

std::string read_file(const std::string& path) {
  if (std::filesystem::is_directory(path)) throw Error(ErrorKind::io, path + ": is a folder, not a file");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorKind::io, path + ": cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

void check_finite(const c10::IValue& value, const std::string& where) {
  if (value.isTensor() && value.toTensor().is_floating_point() && !value.toTensor().isfinite().all().item<bool>())
    bad(where + " is not finite: it has NaN or infinite elements");
}

double parse_decibels(const std::string& text) {
  std::size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    bad("--min-sqnr " + text + " is no ratio: write one like 30dB");
  }
  if (const std::string unit = text.substr(used);
      (!unit.empty() && unit != "dB" && unit != "db") || !std::isfinite(value))
    bad("--min-sqnr " + text + " is no ratio: write one like 30dB");
  return value;
}

class Quantization {
 public:
  Quantization(const QuantizeOptions& options, TorchModel& model) : options_(options), float_(model.module()) {
    backend_ = parse_quant_backend(options.backend);
    resolve_quant_backend(backend_);
    if (!options.min_sqnr.empty()) goal_.min_sqnr_db = parse_decibels(options.min_sqnr);
    goal_.min_agreement = options.min_agreement;
    if (!options.output.empty() && form_of(options.output, ProgramForm::torchscript) != ProgramForm::torchscript)
      bad("-o " + options.output + ": packed weights are saved as TorchScript only: name a .pt file");
    config_ = make_config();
    load_samples();
  }

  int run() {
    float_.eval();
    prepare();
    if (options_.correct_bias) corrected_ = fx::correct_bias(*prepared_, first_samples());
    choose_kept();
    convert();
    compare();
    if (!reached()) {
      if (!has_goal())
        throw Error(
            ErrorKind::mismatch,
            fmt::format("{}: there is more noise than signal in the results ({:.1f} dB); nothing was saved; ask "
                        "for --min-sqnr 30dB with --keep-float auto to find the layers that must stay float",
                        options_.file, comparison_.output.sqnr_db));
      throw Error(
          ErrorKind::mismatch,
          fmt::format("{}: the results are within {:.1f} dB and agree on {:.1f} % of the rows, less than asked; "
                      "nothing was saved; let --keep-float auto find the layers that must stay float",
                      options_.file, comparison_.output.sqnr_db, comparison_.agreement * 100));
    }
    if (saves()) TorchModel(quantized_, ProgramForm::torchscript).save(options_.output, {});
    print();
    if (num_quantized()) return kDone;
    fmt::print(stderr, "fxgraph: {}: nothing was quantized: {}{}\n", options_.file, why_nothing(),
               options_.output.empty() ? "" : "; nothing was saved");
    return kFailed;
  }

 private:
  QuantConfig make_config() const {
    QuantConfig config = options_.mode == "dynamic"       ? QuantConfig::dynamic(backend_)
                         : options_.mode == "weight-only" ? QuantConfig::weight_only()
                                                          : QuantConfig::defaults(backend_);
    if (!options_.config.empty()) {
      try {
        config = parse_quant_config(read_file(options_.config), config);
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::io) throw;
        SourceLocation place = error.location();
        place.file = options_.config;
        throw Error(error.kind(), error.message(), "", place);
      }
    }
    config.equalize |= options_.equalize;
    if (!options_.keep_float.empty() && options_.keep_float != "auto") {
      std::vector<std::string> expressions;
      std::string_view rest = options_.keep_float;
      while (!rest.empty()) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        expressions.emplace_back(rest.substr(0, comma));
        rest.remove_prefix(std::min(comma + 1, rest.size()));
      }
      config.keep_float_paths(expressions);
    }
    return config;
  }

  void load_samples() {
    const std::vector<TensorInfo> infos = infos_of(options_.inputs);
    if (!infos.empty()) check_inputs(float_.graph(), infos.size());
    if (!options_.calibrate.empty() && options_.calibrate != "random") {
      samples_ = read_samples(options_.calibrate);
      check_samples(infos);
      return;
    }
    if (options_.mode == "static" && options_.calibrate.empty())
      bad("static quantization finds ranges on samples: add --calibrate samples.pt, or --calibrate random to try it");
    if (infos.empty() && !float_.graph().placeholders().empty())
      bad("the program has to be run once: add --input, like --input 1x3x224x224");
    at::manual_seed(0);
    random_ = options_.inputs.values.empty();
    for (std::size_t i = 0; i < (random_ ? kRandomSamples : 1); ++i) samples_.push_back(values_of(options_.inputs));
  }

  void check_samples(const std::vector<TensorInfo>& infos) const {
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      const std::string where = options_.calibrate + ": sample " + std::to_string(i + 1);
      if (!infos.empty() && samples_[i].size() != infos.size())
        bad(fmt::format("{} has {} values, --input names {}", where, samples_[i].size(), infos.size()));
      check_number(samples_[i].size(), where);
      for (std::size_t k = 0; k < samples_[i].size(); ++k) {
        check_finite(samples_[i][k], where);
        if (infos.empty()) continue;
        if (!samples_[i][k].isTensor())
          bad(fmt::format("{} has a value of type {} where --input names a tensor", where, samples_[i][k].tagKind()));
        check_shape(samples_[i][k].toTensor(), infos[k], where);
      }
    }
  }

  void check_number(std::size_t given, const std::string& where) const {
    std::size_t least = 0, most = 0;
    for (const Node* input : float_.graph().placeholders()) {
      ++most;
      if (input->args().empty()) least = most;
    }
    if (given < least || given > most)
      bad(fmt::format("{} has {} values, the program takes {}; a sample of several is a tuple", where, given,
                      least == most ? std::to_string(most) : fmt::format("{} to {}", least, most)));
  }

  // The batch may be another; all else is what --input says.
  static void check_shape(const at::Tensor& tensor, const TensorInfo& info, const std::string& where) {
    const TensorInfo given = tensor_info(tensor);
    const auto rest = [](const std::vector<std::int64_t>& sizes) {
      return std::vector<std::int64_t>(sizes.begin() + (sizes.empty() ? 0 : 1), sizes.end());
    };
    if (given.sizes.size() == info.sizes.size() && rest(given.sizes) == rest(info.sizes) && given.dtype == info.dtype)
      return;
    bad(where + " is " + to_string(given) + ", --input says " + to_string(info));
  }

  Samples first_samples() const {
    return {samples_.begin(),
            samples_.begin() + static_cast<std::ptrdiff_t>(std::min(samples_.size(), kMeasuredSamples))};
  }

  void prepare() {
    const at::NoGradGuard no_grad;
    {
      const Progress progress("preparing");
      naming_sample(0, [&] { prepared_ = fx::prepare(float_, config_, samples_.front()); });
    }
    if (options_.mode != "static" && options_.config.empty()) return;
    std::optional<Progress> progress;
    const StateKeeper keeper(float_);
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      progress.reset();
      progress.emplace(fmt::format("calibrating, sample {} of {}", i + 1, samples_.size()));
      naming_sample(i, [&] { prepared_->run(samples_[i]); });
    }
  }

  /// Errors of running the program on a sample name it.
  void naming_sample(std::size_t i, const std::function<void()>& action) const {
    try {
      action();
    } catch (const Error& error) {
      if (random_ || error.kind() != ErrorKind::execution) throw;
      bad(fmt::format("{}: sample {}: {}", options_.calibrate, i + 1, error.message()));
    }
  }

  void choose_kept() {
    if (options_.keep_float != "auto") return;
    if (!has_goal()) bad("--keep-float auto needs a goal: add --min-sqnr 30dB or --min-agreement 0.99");
    std::optional<Progress> progress(std::in_place, "measuring layers");
    kept_ = keep_float_for(*prepared_, float_, first_samples(), goal_, [&](std::size_t done, std::size_t of) {
      progress.reset();
      progress.emplace(fmt::format("measuring layers, {} of {}", done, of));
    });
  }

  /// What was not asked for an engine by name must load under each.
  ConvertOptions convert_options(QuantBackend backend) const {
    ConvertOptions options{.backend = backend, .every_engine = backend_ == QuantBackend::automatic};
    if (kept_) options.keep_float = kept_->nodes;
    return options;
  }

  // What runs fastest: all engines turn about, the median counts.
  void convert() {
    const Progress progress("converting");
    std::vector<QuantBackend> candidates = {backend_};
    if (backend_ == QuantBackend::automatic) candidates = available_quant_backends();
    if (candidates.empty()) candidates = {QuantBackend::reference};
    std::vector<std::shared_ptr<GraphModule>> made;
    for (const QuantBackend each : candidates) made.push_back(fx::convert(*prepared_, convert_options(each)));
    std::vector<GraphModule*> modules = {&float_};
    for (const auto& each : made) modules.push_back(each.get());
    std::vector<double> medians;
    for (const MeasuredTime& time : time_forwards(modules, samples_.front(), kTimedRounds))
      medians.push_back(time.seconds);
    const auto best =
        static_cast<std::size_t>(std::min_element(medians.begin() + 1, medians.end()) - medians.begin()) - 1;
    quantized_ = made[best];
    used_ = candidates[best];
    float_seconds_ = medians[0];
    seconds_ = medians[best + 1];
    for (std::size_t i = 0; i < made.size(); ++i) timed_.emplace_back(candidates[i], medians[i + 1]);
  }

  void compare() {
    const Progress progress("comparing");
    const bool each_value = options_.compare || options_.report == "html";
    comparison_ = each_value ? compare_activations(float_, *quantized_, first_samples())
                             : compare_outputs(float_, *quantized_, first_samples());
    reasons_ = quantization_reasons(*prepared_, convert_options(used_));
  }

  bool saves() const { return !options_.output.empty() && num_quantized() > 0; }
  std::ptrdiff_t num_quantized() const { return std::ranges::count_if(reasons_, &QuantReason::quantized); }

  /// The reason that most operators have.
  std::string why_nothing() const {
    std::map<std::string, std::size_t> counts;
    for (const QuantReason& each : reasons_) ++counts[each.reason];
    if (counts.empty()) return "the program has no operators";
    if (options_.keep_float == "auto") return "the goal is reached by no layer of 8-bit numbers";
    const auto most = std::ranges::max_element(counts, {}, &decltype(counts)::value_type::second);
    const char* only = options_.mode == "dynamic" ? "the mode dynamic is for linear, recurrent and embedding layers; "
                       : options_.mode == "weight-only" ? "the mode weight-only is for layers with weights; "
                                                        : "";
    return fmt::format("{}of {} operators: {}", only, most->second, most->first);
  }

  bool has_goal() const { return goal_.min_sqnr_db > 0 || goal_.min_agreement > 0; }
  bool reached() const {
    return comparison_.output.sqnr_db >= goal_.min_sqnr_db && comparison_.agreement >= goal_.min_agreement;
  }

  void print() const {
    if (options_.report == "json") return print_json();
    if (options_.report == "html") return write_output("", quantize_page(options_.file, comparison_, reasons_));
    print_text();
  }

  static void row(const std::string& head, const std::string& text) { fmt::print("{:<20} {}\n", head, text); }

  void print_text() const {
    row(options_.file,
        fmt::format("{} nodes, {} of weights", float_.graph().size(), human_bytes(count_parameters(float_).bytes)));
    if (random_ && options_.mode == "static")
      row("calibrated", "on random numbers: good to try it and to time it; accuracy needs real samples");
    else if (!random_)
      row("calibrated", fmt::format("{} samples", samples_.size()));
    if (options_.correct_bias) row("biases corrected", std::to_string(corrected_));
    if (const auto quantized = num_quantized()) {
      row("quantized", fmt::format("{} of {} operators, mode {}, engine {}", quantized, reasons_.size(), options_.mode,
                                   to_string(used_)));
    } else {
      row("quantized", fmt::format("nothing, mode {}: {}", options_.mode, why_nothing()));
    }
    if (kept_) {
      for (const std::string& node : kept_->nodes) row("kept float", node);
    }
    print_reasons();
    row("results",
        fmt::format("{}, agreement {:.1f} %", human_decibels(comparison_.output.sqnr_db), comparison_.agreement * 100));
    row("forward", fmt::format("{} -> {}, medians of {} interleaved runs", human_seconds(float_seconds_),
                               human_seconds(seconds_), kTimedRounds));
    if (options_.compare) {
      for (const ActivationDifference& each : comparison_.nodes)
        row(human_decibels(each.sqnr_db), each.node + "  " + each.op);
    }
    if (saves()) row("saved", options_.output);
    print_tied();
  }

  void print_tied() const {
    const auto tied = [](const QuantReason& each) { return !each.engine.empty(); };
    const auto first = std::ranges::find_if(reasons_, tied);
    if (first == reasons_.end()) return;
    const auto others = std::ranges::count_if(reasons_, tied) - 1;
    row("to load it", fmt::format("set torch.backends.quantized.engine = '{}' first; of {}{} {}", first->engine,
                                  first->node, others ? fmt::format(" and {} more,", others) : ",", first->reason));
  }

  // With --reasons every node; else the reasons of those that stay float, each once.
  void print_reasons() const {
    std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
    for (const QuantReason& each : reasons_) {
      if (options_.reasons) {
        row(each.node,
            each.op + (each.quantized ? ": quantized" : ": float") + (each.reason.empty() ? "" : ", " + each.reason));
        continue;
      }
      if (each.quantized || each.reason.empty()) continue;
      auto known = std::ranges::find(reasons, each.reason, &decltype(reasons)::value_type::first);
      if (known == reasons.end()) known = reasons.insert(known, {each.reason, {}});
      known->second.push_back(each.node);
    }
    for (const auto& [reason, nodes] : reasons)
      row("", fmt::format("float: {}{}: {}", nodes[0],
                          nodes.size() == 1 ? "" : fmt::format(" and {} more", nodes.size() - 1), reason));
  }

  void print_json() const {
    nlohmann::ordered_json out = {
        {"file", options_.file},           {"mode", options_.mode},     {"backend", to_string(used_)},
        {"samples", samples_.size()},      {"random_samples", random_}, {"biases_corrected", corrected_},
        {"float_seconds", float_seconds_}, {"seconds", seconds_},       {"nodes", nlohmann::json::array()}};
    out["num_quantized"] = num_quantized();
    if (!num_quantized()) out["nothing_quantized"] = why_nothing();
    out["comparison"] = nlohmann::ordered_json::parse(to_json(comparison_));
    out["kept_float"] = kept_ ? kept_->nodes : std::vector<std::string>();
    for (const auto& [backend, seconds] : timed_) out["timed"][std::string(to_string(backend))] = seconds;
    for (const QuantReason& each : reasons_) {
      out["nodes"].push_back({{"node", each.node},
                              {"op", each.op},
                              {"path", each.path},
                              {"quantized", each.quantized},
                              {"reason", each.reason}});
    }
    const auto tied = std::ranges::find_if(reasons_, [](const auto& each) { return !each.engine.empty(); });
    if (tied != reasons_.end()) out["engine_to_load"] = tied->engine;
    if (saves()) out["saved"] = options_.output;
    fmt::print("{}\n", out.dump(2));
  }

  const QuantizeOptions& options_;
  GraphModule& float_;
  QuantBackend backend_ = QuantBackend::automatic, used_ = QuantBackend::automatic;
  QuantConfig config_;
  QuantGoal goal_;
  Samples samples_;
  bool random_ = false;
  std::size_t corrected_ = 0;
  std::shared_ptr<GraphModule> prepared_, quantized_;
  std::optional<KeptFloat> kept_;
  ActivationComparison comparison_;
  std::vector<QuantReason> reasons_;
  double float_seconds_ = 0, seconds_ = 0;
  std::vector<std::pair<QuantBackend, double>> timed_;
};

}  // namespace

int TorchBackend::quantize(const QuantizeOptions& options) {
  const std::unique_ptr<Model> model = load(options.file, options.inputs);
  return Quantization(options, dynamic_cast<TorchModel&>(*model)).run();
}

}  // namespace fx::cli
