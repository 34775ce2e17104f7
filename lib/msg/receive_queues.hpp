/// @file
/// The dedicated queues of a rail, and the entries that large transfers have posted in them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/msg/bounce.hpp"
#include "lib/msg/link.hpp"
#include "lib/msg/port_objects.hpp"
#include "lib/msg/queue_assigner.hpp"
#include "lib/msg/transfer.hpp"
#include "pmd/api/riopmd.hpp"

namespace rio::msg {

/// One per rail; used only on the port's thread. QueueAssigner decides which transfer
/// gets which queue; this class opens, fills, reaps and stops the queues.
class ReceiveQueues {
 public:
  static constexpr uint32_t kQueues = QueueAssigner::kQueues;
  static constexpr uint32_t kWindow = 128;  // entries posted for one transfer
  static constexpr uint32_t kEntriesMax = RecvGrant::entries_max(kWindow);  // most of them

  ReceiveQueues(const PortObjects& works, Rail& rail) : works_(works), rail_(rail) {}
  /// Allocate the bounce buffers. @return 0, -ENOMEM.
  [[nodiscard]] int create();

  [[nodiscard]] QueueAssigner& assigner() { return assigner_; }
  [[nodiscard]] const pmd::mem::AlignRules& rules() const { return rules_; }

  /// Open the queue of a place for the peer's messages by a path of this rail. @return false: the
  /// card could not.
  [[nodiscard]] bool open(const Path& path, const QueuePlace& place);
  /// Give the open queue of its place to a transfer, until the transfer is done or leave() is
  /// called.
  void assign(RecvTransfer& transfer);
  /// Post as many entries of a transfer as there is room for.
  void post(RecvTransfer& transfer);
  /// Process the completions of a queue of used(), and post further entries. @return its transfer;
  /// null: nothing has arrived.
  [[nodiscard]] RecvTransfer* reap(uint32_t queue);
  /// Queues that have a transfer, one bit each.
  [[nodiscard]] uint32_t used() const { return used_; }
  /// Queues of used() for which reap() has something to do, one bit each. Does not step an emulated
  /// card.
  [[nodiscard]] uint32_t ready() const;

  /// Take the queue and mailbox away from a transfer. @param is_doubtful messages of the attempt
  /// may still arrive.
  void leave(RecvTransfer& transfer, bool is_doubtful = false);
  /// Stop a queue that no longer has a transfer. If the card does not stop it at once,
  /// stop_pending() tries again.
  void stop(uint32_t queue);
  void stop_pending();
  /// Whether the card may still write to the memory of a transfer that has left its queue.
  [[nodiscard]] bool may_be_written(const RecvTransfer& transfer) const {
    return (transfer.stuck & to_stop_) != 0;
  }

  /// Quarantine a transfer's mailbox until CLOSED, because its sender may still use it.
  void quarantine(RecvTransfer& transfer);
  void quarantine(Request& request);
  /// CLOSED arrived: end a quarantine, if there is one. @param quarantined flag of a transfer or
  /// request. @param source, place its own.
  void end_quarantine(bool& quarantined, QueueSource& source, const QueuePlace& place);
  /// The peer is gone: clear a quarantine; end_session() lets all its mailboxes rest. @param
  /// quarantined flag of a transfer or request.
  void forget_quarantine(bool& quarantined) {
    quarantined_ -= quarantined ? 1 : 0;
    quarantined = false;
  }

  /// The peer is gone: stop its queues, and let its mailboxes rest for the card's quarantine time.
  void end_session(Path& path);
  /// Free the mailboxes whose rest is over.
  void end_rests();

  /// Whether any queue has work to do.
  [[nodiscard]] bool busy() const {
    return (used_ | to_stop_) != 0 || !resting_.empty() || assigner_.ready();
  }
  /// Whether large data may arrive that no transfer expects.
  [[nodiscard]] bool late_possible() const { return quarantined_ != 0 || !resting_.empty(); }

 private:
  static constexpr uint32_t kBounceEach = 64;

  struct Queue {
    pmd::DedicatedRxQueue* ring = nullptr;  // null: closed
    RecvTransfer* transfer = nullptr;
    std::vector<uint32_t> bounced;  // bounce buffers of posted entries
  };

  void rest(Path& path);
  [[nodiscard]] bool post_whole(RecvTransfer& transfer, const pmd::mem::Range& range, uint32_t n);
  [[nodiscard]] uint32_t complete_placed(RecvTransfer& transfer,
                                         std::span<const pmd::EntryDone> done);
  void complete(Queue& queue, const pmd::EntryDone& done);
  void free_bounced(Queue& queue, uint64_t cookie);

  PortObjects works_;
  Rail& rail_;
  pmd::mem::AlignRules rules_;
  QueueAssigner assigner_;
  std::array<Queue, kQueues> queues_;
  uint32_t used_ = 0;
  uint32_t to_stop_ = 0;      // queues that the card has not stopped yet, one bit each
  uint32_t quarantined_ = 0;  // transfers and requests whose mailbox is in quarantine
  std::vector<Path*> resting_;
  Bounce bounce_;
  pmd::mem::Plan plan_;
};

}  // namespace rio::msg
