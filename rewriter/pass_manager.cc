#include <fxgraph/rewriter/pass_manager.h>

#include <algorithm>
#include <cstdio>
#include <ostream>

#include <fxgraph/support/error.h>

namespace fx {

bool PipelineReport::changed() const {
  return std::any_of(passes.begin(), passes.end(), [](const PassReport& pass) { return pass.changed; });
}

std::ostream& operator<<(std::ostream& out, const PipelineReport& report) {
  std::size_t width = 0;
  for (const PassReport& pass : report.passes) width = std::max(width, pass.pass.size());
  for (const PassReport& pass : report.passes) {
    out << pass.pass << std::string(width - pass.pass.size() + 2, ' ');
    if (pass.changed) {
      out << pass.nodes_before << " -> " << pass.nodes_after << " nodes";
    } else {
      out << "nothing to do";
    }
    char time[32];
    std::snprintf(time, sizeof(time), "  %.1f ms", static_cast<double>(pass.time.count()) / 1e6);
    out << time << "\n";
  }
  return out;
}

void PassManager::add(std::string name, PassFunction run, PassConstraints constraints) {
  std::vector<std::pair<std::string, PassFunction>> steps = {{name, std::move(run)}};
  add_until_stable(std::move(name), std::move(steps), 1, std::move(constraints));
}

void PassManager::add_until_stable(std::string name, std::vector<std::pair<std::string, PassFunction>> passes,
                                   std::size_t max_rounds, PassConstraints constraints) {
  for (const Pass& pass : passes_) {
    if (pass.name == name) throw Error(ErrorKind::invalid_argument, "there is a pass called '" + name + "' already");
  }
  for (const auto& [step, run] : passes) {
    if (!run) throw Error(ErrorKind::invalid_argument, "pass " + step + ": its function is empty; give one that runs");
  }
  passes_.push_back({std::move(name), std::move(passes), max_rounds, std::move(constraints)});
}

// Of the passes that nothing waits for, the one added first is next.
std::vector<const PassManager::Pass*> PassManager::sorted() const {
  const auto listed = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const auto waits_for = [&](const Pass& pass, const Pass& other) {
    return listed(pass.constraints.after, other.name) || listed(other.constraints.before, pass.name);
  };
  std::vector<const Pass*> left;
  for (const Pass& pass : passes_) left.push_back(&pass);
  std::vector<const Pass*> order;
  while (!left.empty()) {
    const auto next = std::find_if(left.begin(), left.end(), [&](const Pass* pass) {
      return std::none_of(left.begin(), left.end(), [&](const Pass* other) { return waits_for(*pass, *other); });
    });
    if (next == left.end()) {
      std::string names;
      for (const Pass* pass : left) names += (names.empty() ? "" : ", ") + pass->name;
      throw Error(ErrorKind::invalid_argument,
                  "no order of the passes meets their constraints: each of " + names + " waits for another of them");
    }
    order.push_back(*next);
    left.erase(next);
  }
  return order;
}

std::vector<std::string> PassManager::order() const {
  std::vector<std::string> names;
  for (const Pass* pass : sorted()) names.push_back(pass->name);
  return names;
}

bool PassManager::run_step(const std::string& name, const PassFunction& run, Graph& graph,
                           PipelineReport& report) const {
  if (options_.before) options_.before(name, graph);
  PassReport pass{name, false, graph.size(), 0, {}};
  const std::uint64_t revision = graph.revision();
  const auto start = std::chrono::steady_clock::now();
  try {
    run(graph);
    pass.time = std::chrono::steady_clock::now() - start;
    pass.changed = graph.revision() != revision;
    if (pass.changed && options_.lint) graph.lint();
  } catch (const Error& error) {
    throw Error(error.kind(), "pass " + name + ": " + error.message(), error.node(), error.location());
  }
  pass.nodes_after = graph.size();
  report.passes.push_back(pass);
  if (options_.after) options_.after(pass, graph);
  return pass.changed;
}

PipelineReport PassManager::run(Graph& graph) const {
  PipelineReport report;
  for (const Pass* pass : sorted()) {
    bool changed = true;
    for (std::size_t round = 0; changed && round < pass->max_rounds; ++round) {
      changed = false;
      for (const auto& [name, step] : pass->steps) changed |= run_step(name, step, graph, report);
    }
  }
  return report;
}

}  // namespace fx
