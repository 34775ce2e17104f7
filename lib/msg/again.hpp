/// @file
/// Messages that a port sends once more, and the state of a ring that does not move.
#pragma once

#include <cstdint>
#include <vector>

namespace rio::msg {

/// A message that has to be sent once more, with the number it has.
struct Again {
  uint32_t link;      ///< index
  uint32_t session;   ///< of the link; of another one it is not sent
  uint64_t since_ns;  ///< when it failed first, by now_ns(); deliver_ms counts from there
  std::vector<uint8_t> bytes;
  bool never_left = false;  ///< the card has not begun to send it
};

/// One that the card has not sent, since its ring was stopped.
struct Flushed {
  Again message;
  bool resent;  ///< it had failed before
};

/// A message that was sent once more and is in the ring.
struct Resent {
  uint32_t link;      ///< index
  uint32_t session;   ///< of the link
  uint32_t entry;     ///< of the ring, free-running
  uint64_t since_ns;  ///< as of Again
};

/// An answer to a message that belongs to no session.
struct Reset {
  uint32_t dest_id;
  uint32_t key;
  uint32_t number;  ///< of the first message that was not received
  uint32_t tries;
};

/// The oldest entry of the ring, while it is not answered.
struct Stuck {
  uint32_t oldest;    ///< free-running
  uint32_t end;       ///< entries before it have been out since then
  uint32_t looks;     ///< of ours, in which the peer could have answered
  uint64_t since_ns;  ///< by now_ns(); 0: not known
};

}  // namespace rio::msg
