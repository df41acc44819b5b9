#include "comm/peers/peer_watch.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <future>
#include <random>
#include <thread>

#include "comm/agree.hpp"
#include "comm/peers/peer_sockets.hpp"
#include "device/host_limits.hpp"

namespace t3d {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kBeat{500};
/// A launcher that ends the job because of the lost rank, or an error of that rank which has more
/// to say, shall come first. Who is after the lost rank speaks, and who is before it only if
/// nobody has.
constexpr milliseconds kPatience{1000}, kMorePatience{3000};
constexpr std::chrono::seconds kConnect{10};
constexpr std::chrono::seconds kWords{3};

// What is said on a connection: single letters, and after kLost the rank in four bytes.
constexpr char kHeartbeat = 'h', kGoodbye = 'b', kLost = 'l';
constexpr std::size_t kRankBytes = 4;

struct Neighbour {
  int rank = 0;
  std::string node;
  Descriptor socket;
  milliseconds patience{};
  std::string unread;                          // of a message that is not whole yet
  std::optional<Clock::time_point> gone_at{};  // without goodbye
  bool silent = false;                         // its host does not answer
};

std::uint64_t new_secret() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

void send_text(const Neighbour& to, const std::string& text) {
  if (to.socket) (void)send(to.socket.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

std::string lost_message(int rank) {
  std::string text(1 + kRankBytes, kLost);
  for (std::size_t byte = 0; byte < kRankBytes; ++byte)
    text[1 + byte] = static_cast<char>(static_cast<unsigned>(rank) >> (8 * byte) & 0xFFU);
  return text;
}

int rank_in(const std::string& message) {
  unsigned rank = 0;
  for (std::size_t byte = 0; byte < kRankBytes; ++byte)
    rank |= static_cast<unsigned>(static_cast<unsigned char>(message[1 + byte])) << (8 * byte);
  return static_cast<int>(rank);
}

}  // namespace

class PeerWatch::Thread {
 public:
  Thread(std::array<Neighbour, 2> neighbours, PeerWatch::Options options)
      : neighbours_(std::move(neighbours)),
        options_(std::move(options)),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        thread_(&Thread::watch, this) {}
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  ~Thread() { end(true); }

  void end(bool goodbye) {
    if (!thread_.joinable()) return;
    goodbye_ = goodbye;
    stop_ = true;
    const std::uint64_t one = 1;
    (void)!write(wake_.get(), &one, sizeof one);
    thread_.join();
  }

 private:
  void watch() {
    while (!stop_ && !told_) {
      std::array<pollfd, 3> entries{{{neighbours_[0].socket.get(), POLLIN, 0},
                                     {neighbours_[1].socket.get(), POLLIN, 0},
                                     {wake_.get(), POLLIN, 0}}};
      (void)poll(entries.data(), entries.size(), static_cast<int>(kBeat.count() / 2));
      for (std::size_t at = 0; at < neighbours_.size() && !stop_; ++at)
        if (neighbours_[at].socket && entries[at].revents != 0) listen_to(neighbours_[at]);
      if (stop_ || told_) break;
      beat();
      for (Neighbour& neighbour : neighbours_)
        if (neighbour.gone_at && Clock::now() - *neighbour.gone_at > neighbour.patience)
          return notice(neighbour);
    }
    if (stop_ && goodbye_)
      for (const Neighbour& neighbour : neighbours_) send_text(neighbour, {kGoodbye});
  }

  void beat() {
    if (Clock::now() - last_beat_ < kBeat) return;
    last_beat_ = Clock::now();
    for (const Neighbour& neighbour : neighbours_) send_text(neighbour, {kHeartbeat});
  }

  void listen_to(Neighbour& from) {
    std::array<char, 256> bytes{};
    const ssize_t got = recv(from.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      from.silent = got < 0 && errno != ECONNRESET && errno != EPIPE;
      from.socket.reset();
      from.gone_at = Clock::now();
      return;
    }
    from.unread.append(bytes.data(), static_cast<std::size_t>(got));
    while (!from.unread.empty() && from.socket && !told_) {
      const char letter = from.unread.front();
      if (letter == kGoodbye) return from.socket.reset();
      if (letter == kLost) {
        if (from.unread.size() < 1 + kRankBytes) return;
        return spread(rank_in(from.unread));
      }
      from.unread.erase(0, 1);
    }
  }

  void notice(const Neighbour& lost) {
    const std::string text =
        lost.silent
            ? fmt::format("rank {} is lost: its node {} does not answer", lost.rank, lost.node)
            : fmt::format("rank {} on node {} is lost: its process has ended without a word",
                          lost.rank, lost.node);
    // What is said goes to files, whose server may be what is lost: the others do not wait for it.
    const auto said = std::make_shared<std::promise<void>>();
    std::thread([say = options_.say, loss = PeerLoss{lost.rank, text}, said] {
      say(loss);
      said->set_value();
    }).detach();
    (void)said->get_future().wait_for(kWords);
    spread(lost.rank);
  }

  void spread(int lost) {
    told_ = true;
    for (const Neighbour& neighbour : neighbours_) send_text(neighbour, lost_message(lost));
    options_.end();
  }

  std::array<Neighbour, 2> neighbours_;
  PeerWatch::Options options_;
  Descriptor wake_;
  bool told_ = false;
  Clock::time_point last_beat_{};
  std::atomic<bool> stop_{false}, goodbye_{true};
  std::thread thread_;  // last: it uses all the others
};

PeerWatch::PeerWatch(Communicator& world, const Options& options) {
  const int ranks = world.size(), rank = world.rank();
  if (ranks == 1 || options.silent_seconds <= 0) return;
  const std::uint64_t secret =
      std::stoull(broadcast_text(world, rank == 0 ? std::to_string(new_secret()) : ""));
  PeerAddress own;
  const Descriptor listener = listen_for_peers(own);
  std::vector<PeerAddress> peers;
  for (const std::string& text : all_gather_texts(world, own.text()))
    peers.push_back(peer_address_of(text));
  const int after = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  const auto number = [](int of) { return static_cast<std::size_t>(of); };
  const Deadline deadline = Clock::now() + kConnect;
  // Who listens takes connections before it accepts them, so all may connect first.
  Descriptor to_next, to_last;
  std::thread accepting([&] {
    to_last = accept_peer(listener, {secret, static_cast<std::uint64_t>(before)}, deadline);
  });
  to_next = connect_to_peer(peers[number(after)], own.host,
                            {secret, static_cast<std::uint64_t>(rank)}, deadline);
  accepting.join();
  std::string gap;
  if (!to_next)
    gap = fmt::format("rank {} (node {}) cannot reach rank {} (node {})", rank, own.host, after,
                      peers[number(after)].host);
  const std::vector<std::string> gaps = all_gather_texts(world, gap);
  for (const std::string& text : gaps)
    if (gaps_.empty()) gaps_ = text;
  if (!gaps[number(before)].empty()) to_last.reset();
  for (const Descriptor* socket : {&to_next, &to_last})
    if (*socket) set_silence_limit(*socket, options.silent_seconds);
  std::array<Neighbour, 2> neighbours{
      {{before, peers[number(before)].host, std::move(to_last), kPatience, {}, {}, false},
       {after, peers[number(after)].host, std::move(to_next), kMorePatience, {}, {}, false}}};
  thread_ = std::make_unique<Thread>(std::move(neighbours), options);
}

PeerWatch::~PeerWatch() = default;

void PeerWatch::end_unnoticed() {
  if (thread_) thread_->end(false);
}

}  // namespace t3d
