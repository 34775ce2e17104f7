/// @file
/// Counts of a port. The thread that has the turn of a queue writes the queue's block.
#pragma once

#include "pmd/bus/counter.hpp"

namespace rio::pmd {

/// Counts of a port's received messages, before their queue is known.
struct NetRxCounts {
  Counter messages;
  Counter bundles;        ///< messages that are bundles
  Counter failed;         ///< messages that the card received in part
  Counter lengths;        ///< frames too short for Ethernet
  Counter too_long;       ///< frames longer than the MTU allows, or than an mbuf without `scatter`
  Counter spoofed;        ///< frames with the source address of another card
  Counter bad_bundles;    ///< malformed bundles; the rest of the bundle is dropped
  Counter bad_parts;      ///< frames with a missing part
  Counter bad_mailboxes;  ///< messages to mailboxes that the port does not use
  Counter storms;         ///< broadcasts and multicasts beyond the limit
  Counter late;           ///< bundles that arrived after the wait for them was over
  Counter out_of_order;   ///< bundles that had to wait for earlier ones
  Counter joins;
  Counter leaves;
};

/// Counts of a receive queue.
struct NetRxQueueCounts {
  Counter frames;
  Counter bytes;
  Counter no_mbuf;    ///< times that mbufs were short; the frames wait
  Counter ring_full;  ///< frames dropped because this queue is not polled
};

struct NetTxCounts {
  Counter frames;
  Counter bytes;
  Counter messages;
  Counter refused;  ///< frames that the peer refused, or that are in doubt
  Counter lengths;  ///< frames too short for Ethernet, or too long
  // Frames whose address no joined peer has, or broadcasts to more peers than the ring has entries.
  Counter no_peer;
  Counter bounced;  ///< long frames copied because the card cannot read them in place
};

}  // namespace rio::pmd
