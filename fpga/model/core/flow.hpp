/// @file
/// Messages and transactions that a queue pair has in flight to one destination.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "fpga/model/frame.hpp"
#include "fpga/model/leases.hpp"
#include "fpga/model/wire.hpp"
#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::model {

/// A message, or a run of them, from its fetch to its last answer. There is one for each {mailbox,
/// letter}.
struct alignas(64) TxMsg {
  /// kQuarantine: it has ended and its letter rests. kKept: that, but without a resting place, so
  /// it keeps that of its flight or context.
  enum State : uint8_t { kFree = 0, kFlying, kQuarantine, kKept };
  /// Value of `segments` that marks a run; more than any message has.
  static constexpr uint8_t kRun = regs::kSegmentsMax + 1;

  regs::TxDesc desc;
  uint64_t since_ns;  ///< in flight: time of the last send; quarantine: when the rest begins
  uint32_t index;     ///< ring index of the descriptor
  uint32_t pull_at;   ///< if the receiver takes its bytes from this process's memory: ring position
                      ///< of its frame | 1; else 0
  uint64_t resend_ns;  ///< earliest time to send again
  // The last eight bytes have the same value in all plain messages: TxLife.
  uint16_t unsent;  ///< segments to send, or to send again, one bit each
  uint16_t open;    ///< segments sent and not answered, one bit each
  State state;
  uint8_t segments;
  uint8_t retries;  ///< up to 255; Flow::retries counts further
  bool whole;       ///< sent as one unit; counts as one segment

  [[nodiscard]] bool rests() const { return state >= kQuarantine; }
};
static_assert(sizeof(TxMsg) == 64);

/// The last eight bytes of a TxMsg that is in flight as one segment and was never refused.
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

/// The units of an entry behind the first one.
struct TxFurther {
  regs::TxWide units[regs::kEntryUnits - 1];
};

/// An entry of the transmit ring that the card has copied.
struct TxEntry {
  regs::TxDesc desc;
  TxFurther further;  ///< if the entry has several units
  uint32_t index;     ///< ring index of the descriptor

  [[nodiscard]] bool is_doorbell() const {
    return regs::tx_desc::Control::op.get(desc.control) ==
           static_cast<uint32_t>(regs::TxOp::kDoorbell);
  }
  /// Entries of one destination and lane start in order: those of mailboxes that share names, so
  /// that no short message takes for ever the letters that a long one waits for; and doorbells.
  [[nodiscard]] uint32_t lane_bit() const {
    const uint32_t mbox = regs::tx_desc::Control::mbox.get(desc.control);
    return 1u << (is_doorbell() ? regs::kMultiMailboxes : mbox % regs::kMultiMailboxes);
  }
};

/// A run: messages sent one after the other with one letter, each after the answer to the one
/// before. The receiver takes care of that for the messages of one frame. The next frame leaves
/// when all messages of the one before are answered, and meanwhile the run grows. The messages end
/// in order.
class PullRun {
 public:
  /// Most messages in a run. A driver that posts fewer of one mailbox never finds a run full.
  static constexpr uint32_t kMessagesMax = kAnnouncedMax;

  struct Message {
    uint64_t addr;
    uint32_t length;
    uint32_t cookie;
    uint32_t index;  ///< ring index of the descriptor
  };

  /// Begin an empty run of messages with this control word. @param behind whether the frame carries
  /// the bytes, also to a partner that could pull them.
  void begin(uint32_t control, bool behind) {
    control_ = control;
    behind_ = behind;
    done_ = count_ = announced_ = 0;
  }
  /// Control word of all messages.
  [[nodiscard]] uint32_t control() const { return control_; }
  [[nodiscard]] bool behind() const { return behind_; }
  /// Messages that have not ended.
  [[nodiscard]] uint32_t left() const { return count_ - done_; }
  [[nodiscard]] bool is_full() const { return left() == kMessagesMax; }
  /// A message that has not ended. @param number 0 to left() - 1, 0 is the first.
  [[nodiscard]] const Message& at(uint32_t number) const {
    return messages_[(done_ + number) & (messages_.size() - 1)];
  }
  /// Add a message. Only if !is_full().
  void add(const Message& message) {
    if (left() == messages_.size()) {
      grow();
    }
    messages_[count_++ & (messages_.size() - 1)] = message;
  }
  /// The first `count` messages have ended.
  void pop(uint32_t count) {
    done_ += count;
    announced_ -= std::min(announced_, count);
  }

  /// Messages of the frame in flight that are not answered yet, up to left().
  [[nodiscard]] uint32_t announced() const { return announced_; }
  void announce(uint32_t count) { announced_ = count; }

 private:
  void grow() {
    std::vector<Message> more(std::max<size_t>(kPullPartsMax, 4 * messages_.size()));
    for (uint32_t i = 0; i < left(); ++i) {
      more[(done_ + i) & (more.size() - 1)] = at(i);
    }
    messages_ = std::move(more);
  }

  uint32_t control_ = 0;
  bool behind_ = false;
  uint32_t announced_ = 0;
  // Free-running numbers of messages.
  uint32_t done_ = 0;
  uint32_t count_ = 0;
  std::vector<Message> messages_;  // a power of two; grows, since most runs are short
};
static_assert(std::has_single_bit(kPullPartsMax));

/// A transaction of a doorbell, a request or maintenance. There is one for each transaction ID.
struct Transaction {
  enum State : uint8_t { kFree = 0, kFlying, kQuarantine };

  State state = kFree;
  uint8_t ring = 0;  ///< the ring that it was posted to: transmit (a doorbell), DMA, maintenance,
                     ///< barrier (a notification)
  uint8_t op = 0;    ///< regs::DmaOp or regs::MaintOp
  uint8_t hops = 0;
  bool resend = false;  ///< answered RETRY: send again at since_ns
  bool pulled = false;  ///< sent as a kLongRequest
  uint32_t length = 0;
  uint32_t retries = 0;
  uint32_t owner = 0;     ///< doorbell: index of the descriptor; notification: its tag; else number
                          ///< of the operation
  uint32_t cookie = 0;    ///< doorbell: the descriptor's cookie; kLongRequest: ring position of
                          ///< its frame
  uint64_t address = 0;   ///< doorbell, notification: information; DMA: RapidIO address;
                          ///< maintenance: offset
  uint64_t bus_addr = 0;  ///< host memory of the data
  uint64_t since_ns = 0;  ///< in flight: time of the send; quarantine: when the rest begins
};

inline constexpr uint32_t kTids = 256;

struct Pair;

/// One destination of one queue pair.
struct Flow {
  static constexpr uint32_t kLettersMax = 4;  ///< of a mailbox

  Flow(Pair& from, uint32_t dest, Outbound* out)
      : pair(from),
        dest_id(dest),
        way(out),
        msgs(regs::kMailboxes * kLettersMax),
        retries(msgs.size()) {}

  Pair& pair;
  uint32_t dest_id;
  Outbound* way;
  /// Letters in flight or resting, one bit each. A message of several segments takes its letter in
  /// all mailboxes with the same low two bits, because its packets use the other mailbox bits for
  /// the segment number.
  uint8_t busy[regs::kMailboxes] = {};
  std::vector<TxMsg> msgs;               ///< index: place_of(), letter * 64 + mailbox
  std::unique_ptr<TxFurther[]> further;  ///< index as msgs; created on first use
  /// The run of each mailbox and letter; created on first use.
  std::unique_ptr<PullRun> runs[regs::kMultiMailboxes * kLettersMax];
  std::vector<uint32_t> retries;  ///< refusals of messages, index as msgs; valid if TxMsg::retries
                                  ///< is not 0
  std::unique_ptr<Transaction[]> transactions;  ///< index: transaction ID; created on first use
  std::vector<TxEntry> waiting;    ///< entries that wait inside the card, in the order of the ring
  uint32_t waiting_lanes = 0;      ///< TxEntry::lane_bit() of those
  std::unique_ptr<Leases> leases;  ///< created on first use
  uint32_t written_to = 0;         ///< ring position behind the last write or atomic
  bool writes_fly = false;         ///< whether it may still be in the ring
  uint8_t next_tid = 0;
  bool reads_in_packets = false;  ///< the partner's memory cannot be pulled
  bool requests_wait = false;     ///< a request of a transaction waits for room on the wire
  uint32_t tids_busy = 0;         ///< transactions in flight or resting

  /// Note a write or atomic, which ends at a position of the ring of requests.
  void note_write(uint32_t position) {
    written_to = position;
    writes_fly = true;
  }
  /// Whether a read now would find what earlier writes and atomics have left.
  [[nodiscard]] bool writes_are_over() {
    writes_fly =
        writes_fly && !way->requests->is_old(written_to) && !way->requests->passed(written_to);
    return !writes_fly && !requests_wait;
  }
  /// The partner is another one now, or gone: what is known of the one before does not count.
  void forget_partner() {
    leases.reset();
    writes_fly = false;
    reads_in_packets = false;
  }
  /// Whether a message to this mailbox is in flight. A busy letter is not enough: it may be
  /// resting, or taken by a message of several segments to a mailbox with the same low bits.
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
  /// Let the free letters of a mailbox look busy: messages that have joined a run have not started,
  /// so no later one to that mailbox may start. Short messages to mailboxes with the same low bits
  /// go on: they can take no letter that a run waits for. @param mbox below kMultiMailboxes. @param
  /// letter_mask all letters.
  void shut(uint32_t mbox, uint8_t letter_mask) {
    shut_[mbox] |= static_cast<uint8_t>(~busy[mbox] & letter_mask);
    busy[mbox] |= letter_mask;
  }
  /// Undo shut().
  void open(uint32_t mbox) { busy[mbox] ^= std::exchange(shut_[mbox], uint8_t{0}); }
  void open_all() {
    for (uint32_t mbox = 0; mbox < regs::kMultiMailboxes; ++mbox) {
      open(mbox);
    }
  }
  /// The run in flight to a mailbox. @return null: there is none, or something else is in flight to
  /// it, too.
  [[nodiscard]] PullRun* lone_run(uint32_t mbox) const {
    PullRun* found = nullptr;
    for (uint32_t left = busy[mbox]; left != 0; left &= left - 1) {
      const TxMsg& msg = msgs[place_of(mbox, static_cast<uint32_t>(__builtin_ctz(left)))];
      if (msg.state != TxMsg::kFlying) {
        continue;
      }
      if (found != nullptr || msg.segments != TxMsg::kRun) {
        return nullptr;
      }
      found = &run_of(msg);
    }
    return found;
  }
  /// The mailbox and letter of a message of this flow: its index in `msgs`.
  [[nodiscard]] uint32_t place(const TxMsg& msg) const {
    return static_cast<uint32_t>(&msg - msgs.data());
  }
  /// The messages of a run of this flow.
  [[nodiscard]] PullRun& run_of(const TxMsg& msg) const { return *runs[run_index(place(msg))]; }
  /// Index in `runs`. @param place of a run.
  [[nodiscard]] static uint32_t run_index(uint32_t place) {
    return (place & (regs::kMultiMailboxes - 1)) + regs::kMultiMailboxes * (place >> 6);
  }
  /// Call `fn(message)` for all messages and runs that are in flight or rest.
  template <class Fn>
  void each_message(Fn fn) {
    for (TxMsg& msg : msgs) {
      if (msg.state != TxMsg::kFree) {
        fn(msg);
      }
    }
  }
  /// Call `fn(transaction)` for all that are in flight or rest.
  template <class Fn>
  void each_transaction(Fn fn) {
    for (uint32_t tid = 0; tids_busy > 0 && tid < kTids; ++tid) {
      if (transactions[tid].state != Transaction::kFree) {
        fn(transactions[tid]);
      }
    }
  }
  /// Count a RETRY to a message, whose frame is over. @return its retries so far.
  [[nodiscard]] uint32_t count_retry(TxMsg& msg) {
    msg.pull_at = 0;
    uint32_t& count = retries[place(msg)];
    count = msg.retries == 0 ? 1 : count + 1;
    msg.retries = static_cast<uint8_t>(std::min<uint32_t>(count, UINT8_MAX));
    return count;
  }
  [[nodiscard]] TxFurther& further_of(const TxMsg& msg) {
    if (further == nullptr) {
      further = std::make_unique<TxFurther[]>(msgs.size());
    }
    return further[place(msg)];
  }

 private:
  uint8_t shut_[regs::kMultiMailboxes] = {};  // letters that only look busy, by mailbox
};

}  // namespace rio::model
