/// @file
/// What a port knows of one peer: session, numbers, credits.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/msg/again.hpp"
#include "lib/msg/credit.hpp"
#include "lib/msg/dma.hpp"
#include "lib/msg/header.hpp"
#include "lib/msg/transfer.hpp"

namespace rio::msg {

/// Credits to send to one context of the peer.
using Outflow = SendAccount;

/// Credits of the peer to send to one of our contexts.
struct Inflow : RecvAccount {
  Inflow() = default;
  explicit Inflow(uint16_t share)
      : RecvAccount(share), half(static_cast<uint16_t>(share / 2)), open(true) {}

  uint16_t half = 0;   ///< of the share: a run is no longer; once it is closed: messages that came
  uint16_t early = 0;  ///< messages that came early and are in buffers
  bool open = false;
};

enum class LinkState : uint8_t {
  kIdle,   ///< nothing was ever sent, or the session is over; with a remote_key: answered a hello
  kHello,  ///< asked, not answered
  kUp,     ///< each has the other's key, and knows that its own was heard
};

/// A peer that did not answer for so long that it stood in the way of others: nothing is posted for
/// it until it does.
struct Rest {
  bool on = false;
  bool asked = false;      ///< the card has a question for the peer
  DmaTransfer question;    ///< that
  bool answered = false;   ///< and it was answered
  uint64_t since_ns = 0;   ///< nothing was heard
  uint64_t until_ns = 0;   ///< it lasts as long at least: letters that it had are not used before
  uint64_t length_ns = 0;  ///< of this one, or of the last
  uint64_t over_ns = 0;    ///< when the last one was
};

/// A numbered message, at hand or kept since it came before one with a lower number.
struct Numbered {
  HeaderWords header;
  uint8_t* buffer;  ///< null: only the header was kept, and the body of what has one
  uint16_t length_bytes;
  std::array<uint8_t, sizeof(RequestBody)> body;  ///< where there is no buffer
};

/// The names by which the two sides of a session know each other. Sessions writes them.
struct LinkKeys {
  uint32_t local = 0;     ///< what the peer has to name; low 16 bits: Link::index()
  uint32_t remote = 0;    ///< what we name; 0: the peer has not named its key
  uint32_t first_in = 0;  ///< number that the peer has to begin with
  uint32_t former = 0;    ///< `remote` of the last session
  bool warned = false;    ///< the log has it that the peer breaks rules
};

/// News that the peer has to be told, as soon as there is room. Bits are contexts: the peer's in
/// `open`, ours in the others.
struct ToSay {
  uint64_t open = 0;
  uint64_t opened = 0, refused = 0;
  uint64_t credit = 0, records = 0;
  bool control = false;
  bool hello = false;
  bool welcome = false;
  bool alive = false;
  bool listed = false;  ///< in the port's list of links that have something to say
};

/// Contexts of the peer, a bit each, in this session.
struct PeerContexts {
  uint64_t asked = 0;    ///< we asked to be let in
  uint64_t opened = 0;   ///< and were
  uint64_t refused = 0;  ///< or were not, which no sender of ours was told yet
};

/// Contexts of ours, a bit each.
struct OwnContexts {
  uint64_t routed = 0;   ///< they have a route to the peer
  uint64_t waiting = 0;  ///< they wait for a session
  uint64_t untold = 0;   ///< they have not heard of Link::error yet
};

/// Times of events that a link waits for.
struct LinkClock {
  bool watched = false;      ///< in the port's list of links that wait for an answer
  bool stuck = false;        ///< a message could not be sent, not for want of a session
  uint64_t deadline_ns = 0;  ///< until when the hello has to be answered; 0: there is none
  uint64_t again_ns = 0;     ///< when to ask once more
  uint32_t missing = 0;      ///< number that others wait for
  uint64_t missing_ns = 0;   ///< since when; 0: for none
};

/// Messages to be sent once more. While it is held, nothing else goes to the peer. Retries write
/// it.
struct Backlog {
  bool held = false;
  uint32_t again = 0;                           ///< to be sent once more
  uint32_t resent = 0;                          ///< sent once more, and on their way
  std::array<uint16_t, kContexts> kept_back{};  ///< credits, taken from Link::out meanwhile
};

/// Large data: requests, of which a record is kept, and the messages about them.
struct LargeLink {
  SendAccount control_out{kControlCredits};
  RecvAccount control_in{kControlCredits};
  std::array<SendAccount, kContexts> records_out;
  std::array<RecvAccount, kContexts> records_in;
  LinkedList<SendTransfer> sends;
  uint32_t sends_begun = 0;
  LinkedList<Request> requests;  ///< that the user has not answered
  LinkedList<RecvTransfer> receives;
  uint32_t requests_seen = 0;
  uint32_t answers = 0;  ///< that wait to be said
  QueueSource source;
};

/// A peer. Owned by its port, never freed before it, so that a pointer stays valid; `session` tells
/// whether what one remembers is still true. The port's thread.
class Link {
 public:
  /// Numbers that may be under way: a peer that goes beyond has lied.
  static constexpr uint32_t kWindow = 1u << 15;
  /// Of those that came early, how many may be kept besides those that have a credit.
  static constexpr uint32_t kBareMax = 1024;

  Link(uint32_t dest_id, uint32_t index) : dest_id_(dest_id), index_(index) {}

  // Each message.
  uint64_t expected = 0;  ///< first word of the next header; see expect()
  uint64_t next_out = 0;  ///< first word of the next header of ours
  uint32_t session = 1;   ///< grows when a session ends
  LinkState state = LinkState::kIdle;
  std::array<Outflow, kContexts> out;
  std::array<Inflow, kContexts> in;

  // The last session, for the layers above.
  int error = 0;      ///< why it ended: -errno
  uint64_t lost = 0;  ///< contexts of ours: it did not deliver all that they sent
  /// Messages that the peer did not receive, which may be sent in the next one. Whole messages, in
  /// their order, of contexts that have lost nothing.
  std::vector<Again> unsent;
  uint64_t were_open = 0;                     ///< `theirs.opened` when it ended
  std::array<uint8_t, kContexts> refusals{};  ///< how often each of theirs was closed, modulo 2^8
  /// MessagePort::instance() that the peer announced when a session last began; 0: never.
  uint32_t instance = 0;

  LinkKeys keys;
  ToSay say;
  PeerContexts theirs;
  OwnContexts routes;
  LinkClock clock;
  Backlog backlog;
  Rest rest;
  LargeLink large;

  [[nodiscard]] uint32_t dest_id() const { return dest_id_; }
  [[nodiscard]] uint32_t index() const { return index_; }

  /// Whether a context of the peer has let us in, in this session.
  [[nodiscard]] bool has_opened(uint32_t context) const {
    return (theirs.opened >> context & 1) != 0;
  }
  /// Number of the message that is expected.
  [[nodiscard]] uint32_t next_in() const { return static_cast<uint32_t>(expected >> 32); }
  /// How many messages and requests came for a context of ours, or went to one of theirs, modulo
  /// 2^16: the number of the next.
  [[nodiscard]] uint16_t number_in(uint32_t context) const {
    return static_cast<uint16_t>(in[context].arrived() + large.records_in[context].arrived());
  }
  [[nodiscard]] uint16_t number_out(uint32_t context) const {
    return static_cast<uint16_t>(out[context].sent() - backlog.kept_back[context] +
                                 large.records_out[context].sent());
  }
  /// While it is held no sender finds credit in `out`. Called again and again, since the peer may
  /// give more.
  void hold() {
    backlog.held = true;
    for (uint32_t i = 0; i < kContexts; ++i) {
      backlog.kept_back[i] = static_cast<uint16_t>(backlog.kept_back[i] + out[i].take_all());
    }
  }
  void release() {
    backlog.held = false;
    for (uint32_t i = 0; i < kContexts; ++i) {
      out[i].put_back(std::exchange(backlog.kept_back[i], uint16_t{0}));
    }
  }
  /// From now on that number is expected. While something waits that came early, no header matches
  /// `expected`: each message then goes the long way.
  void expect(uint32_t number) {
    expected = HeaderWords::key_and_number(early_.empty() ? keys.local : kNoKey, number);
  }
  [[nodiscard]] bool has_early() const { return !early_.empty(); }
  [[nodiscard]] bool has(uint32_t number) const { return early_.count(number) != 0; }
  /// Keep what came too early and is not kept yet. @return false: its number is outside of the
  /// window, or it is one too many of those without a buffer.
  [[nodiscard]] bool keep(const Numbered& early);
  /// The one that is expected now, if it came early. @return false: it did not.
  [[nodiscard]] bool take(Numbered* early);
  /// Give away all that came early, one after the other. @return false: there is none.
  [[nodiscard]] bool drop(Numbered* early);

 private:
  static constexpr uint32_t kNoKey = ~0u;  // its index is that of no link

  uint32_t dest_id_;
  uint32_t index_;
  uint32_t bare_count_ = 0;                       // of early_, those without a buffer
  std::unordered_map<uint32_t, Numbered> early_;  // by number
};

}  // namespace rio::msg
