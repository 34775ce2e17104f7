/// @file
/// The transmit ring of a rail, and the messages in it until the card completes them.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "lib/msg/buffers.hpp"
#include "lib/msg/control.hpp"
#include "lib/msg/link.hpp"
#include "pmd/api/riopmd.hpp"

namespace rio::msg {

/// The way from a context of ours to a context of a peer.
struct Route {
  Link* link = nullptr;
  Outflow* out = nullptr;  ///< our credits for the peer's context
  Inflow* back = nullptr;  ///< the peer's credits for our context
  uint64_t word = 0;       ///< second header word, without credit and padding
};

/// One per rail; used only on the port's thread. Each ring entry has a slot. A message is written
/// into the slot of the next entry and stays there until the entry is used again.
class Outbox {
 public:
  static constexpr uint32_t kRingLog2 = 9;
  static constexpr uint32_t kBudget = 96;   // user messages between two calls of reap()
  static constexpr uint32_t kReserve = 16;  // ring entries reserved for the library's own messages
  /// Most messages in the ring for one peer, so that a peer that accepts nothing leaves room for
  /// others. With the next burst to it, as many as the ring sets aside (pmd::EntryWindow). Large
  /// data does not count: SendSlots bounds it.
  static constexpr uint32_t kOutMax = (1u << kRingLog2) / 2 - kBudget;
  /// Cookie bit of large-data messages: their completion goes to Events::on_large_done().
  static constexpr uint64_t kLargeCookie = uint64_t{1} << 63;

  /// Receives the ring's events. Called within reap() and within all functions that reap.
  class Events {
   public:
    /// A message was not delivered, or is in doubt. It is still in its place.
    virtual void on_failed(const pmd::TxDone& done) = 0;
    /// A large-data message is completed, successfully or not.
    virtual void on_large_done(const pmd::TxDone& done) = 0;
    /// share() messages are in the ring beside large data.
    virtual void on_half_full() = 0;

   protected:
    ~Events() = default;
  };

  Outbox(Endpoint& endpoint, Events& events)
      : tx_(endpoint.tx()), events_(events), endpoint_(endpoint) {}
  /// Allocate the slots. @return 0, -ENOTSUP, -ENOMEM, -errno.
  [[nodiscard]] int start();

  [[nodiscard]] static Route route(Link& link, uint32_t to, uint32_t from, Kind kind) {
    return {&link, &link.out[to], &link.in[from], HeaderWords::rest_of(to, from, 0, kind, 0)};
  }
  /// Messages of the path's link take this path from now on. @param path of this rail.
  void use(Path& path) {
    path.link.path = &path;
    path.link.outbox = this;
    path.link.one_segment = pmd::TxQueue::slot_words(path.dest_id, kSpread);
  }

  // User messages.

  /// Hot. Whether a message may be sent on the route now. If so, call begin_message() and post()
  /// next.
  [[nodiscard]] bool may_send(const Route& route) {
    // Reap first: a reaped completion may end the session, and the other conditions then change.
    return (in_budget(tx_.next_index()) || (reap_for_more() && route.link->outbox == this)) &&
           route.out->available() != 0 && !has_to_hear(route);
  }
  /// Hot. Take a credit and write the header. @return address of the header; write the payload
  /// behind it.
  [[nodiscard]] uint8_t* begin_message(const Route& route, uint32_t bytes) {
    route.out->take_known();
    const uint16_t credit = route.back->tell();
    copied_ += bytes;
    const HeaderWords header = {route.link->next_out, route.word | uint64_t{credit} << 32 |
                                                          uint64_t{padding_of(bytes)} << 56};
    uint8_t* const at = tx_.slot_va();
    std::memcpy(at, &header, sizeof(header));
    return at;
  }
  /// Hot. Post the message. @param at from begin_message(). @param length_bytes including the
  /// header.
  void post(Link& link, const uint8_t* at, uint32_t length_bytes) {
    const auto number = static_cast<uint32_t>(link.next_out >> 32);
    link.next_out += 1ull << 32;
    tx_.send_slot(at, words(link, number, length_bytes), length_bytes);
  }
  /// post() for a part behind the first one of a message: to the mailbox of full parts, whatever
  /// its length. So a card that sends what waits for one mailbox as a run sends it with the others.
  void post_part(Link& link, const uint8_t* at, uint32_t length_bytes) {
    link.next_out += 1ull << 32;
    tx_.send_slot(at, link.one_segment ^ pmd::TxQueue::slot_mbox(kSpread), length_bytes);
  }
  /// Hot. may_send(), begin_message() and post() in one, for a message within the budget, in the
  /// ring of the route's link. Values read repeatedly are in locals, because the compiler cannot
  /// tell what the written bytes alias.
  /// @tparam kAnyLength false: the message has one segment. @param fill writes the payload. @param
  /// kind of the message; other than kData only if the route's is kData.
  /// @return false: not sent.
  template <bool kAnyLength = false, class Fill>
  [[nodiscard]] [[gnu::always_inline]] static bool send_one(const Route& route, uint32_t bytes,
                                                            Fill fill, Kind kind = Kind::kData) {
    Outflow& out = *route.out;
    if (out.available() == 0) [[unlikely]] {
      return false;  // a route without a link has no credit
    }
    Outbox& outbox = *route.link->outbox;
    pmd::TxQueue& tx = outbox.tx_;
    if (!outbox.in_budget(tx.next_index())) [[unlikely]] {
      return false;
    }
    const pmd::TxQueue::Slot slot = tx.next_slot();
    out.take_known();
    outbox.copied_ += bytes;
    const uint16_t credit = route.back->tell();
    uint8_t* const at = tx.slot_va(slot);
    const uint64_t rest =
        with_kind(route.word, kind) | uint64_t{credit} << 32 | uint64_t{padding_of(bytes)} << 56;
    // The words are written one by one. The first write makes the compiler read the link anew, so
    // that it keeps no register for it.
    std::memcpy(at + sizeof(rest), &rest, sizeof(rest));
    Link& link = *route.link;
    const uint64_t key_number = link.next_out;
    std::memcpy(at, &key_number, sizeof(key_number));
    link.next_out = key_number + (1ull << 32);
    const auto number = static_cast<uint32_t>(key_number >> 32);
    const uint64_t words = kAnyLength
                               ? Outbox::words(link, number, kHeaderBytes + bytes)
                               : link.one_segment | pmd::TxQueue::slot_mbox(number & (kSpread - 1));
    fill(at + kHeaderBytes);
    tx.send_slot(slot, at, words, kHeaderBytes + bytes);
    return true;
  }

  /// Whether a request for large data may be sent on the route now. If so, call post_request()
  /// next.
  [[nodiscard]] bool may_request(const Route& route);
  void post_request(const Route& route, const RequestBody& body);

  // The library's own messages.

  /// Make room for one entry, from the reserve if need be. Reaps completions, which may end any
  /// session. @return false: no room.
  [[nodiscard]] bool take_room();
  /// Send a numbered message that is only a header. @return false: not now.
  [[nodiscard]] bool say(Link& link, Kind kind, uint32_t to, uint32_t from, uint32_t credit);
  /// Send a message without a number, of one about sessions or rails. @return false: not now.
  [[nodiscard]] bool say_to(uint32_t dest_id, const HeaderWords& header, const void* body,
                            uint32_t bytes);
  /// Send a numbered message with a body; take_room() has succeeded. @param header second word of
  /// the header.
  void post_body(Link& link, uint64_t header, const void* body, uint32_t bytes);
  /// Post a message again, with its old number; take_room() has succeeded.
  void post_again(const Link& link, const std::vector<uint8_t>& message);

  // Completions.

  /// Process completions.
  void reap();
  /// Process completions one by one.
  void reap_each();
  /// Change the count of ring entries used by large data; `more` may be negative.
  void count_large(int32_t more) { large_count_ += static_cast<uint32_t>(more); }
  [[nodiscard]] uint32_t large_count() const { return large_count_; }
  /// Messages that one peer may have in the ring beside large data. Together they leave room for
  /// others.
  [[nodiscard]] uint32_t share() const { return large_count_ > kOutMax ? kBudget : kOutMax; }
  /// Whether the ring has nothing for a peer, as far as completions show that are there.
  [[nodiscard]] bool is_idle(uint32_t dest_id) {
    if (large_count_ == 0) {
      tx_.skip_delivered();
    }
    return out_to(dest_id) == 0;
  }
  /// Count of ring entries in use for a peer.
  [[nodiscard]] uint32_t out_to(uint32_t dest_id) const;
  /// Count of those entries whose bytes are in slots: messages other than large data.
  [[nodiscard]] uint32_t messages_to(uint32_t dest_id) const;

  // Stop and restart: docs/decisions/0019-a-peer-that-does-not-answer.md.

  /// Ask the card to stop the ring. Nothing is posted until restart().
  void begin_stop();
  /// Whether the ring is stopping or stopped: after begin_stop(), before restart().
  [[nodiscard]] bool stopped() const { return stopped_; }
  /// Start the ring again, once it has stopped and every entry is reaped. @return 0, -errno.
  [[nodiscard]] int restart();

  [[nodiscard]] pmd::TxQueue& ring() { return tx_; }
  [[nodiscard]] const pmd::TxQueue& ring() const { return tx_; }
  /// Payload bytes that were copied into slots.
  [[nodiscard]] uint64_t copied() const { return copied_; }
  /// Count a message that is resent, and messages that were.
  void count_again() { ++again_; }
  [[nodiscard]] uint64_t again() const { return again_; }

 private:
  static constexpr uint32_t kBurst = 32;
  static constexpr uint32_t kSpread =
      32;  // number of mailboxes for one-segment messages, and the first of them
  // Control credits that requests leave unused, so that answers never wait behind requests.
  static constexpr uint32_t kForAnswers = 1;

  /// Whether a user message may use the entry of that index: there is room in the ring, and reap()
  /// is not due yet.
  [[nodiscard]] bool in_budget(uint32_t index) const {
    return static_cast<int32_t>(budget_end_ - index) > 0;
  }
  /// Whether the context of this route must still be told that its session has ended.
  [[nodiscard]] static bool has_to_hear(const Route& route) {
    return (route.link->routes.untold >> HeaderWords{0, route.word}.from() & 1) != 0;
  }
  // Mailboxes 1 to 3 are for large data. A one-segment message may use any of 64 mailboxes;
  // spreading them lets more be in flight, because each mailbox has letters of its own.
  [[nodiscard]] static uint32_t mailbox(uint32_t number, uint32_t length_bytes) {
    return length_bytes <= regs::kSegmentBytesMax ? kSpread + (number & (kSpread - 1)) : 0;
  }
  /// First descriptor words of a message by the link's path.
  [[nodiscard]] static uint64_t words(const Link& link, uint32_t number, uint32_t length_bytes) {
    return (link.one_segment ^ pmd::TxQueue::slot_mbox(kSpread)) |
           pmd::TxQueue::slot_mbox(mailbox(number, length_bytes));
  }
  [[gnu::noinline]] [[nodiscard]] bool reap_for_more();
  template <class Wanted>
  [[nodiscard]] uint32_t count(Wanted wanted) const;

  pmd::TxQueue& tx_;
  uint32_t budget_end_ = 0;  // index of the first entry beyond the budget
  bool stopped_ = false;
  uint32_t large_count_ = 0;
  uint64_t copied_ = 0;
  Events& events_;
  Endpoint& endpoint_;
  uint64_t again_ = 0;
};

}  // namespace rio::msg
