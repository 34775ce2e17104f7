/// @file
/// The transmit ring: what is sent, until the card says that it has arrived.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "lib/msg/buffers.hpp"
#include "lib/msg/control.hpp"
#include "lib/msg/link.hpp"
#include "pmd/api/riopmd.hpp"

namespace rio::msg {

/// From a context to another one.
struct Route {
  Link* link = nullptr;
  Outflow* out = nullptr;    ///< of the peer's context
  Inflow* back = nullptr;    ///< of ours
  uint64_t word = 0;         ///< second word of the headers, but for credit and padding
  uint64_t one_segment = 0;  ///< first words of a descriptor, but for mailboxes beyond the first
};

/// One per port; used only on the port's thread. Bytes to be sent are written into the slot of the
/// ring's next entry, and stay there until another message is posted in it.
class Outbox {
 public:
  static constexpr uint32_t kRingLog2 = 9;
  static constexpr uint32_t kBudget = 96;   // messages of users between two looks at the ring
  static constexpr uint32_t kReserve = 16;  // entries of the ring that only the library takes
  /// Messages that one peer may have in the ring: a peer that takes nothing leaves room for others.
  static constexpr uint32_t kOutMax = 256;
  /// A TxDone with this bit in its cookie is of large data: Events::on_large_done().
  static constexpr uint64_t kLargeCookie = uint64_t{1} << 63;

  /// Events of the ring, within reap() and all that calls it.
  class Events {
   public:
    /// A message was not delivered, or its fate is not known; it is in its slot still.
    virtual void on_failed(const pmd::TxDone& done) = 0;
    /// A message of large data is done with, well or not.
    virtual void on_large_done(const pmd::TxDone& done) = 0;
    /// Half of the ring is out.
    virtual void on_half_full() = 0;

   protected:
    ~Events() = default;
  };

  Outbox(Endpoint& endpoint, Events& events)
      : tx_(endpoint.tx()), events_(events), endpoint_(endpoint) {}
  /// Allocates the slots. @return 0, -ENOTSUP, -ENOMEM, -errno.
  [[nodiscard]] int start();

  [[nodiscard]] static Route route(Link& link, uint32_t to, uint32_t from, Kind kind) {
    return {&link, &link.out[to], &link.in[from], HeaderWords::rest_of(to, from, 0, kind, 0),
            pmd::TxQueue::slot_words(link.dest_id(), kSpread)};
  }

  // Messages of users.

  /// Hot. Whether a message may go there now: begin_message() and post() are next.
  [[nodiscard]] bool may_send(const Route& route) {
    // In this order: what is reaped may be the end of the session, and of all that is left.
    return (in_budget(tx_.next_index()) || reap_for_more()) && route.out->available() != 0 &&
           !has_to_hear(route);
  }
  /// Hot. Writes the header. @return where it is; the bytes go behind it.
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
  /// Hot. @param at as begin_message() gave it. @param length_bytes with the header.
  void post(Link& link, const uint8_t* at, uint32_t length_bytes) {
    const auto number = static_cast<uint32_t>(link.next_out >> 32);
    link.next_out += 1ull << 32;
    tx_.send_slot(at, pmd::TxQueue::slot_words(link.dest_id(), mailbox(number, length_bytes)),
                  length_bytes);
  }
  /// Hot. may_send(), begin_message() and post() for a message of one segment, if the budget lasts.
  /// Values that are read again and again are in locals here: the compiler cannot tell what the
  /// bytes alias.
  /// @param fill writes the bytes. @param kind of the message, if the route's is kData.
  /// @return false: not sent.
  template <class Fill>
  [[nodiscard]] [[gnu::always_inline]] bool send_one(const Route& route, uint32_t bytes, Fill fill,
                                                     Kind kind = Kind::kData) {
    Outflow& out = *route.out;
    pmd::TxQueue& tx = tx_;
    if (out.available() == 0 || !in_budget(tx.next_index())) [[unlikely]] {
      return false;
    }
    const pmd::TxQueue::Slot slot = tx.next_slot();
    out.take_known();
    copied_ += bytes;
    const uint16_t credit = route.back->tell();
    uint8_t* const at = tx.slot_va(slot);
    const uint64_t key_number = route.link->next_out;
    const HeaderWords header = {key_number, with_kind(route.word, kind) | uint64_t{credit} << 32 |
                                                uint64_t{padding_of(bytes)} << 56};
    std::memcpy(at, &header, sizeof(header));
    route.link->next_out = key_number + (1ull << 32);
    const uint64_t words =
        route.one_segment |
        pmd::TxQueue::slot_mbox(static_cast<uint32_t>(key_number >> 32) & (kSpread - 1));
    fill(at + kHeaderBytes);
    tx.send_slot(slot, at, words, kHeaderBytes + bytes);
    return true;
  }

  /// Whether a request for large data may go there now: post_request() is next.
  [[nodiscard]] bool may_request(const Route& route);
  void post_request(const Route& route, const RequestBody& body);

  // Messages of the library.

  /// Make room for one, the reserve, too. Completions reaped for that may end any session.
  /// @return false: there is none.
  [[nodiscard]] bool take_room();
  /// A numbered message that is a header only. @return false: not now.
  [[nodiscard]] bool say(Link& link, Kind kind, uint32_t to, uint32_t from, uint32_t credit);
  /// A message that makes, or ends, a session. @return false: not now.
  [[nodiscard]] bool say_session(uint32_t dest_id, const HeaderWords& header,
                                 const SessionBody& body);
  /// A numbered message that may be sent: take_room(). @param header its second word.
  void post_body(Link& link, uint64_t header, const void* body, uint32_t bytes);
  /// The message has its number already, and there is room.
  void post_again(const Link& link, const std::vector<uint8_t>& message);

  // Completions.

  /// Look at what the card has completed.
  void reap();
  /// Look at each entry that the card has completed, one by one.
  void reap_each();
  /// Large data has so many more entries in the ring, or fewer.
  void count_large(int32_t more) { large_count_ += static_cast<uint32_t>(more); }
  [[nodiscard]] uint32_t large_count() const { return large_count_; }
  /// How much of the ring belongs to a peer.
  [[nodiscard]] uint32_t out_to(uint32_t dest_id) const;

  // The ring is stopped and started again: docs/decisions/0019-a-peer-that-does-not-answer.md.

  /// From now on nothing is posted.
  void begin_stop();
  /// Whether begin_stop() was called and restart() was not.
  [[nodiscard]] bool stopped() const { return stopped_; }
  /// The ring has stopped, and all of it is reaped. @return 0, -errno.
  [[nodiscard]] int restart();

  [[nodiscard]] pmd::TxQueue& ring() { return tx_; }
  [[nodiscard]] const pmd::TxQueue& ring() const { return tx_; }
  /// Bytes of users that were copied into slots.
  [[nodiscard]] uint64_t copied() const { return copied_; }
  void count_copied(uint64_t bytes) { copied_ += bytes; }

 private:
  static constexpr uint32_t kBurst = 32;
  static constexpr uint32_t kSpread = 32;  // mailboxes of messages of one segment, and their first
  // Control credits that no request takes: answers never wait behind requests.
  static constexpr uint32_t kForAnswers = 1;

  /// Whether a user's message may be the entry of that index: how far is room in the ring and the
  /// distance to the next reap().
  [[nodiscard]] bool in_budget(uint32_t index) const {
    return static_cast<int32_t>(budget_end_ - index) > 0;
  }
  /// Whether a session has ended, and the context of this route was not told yet.
  [[nodiscard]] static bool has_to_hear(const Route& route) {
    return (route.link->routes.untold >> HeaderWords{0, route.word}.from() & 1) != 0;
  }
  // Mailboxes 1 to 3 are for large data. A message of one segment may use any of 64: many more can
  // fly then, since each mailbox has letters of its own.
  [[nodiscard]] static uint32_t mailbox(uint32_t number, uint32_t length_bytes) {
    return length_bytes <= regs::kSegmentBytesMax ? kSpread + (number & (kSpread - 1)) : 0;
  }
  [[gnu::noinline]] [[nodiscard]] bool reap_for_more();

  pmd::TxQueue& tx_;
  uint32_t budget_end_ = 0;  // index of the entry before which the ring has to be looked at
  bool stopped_ = false;
  uint32_t large_count_ = 0;
  uint64_t copied_ = 0;
  Events& events_;
  Endpoint& endpoint_;
};

}  // namespace rio::msg
