// The page's data: what make_report found, and beside it the nodes by place in the graph, column by column, so that
// thousands of them stay small. The scripts in src/report/page/ read it; page/data.js says what each field is.
#include <fxgraph/report/page.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include <fxgraph/analysis/dominators.h>
#include <fxgraph/analysis/memory_plan.h>
#include <fxgraph/report/box_text.h>
#include <fxgraph/report/draw.h>
#include <fxgraph/report/layout.h>
#include <fxgraph/report/outline.h>
#include <fxgraph/report/page_template.h>
#include <fxgraph/text/print.h>

namespace fx {

namespace {

using Json = nlohmann::ordered_json;

/// torch.export passes parameters, buffers and constants as inputs p_…, b_…, c_….
bool is_parameter(const Node& node) {
  if (!node.is(Op::placeholder)) return node.is(Op::get_attr);
  const std::string_view name = node.target().view();
  return name.size() > 1 && name[1] == '_' && std::string_view("pbc").find(name[0]) != std::string_view::npos;
}

class PageData {
 public:
  PageData(const Graph& graph, const ReportInputs& inputs, const ReportOptions& options)
      : graph_(graph),
        inputs_(inputs),
        options_(options),
        effects_(graph, {.modules = inputs.modules}),
        live_(inputs.shapes ? Liveness(graph, *inputs.shapes,
                                       {.count_inputs = options.count_inputs,
                                        .count_attributes = options.count_attributes,
                                        .effects = inputs.modules.effects ? &effects_ : nullptr,
                                        .modules = &inputs.modules})
                            : Liveness(graph)) {}

  Json make() {
    Json data{{"groups", groups()}, {"nodes", nodes()}, {"layouts", layouts()}};
    if (options_.liveness) data["memory"] = memory();
    if (options_.dominance) data["dominator"] = dominators();
    if (options_.dead_code) data["dead"] = dead();
    if (options_.cost && inputs_.shapes) data["cost"] = cost();
    return data;
  }

 private:
  template <typename Value>
  Json column(Value value) const {
    Json cells = Json::array();
    for (const Node& node : graph_.nodes()) cells.push_back(value(node));
    return cells;
  }

  Json groups() const {
    Json rows = Json::array();
    for (std::uint32_t i = 0; i < outline_.groups().size(); ++i) {
      const Outline::Group& group = outline_.groups()[i];
      rows.push_back({{"label", group.label}, {"parent", group.parent}, {"title", short_label(outline_.groups(), i)}});
    }
    return rows;
  }

  // Without parameters, and with them where there are some.
  Json layouts() const {
    Json both = Json::array({layout(is_parameter)});
    const auto nodes = graph_.nodes();
    if (std::any_of(nodes.begin(), nodes.end(), is_parameter))
      both.push_back(layout([](const Node&) { return false; }));
    return both;
  }

  Json layout(const std::function<bool(const Node&)>& hidden) const {
    Json parts = Json::array();
    const auto& groups = outline_.groups();
    for (const GroupLayout& layout :
         lay_out(graph_, outline_,
                 {.node_width = [&](const Node& node) { return box_text(node, inputs_.shapes).width(); },
                 .group_width = [&](std::uint32_t group) { return title_width(short_label(groups, group)); },
                 .hidden = hidden})) {
      Json boxes = Json::array(), edges = Json::array();
      for (const GroupLayout::Box& box : layout.boxes) {
        const auto item = box.node ? static_cast<std::int64_t>(live_.place(*box.node)) : -std::int64_t{box.group};
        for (const std::int64_t value : {item, std::int64_t{box.row}, whole(box.x), whole(box.width)})
          boxes.push_back(value);
      }
      for (const GroupLayout::Edge& edge : layout.edges) {
        for (const std::int64_t value :
             {std::int64_t{live_.place(*edge.source)}, std::int64_t{edge.from}, std::int64_t{edge.to},
              whole(edge.from_offset), whole(edge.to_offset), static_cast<std::int64_t>(edge.way.size())})
          edges.push_back(value);
        for (const Run& run : edge.way) edges.insert(edges.end(), {whole(run.x), run.rows});
      }
      parts.push_back({whole(layout.width), layout.rows, std::move(boxes), std::move(edges)});
    }
    return parts;
  }
  static std::int64_t whole(double pixels) { return std::llround(pixels); }

  Json nodes() const {
    return {
        {"name", column([](const Node& node) { return node.name(); })},
        {"op", column([](const Node& node) { return to_string(node.op()); })},
        {"target", column([](const Node& node) { return node.target().str(); })},
        {"text", column([](const Node& node) { return format_node(node); })},
        {"below", column([this](const Node& node) { return box_text(node, inputs_.shapes).below; })},
        {"tensor", column([this](const Node& node) { return tensors(node); })},
        {"inputs", column([this](const Node& node) {
           Json places = Json::array();
           for (const Node* input : node.all_input_nodes()) places.push_back(live_.place(*input));
           return places;
         })},
        {"group", column([this](const Node& node) { return outline_.group_of(node); })},
        {"impure", column([this](const Node& node) { return effects_.impure(node) ? 1 : 0; })},
    };
  }

  std::string tensors(const Node& node) const {
    std::string text;
    if (!inputs_.shapes) return text;
    for (const TensorInfo& tensor : (*inputs_.shapes)[node].tensors) {
      text += (text.empty() ? "" : ", ") + to_string(tensor);
    }
    return text;
  }

  // Without shapes every value counts one, and the curve is how many are alive.
  Json memory() const {
    const bool bytes = inputs_.shapes && live_.peak().node;
    Json bars = Json::array();
    if (bytes) {
      const MemoryPlan plan = plan_memory(live_);
      for (std::size_t i = 0; i < live_.storages().size(); ++i) {
        const Storage& storage = live_.storages()[i];
        if (!storage.counted) continue;
        bars.push_back(
            {live_.place(*storage.base), storage.interval.begin, storage.interval.end, storage.bytes, plan.offsets[i]});
      }
      return {{"bytes", true}, {"bars", bars}, {"curve", live_.bytes()}, {"plan_bytes", plan.bytes}};
    }
    std::vector<std::int64_t> curve(live_.num_places() + 1, 0);
    for (const Node& node : graph_.nodes()) {
      if (node.is(Op::output)) continue;
      const Interval interval = live_.interval(node);
      bars.push_back({live_.place(node), interval.begin, interval.end, 1, -1});
      ++curve[interval.begin];
      --curve[interval.end + 1];
    }
    for (std::size_t i = 1; i < curve.size(); ++i) curve[i] += curve[i - 1];
    curve.pop_back();
    return {{"bytes", false}, {"bars", bars}, {"curve", curve}};
  }

  Json dominators() const {
    const Dominators dominators(graph_);
    return column([&](const Node& node) {
      const Node* parent = dominators.immediate(node);
      return parent ? static_cast<std::int64_t>(live_.place(*parent)) : -1;
    });
  }

  Json dead() const {
    const DeadCode dead(graph_, {.effects = &effects_, .shapes = inputs_.shapes});
    return column([&](const Node& node) { return dead.why(node); });
  }

  Json cost() const {
    const Cost cost(graph_, *inputs_.shapes, inputs_.modules);
    Json columns = {{"macs", column([&](const Node& node) { return cost.of(node).macs; })},
                    {"flops", column([&](const Node& node) { return cost.of(node).flops; })},
                    {"bytes", column([&](const Node& node) { return cost.of(node).bytes(); })},
                    {"parameter_bytes", column([&](const Node& node) { return cost.of(node).parameter_bytes; })}};
    if (inputs_.times)
      columns["seconds"] = column([&](const Node& node) { return summarize((*inputs_.times)[node]).seconds; });
    return columns;
  }

  const Graph& graph_;
  const ReportInputs& inputs_;
  const ReportOptions& options_;
  const Outline outline_{graph_};
  const Effects effects_;
  const Liveness live_;
};

/// Inside a script element only `<` can do harm: it may begin `</script>` or `<!--`. In JSON it stands in strings
/// alone.
std::string script_safe(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) c == '<' ? void(out += "\\u003c") : out.push_back(c);
  return out;
}

}  // namespace

std::string to_html(const Graph& graph, const ReportInputs& inputs, const ReportOptions& options) {
  ReportOptions all = options;
  all.max_rows = std::numeric_limits<std::size_t>::max();
  const std::string report = to_json(make_report(graph, inputs, all));
  const std::string data = PageData(graph, inputs, all).make().dump(-1, ' ', false, Json::error_handler_t::replace);
  // Split before filling in: names may look like marks.
  const internal::PageTemplate& page = internal::kPageTemplate;
  std::string out(page.before_title);
  out += escape_xml(inputs.name.empty() ? "graph" : inputs.name);
  out += page.before_data;
  out += script_safe("{\"report\":" + report + ",\"graph\":" + data + "}");
  out += page.after_data;
  return out;
}

}  // namespace fx
