#include "comm/peers/peer_sockets.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "device/host_limits.hpp"

namespace t3d {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kAnswer = 'y';
constexpr std::chrono::seconds kHello{2};  // for a stranger that says nothing

int milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::clamp<long long>(left.count(), 0, 60'000));
}

/// False at the deadline, and on an error.
bool wait_for(int fd, short events, Deadline deadline) {
  pollfd entry{fd, events, 0};
  while (true) {
    const int count = poll(&entry, 1, milliseconds_until(deadline));
    if (count > 0) return true;
    if (count == 0 || errno != EINTR) return false;
  }
}

bool send_all(int fd, const void* data, std::size_t bytes, Deadline deadline) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL);
    if (sent > 0) {
      at += sent;
      bytes -= static_cast<std::size_t>(sent);
    } else if (errno != EINTR && (errno != EAGAIN || !wait_for(fd, POLLOUT, deadline))) {
      return false;
    }
  }
  return true;
}

bool receive_all(int fd, void* data, std::size_t bytes, Deadline deadline) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = recv(fd, at, bytes, 0);
    if (got > 0) {
      at += got;
      bytes -= static_cast<std::size_t>(got);
    } else if (got == 0 ||
               (errno != EINTR && (errno != EAGAIN || !wait_for(fd, POLLIN, deadline)))) {
      return false;
    }
  }
  return true;
}

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
};

std::optional<SocketAddress> parse_address(const std::string& text, int port) {
  SocketAddress result;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&result.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&result.storage);
  if (inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<std::uint16_t>(port));
    result.bytes = sizeof *v4;
  } else if (inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(static_cast<std::uint16_t>(port));
    result.bytes = sizeof *v6;
  } else {
    return std::nullopt;
  }
  return result;
}

/// Of the interfaces that are up; link-local addresses mean nothing elsewhere.
std::vector<std::string> own_addresses() {
  std::vector<std::string> result;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return result;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0 ||
        (entry->ifa_flags & IFF_LOOPBACK) != 0)
      continue;
    std::array<char, INET6_ADDRSTRLEN> text{};
    const void* bits = nullptr;
    if (entry->ifa_addr->sa_family == AF_INET) {
      bits = &reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr;
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      const auto& address = reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr)->sin6_addr;
      if (!IN6_IS_ADDR_LINKLOCAL(&address)) bits = &address;
    }
    if (bits != nullptr &&
        inet_ntop(entry->ifa_addr->sa_family, bits, text.data(), text.size()) != nullptr)
      result.emplace_back(text.data());
  }
  freeifaddrs(list);
  return result;
}

Descriptor connected(const SocketAddress& address, const Handshake& hello, Deadline deadline) {
  Descriptor socket(
      ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return {};
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.bytes) !=
      0) {
    if (errno != EINPROGRESS || !wait_for(socket.get(), POLLOUT, deadline)) return {};
    int fault = 0;
    socklen_t bytes = sizeof fault;
    if (getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &fault, &bytes) != 0 || fault != 0)
      return {};
  }
  char answer = 0;
  if (!send_all(socket.get(), &hello, sizeof hello, deadline) ||
      !receive_all(socket.get(), &answer, 1, deadline) || answer != kAnswer)
    return {};
  return socket;
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this == &other) return *this;
  reset();
  std::swap(fd_, other.fd_);
  return *this;
}

void Descriptor::reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

std::string PeerAddress::text() const {
  return fmt::format("{} {} {}", port, host, fmt::join(addresses, " "));
}

PeerAddress peer_address_of(const std::string& text) {
  std::istringstream words(text);
  PeerAddress result;
  if (!(words >> result.port >> result.host)) return {};
  for (std::string address; words >> address;) result.addresses.push_back(address);
  return result;
}

Descriptor listen_for_peers(PeerAddress& own) {
  own.host = host_name();
  // A socket of version 6 takes connections of both versions, where there is version 6.
  for (const int family : {AF_INET6, AF_INET}) {
    Descriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) continue;
    const int no = 0;
    if (family == AF_INET6) setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    const auto any = parse_address(family == AF_INET6 ? "::" : "0.0.0.0", 0);
    SocketAddress bound = *any;
    if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&any->storage), any->bytes) != 0 ||
        listen(socket.get(), 8) != 0 ||
        getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound.storage), &bound.bytes) != 0)
      continue;
    own.port =
        ntohs(family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&bound.storage)->sin6_port
                                 : reinterpret_cast<const sockaddr_in*>(&bound.storage)->sin_port);
    own.addresses = own_addresses();
    return socket;
  }
  return {};
}

Descriptor connect_to_peer(const PeerAddress& peer, const std::string& own_host,
                           const Handshake& hello, Deadline deadline) {
  if (peer.port == 0) return {};
  std::vector<std::string> addresses = peer.addresses;
  if (peer.host == own_host) addresses.insert(addresses.begin(), "127.0.0.1");
  // Of several addresses some may lead nowhere.
  const auto each =
      (deadline - Clock::now()) / static_cast<int>(std::max<std::size_t>(1, addresses.size()));
  for (const std::string& text : addresses) {
    const auto address = parse_address(text, peer.port);
    if (!address) continue;
    Descriptor socket = connected(*address, hello, std::min(deadline, Clock::now() + each));
    if (socket) return socket;
  }
  return {};
}

std::vector<Descriptor> accept_peers(const Descriptor& listener, std::uint64_t secret,
                                     const std::vector<int>& ranks, Deadline deadline) {
  std::vector<Descriptor> peers(ranks.size());
  std::size_t missing = ranks.size();
  while (missing > 0 && listener && wait_for(listener.get(), POLLIN, deadline)) {
    Descriptor socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) continue;
      break;
    }
    Handshake hello;
    const Deadline patience = std::min(deadline, Clock::now() + kHello);
    if (!receive_all(socket.get(), &hello, sizeof hello, patience) || hello.secret != secret)
      continue;
    const auto from = std::find(ranks.begin(), ranks.end(), static_cast<int>(hello.rank));
    if (from == ranks.end()) continue;
    Descriptor& peer = peers[static_cast<std::size_t>(from - ranks.begin())];
    if (peer || !send_all(socket.get(), &kAnswer, 1, patience)) continue;
    peer = std::move(socket);
    --missing;
  }
  return peers;
}

void set_silence_limit(const Descriptor& socket, double seconds) {
  const int yes = 1;
  const int pause = std::max(1, static_cast<int>(seconds / 3));
  const auto milliseconds = std::max(1U, static_cast<unsigned>(1e3 * seconds));
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  setsockopt(socket.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds);
  // Where nothing is said for long (a stopped process is not spoken to), the systems ask each
  // other.
  setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPIDLE, &pause, sizeof pause);
  setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPINTVL, &pause, sizeof pause);
}

}  // namespace t3d
