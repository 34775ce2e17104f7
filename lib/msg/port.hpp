/// @file
/// A queue pair of a card, shared by contexts: what is sent, what arrives, and who gets it.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lib/msg/again.hpp"
#include "lib/msg/config.hpp"
#include "lib/msg/copy.hpp"
#include "lib/msg/delivery.hpp"
#include "lib/msg/dma.hpp"
#include "lib/msg/link.hpp"
#include "lib/msg/lock.hpp"
#include "lib/msg/port_stats.hpp"
#include "lib/msg/profile.hpp"
#include "pmd/api/riopmd.hpp"

namespace rio::msg {

class Context;
class Receiver;
class Registrations;
class Sender;

/// From a context to another one.
struct Route {
  Link* link = nullptr;
  Outflow* out = nullptr;    ///< of the peer's context
  Inflow* back = nullptr;    ///< of ours
  uint64_t word = 0;         ///< second word of the headers, but for credit and padding
  uint64_t one_segment = 0;  ///< first words of a descriptor, but for mailboxes beyond the first
};

/// One thread: all functions of a port and of its contexts; or several, with the Guard of
/// waiting.hpp. Nothing happens but in their calls.
class Port {
 public:
  /// Open the card's queue pair. @return 0; -EINVAL (configuration; told in the log), or as
  /// rio::Endpoint::open().
  [[nodiscard]] static int open(const PortConfig& config, std::unique_ptr<Port>* out);
  /// Contexts are closed before.
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  /// Take what has arrived, say what has to be said. Bounded. Any call that waits for something
  /// does this, too. @return messages taken; 0 also when the card is gone: see error().
  uint32_t progress();

  /// Memory that transfers of this port still use, whose owner is closed: freed with the port.
  void take_over(std::shared_ptr<void> memory) { taken_over_.push_back(std::move(memory)); }

  /// Make progress until what was sent has arrived, or failed, for at most so long.
  /// @return 0, -ETIMEDOUT, -ENODEV.
  int flush(uint32_t timeout_ms);

  /// The way from a context to one of a peer's, valid as long as the context. @param to, from below
  /// kContexts. @param kind of what will be sent: one that takes a credit. @return 0, -EINVAL
  /// (context), -ENOMEM.
  [[nodiscard]] int route(uint32_t dest_id, uint32_t to, uint32_t from, Kind kind, Route* out);

  /// Hot. Send one message; its bytes are copied. @param bytes 0 to kPartBytesMax. @return 0;
  /// -EAGAIN: no room, or not connected yet: make progress and try again; -EMSGSIZE; or why it
  /// cannot be, which each context with a route hears once, before anything else of it is sent:
  /// -ECONNRESET (the session is over; the next call begins a new one), -ECONNREFUSED (no such
  /// context there), -EHOSTUNREACH (does not answer), -ENODEV (the card is gone), or what this
  /// process lacks to reach the peer: -EMFILE, -ENOMEM, -EPERM, and the like.
  [[nodiscard]] int send(const Route& route, const void* data, uint32_t bytes) {
    if (bytes > kPartBytesMax) [[unlikely]] {
      return -EMSGSIZE;
    }
    if (!may_send(route)) [[unlikely]] {
      return not_now(route);
    }
    uint8_t* const at = begin_message(route, bytes);
    if (bytes != 0) {
      std::memcpy(at + kHeaderBytes, data, bytes);
    }
    post(*route.link, at, kHeaderBytes + bytes);
    return 0;
  }
  /// The same for kTinyBytesMax bytes at most, without any call but the card's hook; not before
  /// send() after a session has ended: Context::on_session_end(). @return false: not sent; ask
  /// send() why.
  [[nodiscard]] bool send_tiny(const Route& route, const void* data, uint32_t bytes) {
    return send_one(route, bytes,
                    [&](uint8_t* at) { copy_tiny(at, static_cast<const uint8_t*>(data), bytes); });
  }
  /// The same, gathered. @param iov pieces, `bytes` in all.
  [[nodiscard]] int send(const Route& route, const iovec* iov, int count, uint32_t bytes);

  /// The same with a word before them. @param bytes 0 to kTinyBytesMax.
  [[nodiscard]] bool send_tiny(const Route& route, uint64_t word, const void* data,
                               uint32_t bytes) {
    return send_one(route, sizeof(word) + bytes, [&](uint8_t* at) {
      std::memcpy(at, &word, sizeof(word));
      copy_tiny(at + sizeof(word), static_cast<const uint8_t*>(data), bytes);
    });
  }
  /// With two words, as Kind::kDataImmediate. @param route of Kind::kData.
  [[nodiscard]] bool send_tiny(const Route& route, uint64_t word, uint64_t immediate,
                               const void* data, uint32_t bytes) {
    const auto fill = [&](uint8_t* at) {
      std::memcpy(at, &word, sizeof(word));
      std::memcpy(at + sizeof(word), &immediate, sizeof(immediate));
      copy_tiny(at + 2 * sizeof(word), static_cast<const uint8_t*>(data), bytes);
    };
    return send_one(route, 2 * sizeof(word) + bytes, fill, Kind::kDataImmediate);
  }
  /// As send(), with a header of the caller's before them. @param head_bytes with `bytes` at most
  /// kPartBytesMax.
  [[nodiscard]] int send(const Route& route, const void* head, uint32_t head_bytes,
                         const void* data, uint32_t bytes) {
    if (!may_send(route)) [[unlikely]] {
      return not_now(route);
    }
    uint8_t* const at = begin_message(route, head_bytes + bytes);
    std::memcpy(at + kHeaderBytes, head, head_bytes);
    if (bytes != 0) {
      std::memcpy(at + kHeaderBytes + head_bytes, data, bytes);
    }
    post(*route.link, at, kHeaderBytes + head_bytes + bytes);
    return 0;
  }

  /// End the session with a peer whose messages make no sense to the layer above; a warning is
  /// logged. Both sides may begin a new one.
  void cut_off(Link& link);
  /// How many sessions have ended: who remembers something of one looks when this has changed.
  [[nodiscard]] uint64_t sessions_ended() const { return sessions_ended_; }
  /// Links are never taken away. @param index below link_count().
  [[nodiscard]] uint32_t link_count() const { return static_cast<uint32_t>(links_.size()); }
  [[nodiscard]] Link& link_at(uint32_t index) { return *links_[index]; }

  /// The link to a peer, made if need be. @return null: no memory.
  [[nodiscard]] Link* link(uint32_t dest_id);
  [[nodiscard]] Link* known_link(uint32_t dest_id) const;  ///< null: there is none yet
  /// Process the card's events, which tell of peers that have gone.
  void look_for_gone() { look_at_events(true); }
  /// The process at this destID is known to be `instance`: end a session with any other instance.
  void meet_instance(uint32_t dest_id, uint32_t instance);

  [[nodiscard]] uint32_t dest_id() const { return dest_id_; }
  /// Not 0. Random, drawn for each port: tells apart processes that had the same destID.
  [[nodiscard]] uint32_t instance() const { return instance_; }
  /// As rio::Endpoint's.
  [[nodiscard]] std::string address() const { return endpoint_->address(); }
  [[nodiscard]] int reach(const std::string& address, uint32_t* dest_id) {
    return endpoint_->reach(address, dest_id);
  }
  /// 0, or -ENODEV: the card is gone, or was reset behind our back.
  [[nodiscard]] int error() const { return error_; }
  [[nodiscard]] const PortStats& stats() const { return stats_; }
  [[nodiscard]] const PortConfig& config() const { return config_; }
  /// Whoever uses it sleeps, and does not look all the time.
  [[nodiscard]] bool sleeps() const { return slept_; }
  [[nodiscard]] const Profile& profile() const { return profile_; }
  /// Grows with all that comes from the card: what was refused for want of room is worth another
  /// try when this has changed.
  [[nodiscard]] uint64_t activity() const;
  [[nodiscard]] Endpoint& endpoint() { return *endpoint_; }
  /// For the memory of peers; null: the card has no DMA queue. Whatever waits there calls
  /// progress().
  [[nodiscard]] Dma* dma() { return dma_.get(); }
  /// The user's memory, as the card reaches it. Null: no memory.
  [[nodiscard]] Registrations* registrations() {
    return start_large() == 0 ? memory_.get() : nullptr;
  }
  [[nodiscard]] uint32_t unshared() const { return shares_.free(); }  ///< buffers of no share

 private:
  friend class Context;
  friend class Guard;
  friend class LongMessages;
  friend class Receiver;
  friend class Sender;
  friend class Sleeper;
  friend void wake_all(Port& port);
  static constexpr uint32_t kBurst = 32;
  static constexpr uint32_t kBudget = 96;  // messages of users between two looks at the ring
  static constexpr uint32_t kRingLog2 = 9;
  static constexpr uint32_t kSpread = 32;   // mailboxes of messages of one segment, and their first
  static constexpr uint32_t kPosted = 256;  // buffers that the card has
  static constexpr uint32_t kLinksMax = 0xFFFF;             // so that one index is that of no link
  static constexpr uint32_t kStrangersMax = kLinksMax / 2;  // of them, made because a peer asked
  static constexpr uint32_t kLooksPerCard = 1u << 14;  // looks at the clock for one at the card
  static constexpr uint32_t kResetsMax = 64;
  static constexpr uint32_t kResetTries = 16;
  static constexpr uint32_t kResets = ~0u;  // in talkers_: not a link, resets_
  static constexpr uint32_t kReserve = 16;  // entries of the ring that only the library takes
  // Messages that one peer may have in the ring: a peer that takes nothing leaves room for others.
  static constexpr uint32_t kOutMax = 256;
  // Of those that are sent once more: the card has as many letters for each mailbox of a peer, so
  // they stop nobody.
  static constexpr uint32_t kAgainMax = 4;
  static constexpr uint32_t kRecords = 1u << 16;  // that all windows together may be raised by
  // Control credits that no request takes: answers never wait behind requests.
  static constexpr uint32_t kForAnswers = 1;
  static constexpr uint32_t kAnswersMax = 4096;  // that a peer may wait for

  // Of buffers and slots. Heads of neighbours fall into different sets of the L1 cache.
  static constexpr uint32_t kStrideBytes = regs::kMessageBytesMax + regs::kSegmentBytesMax;

  /// A message as the card told of it.
  struct Arrival {
    uint8_t* buffer;
    uint32_t source;
    uint32_t length_bytes;
  };

  /// ABORT, CLOSED or DONE about a transfer that is not kept any more; REVOKED.
  struct Answer {
    Link* link;
    uint32_t session;
    Kind kind;
    uint32_t transfer;
    uint8_t attempt;
    uint8_t reason;        ///< of ABORT 0: the sender is to ask again
    uint16_t context = 0;  ///< of REVOKED
    uint16_t number = 0;   ///< the same: of the message that was next then
  };

  explicit Port(const PortConfig& config);
  [[nodiscard]] int start();
  [[nodiscard]] int start_buffers();
  [[nodiscard]] int make_area(uint32_t count, pmd::DmaMemory* out);

  // What arrives: receive.cc.
  [[nodiscard]] bool take_alone();
  [[nodiscard]] uint32_t fetch_plain();
  [[nodiscard]] uint32_t fetch_others();
  void take_what_came();
  void serve();
  [[nodiscard]] Link* begin_run(const Arrival& arrival, const HeaderWords& header);
  [[nodiscard]] uint32_t take_run(Link& link, HeaderWords first, uint32_t source, uint32_t n);
  void take_other(const Arrival& arrival);
  [[nodiscard]] bool keep_early(Link& link, Numbered message);
  void take_in_order(Link& link, Numbered next);
  [[nodiscard]] bool take_early(Link& link, Numbered* next);
  void deliver(Link& link, const Numbered& message);
  void control(Link& link, const HeaderWords& header);
  void return_credit(const Origin& origin, uint32_t to, uint32_t count);
  void return_record(const Origin& origin, uint32_t to);
  [[nodiscard]] bool lend_records(Link& link, uint32_t context);
  void repost(uint8_t* buffer) { spare_[spare_count_++] = buffer; }
  /// Hot. The same for the buffers of so many messages.
  void repost(const iovec* messages, uint32_t count) {
    uint8_t** const to = spare_.get() + spare_count_;
#pragma GCC unroll 4
    for (size_t i = 0; i < count; ++i) {
      to[i] = static_cast<uint8_t*>(messages[i].iov_base) - kHeaderBytes;
    }
    spare_count_ += count;
  }
  void drop(const Numbered& message) {
    if (message.buffer != nullptr) {
      repost(message.buffer);
    }
  }
  void refill();

  // What is sent: send.cc.
  /// Whether a user's message may be the entry of that index: how far is room in the ring and the
  /// distance to the next reap().
  [[nodiscard]] bool in_budget(uint32_t index) const {
    return static_cast<int32_t>(budget_end_ - index) > 0;
  }
  [[nodiscard]] bool may_send(const Route& route) {
    // In this order: what is reaped may be the end of the session, and of all that is left.
    return (in_budget(tx_->next_index()) || reap_for_more()) && route.out->available() != 0 &&
           !has_to_hear(route);
  }
  /// Whether a session has ended, and the context of this route was not told yet.
  [[nodiscard]] static bool has_to_hear(const Route& route) {
    return (route.link->routes.untold >> HeaderWords{0, route.word}.from() & 1) != 0;
  }
  /// Writes the header. @return where it is; the bytes go behind it.
  [[nodiscard]] uint8_t* begin_message(const Route& route, uint32_t bytes) {
    route.out->take_known();
    const uint16_t credit = route.back->tell();
    stats_.copied += bytes;
    const HeaderWords header = {route.link->next_out, route.word | uint64_t{credit} << 32 |
                                                          uint64_t{padding_of(bytes)} << 56};
    uint8_t* const at = tx_->slot_va();
    std::memcpy(at, &header, sizeof(header));
    return at;
  }
  void post(Link& link, const uint8_t* at, uint32_t length_bytes) {
    const auto number = static_cast<uint32_t>(link.next_out >> 32);
    link.next_out += 1ull << 32;
    tx_->send_slot(at, pmd::TxQueue::slot_words(link.dest_id(), mailbox(number, length_bytes)),
                   length_bytes);
  }
  /// may_send(), begin_message() and post() for a message of one segment, if the budget lasts. What
  /// is read again and again elsewhere is in locals here: the bytes might be anybody's.
  /// @param fill writes the bytes. @param kind of the message, if the route's is kData.
  template <class Fill>
  [[nodiscard]] [[gnu::always_inline]] bool send_one(const Route& route, uint32_t bytes, Fill fill,
                                                     Kind kind = Kind::kData) {
    Outflow& out = *route.out;
    pmd::TxQueue& tx = *tx_;
    if (out.available() == 0 || !in_budget(tx.next_index())) [[unlikely]] {
      return false;
    }
    const pmd::TxQueue::Slot slot = tx.next_slot();
    out.take_known();
    stats_.copied += bytes;
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
  [[gnu::noinline]] [[nodiscard]] bool reap_for_more();
  // Mailboxes 1 to 3 are for large data. A message of one segment may use any of 64: many more can
  // fly then, since each mailbox has letters of its own.
  [[nodiscard]] static uint32_t mailbox(uint32_t number, uint32_t length_bytes) {
    return length_bytes <= regs::kSegmentBytesMax ? kSpread + (number & (kSpread - 1)) : 0;
  }
  [[gnu::noinline]] [[nodiscard]] int not_now(const Route& route);
  [[nodiscard]] int may_request(const Route& route);
  void post_request(const Route& route, const RequestBody& body);
  [[nodiscard]] bool take_room();
  void reap();
  void reap_others();
  void failed(const pmd::TxDone& done);
  void session_failed(const HeaderWords& header, uint32_t entry, pmd::Status status);
  [[nodiscard]] uint64_t take_since(uint32_t entry);
  void keep_to_send(Link& link, Again again);
  void send_again();
  void post_again(const Link& link, const Again& again);
  void no_longer_resent(const Resent& resent);
  void hold(Link& link);
  void hold_if_greedy();
  void release_held();
  [[nodiscard]] uint32_t out_to(uint32_t dest_id) const;

  // Peers that do not answer: silence.cc.
  void look_at_ring();
  [[nodiscard]] bool others_wait(uint32_t silent, uint32_t end) const;
  void begin_restart();
  void look_at_stop();
  void finish_restart();
  void give_up(const char* what);
  void rest(Link& link);
  void look_at_rests();
  [[nodiscard]] bool look_at_rest(Link& link, uint64_t now);
  void ask_resting(Link& link);
  [[nodiscard]] bool can_ask() const;
  [[nodiscard]] bool have_answer_memory();
  void end_rest(Link& link);

  // Large data: large.cc.
  [[nodiscard]] int start_large();
  void large_progress();
  [[nodiscard]] bool keep_body(Numbered* message);
  void large(Link& link, const Numbered& message);
  [[nodiscard]] bool request(Link& link, const Header& header, std::span<const uint8_t> body);
  [[nodiscard]] bool large_control(Link& link, const HeaderWords& header,
                                   std::span<const uint8_t> body);
  [[nodiscard]] bool may_say(const Link& link);
  /// @param to, from contexts, where the kind has any.
  [[nodiscard]] bool say_body(Link& link, Kind kind, const void* body, uint32_t bytes,
                              uint32_t to = 0, uint32_t from = 0);
  void answer(const Answer& answer) {
    ++answer.link->large.answers;
    answers_.push_back(answer);
    large_awake_ = true;
  }
  [[nodiscard]] bool say(const Answer& answer);
  [[nodiscard]] uint64_t now_us() const;
  [[nodiscard]] uint32_t response_timeout_us() const;
  [[nodiscard]] Sender& sender();  // created, like receiver(), when the first large data begins
  [[nodiscard]] Receiver& receiver();
  [[nodiscard]] bool large_busy() const;
  [[nodiscard]] bool late_possible() const;

  // Sessions: session.cc.
  void on_session(uint32_t source, const uint8_t* buffer, uint32_t length_bytes);
  void on_hello(uint32_t source, const SessionBody& body);
  [[nodiscard]] static bool is_asked(const Link& link);
  [[nodiscard]] bool meet(Link& link, const SessionBody& body);
  void forget_peer(Link& link, const uint32_t* not_taken = nullptr);
  [[nodiscard]] uint64_t find_lost(Link& link, uint32_t key, const uint32_t* not_taken);
  void reset_late(Link& link, uint32_t not_taken);
  void begin_session(Link& link);
  [[nodiscard]] Link* link_of_hello(uint32_t source);
  void on_unknown(const Reset& reset);
  void end_session(Link& link, int error, uint64_t lost = ~0ull);
  void end_all_sessions();
  void tell_senders(const Link& link) const;
  void want(Link& link);
  void speak();
  [[nodiscard]] bool speak(Link& link);
  [[nodiscard]] bool say_resets();
  [[nodiscard]] bool say(Link& link, Kind kind, uint32_t to, uint32_t from, uint32_t credit);
  [[nodiscard]] bool say_total(Link& link, Kind kind, uint32_t from, RecvAccount& account);
  [[nodiscard]] bool say_session(uint32_t dest_id, const HeaderWords& header,
                                 const SessionBody& body);
  [[nodiscard]] bool say_session(const Link& link, Kind kind);
  void ask(Link& link);
  void watch(Link& link, uint64_t again_ns);
  void look_at(Link& link, uint64_t now);
  [[nodiscard]] bool look_at_hole(Link& link, uint64_t now);
  void look_at_time();
  void renew(Link& link);
  void look_at_card();
  void look_at_events(bool take);
  void open_inflow(Link& link, uint32_t context);
  void grow_inflow(Link& link, uint32_t context);
  void close_inflow(Link& link, uint32_t context);
  void close_context(uint16_t id);

  // Several threads, and sleep: waiting.cc.
  void enter();
  void leave();
  void wake_sleepers();
  void look_at_all();
  void arm();
  [[nodiscard]] uint32_t sleep_bound_ms() const;
  [[nodiscard]] static uint32_t irq_rings();

  PortConfig config_;
  Profile profile_;
  std::vector<std::shared_ptr<void>> taken_over_;  // destroyed last
  std::unique_ptr<Endpoint> endpoint_;
  pmd::TxQueue* tx_ = nullptr;
  pmd::SharedRxQueue* shared_ = nullptr;
  pmd::EventQueue* events_ = nullptr;
  std::unique_ptr<Dma> dma_;  // null: the card has none
  int error_ = 0;
  uint32_t dest_id_ = 0;
  uint32_t instance_ = 0;

  // Sending.
  uint32_t budget_end_ = 0;  // index of the entry before which the ring has to be looked at
  std::vector<Again> again_;
  std::vector<Resent> resent_;
  std::vector<uint32_t> held_;  // indices of links

  // Peers that do not answer.
  Stuck stuck_{};
  bool restarting_ = false;  // the ring is being stopped: nothing is posted
  uint64_t stop_ns_ = 0;
  std::vector<Flushed> flushed_;
  std::vector<Again> parked_;      // of again_, for those that rest
  std::vector<uint32_t> resting_;  // indices of links
  pmd::IovaRun answer_{};          // where the peer's answer goes, which nobody reads

  // Receiving.
  std::array<Arrival, kBurst> others_;  // of the burst at hand, not plain
  uint64_t buffer_iova_minus_va_ = 0;
  std::unique_ptr<uint8_t*[]> spare_;  // that the card does not have, nor anybody else
  uint32_t spare_count_ = 0;
  uint32_t posted_ = 0;
  SharePool shares_{0};               // of them, what no context of a peer may fill
  SharePool records_lent_{kRecords};  // what may be lent
  std::array<Context*, kContexts> contexts_{};
  std::array<uint32_t, kContexts> told_at_{};  // ring entry after the news of their last end

  std::vector<std::unique_ptr<Link>> links_;         // by index
  std::unordered_map<uint32_t, uint32_t> index_of_;  // by destID
  std::unordered_set<uint32_t> gone_;                // destIDs of those who died, and nobody came
  std::vector<uint32_t> talkers_;                    // indices of links that have something to say
  std::vector<uint32_t> watched_;                    // and of those that wait for an answer
  std::vector<Reset> resets_;
  std::unique_ptr<Registrations> memory_;  // these are made when first needed
  std::unique_ptr<Sender> sender_;
  std::unique_ptr<Receiver> receiver_;
  std::vector<Answer> answers_;  // to be said
  bool large_awake_ = false;     // large_busy() or late_possible() may be true
  uint32_t until_time_ = kBurst;
  uint32_t until_card_ = kLooksPerCard;
  uint64_t key_seed_ = 0;
  uint64_t sessions_ended_ = 0;
  PortStats stats_;

  PortLock lock_;
  std::vector<int> sleepers_;  // where each is woken
  uint64_t seen_ = 0;          // activity() that they know of
  bool slept_ = false;         // somebody has
};

}  // namespace rio::msg
