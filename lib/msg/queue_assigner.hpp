/// @file
/// Assigns dedicated queues and mailboxes to transfers. See docs/decisions/0015-large-data.md,
/// "Which queue"; modelled in proof/grant.pml.
///
/// Thread rule: plain objects without I/O; one thread. Nothing allocates: waiting transfers are
/// linked through the caller's objects.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/fifo.hpp"

namespace rio::msg {

struct QueueSource;

/// A transfer that waits for a queue. A member or base of the caller's object, which must not move
/// while waiting().
struct QueueWaiter {
  QueueWaiter() = default;
  QueueWaiter(const QueueWaiter&) = delete;
  QueueWaiter& operator=(const QueueWaiter&) = delete;

  base::FifoLinks<QueueWaiter> links{};
  QueueSource* source = nullptr;  ///< set while it waits
  [[nodiscard]] bool waiting() const { return source != nullptr; }
};

/// The queue and mailbox of a transfer or an offer.
struct QueuePlace {
  uint8_t queue = 0;    ///< 0 to 7
  uint8_t mailbox = 0;  ///< 1 to 3
  /// The queue is already open for this source and mailbox, and empty. If false, start it; if
  /// `reopen`, stop it before.
  bool open = false;
  bool reopen = false;  ///< it is open for another source or mailbox
};

/// One source (a destID) of large data; must not move. Outlives the peer's session while resting().
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
    kClosed,      ///< until stopped() for its ring
    kRest,        ///< until rest_until_ns
  };

  base::FifoLinks<QueueSource> links{};  // in QueueAssigner::ring_
  base::Fifo<QueueWaiter, &QueueWaiter::links> waiting;
  uint64_t rest_until_ns = 0;
  std::array<Pair, kMailboxes> pairs{};  // index: mailbox - 1
  bool in_ring = false;

  [[nodiscard]] unsigned count(Pair state) const;
  [[nodiscard]] bool resting() const { return count(Pair::kRest) != 0; }
};

/// Up to eight dedicated queues, and the round-robin order in which sources get them.
class QueueAssigner {
 public:
  static constexpr unsigned kQueues = 8;
  static constexpr unsigned kQueuesKept = 2;  // free queues that offers leave for transfers
  static constexpr unsigned kOffersOfSource = 2;

  /// @param queues how many there are, kQueuesKept + 1 to kQueues.
  explicit QueueAssigner(unsigned queues = kQueues);

  /// Queue a matched request behind the others of its source.
  void wait(QueueSource& source, QueueWaiter& waiter);
  /// Queue a request before the others of its source.
  void wait_first(QueueSource& source, QueueWaiter& waiter);
  /// Remove a request from the queue, if it is there.
  void unwait(QueueWaiter& waiter);
  /// Serve the next waiting request. @return the request, with its place in *out; null: none can be
  /// served now.
  [[nodiscard]] QueueWaiter* assign(QueuePlace* out);
  /// Whether assign() would serve a request.
  [[nodiscard]] bool ready() const { return free_ != 0 && !ring_.is_empty(); }

  /// Take a place for an offer. @return false: none is available.
  [[nodiscard]] bool offer(QueueSource& source, QueuePlace* out);
  /// The offer was accepted: its place belongs to a transfer now.
  void accepted(QueueSource& source, const QueuePlace& place);
  /// Whether an offer may be blocking a waiting request: then revoke the oldest offer.
  [[nodiscard]] bool wants_revoke() const { return offers_ != 0 && waiting_ != 0; }

  /// Free a queue and its pair at once; the queue stays open. For a transfer of which all entries
  /// are completed, a refused or revoked offer, or a CLOSED transfer that is not quarantined and
  /// whose ring is empty.
  void release(QueueSource& source, const QueuePlace& place);
  /// An attempt is being stopped (ABORT is sent): the pair is in quarantine until closed(), the
  /// queue is free after stopped().
  void quarantine(QueueSource& source, const QueuePlace& place);
  /// CLOSED arrived for an attempt whose ring has entries left: the queue and the pair are free
  /// after stopped().
  void close(QueueSource& source, const QueuePlace& place);
  /// As close(), but messages of the attempt may still arrive: the pair rests, too. @param
  /// rest_until_ns as in died().
  void close_and_rest(QueueSource& source, const QueuePlace& place, uint64_t rest_until_ns);
  /// The card has stopped the ring of a queue.
  void stopped(unsigned queue);
  /// CLOSED arrived for a pair in quarantine. No effect if the pair is not.
  void closed(QueueSource& source, unsigned mailbox);

  /// The peer died. Its waiting requests are removed and its pairs rest. @param rest_until_ns when
  /// the card's quarantine is over, by the clock of rested(). @return the queues to stop, one bit
  /// each.
  [[nodiscard]] uint32_t died(QueueSource& source, uint64_t rest_until_ns);
  /// Free the pairs whose rest is over and whose rings are stopped. @return whether no pair rests
  /// any more. A source may be destroyed if so, once died() was called and nothing of it waits or
  /// is assigned.
  bool rested(QueueSource& source, uint64_t now_ns);

  [[nodiscard]] unsigned free_queues() const { return free_; }
  [[nodiscard]] unsigned offers() const { return offers_; }

 private:
  struct Queue {
    enum class State : uint8_t { kFree, kUsed, kStopping };
    State state = State::kFree;
    uint8_t mailbox = 0;            // mailbox that the queue is open for; 0: closed
    QueueSource* source = nullptr;  // source that the queue is open for; null: closed
  };

  void look(QueueSource& source);
  [[nodiscard]] QueuePlace take(QueueSource& source, QueueSource::Pair as);
  void leave(QueueSource& source, const QueuePlace& place, QueueSource::Pair to);
  [[nodiscard]] bool stopping(const QueueSource& source, unsigned mailbox) const;

  std::array<Queue, kQueues> queues_{};
  base::Fifo<QueueSource, &QueueSource::links>
      ring_;  // sources with a waiting request and a free mailbox
  unsigned count_;
  unsigned free_;
  unsigned offers_ = 0;
  size_t waiting_ = 0;
};

}  // namespace rio::msg
