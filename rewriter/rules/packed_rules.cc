#include <fxgraph/rewriter/rules/packed_rules.h>

#include <ATen/Parallel.h>

#include <array>
#include <limits>
#include <optional>
#include <utility>

namespace fx::rules {

namespace {

/// The pattern of `op`, called c, and what follows it.
std::string followed_by(std::string_view op, std::string_view activation) {
  return "c = " + std::string(op) + "\nreturn " + std::string(activation);
}

/// Each example with `before` and `after` around it.
std::vector<std::string> examples_in(const std::vector<std::string>& examples, std::string_view before,
                                     std::string_view after) {
  std::vector<std::string> inside;
  for (const std::string& example : examples) inside.push_back(std::string(before) + example + std::string(after));
  return inside;
}

/// XNNPACK clamps to an interval that is not empty.
Decision is_interval(const Match& match) {
  const auto bound = [&](std::string_view name, double otherwise) {
    return match.has(name) ? match.literal(name) : otherwise;
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return bound("least", -kInfinity) < bound("most", kInfinity);
}

/// What follows the operator, in one kernel with it; `are_bound`: between literals that the pattern binds.
struct Bounds {
  const char* name;
  const char* after;  ///< the pattern of what follows; null: nothing does
  std::optional<double> least{}, most{};
  bool are_bound = false;
  const char* example_before = "";
  const char* example_after = "";
};

constexpr std::array<Bounds, 4> kBounds = {{
    {.name = "-relu",
     .after = "{aten::relu, aten::relu_}(c)",
     .least = 0.0,
     .example_before = "aten::relu(",
     .example_after = ")"},
    {.name = "-relu6",
     .after = "{aten::relu6, aten::relu6_}(c)",
     .least = 0.0,
     .most = 6.0,
     .example_before = "aten::relu6(",
     .example_after = ")"},
    {.name = "-clamp",
     .after = "{aten::hardtanh, aten::hardtanh_, aten::clamp, aten::clamp_}(c, least: literal, most: literal)",
     .are_bound = true,
     .example_before = "aten::hardtanh(",
     .example_after = ", -0.5, 6.0)"},
    {.name = "", .after = nullptr},
}};

Rewrite rewrite_of(const XnnpackKernel& kernel, const Bounds& bounds) {
  return {.name = kernel.name + bounds.name,
          .pattern = bounds.after ? followed_by(kernel.pattern, bounds.after) : kernel.pattern,
          .when = [kernel, bounds](const Match& m) -> Decision {
            if (const Decision fitting = kernel.fits(m); !fitting) return fitting;
            return bounds.are_bound ? is_interval(m) : Decision(true);
          },
          .replacement = [kernel, bounds](const Match& m, Rewriter& r) -> Node& {
            const auto bound = [&](const char* name, const std::optional<double>& number) {
              return bounds.are_bound ? m.argument(name) : number ? Argument(*number) : Argument();
            };
            return kernel.call(m, r, bound("least", bounds.least), bound("most", bounds.most));
          },
          .needs = {.finite_inputs = true},
          .examples = examples_in(kernel.examples, bounds.example_before, bounds.example_after)};
}

}  // namespace

void append_onednn(std::vector<Rewrite>& rewrites, const OnednnKernel& kernel) {
  const auto calls = [&kernel](const char* attribute) {
    return [call = kernel.call, attribute](const Match& m, Rewriter& r) -> Node& { return call(m, r, attribute); };
  };
  rewrites.push_back({.name = "onednn-relu",
                      .pattern = followed_by(kernel.pattern, "{aten::relu, aten::relu_}(c)"),
                      .when = kernel.fits,
                      .replacement = calls("relu"),
                      .needs = {.finite_inputs = true},
                      .examples = examples_in(kernel.examples, "aten::relu(", ")")});
  rewrites.push_back({.name = "onednn",
                      .pattern = kernel.pattern,
                      .when = kernel.fits,
                      .replacement = calls("none"),
                      .needs = {.finite_inputs = true},
                      .examples = kernel.examples});
}

void append_xnnpack(std::vector<Rewrite>& rewrites, const XnnpackKernel& kernel) {
  for (const Bounds& bounds : kBounds) rewrites.push_back(rewrite_of(kernel, bounds));
}

bool is_for_xnnpack(std::string_view rule) { return rule.find("/xnnpack") != std::string_view::npos; }

std::vector<Rule> without_xnnpack(std::vector<Rule> rules) {
  std::erase_if(rules, [](const Rule& rule) { return is_for_xnnpack(rule.name); });
  return rules;
}

std::vector<Rule> for_these_threads(std::vector<Rule> rules) {
  return at::get_num_threads() > 1 ? without_xnnpack(std::move(rules)) : rules;
}

}  // namespace fx::rules
