// Both reports are compared as JSON: the measures are a table of places in it.
#include <fxgraph/report/baseline.h>

#include <array>
#include <nlohmann/json.hpp>

#include <fxgraph/support/error.h>

namespace fx {

namespace {

struct Measure {
  const char* path;
  bool is_bytes;
};

/// What is better when it is less; what matters most first.
constexpr std::array kMeasures = {
    Measure{"/liveness/peak_bytes", true},
    Measure{"/liveness/plan_bytes", true},
    Measure{"/liveness/peak_values", false},
    Measure{"/cost/total/macs", false},
    Measure{"/cost/total/flops", false},
    Measure{"/cost/total/bytes", true},
    Measure{"/cost/total/parameter_bytes", true},
    Measure{"/cost/unknown", false},
    Measure{"/nodes", false},
    Measure{"/uses/depth", false},
    Measure{"/dead_code/dead_nodes", false},
    Measure{"/dead_code/dead_stores", false},
    Measure{"/dead_code/unused_outputs", false},
    Measure{"/dead_code/unused_inputs", false},
    Measure{"/dead_code/no_ops", false},
    Measure{"/dead_code/unused_attributes", false},
    Measure{"/dead_code/unused_modules", false},
    Measure{"/dead_code/unused_bytes", true},
};

/// `liveness.peak_bytes`.
std::string name_of(const Measure& measure) {
  std::string name = measure.path + 1;
  for (char& c : name) c = c == '/' ? '.' : c;
  return name;
}

const nlohmann::json* find(const nlohmann::json& report, const char* path) {
  const nlohmann::json::json_pointer pointer(path);
  if (!report.contains(pointer)) return nullptr;
  return &report[pointer];
}

nlohmann::json parse_baseline(std::string_view text) {
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    throw Error(ErrorKind::syntax, "the baseline is no JSON (byte " + std::to_string(error.byte) +
                                       "); make it with fxgraph report --format json");
  }
  if (!json.is_object() || !json.contains("version") || json["version"] != 1) {
    throw Error(ErrorKind::invalid_argument,
                "the baseline is no report of version 1; make it with fxgraph report --format json");
  }
  return json;
}

double number(const nlohmann::json& value, const Measure& measure) {
  if (!value.is_number()) {
    throw Error(ErrorKind::invalid_argument,
                "the baseline's " + name_of(measure) + " is no number; make it with fxgraph report --format json");
  }
  return value.get<double>();
}

}  // namespace

Report::BaselinePart compare_with_baseline(const Report& report, std::string_view json, double limit) {
  const nlohmann::json old = parse_baseline(json), now = nlohmann::json::parse(to_json(report));
  Report::BaselinePart part;
  part.limit = limit;
  for (const Measure& measure : kMeasures) {
    const nlohmann::json *before = find(old, measure.path), *after = find(now, measure.path);
    if (!before) continue;
    if (!after) {
      throw Error(ErrorKind::invalid_argument,
                  "the baseline has " + name_of(measure) +
                      " and this report has not; give the options that the baseline was made with (--input, parts)");
    }
    part.measures.push_back({name_of(measure), number(*before, measure), number(*after, measure), measure.is_bytes});
  }
  if (part.measures.empty()) throw Error(ErrorKind::invalid_argument, "the baseline has nothing to compare with");
  return part;
}

}  // namespace fx
