/// @file
/// Large transfers: the objects that the caller keeps while the cards move data between its memory
/// and the peer's. See docs/decisions/0015-large-data.md.
///
/// Thread rule: the port's thread. No transfer is allocated here. A transfer belongs to the library
/// from MessageContext::send_large() or receive_large() until `done` is set, and must not move
/// meanwhile.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/fifo.hpp"
#include "lib/msg/control.hpp"
#include "lib/msg/delivery.hpp"
#include "lib/msg/dma.hpp"
#include "lib/msg/grant.hpp"
#include "lib/msg/queue_assigner.hpp"
#include "pmd/mem/alignment_plan.hpp"
#include "pmd/mem/cut.hpp"
#include "pmd/mem/registration.hpp"

namespace rio::msg {

class Receiver;
struct ContextSlot;

/// Values of StopCause::reason.
struct StopReason {
  static constexpr uint8_t kCancelled = 1;  ///< the user gave up
  static constexpr uint8_t kRefused = 2;    ///< the receiver does not want it
  static constexpr uint8_t kEnough = 3;     ///< the receiver has all that it has room for
  static constexpr uint8_t kFailed = 4;     ///< the card could not do it
};

/// A transfer that several rails bring, in parts that are transfers of their own: its stripes.
template <class Each>
struct Stripes {
  Each* whole = nullptr;     ///< the caller's transfer
  uint64_t taken_bytes = 0;  ///< of its `rest`, in stripes
  uint64_t done_bytes = 0;   ///< of these, in stripes that are done
  uint64_t each_bytes = 0;   ///< receiver: about the length of a stripe
  uint32_t begun = 0;        ///< number of the last stripe
  uint32_t live = 0;         ///< stripes that are not over
};

/// Part common to sends and receives. The caller may read the fields up to `user`.
struct Transfer {
  bool done = false;       ///< the library and the card no longer access the memory
  int status = 0;          ///< valid when done: 0 or -errno
  uint64_t len_bytes = 0;  ///< valid when done with 0 or -EMSGSIZE: bytes that the receiver has
  void* user = nullptr;    ///< for the caller

  // For the library only.
  ContextSlot* context = nullptr;
  Link* link = nullptr;
  Path* path = nullptr;  ///< of the data
  uint32_t id = 0;       ///< counts up within the session and direction
  uint8_t edge_bytes = 0;
  uint8_t stripe = 0;    ///< number of a stripe; 0: a whole transfer, or the sender does not know
                         ///< the stripe yet
  bool dead = false;     ///< the session is over, and the transfer is in no list of the link
  bool working = false;  ///< is in a WorkList
  uint8_t* rest = nullptr;  ///< address of the bytes behind the edge
  uint64_t rest_bytes = 0;
  uint64_t arrived_bytes = 0;  ///< bytes of `rest` that earlier, failed attempts have delivered
  const pmd::mem::Region* region = nullptr;  ///< null: not registered, so the data is bounced
  pmd::mem::Cut cut;

  /// The part that has not arrived with earlier attempts. @param bytes of `rest` to transfer.
  [[nodiscard]] pmd::mem::Range range(uint64_t bytes) const {
    return {rest + arrived_bytes, bytes - arrived_bytes,
            region != nullptr ? std::span(region->runs) : std::span<const pmd::IovaRun>()};
  }
};

/// A large send. The bytes must not change until done. status: -ECANCELED, -ECONNREFUSED (the
/// receiver refused it), -ECONNRESET (the session is over), -EIO (too many failed attempts).
struct SendTransfer : Transfer {
  base::FifoLinks<SendTransfer> links{};
  SendGrant grant;
  uint64_t granted_bytes = 0;  ///< bytes of `rest` that the receiver has room for
  bool settled = false;        ///< granted_bytes is known
  uint32_t unsent = 0;         ///< messages that the card returned because its ring was stopped
  uint32_t unsent_from = 0;    ///< number of the first of them, if any
  Stripes<SendTransfer>* stripes = nullptr;  ///< not null: it has stripes, or is one

  [[nodiscard]] bool is_stripe() const { return stripes != nullptr && stripes->whole != this; }
  [[nodiscard]] bool has_stripes() const { return stripes != nullptr && stripes->whole == this; }
};

/// A large receive. status: -EMSGSIZE (the bytes beyond capacity were left out), -ECANCELED (by
/// either side), -ECONNRESET, -EIO.
struct RecvTransfer : Transfer {
  struct Waiter : QueueWaiter {
    RecvTransfer* transfer = nullptr;
  };

  /// The card's read of what the sender shows.
  struct Read : DmaTransfer {
    Receiver* receiver = nullptr;
    bool is_on = false;  ///< the card may write to the memory
  };

  base::FifoLinks<RecvTransfer> links{};
  Waiter waiter;
  Read read;
  RecvGrant grant;
  QueuePlace place;
  uint64_t true_bytes = 0;   ///< bytes that the sender has
  bool held = false;         ///< `place` belongs to this transfer
  bool quarantined = false;  ///< the mailbox of `place` is in quarantine until CLOSED
  bool granted = false;      ///< GRANT of this attempt was sent
  bool say_abort = false;
  bool say_read = false;  ///< DONE is owed: all was read
  bool say_kept = false;  ///< EXTEND is owed, to confirm an accepted offer
  bool broken = false;    ///< an entry of this attempt failed: the sender will send CLOSED
  uint8_t stuck = 0;      ///< queues with its entries that the card has not stopped, one bit each
  Stripes<RecvTransfer>* stripes = nullptr;  ///< not null: it has stripes, or is one

  [[nodiscard]] bool is_stripe() const { return stripes != nullptr && stripes->whole != this; }
  [[nodiscard]] bool has_stripes() const { return stripes != nullptr && stripes->whole == this; }
};

/// The transfers that progress() visits.
template <class Each>
class WorkList {
 public:
  WorkList() { list_.reserve(kReserved); }
  [[nodiscard]] bool empty() const { return list_.empty(); }
  /// Add a transfer, unless it is in the list.
  void add(Each& transfer) {
    if (!transfer.working) {
      transfer.working = true;
      list_.push_back(&transfer);
    }
  }
  /// Visit all transfers, also those added meanwhile. @param look returns whether to keep the
  /// transfer in the list.
  template <class Look>
  void visit(Look&& look) {
    size_t kept = 0;
    for (size_t i = 0; i < list_.size(); ++i) {
      Each& transfer = *list_[i];
      transfer.working = look(transfer);
      if (transfer.working) {
        list_[kept++] = &transfer;
      }
    }
    list_.resize(kept);
  }

 private:
  static constexpr size_t kReserved = 256;
  std::vector<Each*> list_;
};

/// A request to send that has arrived and is not answered. Owned by the library;
/// MessageContext::take_request() returns it.
struct Request {
  Header header;     // header and body lie in the inbox like a message
  RequestBody body;  ///< match_bits, len_bytes
  Origin origin;
  base::FifoLinks<Request> links{};
  int gone;  ///< not 0: withdrawn, or its session is over; -errno for its receive
  // Used if it accepts an offer.
  bool accepted = false;     ///< it has `place`, and no entry is posted there
  bool parked = false;       ///< the sender was told to ask again
  bool quarantined = false;  ///< the mailbox of `place` is in quarantine until CLOSED
  bool refused = false;      ///< the user refused it; the library keeps it until CLOSED
  Path* path = nullptr;      ///< of `place`
  QueuePlace place = {};
  RecvGrant grant = {};
  pmd::mem::Cut cut = {};
  uint32_t window = 0;
  const void* buffer = nullptr;  ///< the buffer that was offered

  void recycle() {}  ///< for base::Slab: Requests sets all fields of one that it gets
};
static_assert(offsetof(Request, body) == sizeof(Header));

}  // namespace rio::msg
