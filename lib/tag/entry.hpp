/// @file
/// Posted receives and unexpected messages. They lie in the caller's request objects, as a base or
/// a member; the queues link them and never copy, allocate or free one.
#pragma once

#include <cstdint>

#include "base/fifo.hpp"
#include "lib/tag/key.hpp"
#include "lib/tag/key_table.hpp"

namespace rio::tag {

using base::Fifo;
using base::FifoLinks;

/// Where an entry is. While it is not kNowhere it may be neither moved, freed nor changed.
enum class Place : uint8_t {
  kNowhere,  // the caller's
  kTable,    // a receive that ignores the usual bits, mostly none
  kMasked,   // a receive that ignores others
  kQueued,   // an unexpected message that a receive may take
  kClaimed,  // one that a matched probe took, to be received by handle
};

/// A receive. The caller fills in the pattern, and the capacity for its own use: that a message is
/// longer is for the caller to see, who knows both.
struct Receive : Pattern {
  Place place = Place::kNowhere;  // below this: the queue's
  // How many wild receives (of any source, or with unusual ignored bits) were posted up to it, it
  // included. Only differences mean something.
  uint64_t age = 0;
  uint64_t capacity_bytes = 0;  // the caller's
  KeyLinks<Receive> by_key = {};
  FifoLinks<Receive> by_age = {};
};

/// A message that no posted receive matched, or its announcement: the caller keeps the payload.
struct Message {
  uint64_t bits = 0;
  uint64_t length_bytes = 0;  // the caller's
  uint32_t source = 0;        // not kAnySource
  Place place = Place::kNowhere;
  FifoLinks<Message> by_age = {};
  KeyLinks<Message> by_key = {};
  KeyLinks<Message> by_bits = {};
};

}  // namespace rio::tag
