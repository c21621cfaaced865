// A port of the loopback address that nobody listens on: tests that run side by side must not meet.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

namespace fx::testing {

/// The system chooses: another one each time, for some time at least.
inline int free_port() {
  const int handle = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  const bool found = handle >= 0 && bind(handle, any, size) == 0 && getsockname(handle, any, &size) == 0;
  if (handle >= 0) close(handle);
  if (!found) throw std::runtime_error("no port is free");
  return ntohs(address.sin_port);
}

}  // namespace fx::testing
