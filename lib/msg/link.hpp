/// @file
/// What a port knows of one peer: session, numbers, credits.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/msg/header.hpp"
#include "lib/msg/transfer.hpp"

namespace rio::msg {

/// What we may send to one context of the peer. Counts of messages, modulo 2^16.
struct Outflow {
  uint16_t sent = 0;
  uint16_t limit = 0;  ///< that `sent` may reach, as the peer said last

  [[nodiscard]] uint16_t left() const { return static_cast<uint16_t>(limit - sent); }
};

/// What the peer may send to one of our contexts.
struct Inflow {
  uint16_t received = 0;
  uint16_t limit = 0;  ///< as it stands; grows as buffers come back
  uint16_t told = 0;   ///< of the limit, what the peer knows
  uint16_t half = 0;   ///< of the share: so much may be untold
  uint16_t share = 0;  ///< buffers that are set aside; 0: not open
};

enum class LinkState : uint8_t {
  kIdle,   ///< nothing was ever sent, or the session is over
  kHello,  ///< asked, not answered
  kUp,
};

/// A message that came before one with a lower number.
struct Early {
  uint8_t* buffer;
  uint16_t length_bytes;
};

/// A peer. Owned by its port, never freed before it, so that a pointer stays valid; `session` tells
/// whether what one remembers is still true. The port's thread.
class Link {
 public:
  /// Numbers that may be under way: a peer that goes beyond has lied.
  static constexpr uint32_t kWindow = 1024;

  Link(uint32_t dest_id, uint32_t index) : dest_id_(dest_id), index_(index) {}

  // Each message.
  uint64_t expected = 0;  ///< first word of the next header; see expect()
  uint64_t next_out = 0;  ///< first word of the next header of ours
  uint32_t session = 1;   ///< grows when a session ends
  LinkState state = LinkState::kIdle;
  std::array<Outflow, kContexts> out;
  std::array<Inflow, kContexts> in;

  uint32_t local_key = 0;   ///< what the peer has to name; low 16 bits: index()
  uint32_t remote_key = 0;  ///< what we name

  // Now and then. Bits are of contexts: theirs in the first line, ours in the others.
  uint64_t say_open = 0, asked = 0, refused = 0;
  uint64_t say_opened = 0, say_refused = 0;
  uint64_t say_credit = 0;
  bool say_hello = false;
  bool say_welcome = false;
  bool say_reset = false;
  bool listed = false;  ///< in the port's list of links that have something to say
  // Large data, of sender.hpp and receiver.hpp.
  LinkedList<SendTransfer> sends;
  uint32_t sends_begun = 0;
  LinkedList<Request> requests;  ///< that the user has not answered
  LinkedList<RecvTransfer> receives;
  uint32_t requests_seen = 0;
  QueueSource source;

  uint32_t unknown_key = 0;  ///< of the reset
  uint64_t deadline_ns = 0;  ///< until when the peer has to answer; 0: nothing is asked
  uint64_t again_ns = 0;     ///< when to ask once more
  int error = 0;             ///< the same as `ended`, until a sender has heard of it
  int ended = 0;             ///< why the last session ended: -errno

  [[nodiscard]] uint32_t dest_id() const { return dest_id_; }
  [[nodiscard]] uint32_t index() const { return index_; }

  /// Number of the message that is expected.
  [[nodiscard]] uint32_t next_in() const { return static_cast<uint32_t>(expected >> 32); }
  /// From now on that number is expected. While something waits that came early, no header matches
  /// `expected`: each message then goes the long way.
  void expect(uint32_t number) {
    expected = HeaderWords::key_and_number(early_count_ == 0 ? local_key : 0, number);
  }
  /// Keep what came too early. @return false: its number is outside of the window, or taken.
  [[nodiscard]] bool keep(uint32_t number, const Early& early);
  /// The one that is expected now, if it came early. @return false: it did not.
  [[nodiscard]] bool take(Early* early);
  [[nodiscard]] bool has_early() const { return early_count_ != 0; }
  /// Give away all that came early, one after the other. @return false: there is none.
  [[nodiscard]] bool drop(Early* early);

 private:
  uint32_t dest_id_;
  uint32_t index_;
  std::unique_ptr<std::array<Early, kWindow>> early_;  // made when first needed
  uint32_t early_count_ = 0;
};

}  // namespace rio::msg
