/// @file
/// Another member of the fabric, as the wire knows it.
#pragma once

#include <memory>
#include <optional>

#include "fpga/wire/udp/address.hpp"
#include "fpga/wire/udp/contact.hpp"
#include "fpga/wire/udp/doubt.hpp"
#include "fpga/wire/udp/lanes.hpp"
#include "fpga/wire/udp/session.hpp"

namespace rio::wire::udp {

/// Used by the thread that steps the card.
struct Peer {
  Address address;
  uint32_t first_id = 0;  ///< our name for the peer's first destID; 0: it has none yet
  uint32_t path_bytes = 0;
  Calls calls;
  Attempt now;                   ///< that is up if there is a session, or is being made
  std::optional<Attempt> later;  ///< a call of the peer although a connection is up
  std::unique_ptr<Lanes> lanes;  ///< with it, as long as the card has to take something
  std::unique_ptr<Session> session;
  Random member{};          ///< the peer's identity, while connected
  uint32_t ids = 0;         ///< destIDs of the peer that have a way
  uint32_t last_steps = 0;  ///< left, while the card takes the frames of a peer that has gone
  bool leaving = false;
  uint64_t asked_ns = 0;  ///< when the peer was last asked for an answer
  uint32_t asked = 0;     ///< how often, without an answer
  uint32_t units = 0;     ///< Session::units() at the last keep-alive question
  Doubt doubt;            ///< doubt whether the peer still knows the connection
  uint32_t refused = 0;   ///< ICMP refusals since the peer was heard
  uint64_t owed_ns = 0;   ///< since when an answer is owed that can wait; 0: none is
};

}  // namespace rio::wire::udp
