/// @file
/// The state that a port keeps for one peer: session, numbers, credits.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/fifo.hpp"
#include "lib/msg/config.hpp"
#include "lib/msg/credit.hpp"
#include "lib/msg/dma.hpp"
#include "lib/msg/header.hpp"
#include "lib/msg/transfer.hpp"
#include "lib/rail/rail_chooser.hpp"
#include "lib/rail/rail_state.hpp"

namespace rio::msg {

class Link;
class Outbox;
class Rails;
struct Rail;

/// A message to resend. It keeps its number.
struct Again {
  uint32_t link;      ///< index
  uint32_t session;   ///< of the link; not resent in any other session
  uint64_t since_ns;  ///< first failure, by the ListeningClock; deliver_ms counts from here
  std::vector<uint8_t> bytes;
  bool never_left = false;  ///< the card has sent no segment of it
  bool resent = false;      ///< it was resent before

  [[nodiscard]] HeaderWords header() const { return load_header(bytes.data()); }
};

/// Our credits to send to one context of the peer.
using Outflow = SendAccount;

/// The peer's credits to send to one of our contexts.
struct Inflow : RecvAccount {
  Inflow() = default;
  explicit Inflow(uint16_t share)
      : RecvAccount(share), half(static_cast<uint16_t>(share / 2)), open(true) {}

  uint16_t half = 0;   ///< half of the share: longest run; after close: messages that arrived
  uint16_t early = 0;  ///< early messages that hold a buffer
  bool open = false;
};

enum class LinkState : uint8_t {
  kIdle,   ///< no session yet, or it is over; with keys.remote set: we have answered a hello
  kHello,  ///< we have sent a hello and wait for the answer
  kUp,     ///< each side has the other's key, and knows that its own has arrived
};

/// State of a path that rests: the peer was silent for so long that it blocked other peers, so
/// nothing is posted for it until it answers.
struct Rest {
  bool on = false;
  bool asked = false;      ///< the card has `question` under way
  DmaTransfer question;    ///< a read of the peer's memory, to see whether it answers
  bool answered = false;   ///< the peer answered it
  uint64_t since_ns = 0;   ///< the peer has been silent since then, by the ListeningClock
  uint64_t until_ns = 0;   ///< earliest end: the card does not reuse the peer's letters before
  uint64_t length_ns = 0;  ///< length of this rest, or of the last one
  uint64_t over_ns = 0;    ///< when the last rest ended
  uint32_t passed = 0;     ///< ring entry of a message to the peer that others have passed
  uint64_t passed_ns = 0;  ///< when that was seen; 0: not seen
};

/// The way from one rail of ours, a card of the port, to a peer.
struct Path {
  /// @param timeout_ns the card's response time-out.
  Path(Rail& from, Link& to, uint32_t id, uint64_t timeout_ns)
      : rail(from), link(to), dest_id(id), state(timeout_ns) {}

  Rail& rail;
  Link& link;
  uint32_t dest_id;  ///< by which the rail reaches the peer
  Rest rest;
  QueueSource source;  ///< dedicated queues of the rail for the peer's large data

  // With several rails only. Written by Paths.
  rail::RailState state;
  bool is_found = false;  ///< the peer has answered by this path in this session
  uint64_t known_ns = 0;  ///< since when `remote` is at the other end
  /// The peer's rail at the other end. The path by which a session begins is taken to end at its
  /// first one.
  uint32_t remote = 0;
  static constexpr uint32_t kNoRail = ~0u;  ///< not known in this session
  bool is_asked = false;   ///< the state was probed by a message, and has no answer yet
  bool is_probed = false;  ///< the card has `probe` under way
  DmaTransfer probe;
};

/// A peer with several rails, as it has told in this session. Written by Paths.
struct PeerRails {
  /// How far a rail of ours has searched for a path.
  struct Search {
    uint32_t asked = 0;     ///< questions
    uint64_t again_ns = 0;  ///< when to ask again
  };

  uint32_t session = 0;                        ///< Link::session
  std::optional<rail::RailChooser> chooser{};  ///< of the paths that are found
  uint32_t known = 0;  ///< rails in `rails`; 0: the peer has not told them yet
  std::array<RailsBody::Rail, kRailsMax> rails{};
  std::array<Search, kRailsMax> searches{};  ///< by our rail
  bool has_ours = false;                     ///< the peer has our rails
  uint64_t tell_ns = 0;                      ///< when to tell it our rails
  uint64_t wait_ns = 20'000'000;             ///< and then how long to wait
  uint64_t wait_until_ns = 0;  ///< nothing is resent before: another path has been asked
};

/// A numbered message that is being handled, or is kept because it arrived before one with a lower
/// number.
struct Numbered {
  HeaderWords header;
  uint8_t* buffer;  ///< null: only the header, and the body if any, are kept
  uint16_t length_bytes;
  std::array<uint8_t, sizeof(RequestBody)> body;  ///< copy of the body if there is no buffer
};

/// The session keys that the two sides have chosen. Written by Sessions.
struct LinkKeys {
  uint32_t local = 0;     ///< our key, which the peer has to use; low 16 bits: Link::index()
  uint32_t remote = 0;    ///< the peer's key, which we use; 0: not known
  uint32_t first_in = 0;  ///< number of the peer's first message
  uint32_t former = 0;    ///< `remote` of the previous session
  bool warned = false;    ///< a broken rule of this peer was logged already
};

/// News to send to the peer as soon as there is room. Each bit is a context: the peer's in `open`,
/// ours in the others.
struct ToSay {
  uint64_t open = 0;
  uint64_t opened = 0, refused = 0;
  uint64_t credit = 0, records = 0;
  bool control = false;
  bool hello = false;
  bool welcome = false;
  bool alive = false;
  bool listed = false;  ///< in Peers' list of links that have news to send
};

/// Contexts of the peer in this session, one bit each.
struct PeerContexts {
  uint64_t asked = 0;    ///< we sent kOpen
  uint64_t opened = 0;   ///< it answered kOpened
  uint64_t refused = 0;  ///< it answered kRefused, and no sender of ours has been told yet
};

/// Contexts of ours, one bit each.
struct OwnContexts {
  uint64_t routed = 0;   ///< have a route to the peer
  uint64_t waiting = 0;  ///< wait for a session with the peer
  uint64_t untold = 0;   ///< have not been told of Link::error yet
};

/// Times of a link, by the port's ListeningClock.
struct LinkClock {
  bool watched = false;     ///< in Peers' list of links that wait for an answer
  bool stuck = false;       ///< a message could not be sent, although there is a session
  uint64_t hello_ns = 0;    ///< when the first hello was sent; 0: none is out
  uint64_t again_ns = 0;    ///< when to ask again, by base::now_ns()
  uint32_t missing = 0;     ///< number of the missing message that early ones wait for
  uint64_t missing_ns = 0;  ///< since when they wait; 0: none is missing
};

/// Counts of messages to resend. While `held`, nothing else is sent to the peer. Written by
/// Retries.
struct Backlog {
  bool held = false;
  uint32_t again = 0;                           ///< messages to resend
  uint32_t resent = 0;                          ///< resent messages that the card has not completed
  std::array<uint16_t, kContexts> kept_back{};  ///< credits withheld from Link::out while held
};

/// Large data of one peer: credits, requests and transfers.
struct LargeLink {
  SendAccount control_out{kControlCredits};
  RecvAccount control_in{kControlCredits};
  std::array<SendAccount, kContexts> records_out;
  std::array<RecvAccount, kContexts> records_in;
  base::Fifo<SendTransfer, &SendTransfer::links> sends;
  uint32_t sends_begun = 0;
  base::Fifo<Request, &Request::links> requests;  ///< not yet answered by the user
  base::Fifo<RecvTransfer, &RecvTransfer::links> receives;
  uint32_t requests_seen = 0;
  uint32_t answers = 0;         ///< answers that wait to be sent
  std::optional<bool> reads{};  ///< MessagePort::reads_directly(); nullopt: not asked yet
};

/// A peer. The port owns it and frees it only with itself, so pointers stay valid. State remembered
/// about a peer holds only while `session` is unchanged. Used only on the port's thread.
class Link {
 public:
  /// Most message numbers that may be in flight. A peer that goes beyond broke the protocol.
  static constexpr uint32_t kWindow = 1u << 15;
  /// Most early messages kept without a buffer, beyond those that have a credit.
  static constexpr uint32_t kBareMax = 1024;

  Link(uint32_t dest_id, uint32_t index) : dest_id_(dest_id), index_(index) {}

  // Used for each message.
  uint64_t expected = 0;     ///< first header word of the next message from the peer; see expect()
  uint64_t next_out = 0;     ///< first header word of our next message
  Outbox* outbox = nullptr;  ///< of the rail of `path`
  /// First descriptor words of a one-segment message by `path` to the first mailbox.
  uint64_t one_segment = 0;
  uint32_t session = 1;  ///< increments when a session ends
  LinkState state = LinkState::kIdle;
  std::array<Outflow, kContexts> out;
  std::array<Inflow, kContexts> in;

  // About the last session, for the layers above.
  int error = 0;      ///< why it ended: -errno
  uint64_t lost = 0;  ///< contexts of ours with messages that the session did not deliver
  /// Messages that the peer did not receive and that may be sent in the next session: whole
  /// messages, in order, from contexts that have lost nothing.
  std::vector<Again> unsent;
  uint64_t were_open = 0;  ///< `theirs.opened` when the session ended
  std::array<uint8_t, kContexts>
      refusals{};  ///< how often each context of the peer was closed, modulo 2^8
  /// MessagePort::instance() of the peer, as announced when a session last began; 0: never.
  uint32_t instance = 0;
  uint32_t rails = 0;  ///< of the peer, as it announced them with that; 0: one

  LinkKeys keys;
  ToSay say;
  PeerContexts theirs;
  OwnContexts routes;
  LinkClock clock;
  Backlog backlog;
  LargeLink large;
  Path* path = nullptr;  ///< in use; Outbox::use() changes it
  /// By the number of the rail; null: the rail does not reach the peer.
  std::array<std::unique_ptr<Path>, kRailsMax> paths;
  std::unique_ptr<PeerRails> peer_rails;  ///< null: we or the peer have one rail

  /// Of the peer on the port's first rail.
  [[nodiscard]] uint32_t dest_id() const { return dest_id_; }
  [[nodiscard]] uint32_t index() const { return index_; }

  /// Whether a context of the peer accepts our messages in this session.
  [[nodiscard]] bool has_opened(uint32_t context) const {
    return (theirs.opened >> context & 1) != 0;
  }
  /// Number of the next message expected from the peer.
  [[nodiscard]] uint32_t next_in() const { return static_cast<uint32_t>(expected >> 32); }
  /// Number of the next message or request, modulo 2^16, from the peer to a context of ours
  /// (number_in) or from us to a context of the peer (number_out).
  [[nodiscard]] uint16_t number_in(uint32_t context) const {
    return static_cast<uint16_t>(in[context].arrived() + large.records_in[context].arrived());
  }
  [[nodiscard]] uint16_t number_out(uint32_t context) const {
    return static_cast<uint16_t>(out[context].sent() - backlog.kept_back[context] +
                                 large.records_out[context].sent());
  }
  /// Withhold all credits in `out`, so that no context can send. To be called repeatedly, because
  /// the peer may give more credits.
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
  /// Set the number of the next message. While early messages are kept, `expected` matches no
  /// header, so that each message takes the slow path.
  void expect(uint32_t number) {
    expected = HeaderWords::key_and_number(early_.empty() ? keys.local : kNoKey, number);
  }
  [[nodiscard]] bool has_early() const { return !early_.empty(); }
  [[nodiscard]] bool has(uint32_t number) const { return early_.count(number) != 0; }
  /// Keep an early message that is not kept yet. @return false: its number is outside the window,
  /// or there are too many without a buffer.
  [[nodiscard]] bool keep(const Numbered& early) {
    const uint32_t number = early.header.number();
    const bool bare = early.buffer == nullptr;
    if (number - next_in() >= kWindow || (bare && bare_count_ == kBareMax)) {
      return false;
    }
    early_.emplace(number, early);
    bare_count_ += bare ? 1 : 0;
    return true;
  }
  /// Take the message that is expected now out of the early ones. @return false: it is not among
  /// them.
  [[nodiscard]] bool take(Numbered* early) { return take_out(early_.find(next_in()), early); }
  /// Take any early message, to discard it. @return false: there is none.
  [[nodiscard]] bool drop(Numbered* early) { return take_out(early_.begin(), early); }

 private:
  static constexpr uint32_t kNoKey = ~0u;  // its low 16 bits are no link's index

  [[nodiscard]] bool take_out(std::unordered_map<uint32_t, Numbered>::iterator place,
                              Numbered* early) {
    if (place == early_.end()) {
      return false;
    }
    *early = place->second;
    bare_count_ -= early->buffer == nullptr ? 1 : 0;
    early_.erase(place);
    return true;
  }

  uint32_t dest_id_;
  uint32_t index_;
  uint32_t bare_count_ = 0;                       // messages in early_ without a buffer
  std::unordered_map<uint32_t, Numbered> early_;  // key: number
};

}  // namespace rio::msg
