// Messages between threads of one process. A sender leaves an envelope in the receiver's inbox; the
// receiver copies straight from the sender's memory.
#pragma once
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/transport.hpp"

namespace t3d {

/// What the ranks of one in-process world share.
class LocalHub {
 public:
  /// A message as its receiver sees it. `state` says whether sender or receiver may touch `data`.
  enum class State : int { offered, copying, copied, withdrawn };
  struct Envelope {
    int source = 0;
    int tag = 0;
    const void* data = nullptr;
    index_t bytes = 0;
    std::shared_ptr<std::atomic<State>> state;
  };

  explicit LocalHub(int ranks) : inboxes_(static_cast<std::size_t>(ranks)) {}
  [[nodiscard]] int size() const { return static_cast<int>(inboxes_.size()); }

  void post(int to, Envelope envelope);
  /// Moves what has come for `rank` to the end of `arrived`.
  void collect(int rank, std::deque<Envelope>& arrived);

  /// Rank `rank` will send and receive no more. With a `reason` the whole world has failed.
  void leave(int rank, const std::string& reason);
  [[nodiscard]] bool anyone_left() const { return left_count_.load() > 0; }
  [[nodiscard]] bool has_left(int rank) const {
    return inboxes_[static_cast<std::size_t>(rank)].left.load();
  }
  /// Why the world has failed; empty while it has not.
  [[nodiscard]] std::string failure();

 private:
  struct Inbox {
    std::mutex mutex;
    std::atomic<int> waiting{0};
    std::deque<Envelope> envelopes;
    std::atomic<bool> left{false};
  };
  std::vector<Inbox> inboxes_;
  std::atomic<int> left_count_{0};
  std::atomic<bool> failed_{false};
  std::mutex failure_mutex_;
  std::string failure_;
};

class LocalTransport final : public Transport {
 public:
  LocalTransport(std::shared_ptr<LocalHub> hub, int rank) : hub_(std::move(hub)), rank_(rank) {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return hub_->size(); }
  [[nodiscard]] Request send(int peer, int tag, const void* data, index_t bytes) override;
  [[nodiscard]] Request receive(int peer, int tag, void* data, index_t bytes) override;
  void poll() override;
  [[nodiscard]] bool finished(Request request) override;
  void cancel(Request request) noexcept override;

 private:
  struct Slot {
    bool used = false;
    bool sends = false;
    bool arrived = false;  // receives
    int peer = 0;
    int tag = 0;
    void* data = nullptr;
    index_t bytes = 0;
    std::shared_ptr<std::atomic<LocalHub::State>> state;  // sends
  };
  Request free_slot();
  bool take(Slot& slot);
  void check_alive(const std::vector<bool>& left);

  std::shared_ptr<LocalHub> hub_;
  int rank_;
  std::vector<Slot> slots_;
  std::vector<Request> free_;
  std::deque<Request> receiving_;  // in the order of their posting
  std::deque<LocalHub::Envelope> arrived_;
};

}  // namespace t3d
