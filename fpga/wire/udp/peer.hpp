/// @file
/// Another member of the fabric, in the wire's view.
#pragma once

#include <memory>
#include <optional>

#include "fpga/wire/udp/address.hpp"
#include "fpga/wire/udp/connection.hpp"
#include "fpga/wire/udp/contact.hpp"
#include "fpga/wire/udp/doubt.hpp"
#include "fpga/wire/udp/frame_units.hpp"

namespace rio::wire::udp {

/// A peer. Used by the thread that steps the card.
struct Peer {
  Address address;
  uint32_t first_id = 0;  ///< our number for the peer's first destID; 0: none yet
  uint32_t path_bytes = 0;
  Calls calls;
  Attempt now;                   ///< the connection if there is a session, else the attempt
  std::optional<Attempt> later;  ///< a call of the peer while a connection is up
  std::unique_ptr<FrameUnits>
      lanes;  ///< present with a session, and while the card has frames to take
  std::unique_ptr<Connection> session;
  Random member{};          ///< the peer's identity, while connected
  uint32_t ids = 0;         ///< destIDs of the peer that have a way
  uint32_t last_steps = 0;  ///< steps left for the card to take the frames of a peer that has gone
  bool leaving = false;
  uint64_t asked_ns = 0;  ///< when the peer was last asked for an answer
  uint32_t asked = 0;     ///< consecutive questions without an answer
  uint32_t units = 0;     ///< Connection::units() at the last keep-alive question
  Doubt doubt;            ///< doubt whether the peer still knows the connection
  uint32_t refused = 0;   ///< ICMP refusals since the peer was last heard
  uint64_t owed_ns = 0;   ///< since when a postponed answer is owed; 0: none is
};

}  // namespace rio::wire::udp
