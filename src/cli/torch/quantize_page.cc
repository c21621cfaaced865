#include <fxgraph/cli/torch/quantize_page.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <fxgraph/cli/options.h>
#include <fxgraph/report/draw.h>

namespace fx::cli {

namespace {

constexpr double kFullBar = 60;  // dB

constexpr const char* kHead = R"(<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{0}</title><style>
body{{font:14px system-ui,sans-serif;margin:2em auto;max-width:70em;color:#222;background:#fff}}
table{{border-collapse:collapse;width:100%;margin:1em 0}}th,td{{text-align:left;padding:.25em .6em;border-bottom:1px solid #ddd}}
td.n{{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}}i{{display:block;height:.7em;background:#3a76b5}}
i.bad{{background:#c2452d}}td.b{{width:12em}}.float{{color:#a33}}
@media(prefers-color-scheme:dark){{body{{color:#ddd;background:#1b1b1b}}th,td{{border-color:#444}}.float{{color:#f88}}}}
</style></head><body><h1>{0}</h1>
)";

std::string row(const ActivationDifference& each, double goal) {
  const double part =
      std::isinf(each.sqnr_db) ? (each.sqnr_db > 0 ? 1 : 0) : std::clamp(each.sqnr_db / kFullBar, 0.0, 1.0);
  return fmt::format(
      "<tr><td>{}</td><td>{}</td><td class=n>{}</td><td class=b><i{} style=\"width:{:.0f}%\"></i></td><td "
      "class=n>{:.3g}</td><td class=n>{:.3g}</td></tr>\n",
      escape_xml(each.node), escape_xml(each.op), human_decibels(each.sqnr_db), each.sqnr_db < goal ? " class=bad" : "",
      100 * part, each.largest, each.magnitude);
}

}  // namespace

std::string quantize_page(const std::string& name, const ActivationComparison& comparison,
                          const std::vector<QuantReason>& reasons) {
  std::string page = fmt::format(kHead, escape_xml(name));
  const auto quantized = std::ranges::count_if(reasons, &QuantReason::quantized);
  page += fmt::format(
      "<p>Results: <b>{}</b> over {} samples, the same largest element in {:.1f} % of the rows. {} of {} operators are "
      "quantized.</p>\n",
      human_decibels(comparison.output.sqnr_db), comparison.samples, comparison.agreement * 100, quantized,
      reasons.size());
  page +=
      "<h2>Values, worst first</h2><table><tr><th>node</th><th>made by</th><th>signal to noise</th><th></th>"
      "<th>largest difference</th><th>largest value</th></tr>\n";
  for (const ActivationDifference& each : comparison.nodes) page += row(each, comparison.output.sqnr_db);
  page += "</table><h2>Operators</h2><table><tr><th>node</th><th>operator</th><th>module</th><th></th><th></th></tr>\n";
  for (const QuantReason& each : reasons) {
    page += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td{}>{}</td><td>{}</td></tr>\n", escape_xml(each.node),
                        escape_xml(each.op), escape_xml(each.path), each.quantized ? "" : " class=float",
                        each.quantized ? "quantized" : "float", escape_xml(each.reason));
  }
  return page + "</table></body></html>\n";
}

}  // namespace fx::cli
