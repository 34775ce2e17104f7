/// @file
/// What a queue pair has in flight toward one destination.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fpga/model/frame.hpp"
#include "fpga/model/wire.hpp"
#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::model {

/// A message, or a run of them, between its fetch and its last answer; one for each {mailbox,
/// letter}.
struct alignas(64) TxMsg {
  enum State : uint8_t { kFree = 0, kFlying, kQuarantine };
  /// As `segments`: a run. More than any message has.
  static constexpr uint8_t kRun = regs::kSegmentsMax + 1;

  regs::TxDesc desc;
  uint64_t since_ns;   ///< flying: last send; quarantine: when it begins to rest
  uint32_t index;      ///< of the descriptor
  uint32_t pull_at;    ///< where its frame is, if its bytes are to be pulled, and 1; else 0
  uint64_t resend_ns;  ///< not before this
  // The rest are eight bytes, which plain messages have in common: TxLife.
  uint16_t unsent;  ///< segments still to send, or to send again; a bit each
  uint16_t open;    ///< segments sent and not answered
  State state;
  uint8_t segments;
  uint8_t retries;  ///< up to 255; Flow::count_retry() goes on
  bool whole;       ///< sent as one unit; counts as one segment
};
static_assert(sizeof(TxMsg) == 64);

/// The last eight bytes of a TxMsg that flies as one segment and was never refused.
struct TxLife {
  uint16_t unsent = 0;
  uint16_t open = 1;
  uint8_t state = TxMsg::kFlying;
  uint8_t segments = 1;
  uint8_t retries = 0;
  bool whole = true;
};
static_assert(sizeof(TxLife) == 8 && offsetof(TxMsg, unsent) == 56 &&
              offsetof(TxMsg, open) == 56 + offsetof(TxLife, open) &&
              offsetof(TxMsg, state) == 56 + offsetof(TxLife, state) &&
              offsetof(TxMsg, whole) == 56 + offsetof(TxLife, whole));
inline constexpr uint64_t kTxLife = std::bit_cast<uint64_t>(TxLife{});

/// Messages that fly one after the other on one letter, each when the one before was answered; the
/// receiver sees to that, since it has been told of all. They end in order.
struct PullRun {
  struct Message {
    uint64_t addr;
    uint32_t length;
    uint32_t cookie;
  };
  uint32_t index;  ///< of the first descriptor
  uint32_t count;
  uint32_t done;
  Message messages[kPullPartsMax];
};

/// A transaction of doorbells, requests and maintenance; one for each id.
struct Transaction {
  enum State : uint8_t { kFree = 0, kFlying, kQuarantine };
  enum Kind : uint8_t { kDoorbell, kDma, kMaint };

  State state = kFree;
  Kind kind = kDoorbell;
  uint8_t op = 0;  ///< regs::DmaOp or regs::MaintOp
  uint8_t hops = 0;
  bool resend = false;  ///< answered RETRY: to be sent again at since_ns
  uint16_t length = 0;
  uint32_t retries = 0;
  uint32_t owner = 0;     ///< doorbell: descriptor index; else number of the operation
  uint32_t cookie = 0;    ///< doorbell: of the descriptor
  uint64_t address = 0;   ///< doorbell: information; DMA: RapidIO address; maintenance: offset
  uint64_t bus_addr = 0;  ///< where the data is or goes
  uint64_t since_ns = 0;  ///< flying: when sent; quarantine: when it began to rest
};

inline constexpr uint32_t kTids = 256;

/// One destination of one queue pair.
struct Flow {
  Flow(uint32_t dest, Outbound* out) : dest_id(dest), way(out), msgs(regs::kMailboxes * 4) {}

  uint32_t dest_id;
  Outbound* way;
  /// Letters in flight or resting, a bit each. A message of several segments takes its letter in
  /// all mailboxes of its four: {letter, mailbox, segment} names them.
  uint8_t busy[regs::kMailboxes] = {};
  std::vector<TxMsg> msgs;               ///< [letter * 64 + mailbox], that is by place_of()
  std::unique_ptr<regs::TxWide[]> wide;  ///< second halves, same index; made when first needed
  /// The one run of each mailbox; made when first needed.
  std::unique_ptr<PullRun> runs[regs::kMultiMailboxes];
  std::unique_ptr<uint32_t[]> more_retries;     ///< beyond 255, as msgs; made when first needed
  std::unique_ptr<Transaction[]> transactions;  ///< by tid; made when first needed
  uint8_t next_tid = 0;
  uint32_t tids_busy = 0;  ///< flying or resting

  /// Whether a message to this mailbox is under way. A letter may be busy for another reason: it
  /// rests, or a message of several segments has it, to another mailbox of the four.
  [[nodiscard]] bool flies(uint32_t mbox) const {
    uint32_t left = busy[mbox];
    while (left != 0) {
      const auto letter = static_cast<uint32_t>(__builtin_ctz(left));
      if (msgs[place_of(mbox, letter)].state == TxMsg::kFlying) {
        return true;
      }
      left &= left - 1;
    }
    return false;
  }
  /// One more RETRY to a letter's message. @return how many there were.
  [[nodiscard]] uint32_t count_retry(uint32_t place) {
    uint8_t& few = msgs[place].retries;
    if (few != UINT8_MAX) {
      ++few;
      if (few == UINT8_MAX && more_retries != nullptr) {
        more_retries[place] = 0;
      }
      return few;
    }
    if (more_retries == nullptr) {
      more_retries = std::make_unique<uint32_t[]>(msgs.size());
    }
    return UINT8_MAX + ++more_retries[place];
  }
  [[nodiscard]] regs::TxWide& wide_of(uint32_t place) {
    if (wide == nullptr) {
      wide = std::make_unique<regs::TxWide[]>(msgs.size());
    }
    return wide[place];
  }
};

}  // namespace rio::model
