// c10d's store would wait for ever for a listener that is no store, and write to the log about a port that is taken or
// silent: both are looked at before. Rank 0 says in the store who did not come, so that all say the same.
#include <fxgraph/rewriter/partition/rendezvous.h>

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <cerrno>
#include <cstring>
#include <functional>
#include <vector>

#include <fxgraph/run/value.h>

namespace fx {
namespace {

using Clock = std::chrono::steady_clock;

/// A socket, closed at the end.
class Socket {
 public:
  explicit Socket(int family) : handle_(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (handle_ >= 0) close(handle_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int handle() const { return handle_; }

 private:
  int handle_;
};

void require_free_port(std::uint16_t port) {
  const Socket here(AF_INET);
  const int yes = 1;
  setsockopt(here.handle(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (bind(here.handle(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return;
  if (errno != EADDRINUSE && errno != EACCES) return;  // the store will say
  throw std::runtime_error("port " + std::to_string(port) +
                           (errno == EACCES ? " is not for everybody" : " is in use, by another rank 0 or program") +
                           "; give all ranks another");
}

bool answers(const addrinfo& place, std::chrono::milliseconds patience) {
  const Socket there(place.ai_family);
  if (connect(there.handle(), place.ai_addr, place.ai_addrlen) == 0) return true;
  if (errno != EINPROGRESS) return false;
  pollfd waiting{there.handle(), POLLOUT, 0};
  int error = 0;
  socklen_t size = sizeof error;
  return poll(&waiting, 1, static_cast<int>(patience.count())) == 1 &&
         getsockopt(there.handle(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

void wait_for_rank_0(const WorkerAddress& address, Clock::time_point until) {
  const std::string port = std::to_string(address.port);
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (const int code = getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found); code != 0)
    throw std::runtime_error("the host '" + address.host + "' is not known: " + gai_strerror(code));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> places(found, &freeaddrinfo);
  while (Clock::now() < until) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    for (const addrinfo* place = found; place; place = place->ai_next) {
      if (answers(*place, std::min(left, std::chrono::milliseconds(1000)))) return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  throw std::runtime_error("nobody answers there: rank 0 did not come, or has another address");
}

std::string missing_ranks(c10d::Store& store, int world) {
  std::vector<std::string> missing;
  for (int rank = 0; rank < world; ++rank) {
    if (!store.check({"rank/" + std::to_string(rank)})) missing.push_back(std::to_string(rank));
  }
  std::string text = missing.size() > 1 ? "ranks " : "rank ";
  for (std::size_t i = 0; i < missing.size() && i < 8; ++i)
    text += (i == 0 ? "" : i + 1 == missing.size() ? " and " : ", ") + missing[i];
  return text + (missing.size() > 8 ? " and others" : "") + " of " + std::to_string(world) + " did not come";
}

/// Tells the ranks that are there, which look for it every few milliseconds.
void tell(c10d::Store& store, const std::string& why, int world) {
  store.set(kFault, std::vector<std::uint8_t>(why.begin(), why.end()));
  const auto until = Clock::now() + std::chrono::seconds(1);
  for (int rank = 1; rank < world; ++rank) {
    if (!store.check({"rank/" + std::to_string(rank)})) continue;
    while (Clock::now() < until && store.add(kInformed + std::to_string(rank), 0) == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

/// Counts this rank under `key` and waits until all are counted. Throws what another rank says of why it cannot be, or
/// what `late` says when time is over.
void wait_for_count(c10d::Store& store, const std::string& key, const WorkerAddress& address, Clock::time_point until,
                    const std::function<std::string()>& late) {
  store.add(key, 1);
  while (store.add(key, 0) < address.world) {
    if (store.check({kFault})) {
      const std::vector<std::uint8_t> words = store.get(kFault);
      store.add(kInformed + std::to_string(address.rank), 1);
      throw std::runtime_error(std::string(words.begin(), words.end()));
    }
    if (Clock::now() > until) throw std::runtime_error(late());
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void wait_for_all(c10d::Store& store, const WorkerAddress& address, Clock::time_point until) {
  if (store.add("rank/" + std::to_string(address.rank), 1) > 1)
    throw std::runtime_error("another process says that it is rank " + std::to_string(address.rank));
  wait_for_count(store, "arrived", address, until, [&] {
    const std::string why = missing_ranks(store, address.world);
    if (address.rank == 0) tell(store, why, address.world);
    return why;
  });
}

// Later releases keep stores by libuv unless they are told otherwise, and fail where they were built without it.
template <typename Options>
void without_libuv(Options& options) {
  if constexpr (requires { options.useLibUV; }) options.useLibUV = false;
}

}  // namespace

std::string plain_message(const std::exception& error) {
  std::string text = first_line(error);
  while (text.starts_with("[") && text.find("] ") < text.find(' ') + 2) text.erase(0, text.find("] ") + 2);
  return text;
}

c10::intrusive_ptr<c10d::Store> meet(const WorkerAddress& address) {
  const auto until = Clock::now() + address.timeout;
  if (address.rank == 0) {
    require_free_port(address.port);
  } else {
    wait_for_rank_0(address, until);
  }
  auto attempt = [address, until]() -> c10::intrusive_ptr<c10d::Store> {
    c10d::TCPStoreOptions options;
    options.port = address.port;
    options.isServer = address.rank == 0;
    options.waitWorkers = false;  // it would go on without those that are missing
    options.timeout = address.timeout;
    without_libuv(options);
    auto store = c10::make_intrusive<c10d::TCPStore>(address.host, options);
    store->setTimeout(address.timeout);
    auto prefixed = c10::make_intrusive<c10d::PrefixStore>("fxgraph", store);
    wait_for_all(*prefixed, address, until);
    return prefixed;
  };
  try {
    // Rank 0 says who is missing within a second of the limit; what is no store says nothing.
    const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    if (auto store = within(limit + std::chrono::milliseconds(2000), attempt)) return *store;
  } catch (const std::system_error& error) {
    throw std::runtime_error(std::string("rank 0 has gone: ") + error.code().message());
  }
  throw std::runtime_error("what listens there does not answer as rank 0 does; is the port another program's?");
}

void wait_for_connections(c10d::Store& store, const WorkerAddress& address) {
  wait_for_count(store, "connected", address, Clock::now() + address.timeout,
                 [] { return "a rank came and did not connect to all others"; });
}

}  // namespace fx
