// Reports for programs. The keys are those of Report's fields.
#include <nlohmann/json.hpp>

#include <fxgraph/report/report.h>

namespace fx {

namespace {

using Json = nlohmann::ordered_json;

template <typename T, typename Convert>
Json array(const std::vector<T>& values, Convert convert) {
  Json json = Json::array();
  for (const T& value : values) json.push_back(convert(value));
  return json;
}

Json dead_code(const Report::DeadCodePart& p) {
  return {{"dead_nodes", p.dead_nodes},
          {"dead_stores", p.dead_stores},
          {"unused_outputs", p.unused_outputs},
          {"unused_inputs", p.unused_inputs},
          {"no_ops", p.no_ops},
          {"unused_attributes", p.unused_attributes},
          {"unused_modules", p.unused_modules},
          {"unused_bytes", p.unused_bytes},
          {"findings", array(p.findings, [](const Report::Finding& f) {
             return Json{{"kind", f.kind}, {"name", f.name}, {"text", f.text}, {"bytes", f.bytes}};
           })}};
}

Json liveness(const Report::LivenessPart& p) {
  Json json{{"peak_values", p.peak_values}, {"peak_values_at", p.peak_values_at}};
  if (!p.has_bytes) return json;
  json["peak_bytes"] = p.peak_bytes;
  json["peak_bytes_at"] = p.peak_bytes_at;
  json["inside_bytes"] = p.inside_bytes;
  json["unknown_nodes"] = p.unknown;
  json["storages"] = p.storages;
  json["storage_bytes"] = p.storage_bytes;
  json["plan_bytes"] = p.plan_bytes;
  json["plan_lower_bound"] = p.plan_lower_bound;
  json["best_order_bytes"] = p.best_order_bytes;
  json["at_peak"] = array(p.at_peak, [](const Report::Resident& r) {
    return Json{{"node", r.node}, {"tensor", r.tensor}, {"bytes", r.bytes}, {"first", r.first}, {"last", r.last}};
  });
  return json;
}

Json uses(const Report::UsesPart& p) {
  Json json{{"values", p.values}, {"uses", p.uses}, {"single_use", p.single_use}, {"depth", p.depth}};
  json["most_used"] = array(p.most_used, [](const Report::Use& use) {
    return Json{{"node", use.node}, {"count", use.count}};
  });
  json["critical_path"] = p.critical_path;
  if (p.critical_path_is_timed) json["critical_seconds"] = p.critical_seconds;
  return json;
}

Json dominance(const Report::DominancePart& p) {
  return {{"depth", p.depth},
          {"bottlenecks", p.bottlenecks},
          {"regions", p.regions},
          {"fusion_groups", p.fusion_groups},
          {"fused_nodes", p.fused_nodes},
          {"largest_groups", p.largest_groups}};
}

Json cost_row(const Report::CostRow& r, bool timed) {
  Json json;
  if (!r.name.empty()) json["name"] = r.name;
  if (!r.target.empty()) json["target"] = r.target;
  json["macs"] = r.macs;
  json["flops"] = r.flops;
  json["bytes"] = r.bytes;
  json["parameter_bytes"] = r.parameter_bytes;
  json["intensity"] = r.intensity;
  if (r.measured)
    json["measured"] = {{"seconds", r.measured->seconds}, {"spread", r.measured->spread}, {"runs", r.measured->runs}};
  if (!timed) return json;
  json["seconds"] = r.seconds;
  json["memory_bound"] = r.memory_bound;
  return json;
}

Json cost(const Report::CostPart& p) {
  const bool timed = !p.machine.empty();
  const auto row = [&](const Report::CostRow& r) { return cost_row(r, timed); };
  Json json{{"total", row(p.total)}, {"unknown", p.unknown.size()}, {"unknown_nodes", p.unknown}};
  if (timed) json["machine"] = p.machine;
  json["nodes"] = array(p.nodes, row);
  json["modules"] = array(p.modules, row);
  return json;
}

Json sizes(const Report::SizesPart& p) {
  return {{"variables", p.variables},
          {"measures", array(p.measures,
                             [](const Report::SizesPart::Row& row) {
                               return Json{{"name", row.name}, {"formula", row.formula}};
                             })},
          {"at_peak", array(p.at_peak, [](const Report::SizesPart::Tensor& row) {
             return Json{{"node", row.node}, {"bytes", row.bytes}, {"tensor", row.tensor}};
           })}};
}

Json baseline(const Report::BaselinePart& p) {
  return {{"file", p.file},
          {"limit", p.limit},
          {"worse", p.past_limit().size()},
          {"measures", array(p.measures, [&](const Report::Measured& m) {
             const char* verdict = m.is_worse(p.limit)  ? "past limit"
                                   : m.is_worse()       ? "worse"
                                   : m.after < m.before ? "better"
                                                        : "same";
             return Json{{"name", m.name}, {"before", m.before}, {"after", m.after}, {"verdict", verdict}};
           })}};
}

}  // namespace

std::string to_json(const Report& report) {
  Json json{{"version", 1},
            {"name", report.name},
            {"nodes", report.nodes},
            {"inputs", report.inputs},
            {"modules", report.modules},
            {"attributes", report.attributes}};
  json["operators"] = array(report.operators, [](const Report::OpCount& op) {
    return Json{{"target", op.target}, {"count", op.count}};
  });
  if (report.baseline) json["baseline"] = baseline(*report.baseline);
  if (report.dead_code) json["dead_code"] = dead_code(*report.dead_code);
  if (report.liveness) json["liveness"] = liveness(*report.liveness);
  if (report.sizes) json["sizes"] = sizes(*report.sizes);
  if (report.uses) json["uses"] = uses(*report.uses);
  if (report.dominance) json["dominance"] = dominance(*report.dominance);
  if (report.cost) json["cost"] = cost(*report.cost);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace fx
