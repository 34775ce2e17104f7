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
  uint32_t first_id = 0;  ///< we call his first destID so; 0: he has none yet
  uint32_t path_bytes = 0;
  Calls calls;
  Attempt now;                   ///< that is up if there is a session, or is being made
  std::optional<Attempt> later;  ///< he has called although a connection is up
  std::unique_ptr<Lanes> lanes;  ///< with it, as long as the card has to take something
  std::unique_ptr<Session> session;
  Random member{};          ///< who he is, while connected
  uint32_t ids = 0;         ///< destIDs of his that have a way
  uint32_t last_steps = 0;  ///< left, when he has gone and the card takes what he has sent
  bool leaving = false;
  uint64_t asked_ns = 0;  ///< when he was last asked whether he is there
  uint32_t asked = 0;     ///< how often, without an answer
  uint32_t units = 0;     ///< Session::units() at the last keep-alive question
  Doubt doubt;            ///< doubt whether the peer still knows the connection
  uint32_t refused = 0;   ///< how often nobody listened there, since he was heard
  uint64_t owed_ns = 0;   ///< since when an answer is owed that can wait; 0: none is
};

}  // namespace rio::wire::udp
