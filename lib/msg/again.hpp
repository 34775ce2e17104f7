/// @file
/// Records of messages that a port resends, and of a transmit ring that makes no progress.
#pragma once

#include <cstdint>
#include <vector>

namespace rio::msg {

/// A message to resend. It keeps its number.
struct Again {
  uint32_t link;      ///< index
  uint32_t session;   ///< of the link; not resent in any other session
  uint64_t since_ns;  ///< first failure, by now_ns(); deliver_ms counts from here
  std::vector<uint8_t> bytes;
  bool never_left = false;  ///< the card has sent no segment of it
};

/// A message that the card returned unsent because its ring was stopped.
struct Flushed {
  Again message;
  bool resent;  ///< it had already been resent before
};

/// A resent message that is in the ring.
struct Resent {
  uint32_t link;      ///< index
  uint32_t session;   ///< of the link
  uint32_t entry;     ///< ring index, free-running
  uint64_t since_ns;  ///< as Again::since_ns
};

/// A kReset to send, because a message arrived that belongs to no session.
struct Reset {
  uint32_t dest_id;
  uint32_t key;
  uint32_t number;  ///< number of the first message not received
  uint32_t tries;
};

/// Tracks how long the ring's oldest entry has gone unanswered.
struct Stuck {
  uint32_t oldest;  ///< index of that entry, free-running
  uint32_t end;     ///< end of the entries already posted when tracking began
  uint32_t looks;  ///< how often the port has looked at the ring since, giving the peer a chance to
                   ///< answer
  uint64_t since_ns;  ///< when tracking began, by now_ns(); 0: not tracking
};

}  // namespace rio::msg
