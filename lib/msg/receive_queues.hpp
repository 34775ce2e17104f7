/// @file
/// The dedicated queues of a port, and the entries of large transfers in them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/msg/bounce.hpp"
#include "lib/msg/large_works.hpp"
#include "lib/msg/queue_assigner.hpp"
#include "lib/msg/transfer.hpp"
#include "pmd/api/riopmd.hpp"

namespace rio::msg {

/// Part of a port's receiver; used only on the port's thread. Which transfer gets which queue is
/// QueueAssigner's to say; this opens, fills, empties and stops them.
class ReceiveQueues {
 public:
  static constexpr uint32_t kQueues = QueueAssigner::kQueues;
  static constexpr uint32_t kWindow = 128;  // entries of one transfer

  explicit ReceiveQueues(const LargeWorks& works) : works_(works) {}
  /// @return 0, -ENOMEM.
  [[nodiscard]] int create();

  [[nodiscard]] QueueAssigner& assigner() { return assigner_; }
  [[nodiscard]] const pmd::mem::AlignRules& rules() const { return rules_; }

  /// Have the queue of that place open for the peer's messages. @return false: the card cannot.
  [[nodiscard]] bool open(const Link& link, const QueuePlace& place);
  /// The queue of its place, which is open, is the transfer's, until it is done or leave() is
  /// called.
  void assign(RecvTransfer& transfer);
  /// Post as many entries of the transfer as there is room for.
  void post(RecvTransfer& transfer);
  /// Take what has arrived in a queue of used(), and post further entries. @return the transfer;
  /// null: nothing has arrived.
  [[nodiscard]] RecvTransfer* reap(uint32_t queue);
  /// Queues that have a transfer, a bit each.
  [[nodiscard]] uint32_t used() const { return used_; }

  /// Its queue and mailbox are not the transfer's any more.
  void leave(RecvTransfer& transfer);
  /// Stop a queue that has no transfer any more. If the card does not stop it at once,
  /// stop_pending() tries again.
  void stop(uint32_t queue);
  void stop_pending();
  /// Whether the card may still write to the memory of a transfer that has left its queue.
  [[nodiscard]] bool may_be_written(const RecvTransfer& transfer) const {
    return (transfer.stuck & to_stop_) != 0;
  }

  /// The sender does not know yet that the place is not its own: no transfer has it until CLOSED.
  void quarantine(RecvTransfer& transfer);
  void quarantine(Request& request);
  /// CLOSED came.
  void end_quarantine(Request& request);
  /// The peer is gone: its place rests with all others of its. @param quarantined the flag of a
  /// transfer or request.
  void forget_quarantine(bool& quarantined) {
    quarantined_ -= quarantined ? 1 : 0;
    quarantined = false;
  }

  /// The peer is gone: its queues are stopped, and its mailboxes rest for the card's quarantine.
  void end_session(Link& link);
  /// Mailboxes that have rested may be used again.
  void end_rests();

  /// Whether there is anything to do.
  [[nodiscard]] bool busy() const {
    return (used_ | to_stop_) != 0 || !resting_.empty() || assigner_.ready();
  }
  /// Whether large data may come that no transfer waits for.
  [[nodiscard]] bool late_possible() const { return quarantined_ != 0 || !resting_.empty(); }

 private:
  static constexpr uint32_t kBounceEach = 64;

  struct Queue {
    pmd::DedicatedRxQueue* ring = nullptr;  // null: closed
    RecvTransfer* transfer = nullptr;
    std::vector<uint32_t> bounced;  // buffers of entries that the card has
  };

  [[nodiscard]] bool post_whole(RecvTransfer& transfer, const pmd::mem::Range& range, uint32_t n);
  [[nodiscard]] uint32_t complete_placed(RecvTransfer& transfer,
                                         std::span<const pmd::EntryDone> done);
  void complete(Queue& queue, const pmd::EntryDone& done);

  LargeWorks works_;
  pmd::mem::AlignRules rules_;
  QueueAssigner assigner_;
  std::array<Queue, kQueues> queues_;
  uint32_t used_ = 0;
  uint32_t to_stop_ = 0;      // those that the card did not stop when it was told to
  uint32_t quarantined_ = 0;  // transfers and requests whose mailbox is
  std::vector<Link*> resting_;
  Bounce bounce_;
  pmd::mem::Plan plan_;
};

/// The part of a transfer that has not arrived with earlier attempts.
[[nodiscard]] inline pmd::mem::Range range_of(const RecvTransfer& transfer) {
  return {transfer.rest + transfer.arrived_bytes, transfer.rest_bytes - transfer.arrived_bytes,
          transfer.region != nullptr ? std::span(transfer.region->runs)
                                     : std::span<const pmd::IovaRun>()};
}

}  // namespace rio::msg
