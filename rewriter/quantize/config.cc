#include <fxgraph/rewriter/quantize/config.h>

#include <ATen/Context.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>

#include <fxgraph/rewriter/quantize/engine_limits.h>
#include <fxgraph/support/error.h>

namespace fx {

namespace {

template <typename Enum, std::size_t size>
struct Names {
  std::array<std::pair<std::string_view, Enum>, size> all;

  std::string_view name(Enum value) const {
    for (const auto& [name, each] : all) {
      if (each == value) return name;
    }
    return {};
  }
  Enum parse(std::string_view text, std::string_view what) const {
    std::string known;
    for (const auto& [name, each] : all) {
      if (name == text) return each;
      known.append(known.empty() ? "" : ", ").append(name);
    }
    throw Error(ErrorKind::invalid_argument,
                "there is no " + std::string(what) + " '" + std::string(text) + "'; there is " + known);
  }
};

constexpr Names<QuantBackend, 5> kBackends{{{{"auto", QuantBackend::automatic},
                                             {"fbgemm", QuantBackend::fbgemm},
                                             {"onednn", QuantBackend::onednn},
                                             {"qnnpack", QuantBackend::qnnpack},
                                             {"reference", QuantBackend::reference}}}};
constexpr Names<RangeKind, 4> kRanges{{{{"min-max", RangeKind::min_max},
                                        {"moving-average", RangeKind::moving_average},
                                        {"histogram", RangeKind::histogram},
                                        {"percentile", RangeKind::percentile}}}};
constexpr Names<QuantMode, 4> kModes{{{{"float", QuantMode::keep_float},
                                       {"static", QuantMode::fixed_range},
                                       {"dynamic", QuantMode::dynamic},
                                       {"weight-only", QuantMode::weight_only}}}};
constexpr Names<DType, 2> kTypes{{{{"quint8", DType::quint8}, {"qint8", DType::qint8}}}};

}  // namespace

std::string_view to_string(QuantBackend backend) { return kBackends.name(backend); }
std::string_view to_string(RangeKind kind) { return kRanges.name(kind); }
std::string_view to_string(QuantMode mode) { return kModes.name(mode); }

QuantBackend parse_quant_backend(std::string_view name) { return kBackends.parse(name, "backend"); }

std::vector<QuantBackend> available_quant_backends() {
  // In the order of preference on a machine that has several.
  constexpr std::array kEngines = {std::pair(at::QEngine::FBGEMM, QuantBackend::fbgemm),
                                   std::pair(at::QEngine::ONEDNN, QuantBackend::onednn),
                                   std::pair(at::QEngine::QNNPACK, QuantBackend::qnnpack)};
  const auto& supported = at::globalContext().supportedQEngines();
  std::vector<QuantBackend> found;
  for (const auto& [engine, backend] : kEngines) {
    if (std::find(supported.begin(), supported.end(), engine) != supported.end()) found.push_back(backend);
  }
  return found;
}

QuantBackend resolve_quant_backend(QuantBackend backend) {
  if (backend == QuantBackend::reference) return backend;
  const std::vector<QuantBackend> available = available_quant_backends();
  if (backend == QuantBackend::automatic) return available.empty() ? QuantBackend::reference : available.front();
  if (std::find(available.begin(), available.end(), backend) != available.end()) return backend;
  std::string known;
  for (const QuantBackend each : available) known.append(to_string(each)).append(", ");
  throw Error(ErrorKind::unsupported, "this LibTorch was built without the engine " + std::string(to_string(backend)) +
                                          "; there is " + known + "reference");
}

std::int64_t Quantizer::quant_min() const {
  if (dtype == DType::quint8) return 0;
  return reduce_range ? -64 : -128;
}

std::int64_t Quantizer::quant_max() const {
  if (dtype == DType::quint8) return reduce_range ? 127 : 255;
  return reduce_range ? 63 : 127;
}

QuantConfig QuantConfig::defaults(QuantBackend backend) {
  const QuantBackend engine = resolve_quant_backend(backend);
  QuantConfig config;
  // A bit of the weights, not of the activations: what sigmoid, a sum with a number or a value outside of its range
  // makes has all eight.
  config.global.weight.reduce_range = adds_up_in_16_bits(engine);
  config.global.weight.per_channel = engine != QuantBackend::qnnpack;
  config.global.activation.reduce_range = engine == QuantBackend::fbgemm && !config.global.weight.reduce_range;
  return config;
}

QuantConfig QuantConfig::training(QuantBackend backend) {
  QuantConfig config = defaults(backend);
  config.global.activation.range = RangeKind::moving_average;
  return config;
}

QuantConfig QuantConfig::dynamic(QuantBackend backend) {
  QuantConfig config;
  config.global.mode = QuantMode::dynamic;
  config.global.weight.reduce_range = adds_up_in_16_bits(resolve_quant_backend(backend));
  config.global.weight.per_channel = false;
  return config;
}

QuantConfig QuantConfig::weight_only() {
  QuantConfig config;
  config.global.mode = QuantMode::weight_only;
  return config;
}

void QuantConfig::keep_float_nodes(const std::vector<std::string>& names) {
  for (const std::string& name : names) nodes.push_back({name, QuantSettings::keep_float()});
}

void QuantConfig::keep_float_paths(const std::vector<std::string>& expressions) {
  for (const std::string& expression : expressions) paths.push_back({expression, QuantSettings::keep_float()});
}

namespace {

const QuantSettings* last_match(const std::vector<QuantConfig::Entry>& entries,
                                const std::function<bool(const std::string&)>& fits) {
  const auto found =
      std::find_if(entries.rbegin(), entries.rend(), [&](const auto& entry) { return fits(entry.first); });
  return found == entries.rend() ? nullptr : &found->second;
}

// `layer1.0.conv` lies in `layer1.0` and in `layer1`.
bool fits_path(const std::string& expression, std::string_view path) {
  const RE2 re(expression, RE2::Quiet);
  for (std::string_view around = path; !around.empty();) {
    if (RE2::FullMatch(re2::StringPiece(around.data(), around.size()), re)) return true;
    const std::size_t dot = around.rfind('.');
    around = dot == std::string_view::npos ? std::string_view() : around.substr(0, dot);
  }
  return false;
}

}  // namespace

const QuantSettings& QuantConfig::settings_for(std::string_view node, std::string_view type,
                                               std::string_view module_type, std::string_view path) const {
  if (const auto* found = last_match(nodes, [&](const std::string& name) { return name == node; })) return *found;
  if (const auto* found = last_match(paths, [&](const std::string& expression) { return fits_path(expression, path); }))
    return *found;
  const auto is_type = [&](const std::string& name) {
    return name == type || (!module_type.empty() && name == module_type);
  };
  if (const auto* found = last_match(types, is_type)) return *found;
  return global;
}

// ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostBins = 1 << 20;

/// Reads the members of one object: each by its reader, any other is refused.
class Members {
 public:
  using Reader = std::function<void(const Json&, const std::string& where)>;
  Members(std::initializer_list<std::pair<const char*, Reader>> readers) : readers_(readers.begin(), readers.end()) {}

  void read(const Json& object, const std::string& where) const {
    if (!object.is_object())
      throw Error(ErrorKind::invalid_argument, "the configuration's " + where + " is no object: write {…}");
    for (const auto& [key, value] : object.items()) {
      const auto reader =
          std::find_if(readers_.begin(), readers_.end(), [&](const auto& each) { return each.first == key; });
      if (reader == readers_.end()) refuse(key, where);
      try {
        reader->second(value, where + "." + key);
      } catch (const Json::type_error&) {
        throw Error(ErrorKind::invalid_argument,
                    "the configuration's " + where + "." + key + " is a " + value.type_name() + ", of another type");
      }
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& key, const std::string& where) const {
    std::string known;
    for (const auto& [name, reader] : readers_) known.append(known.empty() ? "" : ", ").append(name);
    throw Error(ErrorKind::invalid_argument,
                "the configuration's " + where + " has no '" + key + "'; there is " + known);
  }
  std::vector<std::pair<std::string, Reader>> readers_;
};

template <typename T>
Members::Reader into(T& target) {
  return [&target](const Json& value, const std::string&) {
    if constexpr (std::is_same_v<T, bool>) {
      target = value.get_ref<const Json::boolean_t&>();
    } else {
      target = value.get<T>();
    }
  };
}

template <typename Enum, std::size_t size>
Members::Reader named(Enum& target, const Names<Enum, size>& names, const char* what) {
  return [&target, &names, what](const Json& value, const std::string&) {
    target = names.parse(value.get_ref<const std::string&>(), what);
  };
}

Members::Reader quantizer(Quantizer& q) {
  return [&q](const Json& value, const std::string& where) {
    Members({{"dtype", named(q.dtype, kTypes, "type of quantized number")},
             {"symmetric", into(q.symmetric)},
             {"per_channel", into(q.per_channel)},
             {"range", named(q.range, kRanges, "way to find a range")},
             {"reduce_range", into(q.reduce_range)},
             {"averaging_constant", into(q.averaging_constant)},
             {"percentile", into(q.percentile)},
             {"bins", into(q.bins)}})
        .read(value, where);
    if (!(q.percentile > 0 && q.percentile <= 100))
      throw Error(ErrorKind::invalid_argument, "the configuration's " + where + ".percentile is not in (0, 100]");
    if (q.bins < 256 || q.bins > kMostBins)
      throw Error(ErrorKind::invalid_argument,
                  "the configuration's " + where + ".bins is not in [256, " + std::to_string(kMostBins) + "]");
    if (!(q.averaging_constant > 0 && q.averaging_constant <= 1))
      throw Error(ErrorKind::invalid_argument, "the configuration's " + where + ".averaging_constant is not in (0, 1]");
  };
}

void read_settings(QuantSettings& settings, const Json& value, const std::string& where) {
  Members({{"mode", named(settings.mode, kModes, "mode")},
           {"activation", quantizer(settings.activation)},
           {"weight", quantizer(settings.weight)}})
      .read(value, where);
  if (settings.activation.per_channel)
    throw Error(ErrorKind::invalid_argument,
                "the configuration's " + where + ".activation.per_channel: no kernel takes such activations");
}

Members::Reader entries(std::vector<QuantConfig::Entry>& into, const QuantConfig& config) {
  return [&into, &config](const Json& value, const std::string& where) {
    if (!value.is_object())
      throw Error(ErrorKind::invalid_argument, "the configuration's " + where + " is no object: write {…}");
    for (const auto& [key, each] : value.items()) {
      into.push_back({key, config.global});
      read_settings(into.back().second, each, where + "." + key);
    }
  };
}

Json parse(std::string_view text) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    const std::size_t at = std::min(error.byte ? error.byte - 1 : 0, text.size());
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    const std::size_t start = text.substr(0, at).rfind('\n');
    const std::size_t column = at - (start == std::string_view::npos ? 0 : start + 1) + 1;
    throw Error(ErrorKind::syntax, "the configuration is no JSON", "",
                {"", static_cast<int>(line), static_cast<int>(column)});
  }
}

}  // namespace

QuantConfig parse_quant_config(std::string_view json, QuantConfig base) {
  const Json whole = parse(json);
  // The others start from the global settings, wherever these stand.
  if (whole.is_object() && whole.contains("global")) read_settings(base.global, whole["global"], "global");
  const auto done = [](const Json&, const std::string&) {};
  Members({{"global", done},
           {"types", entries(base.types, base)},
           {"paths", entries(base.paths, base)},
           {"nodes", entries(base.nodes, base)},
           {"equalize", into(base.equalize)}})
      .read(whole, "top");
  for (const auto& [expression, settings] : base.paths) {
    const RE2 re(expression, RE2::Quiet);
    if (!re.ok())
      throw Error(ErrorKind::syntax,
                  "the configuration's path '" + expression + "' is no regular expression: " + re.error());
  }
  return base;
}

}  // namespace fx
