// TCP connections between two ranks that share a secret number: made by name of host, port and
// addresses, with deadlines. Sockets are closed on exec.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace t3d {

/// A file descriptor; closed with it.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(); }
  void reset();
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

using Deadline = std::chrono::steady_clock::time_point;

/// Where a rank listens.
struct PeerAddress {
  std::string host;                    // name, to know ranks of one host
  int port = 0;                        // 0 = it does not listen
  std::vector<std::string> addresses;  // of its interfaces, numeric, without loopback
  [[nodiscard]] std::string text() const;
};
/// Of text(); what is not of that form has port 0.
[[nodiscard]] PeerAddress peer_address_of(const std::string& text);

/// A listening socket on any free port, and its address. No descriptor where the system has none.
[[nodiscard]] Descriptor listen_for_peers(PeerAddress& own);

/// Who may connect: two numbers that both sides know.
struct Handshake {
  std::uint64_t secret = 0;
  std::uint64_t rank = 0;  // of who connects
};

/// Tries the peer's addresses in turn and says hello. No descriptor where none answers in time.
[[nodiscard]] Descriptor connect_to_peer(const PeerAddress& peer, const std::string& own_host,
                                         const Handshake& hello, Deadline deadline);
/// The first that connects from each of `ranks` with the secret, in the order of `ranks`; others
/// are sent away. No descriptor for who has not come in time.
[[nodiscard]] std::vector<Descriptor> accept_peers(const Descriptor& listener, std::uint64_t secret,
                                                   const std::vector<int>& ranks,
                                                   Deadline deadline);

/// From now on the system gives a connection up whose data are not acknowledged for so long.
void set_silence_limit(const Descriptor& socket, double seconds);

}  // namespace t3d
