#include "comm/peers/peer_watch.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <future>
#include <map>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "comm/agree.hpp"
#include "comm/busy.hpp"
#include "comm/peers/peer_outbox.hpp"
#include "comm/peers/peer_sockets.hpp"
#include "core/utf8.hpp"
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
/// For the last words of a rank that has told why it ends, and for a launcher.
constexpr std::chrono::seconds kLastWords{5};
/// For sockets that have no room for the last word.
constexpr milliseconds kLastRoom{1000};
/// What is over sooner, nobody hears of.
constexpr double kBusySeconds = 0.5;

// What is said on a connection: single letters; after kLost the rank in four bytes; after kBusy and
// kEnds the rank, a number that grows, in four bytes too, the length of a text in one byte, and the
// text. These two are passed on, in ring and tree, until they meet who knows them.
constexpr char kHeartbeat = 'h', kGoodbye = 'b', kLost = 'l', kBusy = 'w', kEnds = 'e';
constexpr std::size_t kRankBytes = 4, kHeadBytes = 1 + 2 * kRankBytes + 1, kMostText = 200;

struct Neighbour {
  int rank = 0;
  std::string node;
  Descriptor socket;
  milliseconds patience{};
  std::string unread;                          // of a message that is not whole yet
  std::optional<Clock::time_point> gone_at{};  // without goodbye
  bool silent = false;                         // its host does not answer
  bool watched = true;                         // one of the ring
  PeerOutbox outbox{};

  void say(const PeerOutbox::Key& key, const std::string& message) {
    outbox.put(key, message);
    outbox.send(socket);
  }
};

std::uint64_t new_secret() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

std::string bytes_of(int number) {
  std::string text;
  for (std::size_t byte = 0; byte < kRankBytes; ++byte)
    text += static_cast<char>(static_cast<unsigned>(number) >> (8 * byte) & 0xFFU);
  return text;
}

std::string lost_message(int rank) { return kLost + bytes_of(rank); }

std::string word_message(char letter, int rank, int number, const std::string& text) {
  const std::string shown = printable(text, kMostText).substr(0, kMostText);
  return letter + bytes_of(rank) + bytes_of(number) + static_cast<char>(shown.size()) + shown;
}

int number_at(const std::string& message, std::size_t at) {
  unsigned number = 0;
  for (std::size_t byte = 0; byte < kRankBytes; ++byte)
    number |= static_cast<unsigned>(static_cast<unsigned char>(message[at + byte])) << (8 * byte);
  return static_cast<int>(number);
}

int rank_in(const std::string& message) { return number_at(message, 1); }

/// Of a kBusy or kEnds at the front of `unread`; 0 = it is not whole yet.
std::size_t word_bytes(const std::string& unread) {
  if (unread.size() < kHeadBytes) return 0;
  const std::size_t whole = kHeadBytes + static_cast<unsigned char>(unread[kHeadBytes - 1]);
  return unread.size() < whole ? 0 : whole;
}

}  // namespace

class PeerWatch::Thread {
 public:
  /// The first two are those of the ring.
  Thread(int rank, std::vector<Neighbour> neighbours, PeerWatch::Options options)
      : rank_(rank),
        neighbours_(std::move(neighbours)),
        options_(std::move(options)),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        thread_(&Thread::watch, this) {}
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  ~Thread() {
    end(true);
    for (const auto& [key, number] : heard_) hear_work(key.second, "");
  }

  void end(bool goodbye, const std::string& cause = "") {
    if (!thread_.joinable()) return;
    goodbye_ = goodbye;
    cause_ = cause;
    stop_ = true;
    const std::uint64_t one = 1;
    (void)!write(wake_.get(), &one, sizeof one);
    thread_.join();
  }

 private:
  void watch() {
    while (!stop_ && !told_) {
      std::vector<pollfd> entries = sockets(POLLIN);
      entries.push_back({wake_.get(), POLLIN, 0});
      (void)poll(entries.data(), entries.size(), static_cast<int>(kBeat.count() / 2));
      for (std::size_t at = 0; at < neighbours_.size() && !stop_; ++at)
        if (neighbours_[at].socket && (entries[at].revents & ~POLLOUT) != 0)
          listen_to(neighbours_[at]);
      if (stop_ || told_) break;
      beat();
      tell_work();
      if (ends_ && Clock::now() > ends_at_) return leave();
      for (Neighbour& neighbour : neighbours_)
        if (neighbour.gone_at && Clock::now() - *neighbour.gone_at > neighbour.patience)
          return ends_ ? leave() : notice(neighbour);
    }
    const std::string last =
        goodbye_ ? std::string{kGoodbye} : word_message(kEnds, rank_, 1, cause_);
    if (stop_ && (goodbye_ || !cause_.empty())) say_last(last);
  }

  // For a poll that waits for `events`, and for room where there is more to say.
  [[nodiscard]] std::vector<pollfd> sockets(short events) const {
    std::vector<pollfd> entries;
    for (const Neighbour& neighbour : neighbours_) {
      const short room = neighbour.outbox.has_more() ? POLLOUT : 0;
      entries.push_back({neighbour.socket.get(), static_cast<short>(events | room), 0});
    }
    return entries;
  }

  void say_last(const std::string& message) {
    for (Neighbour& neighbour : neighbours_) neighbour.outbox.put_last(message);
    const auto until = Clock::now() + kLastRoom;
    const auto has_more = [](const Neighbour& neighbour) { return neighbour.outbox.has_more(); };
    while (true) {
      for (Neighbour& neighbour : neighbours_) neighbour.outbox.send(neighbour.socket);
      const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now());
      if (left.count() <= 0 || std::none_of(neighbours_.begin(), neighbours_.end(), has_more))
        return;
      std::vector<pollfd> entries = sockets(0);
      (void)poll(entries.data(), entries.size(), static_cast<int>(left.count()));
    }
  }

  // What this rank is busy with, as soon as that has lasted, and that it is over.
  void tell_work() {
    const std::string work = own_work(kBusySeconds);
    if (work == told_work_) return;
    told_work_ = work;
    const std::string message = word_message(kBusy, rank_, ++words_, work);
    for (Neighbour& neighbour : neighbours_) neighbour.say({kBusy, rank_}, message);
  }

  void take_word(const std::string& message) {
    const int rank = rank_in(message), number = number_at(message, 1 + kRankBytes);
    int& heard = heard_[{message[0], rank}];
    if (rank == rank_ || number <= heard) return;
    heard = number;
    for (Neighbour& neighbour : neighbours_) neighbour.say({message[0], rank}, message);
    const std::string text = message.substr(kHeadBytes);
    if (message[0] == kBusy) return hear_work(rank, text);
    if (ends_) return;
    ends_ = {rank, fmt::format("rank {} ends with an error: {}", rank, text)};
    ends_at_ = Clock::now() + kLastWords;
  }

  // Who has told why it ends has had its time.
  void leave() {
    told_ = true;
    const bool beside = ends_->rank == neighbours_[0].rank || ends_->rank == neighbours_[1].rank;
    if (beside && options_.hear) options_.hear(*ends_);
    options_.end();
  }

  // Says, too, what the sockets had no room for.
  void beat() {
    for (Neighbour& neighbour : neighbours_) neighbour.outbox.send(neighbour.socket);
    if (Clock::now() - last_beat_ < kBeat) return;
    last_beat_ = Clock::now();
    for (Neighbour& neighbour : neighbours_)
      if (neighbour.socket) neighbour.outbox.beat(neighbour.socket, kHeartbeat);
  }

  void listen_to(Neighbour& from) {
    std::array<char, 256> bytes{};
    const ssize_t got = recv(from.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      from.silent = got < 0 && errno != ECONNRESET && errno != EPIPE;
      from.socket.reset();
      if (from.watched) from.gone_at = Clock::now();
      return;
    }
    from.outbox.heard();
    from.unread.append(bytes.data(), static_cast<std::size_t>(got));
    while (!from.unread.empty() && from.socket && !told_) {
      const char letter = from.unread.front();
      if (letter == kGoodbye) return from.socket.reset();
      if (letter == kLost) {
        if (from.unread.size() < 1 + kRankBytes) return;
        return spread(rank_in(from.unread));
      }
      if (letter == kBusy || letter == kEnds) {
        const std::size_t whole = word_bytes(from.unread);
        if (whole == 0) return;
        take_word(from.unread.substr(0, whole));
        from.unread.erase(0, whole);
        continue;
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
    say_last(lost_message(lost));
    options_.end();
  }

  const int rank_;
  std::vector<Neighbour> neighbours_;
  PeerWatch::Options options_;
  Descriptor wake_;
  std::string cause_, told_work_;
  int words_ = 0;
  std::map<std::pair<char, int>, int> heard_;  // the last word of a kind and a rank
  std::optional<PeerLoss> ends_;               // told by itself
  Clock::time_point ends_at_{};
  bool told_ = false;
  Clock::time_point last_beat_{};
  std::atomic<bool> stop_{false}, goodbye_{true};
  std::thread thread_;  // last: it uses all the others
};

TreeLinks tree_links(int rank, int ranks) {
  const auto beside = [&](int other) {
    return other == (rank + 1) % ranks || other == (rank + ranks - 1) % ranks;
  };
  TreeLinks links;
  if (rank > 0 && !beside((rank - 1) / 2)) links.up = (rank - 1) / 2;
  for (const int below : {2 * rank + 1, 2 * rank + 2})
    if (below < ranks && !beside(below)) links.down.push_back(below);
  return links;
}

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
  const TreeLinks tree = tree_links(rank, ranks);
  std::vector<int> callers{before};
  callers.insert(callers.end(), tree.down.begin(), tree.down.end());
  // Who listens takes connections before it accepts them, so all may connect first.
  std::vector<Descriptor> accepted;
  std::thread accepting([&] { accepted = accept_peers(listener, secret, callers, deadline); });
  const auto connect_to = [&](int peer) {
    return connect_to_peer(peers[number(peer)], own.host,
                           {secret, static_cast<std::uint64_t>(rank)}, deadline);
  };
  Descriptor to_next = connect_to(after), up;
  if (tree.up >= 0) up = connect_to(tree.up);
  accepting.join();
  std::string gap;
  if (!to_next)
    gap = fmt::format("rank {} (node {}) cannot reach rank {} (node {})", rank, own.host, after,
                      peers[number(after)].host);
  const std::vector<std::string> gaps = all_gather_texts(world, gap);
  for (const std::string& text : gaps)
    if (gaps_.empty()) gaps_ = text;
  if (!gaps[number(before)].empty()) accepted.front().reset();
  std::vector<Neighbour> neighbours;
  const auto add = [&](int peer, Descriptor socket, milliseconds patience, bool watched) {
    if (socket) set_silence_limit(socket, options.silent_seconds);
    if (socket) ++connections_;
    neighbours.push_back(
        {peer, peers[number(peer)].host, std::move(socket), patience, {}, {}, false, watched, {}});
  };
  add(before, std::move(accepted.front()), kPatience, true);
  add(after, std::move(to_next), kMorePatience, true);
  // Without one of the tree the news comes later, along the ring.
  if (up) add(tree.up, std::move(up), {}, false);
  for (std::size_t at = 1; at < accepted.size(); ++at)
    if (accepted[at]) add(callers[at], std::move(accepted[at]), {}, false);
  thread_ = std::make_unique<Thread>(rank, std::move(neighbours), options);
}

PeerWatch::~PeerWatch() = default;

void PeerWatch::end_unnoticed() {
  if (thread_) thread_->end(false);
}

void PeerWatch::end_with(const std::string& cause) {
  if (thread_) thread_->end(false, cause.substr(0, cause.find('\n')));
}

}  // namespace t3d
