/// @file
/// Which transfer gets which dedicated queue and mailbox. See docs/decisions/0015-large-data.md,
/// "Which queue"; proved in proof/grant.pml.
///
/// Thread rule: plain objects without I/O; one thread. Nothing allocates: what waits is linked
/// through the caller's own objects.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace rio::msg {

class QueueAssigner;

/// A doubly linked list through its members.
template <typename T>
struct Links {
  T* prev = nullptr;
  T* next = nullptr;
};

template <typename T>
class LinkedList {
 public:
  [[nodiscard]] T* front() const { return front_; }
  [[nodiscard]] bool empty() const { return front_ == nullptr; }
  void push_back(T& item) {
    item.links = {back_, nullptr};
    (back_ != nullptr ? back_->links.next : front_) = &item;
    back_ = &item;
  }
  void erase(T& item) {
    (item.links.prev != nullptr ? item.links.prev->links.next : front_) = item.links.next;
    (item.links.next != nullptr ? item.links.next->links.prev : back_) = item.links.prev;
    item.links = {};
  }

 private:
  T* front_ = nullptr;
  T* back_ = nullptr;
};

struct QueueSource;

/// A transfer that waits; a member or base of the caller's object, which stays where it is while
/// waiting() is set.
struct QueueWaiter {
  QueueWaiter() = default;
  QueueWaiter(const QueueWaiter&) = delete;
  QueueWaiter& operator=(const QueueWaiter&) = delete;

  Links<QueueWaiter> links;
  QueueSource* source = nullptr;  ///< while it waits
  [[nodiscard]] bool waiting() const { return source != nullptr; }
};

/// Where a transfer or an offer goes.
struct QueuePlace {
  uint8_t queue = 0;    ///< 0 to 7
  uint8_t mailbox = 0;  ///< 1 to 3
  /// The queue is still open on this source and mailbox, and empty. Else it has to be stopped, if
  /// `reopen`, and started.
  bool open = false;
  bool reopen = false;  ///< it is open for another source or mailbox
};

/// One source, by destID; stays where it is. Outlives the peer's session while resting() is set.
struct QueueSource {
  static constexpr unsigned kMailboxes = 3;  // 1 to 3

  QueueSource() = default;
  QueueSource(const QueueSource&) = delete;
  QueueSource& operator=(const QueueSource&) = delete;

  enum class Pair : uint8_t {
    kFree,
    kTransfer,
    kOffer,
    kQuarantine,  ///< until closed()
    kClosed,      ///< until its ring is stopped()
    kRest,        ///< until rest_until_us
  };

  Links<QueueSource> links;  // of the ring
  LinkedList<QueueWaiter> waiting;
  uint64_t rest_until_us = 0;
  std::array<Pair, kMailboxes> pairs{};  // by mailbox - 1
  bool in_ring = false;

  [[nodiscard]] unsigned count(Pair state) const;
  [[nodiscard]] bool resting() const { return count(Pair::kRest) != 0; }
};

/// Eight queues, their sources, and the order in which sources get them.
class QueueAssigner {
 public:
  static constexpr unsigned kQueues = 8;
  static constexpr unsigned kQueuesKept = 2;  // that offers leave
  static constexpr unsigned kOffersOfSource = 2;

  /// @param queues how many there are, kQueuesKept + 1 to kQueues.
  explicit QueueAssigner(unsigned queues = kQueues);

  /// A matched request waits for its turn, behind the others of its source.
  void wait(QueueSource& source, QueueWaiter& waiter);
  /// It waits no more, if it did.
  void unwait(QueueWaiter& waiter);
  /// Serve the next one. @return it, with its place; null if none can be served now.
  [[nodiscard]] QueueWaiter* assign(QueuePlace* out);
  /// Whether assign() would serve one.
  [[nodiscard]] bool ready() const { return free_ != 0 && !ring_.empty(); }

  /// Take a place for an offer. @return whether there is one to have.
  [[nodiscard]] bool offer(QueueSource& source, QueuePlace* out);
  /// The offer was accepted: it is a transfer now.
  void accepted(QueueSource& source, const QueuePlace& place);
  /// Whether a request waits that an offer may stand in the way of: revoke the oldest.
  [[nodiscard]] bool wants_revoke() const { return offers_ != 0 && waiting_ != 0; }

  /// All entries completed, the offer was refused or revoked, or CLOSED came for a transfer that is
  /// not quarantined and whose ring is empty: queue and pair are free at once, the queue stays
  /// open.
  void release(QueueSource& source, const QueuePlace& place);
  /// An attempt is being stopped (ABORT goes): the pair is in quarantine, the queue is free once
  /// stopped().
  void quarantine(QueueSource& source, const QueuePlace& place);
  /// CLOSED came for an attempt whose ring has entries left: the pair is free, the queue once
  /// stopped().
  void close(QueueSource& source, const QueuePlace& place);
  /// A ring has been stopped by the card.
  void stopped(unsigned queue);
  /// CLOSED came for a pair in quarantine. Nothing happens if it is not.
  void closed(QueueSource& source, unsigned mailbox);

  /// The peer died. Its waiting pairs are unlinked and rest, its queues are to be stopped.
  /// @param rest_until_us when the card's quarantine is over, by the clock of rested().
  /// @return the queues to stop, a bit each.
  [[nodiscard]] uint32_t died(QueueSource& source, uint64_t rest_until_us);
  /// Pairs of a source come back when their time is over and their rings are stopped. @return
  /// whether none rests now. A source may go when none does, nothing of it waits or is assigned,
  /// and died() was called for it.
  bool rested(QueueSource& source, uint64_t now_us);

  [[nodiscard]] unsigned free_queues() const { return free_; }
  [[nodiscard]] unsigned offers() const { return offers_; }

 private:
  struct Queue {
    enum class State : uint8_t { kFree, kUsed, kStopping };
    State state = State::kFree;
    uint8_t mailbox = 0;            // that it is open on; 0: closed
    QueueSource* source = nullptr;  // that it is open to; null: closed
  };

  void look(QueueSource& source);
  [[nodiscard]] QueuePlace take(QueueSource& source, QueueSource::Pair as);
  void leave(QueueSource& source, const QueuePlace& place, QueueSource::Pair to);
  [[nodiscard]] bool stopping(const QueueSource& source, unsigned mailbox) const;

  std::array<Queue, kQueues> queues_{};
  LinkedList<QueueSource> ring_;  // sources with a waiting request and a free mailbox
  unsigned count_;
  unsigned free_;
  unsigned offers_ = 0;
  size_t waiting_ = 0;
};

}  // namespace rio::msg
