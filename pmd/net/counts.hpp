/// @file
/// Counts of a port; each block is written by the thread that has the turn of its queue.
#pragma once

#include "pmd/bus/counter.hpp"

namespace rio::pmd {

/// Of the messages of a port, before it is known for which queue they are.
struct NetRxCounts {
  Counter messages;
  Counter bundles;        ///< of those
  Counter failed;         ///< messages that the card received in part
  Counter lengths;        ///< frames too short for Ethernet
  Counter too_long;       ///< longer than the MTU allows, or than an mbuf without `scatter`
  Counter spoofed;        ///< source addresses of other cards
  Counter bad_bundles;    ///< what is no bundle; the rest of it is dropped
  Counter bad_parts;      ///< frames of which a part is missing
  Counter bad_mailboxes;  ///< messages to mailboxes that are not ours
  Counter storms;         ///< broadcasts and multicasts beyond what is allowed
  Counter late;           ///< bundles that came after the wait for them was over
  Counter out_of_order;   ///< bundles that waited for others
  Counter joins;
  Counter leaves;
};

/// Of a receive queue.
struct NetRxQueueCounts {
  Counter frames;
  Counter bytes;
  Counter no_mbuf;    ///< times that mbufs were wanting; the frames wait
  Counter ring_full;  ///< frames dropped since this queue is not polled
};

struct NetTxCounts {
  Counter frames;
  Counter bytes;
  Counter messages;
  Counter refused;  ///< frames: by the peer, or in doubt
  Counter lengths;  ///< too short for Ethernet, or too long
  // No peer with this address has joined; or, of broadcasts, more have than the ring has entries.
  Counter no_peer;
  Counter bounced;  ///< longer ones that were copied, since they are not where the card wants them
};

}  // namespace rio::pmd
