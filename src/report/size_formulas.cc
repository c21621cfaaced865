// Each variable alone first: four values along it tell its degree, and the steps in which the measures follow one. Then
// all on a grid of as many points as the degrees need.
#include <fxgraph/report/size_formulas.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <optional>

#include <fxgraph/analysis/cost.h>
#include <fxgraph/analysis/effects.h>
#include <fxgraph/analysis/liveness.h>
#include <fxgraph/report/polynomial.h>

namespace fx {
namespace {

constexpr int kHighest = 2;              // degree in one variable
constexpr std::size_t kMostPoints = 81;  // of a grid
constexpr std::int64_t kWidestStep = 128;

/// All that is measured at one choice of sizes, in one order.
using Numbers = std::vector<std::int64_t>;

/// What a row of the report is, and where its numbers begin.
struct Measure {
  std::string name;
  bool is_bytes = true;
  std::size_t number = 0;
};

struct Resident {
  const Node* node = nullptr;
  std::size_t bytes = 0;       // its number
  std::size_t first_size = 0;  // of its tensor, when it is one
  DType dtype = DType::float32;
  std::size_t rank = 0;
  bool is_tensor = false;
};

class Formulas {
 public:
  Formulas(const Graph& graph, const std::vector<TensorInfo>& inputs, const std::vector<VaryingSize>& varying,
           const ShapesAt& shapes_at, const ReportInputs& known, const ReportOptions& options)
      : graph_(graph),
        inputs_(inputs),
        shapes_at_(shapes_at),
        known_(known),
        options_(options),
        effects_(graph, {.modules = known.modules}) {
    const std::vector<Node*> placeholders = graph.placeholders();
    for (const VaryingSize& size : varying) {
      if (size.places.empty()) continue;
      Variable variable{size, {}, {}, size.step, 0};
      for (const auto& [input, dim] : size.places) {
        const std::string name = placeholders[input]->name() + "[" + std::to_string(dim) + "]";
        if (variable.name.empty()) variable.name = name;
        variable.said += (variable.said.empty() ? "" : " = ") + name;
      }
      variables_.push_back(std::move(variable));
    }
  }

  Report::SizesPart make() {
    Report::SizesPart part;
    if (variables_.empty()) return part;
    measure_example();
    for (std::size_t i = 0; i < variables_.size();) {
      if (find_degree(i)) {
        ++i;
      } else {
        variables_.erase(variables_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    if (variables_.empty() || !fit()) return part;
    check();
    write(part);
    return part;
  }

 private:
  struct Variable {
    VaryingSize size;
    std::string name, said;
    std::int64_t step;
    int degree;
  };

  std::int64_t example(const Variable& variable) const {
    const auto [input, dim] = variable.size.places.front();
    return inputs_[input].sizes[dim];
  }
  std::vector<std::int64_t> examples() const {
    std::vector<std::int64_t> sizes;
    for (const Variable& variable : variables_) sizes.push_back(example(variable));
    return sizes;
  }

  // ── Measuring ─────────────────────────────────────────────────────────────────────────────────────────────────────

  void add_measure(const char* name, bool is_bytes, Numbers& numbers, std::int64_t value) {
    if (at_example_) measures_.push_back({name, is_bytes, numbers.size()});
    numbers.push_back(value);
  }

  Numbers measure(const Shapes& shapes) {
    Numbers numbers;
    const Liveness live(graph_, shapes,
                        {.count_inputs = options_.count_inputs,
                         .count_attributes = options_.count_attributes,
                         .alignment = 1,
                         .effects = known_.modules.effects ? &effects_ : nullptr,
                         .modules = &known_.modules});
    if (at_example_) peak_ = live.peak().node;
    std::int64_t all = 0;
    for (const Storage& storage : live.storages()) all += storage.counted ? storage.bytes : 0;
    if (peak_) {
      add_measure("peak", true, numbers, live.peak().bytes);
      if (at_example_) measures_.back().name += " at " + peak_->name();
      add_measure("live at ", true, numbers, live.bytes_at(*peak_));
      if (at_example_) measures_.back().name += peak_->name();
      add_measure("storages", true, numbers, all);
    }
    const Cost cost(graph_, shapes, known_.modules);
    if (cost.num_unknown() == 0) {
      add_measure("MACs", false, numbers, std::llround(cost.total().macs));
      add_measure("flops", false, numbers, std::llround(cost.total().flops));
      add_measure("bytes moved", true, numbers, cost.total().bytes());
    }
    if (peak_) add_residents(live, shapes, numbers);
    return numbers;
  }

  void add_residents(const Liveness& live, const Shapes& shapes, Numbers& numbers) {
    for (const Storage& storage : live.storages()) {
      if (!storage.counted || !storage.interval.contains(live.place(*peak_))) continue;
      const TensorInfo* tensor = shapes[*storage.base].tensor();
      if (at_example_) {
        residents_.push_back({storage.base, numbers.size(), numbers.size() + 1, tensor ? tensor->dtype : DType::float32,
                              tensor ? tensor->sizes.size() : 0, tensor != nullptr});
      }
      numbers.push_back(storage.bytes);
      if (tensor) numbers.insert(numbers.end(), tensor->sizes.begin(), tensor->sizes.end());
    }
  }

  void measure_example() {
    at_example_ = true;
    example_ = measure(shapes_at_(inputs_));
    at_example_ = false;
    follows_.assign(example_.size(), true);
  }

  // Nothing where the program does not run, or is measured by other numbers.
  std::optional<Numbers> measure_at(const std::vector<std::int64_t>& sizes) {
    if (sizes == examples()) return example_;
    std::vector<TensorInfo> inputs = inputs_;
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      for (const auto& [input, dim] : variables_[i].size.places) inputs[input].sizes[dim] = sizes[i];
    }
    for (TensorInfo& input : inputs) input.strides.clear();
    try {
      Numbers numbers = measure(shapes_at_(inputs));
      if (numbers.size() == example_.size()) return numbers;
    } catch (const std::exception&) {  // the program does not take these sizes
    }
    return std::nullopt;
  }

  // ── Finding the polynomials ───────────────────────────────────────────────────────────────────────────────────────

  // The degree of a number along four points; nothing where it is too high.
  static std::optional<int> degree_of(std::vector<std::int64_t> values) {
    for (int degree = 0; degree <= kHighest; ++degree) {
      if (std::all_of(values.begin(), values.end(), [&](std::int64_t each) { return each == values.front(); }))
        return degree;
      for (std::size_t i = 0; i + 1 < values.size(); ++i) values[i] = values[i + 1] - values[i];
      values.pop_back();
    }
    return std::nullopt;
  }

  // The steps in which most numbers follow a polynomial. False where the program takes none.
  bool find_degree(std::size_t index) {
    Variable& variable = variables_[index];
    std::size_t most = 0;
    for (std::int64_t step = variable.size.step; step <= std::max(kWidestStep, variable.size.step); step *= 2) {
      if (step != variable.size.step && example(variable) % step != 0) break;
      std::vector<Numbers> along;
      for (std::int64_t k = 0; k <= kHighest + 1; ++k) {
        std::vector<std::int64_t> sizes = examples();
        sizes[index] += k * step;
        std::optional<Numbers> numbers = measure_at(sizes);
        if (!numbers) break;
        along.push_back(std::move(*numbers));
      }
      if (along.size() < kHighest + 2) continue;
      std::size_t count = 0;
      int highest = 0;
      for (std::size_t number = 0; number < example_.size(); ++number) {
        std::vector<std::int64_t> values;
        for (const Numbers& numbers : along) values.push_back(numbers[number]);
        const std::optional<int> degree = degree_of(std::move(values));
        count += degree.has_value();
        highest = std::max(highest, degree.value_or(0));
      }
      if (count > most) {
        most = count;
        variable.step = step;
        variable.degree = highest;
      }
      if (count == example_.size()) break;
    }
    return most > 0;
  }

  bool fit() {
    std::size_t points = 1;
    std::vector<std::int64_t> steps;
    std::vector<int> degrees;
    for (const Variable& variable : variables_) {
      points *= static_cast<std::size_t>(variable.degree) + 1;
      steps.push_back(variable.step);
      degrees.push_back(variable.degree);
    }
    if (points > kMostPoints) return false;
    const std::vector<std::int64_t> first = examples();
    std::vector<Numbers> grid;
    for (std::size_t point = 0; point < points; ++point) {
      std::vector<std::int64_t> sizes = first;
      std::size_t rest = point;
      for (std::size_t i = variables_.size(); i-- > 0;) {
        const auto count = static_cast<std::size_t>(degrees[i]) + 1;
        sizes[i] += static_cast<std::int64_t>(rest % count) * steps[i];
        rest /= count;
      }
      std::optional<Numbers> numbers = measure_at(sizes);
      if (!numbers) return false;
      grid.push_back(std::move(*numbers));
    }
    for (std::size_t number = 0; number < example_.size(); ++number) {
      std::vector<std::int64_t> values;
      for (const Numbers& numbers : grid) values.push_back(numbers[number]);
      polynomials_.push_back(Polynomial::through(first, steps, degrees, values));
    }
    return true;
  }

  // At sizes from which nothing was made: further on, much further on, and smaller ones. What does not follow there has
  // no formula.
  void check() {
    const std::vector<std::int64_t> first = examples();
    for (const std::int64_t by : {3, 11, -1}) {
      std::vector<std::int64_t> sizes = first;
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        sizes[i] += variables_[i].step * (by < 0 ? by : by + static_cast<std::int64_t>(i));
        if (sizes[i] <= 0) sizes[i] = first[i];
      }
      if (sizes == first) continue;
      const std::optional<Numbers> numbers = measure_at(sizes);
      if (!numbers) continue;
      ++checked_;
      for (std::size_t i = 0; i < follows_.size(); ++i)
        follows_[i] = follows_[i] && polynomials_[i].at(sizes) == Fraction{(*numbers)[i], 1};
    }
    if (checked_ == 0) follows_.assign(follows_.size(), false);
  }

  // ── Saying them ───────────────────────────────────────────────────────────────────────────────────────────────────

  std::string formula(std::size_t number, bool is_bytes) const {
    if (!follows_[number]) return {};
    const Polynomial& polynomial = polynomials_[number];
    std::vector<std::string> names;
    for (const Variable& variable : variables_) names.push_back(variable.name);
    if (!is_bytes) return polynomial.str(names);
    constexpr std::pair<std::int64_t, const char*> kUnits[] = {
        {std::int64_t{1} << 30, " GiB"}, {std::int64_t{1} << 20, " MiB"}, {1 << 10, " KiB"}, {1, " B"}};
    for (const auto& [size, unit] : kUnits) {
      if (size > 1 && !polynomial.is_in(size)) continue;
      const std::string text = polynomial.str(names, size);
      return (text.find(' ') == std::string::npos ? text : "(" + text + ")") + unit;
    }
    return {};
  }

  std::string tensor(const Resident& resident) const {
    if (!resident.is_tensor) return {};
    std::string text = std::string(to_string(resident.dtype)) + "[";
    for (std::size_t dim = 0; dim < resident.rank; ++dim) {
      const std::string size = formula(resident.first_size + dim, false);
      text += (dim > 0 ? ", " : "") + (size.empty() ? "?" : size);
    }
    return text + "]";
  }

  void write(Report::SizesPart& part) {
    for (const Variable& variable : variables_) {
      part.variables.push_back(variable.said +
                               (variable.step > 1 ? " in steps of " + std::to_string(variable.step) : ""));
    }
    part.checked = checked_;
    for (const Measure& measure : measures_) {
      // What is live at one place says more than the peak only where the peak moves.
      if (measure.name.starts_with("live at") && follows_[measures_.front().number]) continue;
      part.measures.push_back({measure.name, formula(measure.number, measure.is_bytes)});
    }
    std::stable_sort(residents_.begin(), residents_.end(),
                     [&](const Resident& a, const Resident& b) { return example_[a.bytes] > example_[b.bytes]; });
    for (const Resident& resident : residents_) {
      if (part.at_peak.size() == options_.max_rows) break;
      part.at_peak.push_back({resident.node->name(), formula(resident.bytes, true), tensor(resident)});
    }
  }

  const Graph& graph_;
  const std::vector<TensorInfo>& inputs_;
  const ShapesAt& shapes_at_;
  const ReportInputs& known_;
  const ReportOptions& options_;
  Effects effects_;
  std::vector<Variable> variables_;
  bool at_example_ = false;
  const Node* peak_ = nullptr;  // of the example
  std::vector<Measure> measures_;
  std::vector<Resident> residents_;
  Numbers example_;
  std::vector<Polynomial> polynomials_;
  std::vector<bool> follows_;
  std::size_t checked_ = 0;
};

}  // namespace

Report::SizesPart size_formulas(const Graph& graph, const std::vector<TensorInfo>& inputs,
                                const std::vector<VaryingSize>& varying, const ShapesAt& shapes_at,
                                const ReportInputs& known, const ReportOptions& options) {
  return Formulas(graph, inputs, varying, shapes_at, known, options).make();
}

}  // namespace fx
