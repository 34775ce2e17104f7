/// @file
/// How busy a card is, by its own words: the bytes that it writes to host memory, and with which it
/// answers other nodes. [S3], docs/card.md, Rails
#pragma once

#include <cstdint>

#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/dev/card.hpp"
#include "pmd/dev/types.hpp"

namespace rio::pmd {

/// A card's status at one moment. regs: rail_status
struct RailState {
  uint32_t sequence = 0;   ///< number of the write, wraps; of a peer that of its card's last write
  bool reading = false;    ///< the card has host memory to read in order to send
  bool receiving = false;  ///< rx_bytes is not 0
  uint32_t tx_bytes = 0;   ///< of messages and remote writes that have not ended; all ones: or more
  uint32_t rx_bytes = 0;   ///< still to come of messages and remote reads; all ones: or more
  LinkState link{};        ///< of the card's port
  uint32_t time_ticks = 0;  ///< of that card's clock, as in completions
};

/// RapidIO address at which a card answers an NREAD of its status.
inline constexpr uint64_t kRailStatusAddress = ~uint64_t{0} - (regs::kRailBelowEndBytes - 1);

/// The request that asks another card for its status. @param iova bus address of
/// sizeof(regs::RailStatus) bytes, aligned as Caps::dma_addr_align says, the card's until the
/// EntryDone.
/// @param cookie comes back in EntryDone, any value.
[[nodiscard]] DmaRequest rail_request(uint32_t dest_id, uint64_t iova, uint64_t cookie);

/// Check bytes that a card has written or sent, and decode them. Any thread.
/// @param bytes foreign; not written while this reads them.
/// @return 0; -EAGAIN: the numbers at both ends differ, so that a write was seen in part; -EPROTO:
/// these bytes are no status, since the magic word is missing.
[[nodiscard]] int read_rail_state(const regs::RailStatus& bytes, RailState* out);

/// Check the answer to a rail_request(). Any thread.
/// @param bytes the memory of the request. @return 0; -ENOTSUP: the card refused: it has no
/// rails block, or the destID is not in its receive map; -ETIMEDOUT: no answer came; -ENETDOWN: the
/// link was down; -EIO: the request failed otherwise; as read_rail_state().
[[nodiscard]] int read_rail_answer(const EntryDone& done, const regs::RailStatus& bytes,
                                   RailState* out);

}  // namespace rio::pmd
