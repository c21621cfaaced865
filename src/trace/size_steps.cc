// Dimensions that vary in steps: multiples of a divisor of the example's size.
#include <fxgraph/trace/size_search.h>

namespace fx::internal {
namespace {

bool is_prime(std::int64_t number) {
  for (std::int64_t divisor = 2; divisor * divisor <= number; ++divisor) {
    if (number % divisor == 0) return false;
  }
  return true;
}

}  // namespace

bool SizeSearch::works_at(const Some& some, std::int64_t size, std::uint32_t last) {
  if (size < 1) return false;
  GroupSizes sizes = groups_.examples();
  for (const std::uint32_t group : some) sizes[group] = size;
  return works(sizes, last);
}

// Multiples of a divisor of the size; or smaller sizes only.
bool SizeSearch::find_steps(const Some& some, const Sample& failure) {
  const std::uint32_t last = failure.failed_at();
  const std::int64_t size = groups_.groups[some.front()].size;
  std::int64_t power = 1;
  while (size % (2 * power) == 0) power *= 2;
  std::int64_t step = 0;
  if (power != 1 && power != size && works_at(some, size + power, last)) step = power;
  if (step == 0 && works_at(some, 2 * size, last)) step = size;
  if (step != 0) {
    for (std::int64_t prime = 2; prime < step; ++prime) {
      if (!is_prime(prime)) continue;
      while (step % prime == 0 && step > prime && works_at(some, size + step / prime, last)) step /= prime;
    }
    for (const std::uint32_t group : some) groups_.groups[group].step = step;
    return true;
  }
  if (size == 1 || !works_at(some, size - 1, last)) return false;
  for (const std::uint32_t group : some) {
    groups_.groups[group].above = size + 1;
    groups_.groups[group].above_said = failure.threw();
  }
  return true;
}

// The steps that did so far are too small further on.
bool SizeSearch::widen_step(std::uint32_t index, std::uint32_t last) {
  SizeGroup& group = groups_.groups[index];
  for (std::int64_t factor = 2; factor * group.step <= group.size; ++factor) {
    const std::int64_t step = factor * group.step;
    if (group.size % step != 0 || !works_at({index}, group.size + step, last)) continue;
    group.step = step;
    return true;
  }
  return false;
}

}  // namespace fx::internal
