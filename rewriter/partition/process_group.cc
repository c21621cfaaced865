// Every wait has the limit; every failure is looked up in the store, on a thread that may be left behind when the store
// does not answer.
#include <fxgraph/rewriter/partition/process_group.h>

#include <torch/version.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#if __has_include(<gloo/rendezvous/store.h>)
#ifndef USE_C10D_GLOO
#define USE_C10D_GLOO
#endif
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#define FXGRAPH_HAS_GLOO 1
#else
#define FXGRAPH_HAS_GLOO 0
#endif

#include <csignal>
#include <cstdlib>
#include <deque>
#include <thread>
#include <utility>

#include <fxgraph/rewriter/partition/rendezvous.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

const std::string kLeft = "left/";  // and the rank
// How long to look for a reason: a store that lives answers in a few milliseconds.
constexpr std::chrono::milliseconds kPatience(1500);

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? value : nullptr;
}

int number_of(const char* name) {
  const char* text = variable(name);
  if (!text) throw Error(ErrorKind::invalid_argument, std::string("the environment variable ") + name + " is not set");
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*end || value < 0 || value > std::numeric_limits<int>::max()) {
    throw Error(ErrorKind::invalid_argument,
                std::string("the environment variable ") + name + " is '" + text + "', not a number");
  }
  return static_cast<int>(value);
}

std::uint16_t port_of(const char* name) {
  const int value = number_of(name);
  if (value < 1 || value > 65535)
    throw Error(ErrorKind::invalid_argument,
                std::string("the environment variable ") + name + " is " + std::to_string(value) + ", not a port");
  return static_cast<std::uint16_t>(value);
}

/// `node[01-04,07],other` -> `node01`.
std::string first_host(const std::string& list) {
  const std::size_t bracket = list.find('['), comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket) return list.substr(0, comma);
  const std::size_t end = list.find_first_of(",-]", bracket);
  const std::size_t close = list.find(']', bracket);
  if (close == std::string::npos || end == bracket + 1) {
    throw Error(ErrorKind::invalid_argument,
                "the list of nodes '" + list + "' is no list of SLURM's, as node[01-04]; set MASTER_ADDR");
  }
  const std::string tail = list.substr(close + 1, list.find(',', close) - close - 1);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1) + tail;
}

std::vector<std::uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }
std::string text_of(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

/// What `action` returns; nothing when it throws or takes longer than kPatience.
template <typename Action>
auto patiently(Action action) -> std::optional<decltype(action())> {
  try {
    return within(kPatience, std::move(action));
  } catch (...) {
    return std::nullopt;
  }
}

#if FXGRAPH_HAS_GLOO
/// ProcessGroupGloo, whose connections can be closed while the process goes on.
class GlooGroup : public c10d::ProcessGroupGloo {
 public:
  using ProcessGroupGloo::ProcessGroupGloo;
  void close() { contexts_.clear(); }
};

// From LibTorch 2 on a process group holds a backend for each type of device.
#if TORCH_VERSION_MAJOR < 2
c10::intrusive_ptr<c10d::ProcessGroup> group_of(const c10::intrusive_ptr<GlooGroup>& gloo,
                                                const c10::intrusive_ptr<c10d::Store>&) {
  return gloo;
}
GlooGroup* gloo_of(c10d::ProcessGroup& group) { return dynamic_cast<GlooGroup*>(&group); }
#else
c10::intrusive_ptr<c10d::ProcessGroup> group_of(const c10::intrusive_ptr<GlooGroup>& gloo,
                                                const c10::intrusive_ptr<c10d::Store>& store) {
  auto group = c10::make_intrusive<c10d::ProcessGroup>(store, gloo->getRank(), gloo->getSize());
  constexpr auto kGloo = c10d::ProcessGroup::BackendType::GLOO;
  group->setDefaultBackend(kGloo);
  group->setBackend(c10::DeviceType::CPU, kGloo, c10::intrusive_ptr<c10d::Backend>(gloo));
  return group;
}
GlooGroup* gloo_of(c10d::ProcessGroup& group) {
  constexpr auto kCpu = c10::DeviceType::CPU;
  return group.hasBackendForDeviceType(kCpu) ? dynamic_cast<GlooGroup*>(group.getBackend(kCpu).get()) : nullptr;
}
#endif
#endif

std::string seconds_of(std::chrono::milliseconds time) {
  const auto tenths = (time.count() + 50) / 100;
  return std::to_string(tenths / 10) + (tenths % 10 ? "." + std::to_string(tenths % 10) : "");
}

void close_connections([[maybe_unused]] c10d::ProcessGroup& group) {
#if FXGRAPH_HAS_GLOO
  if (GlooGroup* gloo = gloo_of(group)) gloo->close();
#endif
}

}  // namespace

struct Workers::Traffic {
  struct Message {
    c10::intrusive_ptr<c10d::Work> work;
    at::Tensor tensor;
    int to;
    std::int64_t step;
  };
  std::deque<Message> sends;
  std::int64_t bytes = 0;
  int exchanges = 0;
  bool given_up = false;
};

// Where rank 0 is may be said otherwise: connect() asks for it.
std::optional<WorkerAddress> workers_from_environment() {
  WorkerAddress address;
  if (variable("RANK") || variable("WORLD_SIZE")) {
    address.rank = number_of("RANK");
    address.world = number_of("WORLD_SIZE");
    address.host = variable("MASTER_ADDR") ? variable("MASTER_ADDR") : "";
    address.port = variable("MASTER_PORT") ? port_of("MASTER_PORT") : 0;
    return address;
  }
  if (!variable("SLURM_PROCID")) return std::nullopt;
  address.rank = number_of("SLURM_PROCID");
  address.world = number_of("SLURM_NTASKS");
  const char* nodes = variable("SLURM_STEP_NODELIST");
  if (!nodes) nodes = variable("SLURM_NODELIST");
  if (const char* host = variable("MASTER_ADDR")) {
    address.host = host;
  } else if (nodes) {
    address.host = first_host(nodes);
  } else if (address.world > 1) {
    address.host.clear();  // not this one: each host would wait for itself
  }
  // Two jobs on one host must not meet.
  if (variable("MASTER_PORT")) {
    address.port = port_of("MASTER_PORT");
  } else if (variable("SLURM_JOB_ID")) {
    address.port = static_cast<std::uint16_t>(20000 + number_of("SLURM_JOB_ID") % 20000);
  }
  return address;
}

void set_master(WorkerAddress& address, const std::string& master) {
  const std::size_t colon = master.rfind(':');
  char* end = nullptr;
  const unsigned long port = colon == std::string::npos ? 0 : std::strtoul(master.c_str() + colon + 1, &end, 10);
  if (colon == std::string::npos || colon == 0 || !end || *end || port == 0 || port > 65535) {
    throw Error(ErrorKind::invalid_argument,
                "'" + master + "' is no address of the first rank; write HOST:PORT, as 10.0.0.1:29500");
  }
  const bool bracketed = master[0] == '[' && master[colon - 1] == ']';  // [::1]:29500
  address.host = bracketed ? master.substr(1, colon - 2) : master.substr(0, colon);
  address.port = static_cast<std::uint16_t>(port);
}

Workers::Workers(c10::intrusive_ptr<c10d::ProcessGroup> group, c10::intrusive_ptr<c10d::Store> store,
                 std::chrono::milliseconds timeout)
    : group_(std::move(group)), store_(std::move(store)), timeout_(timeout), traffic_(std::make_shared<Traffic>()) {}
Workers::~Workers() = default;
Workers::Workers(const Workers&) = default;
Workers& Workers::operator=(const Workers&) = default;

int Workers::rank() const { return group_->getRank(); }
int Workers::world() const { return group_->getSize(); }
std::int64_t Workers::bytes_sent() const { return traffic_->bytes; }

bool Workers::has_left(int other) const {
  if (!store_) return false;
  return patiently([store = store_, other] { return store->check({kLeft + std::to_string(other)}); }).value_or(false);
}

void Workers::fail(const std::string& what, int other, const std::exception& error) const {
  std::string why = reason();
  if (why.empty() && has_left(other)) why = "it has finished; all ranks must call the same, as often";
  if (why.empty()) why = plain_message(error);
  throw Error(ErrorKind::execution,
              "rank " + std::to_string(rank()) + ": " + what + " rank " + std::to_string(other) + ": " + why);
}

void Workers::require_alive() const {
  if (!traffic_->given_up) return;
  throw Error(ErrorKind::execution, "rank " + std::to_string(rank()) + " has given up; connect anew");
}

void Workers::send(const at::Tensor& tensor, int to, int tag, std::int64_t step) {
  require_alive();
  try {
    std::vector<at::Tensor> tensors = {tensor};
    traffic_->sends.push_back({group_->send(tensors, to, tag), tensor, to, step});
  } catch (const std::exception& error) {
    fail("cannot send to", to, error);
  }
  traffic_->bytes += static_cast<std::int64_t>(tensor.nbytes());
}

Workers::Arriving Workers::begin_receive(at::Tensor tensor, int from, int tag) {
  require_alive();
  try {
    std::vector<at::Tensor> tensors = {tensor};
    return {[work = group_->recv(tensors, from, tag), limit = timeout_] { return work->wait(limit); },
            std::move(tensor), from};
  } catch (const std::exception& error) {
    fail("lost", from, error);
  }
}

void Workers::finish(Arriving& arriving) {
  require_alive();
  try {
    if (!arriving.wait()) throw std::runtime_error("nothing came in time");
  } catch (const std::exception& error) {
    fail("lost", arriving.from, error);
  }
}

void Workers::finish_sends(std::int64_t before) {
  while (!traffic_->sends.empty() && traffic_->sends.front().step < before) {
    Traffic::Message message = std::move(traffic_->sends.front());
    traffic_->sends.pop_front();
    try {
      if (!message.work->wait(timeout_)) throw std::runtime_error("it took nothing in time");
    } catch (const std::exception& error) {
      fail("lost", message.to, error);
    }
  }
}

std::vector<std::string> Workers::exchange(const std::string& what, const std::string& words) {
  require_alive();
  if (!store_) return std::vector<std::string>(static_cast<std::size_t>(world()), words);
  const std::string prefix = what + "/" + std::to_string(traffic_->exchanges++) + "/";
  std::vector<std::string> all;
  try {
    store_->set(prefix + std::to_string(rank()), bytes_of(words));
  } catch (const std::exception& error) {
    fail("cannot reach", 0, error);
  }
  for (int other = 0; other < world(); ++other) {
    const std::string key = prefix + std::to_string(other);
    try {
      // A rank that gives up says so elsewhere: look there, too.
      const auto until = std::chrono::steady_clock::now() + timeout_;
      while (!store_->check({key})) {
        if (store_->check({kFault})) throw std::runtime_error("it gave up");
        if (std::chrono::steady_clock::now() > until) throw std::runtime_error("it said nothing in time");
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      all.push_back(text_of(store_->get(key)));
    } catch (const std::exception& error) {
      fail("no word from", other, error);
    }
  }
  return all;
}

void Workers::leave() {
  if (!store_) return;
  try {
    store_->set(kLeft + std::to_string(rank()), bytes_of("1"));
    const auto until = std::chrono::steady_clock::now() + timeout_;
    for (int other = 1; rank() == 0 && other < world(); ++other) {
      while (!store_->check({kLeft + std::to_string(other)}) && !store_->check({kFault})) {
        if (std::chrono::steady_clock::now() > until) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    }
  } catch (const std::exception&) {  // rank 0 has gone: the work was done
  }
}

void Workers::give_up(const std::string& why) noexcept {
  try {
    if (std::exchange(traffic_->given_up, true)) return;
    if (store_) {
      patiently([store = store_, words = bytes_of(why), self = rank()] {
        if (!store->check({kFault})) store->set(kFault, words);
        store->add(kInformed + std::to_string(self), 1);
        return true;
      });
    }
    traffic_->sends.clear();
    close_connections(*group_);
    if (!store_ || rank() != 0) return;
    patiently([store = store_, ranks = world()] {
      for (int other = 1; other < ranks; ++other) {
        while (store->add(kInformed + std::to_string(other), 0) == 0)
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      return true;
    });
  } catch (...) {  // the others find out without being told
  }
}

std::string Workers::reason() const {
  if (!store_) return {};
  return patiently([store = store_, self = rank()]() -> std::string {
           // The one who knows may be slower to say it than the connection is to break.
           for (int i = 0; i < 10; ++i) {
             if (store->check({kFault})) {
               const std::string words = text_of(store->get(kFault));
               store->add(kInformed + std::to_string(self), 1);
               return words;
             }
             std::this_thread::sleep_for(std::chrono::milliseconds(30));
           }
           return {};
         })
      .value_or("");
}

bool can_connect() { return FXGRAPH_HAS_GLOO; }

Workers connect(const WorkerAddress& address) {
  if (address.world < 1 || address.rank < 0 || address.rank >= address.world) {
    throw Error(ErrorKind::invalid_argument, "rank " + std::to_string(address.rank) + " of " +
                                                 std::to_string(address.world) +
                                                 " is no rank; they are counted from 0");
  }
  if (address.host.empty() || address.port == 0) {
    throw Error(ErrorKind::invalid_argument,
                address.host.empty()
                    ? "nothing says where rank 0 is: neither MASTER_ADDR nor SLURM_STEP_NODELIST is set"
                    : "nothing says which port rank 0 has: MASTER_PORT is not set");
  }
#if FXGRAPH_HAS_GLOO
  const std::string self = "rank " + std::to_string(address.rank) + " of " + std::to_string(address.world);
  const std::string place = address.host + ":" + std::to_string(address.port);
  // c10d writes to connections that others have closed, and means to be told so by an error.
  if (struct sigaction now{}; sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL)
    std::signal(SIGPIPE, SIG_IGN);
  try {
    const auto store = meet(address);
    auto gloo = c10d::ProcessGroupGloo::Options::create();
    gloo->timeout = address.timeout;
    const bool local = address.host == "127.0.0.1" || address.host == "localhost";
    gloo->devices.push_back(local ? c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
                                  : c10d::ProcessGroupGloo::createDefaultDevice());
    const auto group = c10::make_intrusive<GlooGroup>(store, address.rank, address.world, gloo);
    wait_for_connections(*store, address);
    return Workers(group_of(group, store), store, address.timeout);
  } catch (const std::exception& error) {
    throw Error(ErrorKind::execution, self + ": not all ranks met at " + place + " within " +
                                          seconds_of(address.timeout) + " s: " + plain_message(error));
  }
#else
  throw Error(ErrorKind::unsupported,
              "this library was built without gloo's headers (libgloo-dev); make the process group yourself");
#endif
}

}  // namespace fx
