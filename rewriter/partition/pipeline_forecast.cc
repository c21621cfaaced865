// A pipeline played through. Every stage goes through its micro-batches in order: it waits until what it sent four
// micro-batches ago has been taken, waits for what it needs, computes, sends. A message moves when its receiver asks
// for it, which it does when it needs it: so it takes the receiver's time. Stages of one machine that compute or
// receive at once share its processors evenly. Time goes from one event to the next; there are some for each
// micro-batch of each stage.
#include <algorithm>
#include <limits>
#include <string>

#include <fxgraph/rewriter/partition/pipeline_plan.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();
// After so many rounds all are alike.
constexpr std::size_t kRounds = 12;

class Play {
 public:
  Play(const PipelinePlan& plan, const PipelineSetting& setting)
      : plan_(plan),
        setting_(setting),
        micro_batches_(setting.micro_batches),
        steps_(std::min(setting.rounds, kRounds) * micro_batches_),
        counted_(setting.rounds > 1 ? micro_batches_ : 0),
        stages_(plan.stages.size()) {
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      for (const auto& [to, bytes] : plan.stages[i].sends) {
        stages_.at(i).sends.push_back(messages_.size());
        stages_.at(to).receives.push_back(messages_.size());
        const double seconds = static_cast<double>(bytes) / static_cast<double>(micro_batches_);
        messages_.push_back({plan.measured ? setting.message_seconds + seconds / setting.bytes_per_second : 0.0, 0, 0});
      }
    }
  }

  PipelineForecast run() {
    while (true) {
      bool moved = true;
      while (moved) {
        moved = false;
        for (std::size_t i = 0; i < stages_.size(); ++i) moved |= go_on(i);
      }
      if (!advance()) break;
    }
    return result();
  }

 private:
  enum class Does : std::uint8_t { begins, receives, transfers, computes, ends, done };
  struct Message {
    double seconds;
    std::size_t sent, taken;  // how many of them
  };
  struct Stage {
    std::vector<std::size_t> sends, receives;
    Does does = Does::begins;
    std::size_t step = 0, receive = 0;
    double left = 0;  // seconds, of a transfer or, on a processor of its own, of computing
    double start = 0, busy = 0, end = 0;
  };

  bool all_taken(const Stage& stage, std::size_t count) const {
    return std::ranges::all_of(stage.sends, [&](std::size_t message) { return messages_[message].taken >= count; });
  }

  /// Does what takes no time; false when there is nothing.
  bool go_on(std::size_t at) {
    Stage& stage = stages_[at];
    switch (stage.does) {
      case Does::begins: {
        // Rounds are counted apart: what is held for a round is given up at its end.
        const std::size_t in_round = stage.step % micro_batches_;
        if (in_round > kPipelineAhead && !all_taken(stage, stage.step - kPipelineAhead)) return false;
        if (stage.step == counted_) stage.start = now_;
        stage.receive = 0;
        stage.does = Does::receives;
        return true;
      }
      case Does::receives: {
        if (stage.receive == stage.receives.size()) {
          stage.left = plan_.stages[at].seconds / static_cast<double>(micro_batches_);
          stage.does = Does::computes;
          return true;
        }
        const Message& message = messages_[stage.receives[stage.receive]];
        if (message.sent <= stage.step) return false;
        stage.left = message.seconds;
        stage.does = Does::transfers;
        return true;
      }
      case Does::transfers:
        if (stage.left > 0) return false;
        ++messages_[stage.receives[stage.receive++]].taken;
        stage.does = Does::receives;
        return true;
      case Does::computes:
        if (stage.left > 0) return false;
        for (const std::size_t message : stage.sends) ++messages_[message].sent;
        ++stage.step;
        stage.does = stage.step % micro_batches_ == 0 ? Does::ends : Does::begins;
        return true;
      case Does::ends:
        if (!all_taken(stage, stage.step)) return false;
        stage.end = now_;
        stage.does = stage.step == steps_ ? Does::done : Does::begins;
        return true;
      case Does::done: return false;
    }
    return false;
  }

  std::size_t machine_of(std::size_t stage) const {
    return setting_.machine_of.empty() ? stage : setting_.machine_of[stage];
  }
  double processors_of(std::size_t machine) const {
    return setting_.machine_of.empty() ? 1 : setting_.processors[machine];
  }

  /// Lets time pass until something ends; false when nothing goes on.
  bool advance() {
    const auto goes_on = [&](std::size_t i) {
      return stages_[i].does == Does::transfers || stages_[i].does == Does::computes;
    };
    std::vector<std::size_t> working(stages_.size() + setting_.processors.size(), 0);
    for (std::size_t i = 0; i < stages_.size(); ++i) working[machine_of(i)] += goes_on(i);
    const auto rate = [&](std::size_t i) {
      const std::size_t machine = machine_of(i);
      return std::min(1.0, processors_of(machine) / static_cast<double>(working[machine]));
    };
    double seconds = kForever;
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      if (goes_on(i)) seconds = std::min(seconds, stages_[i].left / rate(i));
    }
    if (seconds == kForever) return false;
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      Stage& stage = stages_[i];
      if (!goes_on(i)) continue;
      const double rest = stage.left - seconds * rate(i);
      stage.left = rest <= 1e-12 * stage.left || stage.left / rate(i) <= seconds ? 0 : rest;
      if (stage.does == Does::computes && stage.step >= counted_) stage.busy += seconds * rate(i);
    }
    now_ += seconds;
    return true;
  }

  PipelineForecast result() const {
    PipelineForecast result;
    const double rounds = static_cast<double>((steps_ - counted_) / micro_batches_);
    double working = 0;
    for (const Stage& stage : stages_) {
      // One batch alone is a matter of all stages, from its first input to its result.
      const double all = counted_ ? stage.end - stage.start : now_;
      result.seconds = std::max(result.seconds, all / rounds);
      result.busy.push_back(all > 0 ? stage.busy / all : 0);
      working += result.busy.back();
    }
    result.bubble = now_ > 0 ? 1 - working / static_cast<double>(stages_.size()) : 0;
    return result;
  }

  const PipelinePlan& plan_;
  const PipelineSetting& setting_;
  std::size_t micro_batches_, steps_, counted_;  // of the steps, so many at first are not counted
  std::vector<Stage> stages_;
  std::vector<Message> messages_;
  double now_ = 0;
};

// More micro-batches than these follow one another as those before: times grow by the same for each.
constexpr std::size_t kMicroBatches = 256;

PipelineForecast play(const PipelinePlan& plan, PipelineSetting setting) {
  if (setting.micro_batches <= kMicroBatches) return Play(plan, setting).run();
  const std::size_t count = setting.micro_batches;
  const auto of = [&](std::size_t some) {
    PipelinePlan part = plan;
    const double share = static_cast<double>(some) / static_cast<double>(count);
    for (StageForecast& stage : part.stages) {
      stage.seconds *= share;
      for (auto& [to, bytes] : stage.sends) bytes = static_cast<std::int64_t>(static_cast<double>(bytes) * share);
    }
    setting.micro_batches = some;
    return Play(part, setting).run();
  };
  const PipelineForecast half = of(kMicroBatches / 2), whole = of(kMicroBatches);
  const double more = static_cast<double>(count - kMicroBatches) / static_cast<double>(kMicroBatches / 2);
  PipelineForecast result;
  result.seconds = whole.seconds + more * (whole.seconds - half.seconds);
  double working = 0;
  for (std::size_t i = 0; i < whole.busy.size(); ++i) {
    const double now = whole.busy[i] * whole.seconds, before = half.busy[i] * half.seconds;
    result.busy.push_back(result.seconds > 0 ? (now + more * (now - before)) / result.seconds : 0);
    working += result.busy.back();
  }
  result.bubble = result.seconds > 0 ? 1 - working / static_cast<double>(result.busy.size()) : 0;
  return result;
}

[[noreturn]] void refuse_setting(const std::string& why) {
  throw Error(ErrorKind::invalid_argument, "PipelinePlan::forecast: " + why);
}

}  // namespace

PipelineForecast PipelinePlan::forecast(const PipelineSetting& setting) const {
  if (setting.micro_batches == 0 || setting.rounds == 0) refuse_setting("there must be a micro-batch and a round");
  if (!setting.machine_of.empty() && setting.machine_of.size() != stages.size()) {
    refuse_setting("it names the machines of " + std::to_string(setting.machine_of.size()) + " stages, and there are " +
                   std::to_string(stages.size()));
  }
  for (const std::size_t machine : setting.machine_of) {
    if (machine >= setting.processors.size() || !(setting.processors[machine] > 0))
      refuse_setting("machine " + std::to_string(machine) + " has no processors");
  }
  for (std::size_t i = 0; i < stages.size(); ++i) {
    for (const auto& [to, bytes] : stages[i].sends) {
      if (to >= stages.size() || to <= i || bytes < 0)
        refuse_setting("stage " + std::to_string(i) + " sends to no later one");
    }
  }
  return play(*this, setting);
}

}  // namespace fx
