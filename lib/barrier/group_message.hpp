/// @file
/// Messages between the members of a group: those of its creation, and notifications where its
/// barriers run in software.
#pragma once

#include <cstdint>
#include <span>

#include "lib/barrier/id_set.hpp"

namespace rio::barrier {

enum class What : uint8_t {
  // Creation.
  kJoin = 1,  ///< a member to rank 0, and rank 0 to each member: the sender creates this group
  kPropose,   ///< rank 0 to a member: get ready with this number
  kLoaded,    ///< a member to rank 0: it is ready
  kDenied,    ///< a member to rank 0: the number is not free; `ids` are those that are
  kRun,       ///< rank 0 to a member: all are ready
  // Later.
  kNotification,  ///< the sender has come to `round` of the barrier `epoch`
  kAlive,         ///< has no meaning; if the receiver is dead, the session ends
  kLeft,          ///< the sender has left the group after the barrier `epoch`
  // At any time.
  kFailed,  ///< the group has failed, with `error` of rank `culprit`
};

/// A message as it is sent, host order. A field that a message does not use is 0.
struct GroupMessage {
  static constexpr uint8_t kVersion = 1;
  /// Length of messages without the second part.
  static constexpr uint32_t kShortBytes = 24;

  What what{};
  uint8_t version = kVersion;
  uint8_t round = 0;  ///< of kNotification
  uint8_t id = 0;     ///< of kPropose: 0 to kGroupMax, kMemoryId or kNoId
  uint32_t rank = 0;  ///< of the sender
  uint64_t key = 0;   ///< of the group
  /// Number of the group that rank 0 has drawn, never 0; 0 before kPropose. With `key`, it
  /// distinguishes the group from earlier ones.
  uint32_t serial = 0;
  uint32_t epoch = 0;  ///< of kNotification, kLeft
  // Second part, of kJoin, kPropose, kLoaded, kDenied, kFailed.
  uint32_t ticket = 0;   ///< of the member that is not rank 0; in rank 0's kJoin, rank 0's own.
                         ///< Never 0. It distinguishes creations of one key.
  uint32_t ranks = 0;    ///< of kJoin: of the group
  uint32_t culprit = 0;  ///< of kFailed: a rank, or kNoPeer
  int32_t error = 0;     ///< of kFailed: -errno; -EAGAIN: rank 0 has no room for the kJoin yet
  uint32_t attempt = 0;  ///< of kPropose, kLoaded, kDenied: number of the proposal
  uint32_t ways = 0;     ///< of kJoin: kCardBit, kSoftwareBit, kMemoryBit
  uint64_t digest = 0;   ///< of kJoin: agreement_digest()
  IdSet ids{};           ///< of kJoin and kDenied: free numbers
  uint64_t node = 0;     ///< of kJoin: node_mark() of the sender

  static constexpr uint32_t kCardBit = 1;
  static constexpr uint32_t kSoftwareBit = 2;
  static constexpr uint32_t kMemoryBit = 4;

  [[nodiscard]] bool is_short() const { return is_short(what); }
  [[nodiscard]] static bool is_short(What what) {
    return what == What::kRun || what == What::kNotification || what == What::kAlive ||
           what == What::kLeft;
  }
  [[nodiscard]] uint32_t size_bytes() const {
    return is_short() ? kShortBytes : static_cast<uint32_t>(sizeof(GroupMessage));
  }
};
static_assert(sizeof(GroupMessage) == 80);
static_assert(offsetof(GroupMessage, ticket) == GroupMessage::kShortBytes);
static_assert(offsetof(GroupMessage, digest) == 48 && offsetof(GroupMessage, ids) == 56 &&
              offsetof(GroupMessage, node) == 72);

/// Read a message of a peer, any bytes. Its numbers are within the ranges above; those that depend
/// on the group, such as ranks, are not checked. @param out set only on success.
/// @return false: it is malformed.
[[nodiscard]] bool read(std::span<const uint8_t> bytes, GroupMessage* out);

}  // namespace rio::barrier
