/// @file
/// What a port counts; each block is written by one thread.
#pragma once

#include "pmd/bus/counter.hpp"

namespace rio::pmd {

struct NetRxCounts {
  Counter frames;
  Counter bytes;
  Counter no_mbuf;
  Counter failed;   ///< messages that the card received in part
  Counter lengths;  ///< too short for Ethernet
  Counter spoofed;  ///< source addresses of other cards
  Counter joins;
  Counter leaves;
};

struct NetTxCounts {
  Counter frames;
  Counter bytes;
  Counter refused;  ///< by the peer, or in doubt
  Counter lengths;  ///< too short for Ethernet, or too long for a message
  // Nobody with this address has joined; or, of broadcasts, more have than the ring has entries.
  Counter no_peer;
  Counter bounced;  ///< copied, since they are not where or as the card wants it
};

}  // namespace rio::pmd
