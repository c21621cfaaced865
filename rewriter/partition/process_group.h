// The processes that run one program together: LibTorch's c10d, found and watched.
//
//   fx::Workers workers = fx::connect({.rank = 1, .world = 4, .host = "10.0.0.1", .port = 29500});
//   fx::Workers workers = fx::connect(*fx::workers_from_environment());      // under torchrun or SLURM
//
// Rank 0 keeps the store in which the others find each other; all others know its address. ProcessGroupGloo carries
// the values. Everything that waits has the time limit: a rank that died, hangs or never came makes the others throw,
// none waits for ever. A rank that gives up says why in the store, so that the others can name the cause.
//
// Thread-safety: none.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace c10d {
class ProcessGroup;
class Store;
}  // namespace c10d

namespace fx {

/// Where a process stands among the others, and where they meet.
struct WorkerAddress {
  int rank = 0;                    ///< from 0
  int world = 1;                   ///< how many there are
  std::string host = "127.0.0.1";  ///< of rank 0
  std::uint16_t port = 29500;      ///< of rank 0's store
  /// How long anything may wait for another rank.
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
};

/// What the launcher said: torchrun's RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; else SLURM's SLURM_PROCID,
/// SLURM_NTASKS, and where MASTER_ADDR and MASTER_PORT are not set, the first of SLURM_STEP_NODELIST (or
/// SLURM_NODELIST) and a port made from SLURM_JOB_ID; nothing without either. Throws Error(invalid_argument) naming the
/// variable that is missing, no number or no list of nodes.
std::optional<WorkerAddress> workers_from_environment();
/// Reads `HOST:PORT`. Throws Error(invalid_argument).
void set_master(WorkerAddress& address, const std::string& master);

/// A group of processes and this one's place in it. Copies are the same group.
class Workers {
 public:
  /// Any process group of LibTorch's; its store, if there is one, is where ranks say why they give up. Without it ranks
  /// cannot check that they have the same plan.
  Workers(c10::intrusive_ptr<c10d::ProcessGroup> group, c10::intrusive_ptr<c10d::Store> store = {},
          std::chrono::milliseconds timeout = std::chrono::seconds(60));
  ~Workers();
  /// Another name for the same group.
  /// @{
  Workers(const Workers&);
  Workers& operator=(const Workers&);
  /// @}

  /// This process, and how many there are.
  /// @{
  int rank() const;
  int world() const;
  /// @}
  /// How long anything may wait for another rank.
  std::chrono::milliseconds timeout() const { return timeout_; }
  /// LibTorch's own object, for what is not offered here.
  const c10::intrusive_ptr<c10d::ProcessGroup>& group() const { return group_; }

  /// Begins to send a contiguous tensor, and holds it until it has arrived. `step` numbers what belongs together, from
  /// the first on: finish_sends(step) waits for what was sent before it.
  void send(const at::Tensor& tensor, int to, int tag, std::int64_t step = 0);
  /// A tensor that is on its way.
  struct Arriving {
    std::function<bool()> wait;  ///< false when it did not come in time
    at::Tensor tensor;           ///< what it is put into
    int from = -1;               ///< the rank that sends it
  };
  /// Asks for a tensor of that size and type; it is filled when finish() has waited for it.
  Arriving begin_receive(at::Tensor tensor, int from, int tag);
  /// Waits for it. Throws Error(execution) with the other rank's reason when it does not come in time.
  void finish(Arriving& arriving);
  /// Waits until all that was sent has arrived; with a number, only for steps before that.
  void finish_sends(std::int64_t before = std::numeric_limits<std::int64_t>::max());
  /// Bytes sent since the group was made.
  std::int64_t bytes_sent() const;

  /// Tells every rank `words` and returns what each said, by rank.
  std::vector<std::string> exchange(const std::string& what, const std::string& words);
  /// The end: rank 0, which keeps the store, waits for the others; they do not wait.
  void leave();
  /// Tells the others why this rank gives up and closes the connections to them, so that whoever waits for it looks for
  /// the reason; rank 0, which keeps the store, stays until they have it. The group is of no use then. Never throws,
  /// never waits longer than three seconds.
  void give_up(const std::string& why) noexcept;
  /// Why another rank gave up, when it said so; never waits long.
  std::string reason() const;

 private:
  struct Traffic;
  void require_alive() const;
  /// `rank`: whom it was about.
  [[noreturn]] void fail(const std::string& what, int rank, const std::exception& error) const;
  bool has_left(int rank) const;

  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::chrono::milliseconds timeout_;
  std::shared_ptr<Traffic> traffic_;
};

/// True when this library was built to make process groups of its own (gloo's headers were there).
bool can_connect();

/// Joins the group; the process ignores SIGPIPE from then on, unless it handles it. Throws Error(execution) when not
/// all ranks come in time, Error(unsupported) when LibTorch or this library was built without gloo.
Workers connect(const WorkerAddress& address);

}  // namespace fx
