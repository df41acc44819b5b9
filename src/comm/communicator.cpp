#include "comm/communicator.hpp"

#include <exception>

namespace t3d {
namespace {

// A destructor cannot report; the group has noted the failure and throws it at its next call.
// While an exception unwinds nobody may wait for peers: the operation is abandoned.
void finish_quietly(std::unique_ptr<Work::Impl>& impl) noexcept {
  if (impl == nullptr) return;
  try {
    if (std::uncaught_exceptions() == 0) impl->wait();
  } catch (...) {  // NOLINT(bugprone-empty-catch)
  }
  impl.reset();
}

}  // namespace

Work& Work::operator=(Work&& other) {  // NOLINT: see the header
  if (this == &other) return *this;
  wait_host();
  impl_ = std::move(other.impl_);
  return *this;
}

Work::~Work() { finish_quietly(impl_); }

void Work::Impl::order(Queue&) { wait(); }

void Work::wait(Queue& queue) {
  if (impl_ == nullptr) return;
  QueueTimer* const timer = queue.timer();
  const QueueState before = timer != nullptr ? timer->state() : QueueState();
  if (timer != nullptr) timer->enter({QueuePart::waiting, before.phase});
  impl_->order(queue);
  if (timer != nullptr) timer->enter(before);
  impl_.reset();
}

void Work::wait_host() {
  if (impl_ == nullptr) return;
  impl_->wait();
  impl_.reset();
}

bool Work::done() {
  if (impl_ != nullptr && impl_->test()) impl_.reset();
  return impl_ == nullptr;
}

}  // namespace t3d
