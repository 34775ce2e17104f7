/// @file
/// Decides how a range can be transferred: in place, with bounced edges, or bounced. Read this
/// first. Pure functions on their arguments; any thread. The hazard, and the functions in turn:
/// docs/architecture.md#memory-and-alignment.
///
/// A bounced message goes through a buffer of a BouncePool: the sender copies len_bytes into it and
/// pads with zeros to wire_bytes; the receiver copies len_bytes out. A sender's head in place is
/// padded with what follows it in the range: the receiver drops that, and gets it in its place.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pmd/bus/bus.hpp"
#include "pmd/mem/cut.hpp"

namespace rio::pmd::mem {

/// A user's buffer. Owns nothing.
struct Range {
  void* va = nullptr;      ///< first byte, not null
  uint64_t len_bytes = 0;  ///< 1 to 2^39, does not wrap
  /// Bus addresses of the range (Region::runs): ascending va, without overlap; may cover more or
  /// less than the range. Parts that are not covered are bounced; empty means not registered.
  std::span<const IovaRun> runs;
};

enum class Placement : uint8_t {
  kInPlace,  ///< the card reads or writes the user's bytes
  kBounced,  ///< through a bounce buffer, one copy
};

/// One message to post or to send.
struct PlanMessage {
  uint8_t* va;          ///< the user's bytes
  uint64_t iova;        ///< bus address of them; 0 if bounced
  uint16_t len_bytes;   ///< of the user, 1 to 4096
  uint16_t wire_bytes;  ///< length as sent, size of the entry; all of it inside of the range if in
                        ///< place, and equal to len_bytes but for a sender's head
  Placement placement;
};

/// The answer for a whole range.
enum class Use : uint8_t {
  kInPlace,  ///< every message is in place
  kEdges,    ///< some are
  kBounced,  ///< none is
};

/// The messages of a cut that a plan lists. Large transfers are planned in windows.
struct Window {
  uint64_t first = 0;           ///< number of a message
  uint64_t count = UINT64_MAX;  ///< at most so many; as many as there are
};

/// A list of messages. Keep the object and plan into it again: it allocates only to grow.
struct Plan {
  Cut cut;
  std::vector<PlanMessage> messages;  ///< in the order of the transfer
  Use use = Use::kBounced;            ///< of the messages listed
  uint64_t bytes_placed = 0;          ///< of the messages listed, on this side
  uint64_t bytes_copied = 0;          ///< of the messages; both together are the bytes listed
};

/// Receiver: choose the cut. Edges, if that places at least one byte, else as few messages as
/// possible. If the range is registered, it depends only on va modulo 4096 and the length. @return
/// 0, -EINVAL (range or rules outside of their limits), -EFBIG (too long).
[[nodiscard]] int choose_cut(const Range& range, const AlignRules& rules, Cut* out);

/// Receiver: list the messages of a cut as entries of a dedicated queue: in place where address and
/// size are aligned as the card asks and the bytes are contiguous in bus addresses.
/// @return 0; -EINVAL as choose_cut(); -EPROTO where the cut is not one of the range's length.
[[nodiscard]] int plan_receive(const Range& range, const Cut& cut, const AlignRules& rules,
                               Window window, Plan* out);

/// Receiver: the short way, without a list, for messages of message_max bytes in place, contiguous
/// in bus addresses. @param cut of choose_cut() for the range. @param window at least one message.
/// @param iova of the first. @return false: use plan_receive().
[[nodiscard]] bool plan_whole(const Range& range, const Cut& cut, const AlignRules& rules,
                              Window window, uint64_t* iova);

/// Receiver: choose_cut() and list all of it.
[[nodiscard]] int plan_receive(const Range& range, const AlignRules& rules, Plan* out);

/// Sender: list the messages of the receiver's cut: in place where the range itself has the
/// padding, the address is aligned as the card asks, and the bytes are contiguous in bus addresses.
/// Errors as plan_receive().
[[nodiscard]] int plan_send(const Range& range, const Cut& cut, const AlignRules& rules,
                            Window window, Plan* out);

/// Sender: messages for the shared queue of a peer: message_max bytes each from the first byte on,
/// nothing padded (the card pads to 8 by itself, and shared buffers are 4 KiB long).
/// Errors as choose_cut(). Plan::cut is the bounced one.
[[nodiscard]] int plan_transmit(const Range& range, const AlignRules& rules, Window window,
                                Plan* out);

}  // namespace rio::pmd::mem
