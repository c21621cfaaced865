#include <fxgraph/rewriter/partition/pipeline_plan.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include <fxgraph/support/error.h>

namespace fx {
namespace {

constexpr int kVersion = 2;

std::string line(const char* format, auto... values) {
  char text[200];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

double mebibytes(std::int64_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0); }

}  // namespace

std::string PipelinePlan::str() const {
  double total = 0;
  for (const StageForecast& stage : stages) total += stage.seconds;
  std::string text = line("%-6s %6s %10s %12s %12s %12s\n", "stage", "nodes", measured ? "ms" : "work %", "weights MiB",
                          "peak MiB", "sent MiB");
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const StageForecast& stage = stages[i];
    const double time = measured ? stage.seconds * 1e3 : total > 0 ? stage.seconds * 100 / total : 0;
    text += line(measured ? "%-6zu %6zu %10.3f %12.2f %12.2f %12.3f\n" : "%-6zu %6zu %10.1f %12.2f %12.2f %12.3f\n", i,
                 stage.nodes, time, mebibytes(stage.weight_bytes), mebibytes(stage.peak_bytes),
                 mebibytes(stage.sent_bytes));
  }
  for (const TiedParameter& one : tied) {
    text += "shared:";
    for (const auto& [stage, path] : one.places) text += " stage " + std::to_string(stage) + " " + path;
    text += "\n";
  }
  return text;
}

std::string PipelinePlan::json() const {
  nlohmann::ordered_json out = {{"version", kVersion}, {"measured", measured},     {"micro_batches", micro_batches},
                                {"threads", threads},  {"not_joined", not_joined}, {"stages", nlohmann::json::array()}};
  for (const StageForecast& stage : stages) {
    nlohmann::ordered_json sends = nlohmann::json::array();
    for (const auto& [to, bytes] : stage.sends) sends.push_back({{"to", to}, {"bytes", bytes}});
    out["stages"].push_back({{"nodes", stage.nodes},
                             {"seconds", stage.seconds},
                             {"weight_bytes", stage.weight_bytes},
                             {"peak_bytes", stage.peak_bytes},
                             {"sent_bytes", stage.sent_bytes},
                             {"sends", std::move(sends)}});
  }
  out["tied"] = nlohmann::json::array();
  for (const TiedParameter& one : tied) {
    nlohmann::ordered_json places = nlohmann::json::array();
    for (const auto& [stage, path] : one.places) places.push_back({{"stage", stage}, {"path", path}});
    out["tied"].push_back(std::move(places));
  }
  out["wiring"] = wiring;
  return out.dump(2) + "\n";
}

PipelinePlan PipelinePlan::from_json(const std::string& text) {
  try {
    const nlohmann::json in = nlohmann::json::parse(text);
    if (!in.is_object()) throw std::runtime_error("it is no object");
    if (in.at("version").get<int>() != kVersion) throw std::runtime_error("it has another version");
    PipelinePlan plan;
    plan.measured = in.at("measured").get<bool>();
    plan.micro_batches = in.at("micro_batches").get<std::size_t>();
    plan.threads = in.at("threads").get<int>();
    plan.not_joined = in.at("not_joined").get<std::string>();
    if (plan.micro_batches == 0) throw std::runtime_error("it has no micro-batches");
    for (const nlohmann::json& stage : in.at("stages")) {
      plan.stages.push_back({stage.at("nodes").get<std::size_t>(),
                             stage.at("seconds").get<double>(),
                             stage.at("weight_bytes").get<std::int64_t>(),
                             stage.at("peak_bytes").get<std::int64_t>(),
                             stage.at("sent_bytes").get<std::int64_t>(),
                             {}});
      for (const nlohmann::json& send : stage.at("sends"))
        plan.stages.back().sends.emplace_back(send.at("to").get<std::size_t>(), send.at("bytes").get<std::int64_t>());
    }
    for (const nlohmann::json& one : in.at("tied")) {
      TiedParameter& tied = plan.tied.emplace_back();
      for (const nlohmann::json& place : one) {
        tied.places.emplace_back(place.at("stage").get<std::size_t>(), place.at("path").get<std::string>());
        if (tied.places.back().first >= plan.stages.size()) throw std::runtime_error("it names a stage too many");
      }
    }
    plan.wiring = in.at("wiring").get<std::string>();
    if (plan.stages.empty()) throw std::runtime_error("it has no stages");
    return plan;
  } catch (const nlohmann::json::parse_error& error) {
    throw Error(ErrorKind::syntax,
                "this is no plan of a pipeline: what stands at byte " + std::to_string(error.byte) + " is no JSON");
  } catch (const nlohmann::json::exception& error) {
    const std::string_view what = error.what();  // [json.exception.out_of_range.403] key 'version' not found
    throw Error(ErrorKind::syntax, "this is no plan of a pipeline: " + std::string(what.substr(what.find("] ") + 2)));
  } catch (const std::exception& error) {
    throw Error(ErrorKind::syntax, std::string("this is no plan of a pipeline: ") + error.what());
  }
}

std::string PipelinePlan::digest() const {
  std::uint64_t hash = 1469598103934665603ull;  // FNV-1a
  for (const char byte : json()) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211ull;
  return line("%016llx", static_cast<unsigned long long>(hash));
}

}  // namespace fx
