// Reports for a terminal.
#include <array>
#include <cmath>
#include <cstdio>

#include <fxgraph/report/report.h>

namespace fx {

namespace {

constexpr std::size_t kWidth = 120;

/// Display width: UTF-8 continuation bytes take no column.
std::size_t columns(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

/// Cuts a line that is too long, closing it with "…".
std::string fit(std::string text, std::size_t width) {
  if (columns(text) <= width) return text;
  std::size_t end = 0, count = 0;
  while (count + 1 < width) {
    ++end;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    ++count;
  }
  return text.substr(0, end) + "…";
}

std::string pad_left(const std::string& text, std::size_t width) {
  return std::string(width > columns(text) ? width - columns(text) : 0, ' ') + text;
}
std::string pad_right(const std::string& text, std::size_t width) {
  return text + std::string(width > columns(text) ? width - columns(text) : 0, ' ');
}

std::string number(double value, const char* format) {
  std::array<char, 64> buffer;
  std::snprintf(buffer.data(), buffer.size(), format, value);
  return buffer.data();
}

/// Three digits with the largest unit that leaves at least 1.
template <std::size_t N>
std::string scaled(double value, double base, const std::array<const char*, N>& units) {
  std::size_t unit = 0;
  while (std::abs(value) >= base * 0.9995 && unit + 1 < N) {
    value /= base;
    ++unit;
  }
  const double size = std::abs(value);
  return number(value, unit == 0 ? "%.0f" : size < 9.995 ? "%.2f" : size < 99.95 ? "%.1f" : "%.0f") + units[unit];
}

std::string format_seconds(double seconds) {
  if (seconds >= 1) return number(seconds, "%.2f s");
  if (seconds >= 1e-3) return number(seconds * 1e3, "%.2f ms");
  return number(seconds * 1e6, "%.1f us");
}

std::string percent(std::int64_t part, std::int64_t whole) {
  return number(whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole), "%.0f %%");
}

std::string plural(std::size_t count, const std::string& word) {
  return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

class TextWriter {
 public:
  std::string write(const Report& r) {
    head(r);
    if (r.baseline) baseline(*r.baseline);
    if (r.cost) cost(*r.cost);
    if (r.liveness) liveness(*r.liveness);
    if (r.sizes) sizes(*r.sizes);
    if (r.dead_code) dead_code(*r.dead_code);
    if (r.uses) uses(*r.uses);
    if (r.dominance) dominance(*r.dominance);
    return std::move(out_);
  }

 private:
  void line(const std::string& text) { out_ += fit(text, kWidth) + "\n"; }
  void title(const std::string& text) { out_ += "\n" + fit(text, kWidth) + "\n"; }

  void list(const std::string& label, const std::vector<std::string>& names, const char* separator) {
    std::string text = "  " + label;
    for (std::size_t i = 0; i < names.size(); ++i) text += (i ? separator : "") + names[i];
    line(text);
  }

  void head(const Report& r) {
    std::string text = r.name.empty() ? "" : r.name + ": ";
    text += plural(r.nodes, "node") + ", " + plural(r.inputs, "input");
    if (r.modules) text += ", " + plural(r.modules, "module call");
    if (r.attributes) text += ", " + plural(r.attributes, "attribute");
    if (r.cost) text += ", " + at_least(r.cost->unknown) + format_count(r.cost->total.macs) + "MACs";
    if (r.liveness && r.liveness->has_bytes)
      text += ", peak " + at_least(r.liveness->unknown) + format_bytes(r.liveness->peak_bytes);
    line(text);
    std::vector<std::string> operators;
    for (const Report::OpCount& op : r.operators) operators.push_back(op.target + " " + std::to_string(op.count));
    if (!operators.empty()) list("", operators, ", ");
  }

  void baseline(const Report::BaselinePart& p) {
    const std::size_t past = p.past_limit().size();
    title("Against " + p.file + ": " + (past == 0 ? "nothing" : plural(past, "measure")) + " worse by more than " +
          number(100 * p.limit, "%.3g %%"));
    for (const Report::Measured& m : p.measures) {
      if (m.before != m.after) line(std::string(m.is_worse(p.limit) ? "  ! " : "    ") + to_string(m));
    }
  }

  static std::string at_least(const std::vector<std::string>& unknown) { return unknown.empty() ? "" : "at least "; }

  /// Names the calls that make a number a lower bound.
  void unknown(const std::string& what, const std::vector<std::string>& names) {
    if (names.empty()) return;
    constexpr std::size_t kMost = 8;
    std::string text = "  not known   " + what + " ";
    for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) text += (i > 0 ? ", " : "") + names[i];
    line(text + (names.size() > kMost ? " and " + std::to_string(names.size() - kMost) + " more" : ""));
  }

  void liveness(const Report::LivenessPart& p) {
    if (!p.has_bytes) {
      title("Liveness: at most " + plural(p.peak_values, "value") + " at once, at " + p.peak_values_at +
            " (give input shapes for bytes)");
      return;
    }
    title("Liveness: peak " + at_least(p.unknown) + format_bytes(p.peak_bytes) + " at " + p.peak_bytes_at +
          (p.inside_bytes > 0 ? ", " + format_bytes(p.inside_bytes) + " of it inside of the call" : "") + "; at most " +
          plural(p.peak_values, "value") + " at once, at " + p.peak_values_at);
    unknown("what is needed inside of", p.unknown);
    line("  plan        " + format_bytes(p.plan_bytes) + " with reuse (no less than " +
         format_bytes(p.plan_lower_bound) + "), " + format_bytes(p.storage_bytes) + " without, in " +
         plural(p.storages, "storage"));
    if (p.best_order_bytes < p.peak_bytes) {
      line("  reordered   " + format_bytes(p.best_order_bytes) + ", -" +
           percent(p.peak_bytes - p.best_order_bytes, p.peak_bytes));
    }
    for (const Report::Resident& r : p.at_peak) {
      line("  " + pad_left(format_bytes(r.bytes), 10) + "  " + pad_right(r.node, 28) + " " + pad_right(r.tensor, 32) +
           " " + r.first + " … " + r.last);
    }
  }

  void sizes(const Report::SizesPart& p) {
    if (p.variables.empty()) {
      title("Sizes: none varies");
      return;
    }
    std::string text;
    for (const std::string& variable : p.variables) text += (text.empty() ? "" : ", ") + variable;
    title("Sizes: for every " + text + " of 2 or more that the program takes");
    for (const Report::SizesPart::Row& row : p.measures)
      line("  " + pad_right(row.name, 32) + " " + (row.formula.empty() ? "has no formula" : row.formula));
    for (const Report::SizesPart::Tensor& row : p.at_peak) {
      line("  " + pad_left(row.bytes.empty() ? "?" : row.bytes, 24) + "  " + pad_right(row.node, 28) + " " +
           row.tensor);
    }
  }

  void dead_code(const Report::DeadCodePart& p) {
    if (p.total() == 0) {
      title("Dead code: none");
      return;
    }
    const std::pair<std::size_t, const char*> counts[] = {
        {p.dead_nodes, "dead node"},        {p.dead_stores, "dead store"}, {p.unused_outputs, "unused output"},
        {p.unused_inputs, "unused input"},  {p.no_ops, "no-op"},           {p.unused_attributes, "unused attribute"},
        {p.unused_modules, "unused module"}};
    std::string text = "Dead code: ";
    bool first = true;
    for (const auto& [count, name] : counts) {
      if (count == 0) continue;
      text += (first ? "" : ", ") + plural(count, name);
      first = false;
    }
    if (p.unused_bytes > 0) text += " (" + format_bytes(p.unused_bytes) + ")";
    title(text);
    for (const Report::Finding& f : p.findings) line("  " + f.text);
    if (p.findings.size() < p.total()) line("  … and " + std::to_string(p.total() - p.findings.size()) + " more");
  }

  void uses(const Report::UsesPart& p) {
    title("Uses: " + plural(p.values, "value") + ", " + plural(p.uses, "use") + ", " + std::to_string(p.single_use) +
          " used once; longest path " + plural(p.depth, "node"));
    std::vector<std::string> used;
    for (const Report::Use& use : p.most_used) used.push_back(use.node + " " + std::to_string(use.count));
    if (!used.empty()) list("most used      ", used, ", ");
    const std::string time = p.critical_path_is_timed ? format_seconds(p.critical_seconds) + ": " : "";
    list("critical path  " + time, p.critical_path, " -> ");
  }

  void dominance(const Report::DominancePart& p) {
    title("Dominance: tree of depth " + std::to_string(p.depth) + ", " +
          plural(p.regions, "single-entry-single-exit region") + ", " +
          plural(p.fusion_groups, "pointwise fusion group") + " of " + plural(p.fused_nodes, "node"));
    if (!p.bottlenecks.empty()) list("all passes       ", p.bottlenecks, " -> ");
    for (std::size_t i = 0; i < p.largest_groups.size() && i < 3; ++i)
      list("may fuse         ", p.largest_groups[i], " -> ");
  }

  /// The time, its spread, and what it comes to: floating-point operations and bytes in a second.
  static std::string measured(const Report::CostRow& r) {
    const MeasuredTime& time = *r.measured;
    const auto rate = [&](double amount) {
      return time.seconds > 0 ? number(amount / time.seconds / 1e9, "%.1f") : std::string("-");
    };
    return pad_left(format_seconds(time.seconds), 10) + pad_left(spread(time), 6) + pad_left(rate(r.flops), 9) +
           pad_left(rate(static_cast<double>(r.bytes)), 6);
  }

  static std::string spread(const MeasuredTime& time) {
    return "±" + number(time.seconds > 0 ? 100 * time.spread / time.seconds : 0.0, "%.0f%%");
  }

  void cost_row(const Report::CostRow& r, const std::string& name, bool timed) {
    line("  " + pad_left(format_count(r.macs), 8) + pad_left(format_count(r.flops), 9) +
         pad_left(format_bytes(r.bytes), 11) + pad_left(format_bytes(r.parameter_bytes), 11) +
         pad_left(number(r.intensity, "%.1f"), 8) + (r.measured ? measured(r) : "") +
         (timed ? pad_left(format_seconds(r.seconds), 11) + (r.memory_bound ? " m" : " c") : "") + "  " + name);
  }

  void cost(const Report::CostPart& p) {
    const bool timed = !p.machine.empty();
    title("Cost: " + at_least(p.unknown) + format_count(p.total.macs) + "MACs, " + format_count(p.total.flops) +
          "FLOPs, " + format_bytes(p.total.bytes) + " moved, " + format_bytes(p.total.parameter_bytes) +
          " of parameters" + (timed ? ", at least " + format_seconds(p.total.seconds) + " on " + p.machine : ""));
    unknown("what is computed by", p.unknown);
    if (p.total.measured) {
      line("  measured " + format_seconds(p.total.measured->seconds) + " " + spread(*p.total.measured) +
           ", one node after the other: medians of " + plural(p.total.measured->runs, "run") +
           ", and half the distance of their quartiles");
    }
    if (p.nodes.empty()) return;
    const std::string heading = "      MACs    FLOPs      moved     params  FLOP/B" +
                                std::string(p.total.measured ? "      time         GFLOP/s  GB/s" : "") +
                                std::string(timed ? "      time  " : "");
    line(heading + "  node");
    for (const Report::CostRow& r : p.nodes) cost_row(r, pad_right(r.name, 28) + " " + r.target, timed);
    if (p.modules.empty()) return;
    line(heading + "  module");
    for (const Report::CostRow& r : p.modules) {
      cost_row(r, std::string(2 * static_cast<std::size_t>(r.depth - 1), ' ') + r.name, timed);
    }
  }

  std::string out_;
};

}  // namespace

std::string to_string(const Report::Measured& m) {
  const auto amount = [&](double value) {
    if (m.is_bytes) return format_bytes(static_cast<std::int64_t>(value));
    std::string text = format_count(value);
    return text.ends_with(' ') ? text.substr(0, text.size() - 1) : text;
  };
  std::string text = m.name + " " + amount(m.before) + " -> " + amount(m.after);
  if (m.before > 0) text += " (" + number(100 * (m.after - m.before) / m.before, "%+.3g %%") + ")";
  return text;
}

std::string format_bytes(std::int64_t bytes) {
  return scaled(static_cast<double>(bytes), 1024, std::array{" B", " KiB", " MiB", " GiB", " TiB"});
}

std::string format_count(double count) { return scaled(count, 1000, std::array{" ", " k", " M", " G", " T", " P"}); }

std::string to_text(const Report& report) { return TextWriter().write(report); }

}  // namespace fx
