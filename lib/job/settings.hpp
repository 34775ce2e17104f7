/// @file
/// Settings of users for the processes of a job: the environment variables FI_RIO_*.
#pragma once

#include <cstdint>
#include <string>

#include "lib/barrier/group.hpp"

namespace rio::job {

/// Stands for "as each path gives it": see docs/decisions/0055-large-accesses-go-by-the-card.md.
inline constexpr uint64_t kRmaBorderOfPath = UINT64_MAX;

/// Settings of users by FI_RIO_*; `fi_info -g` documents them.
struct Settings {
  std::string card;  ///< FI_RIO_CARD: as rio::Endpoint::open() takes it; by default "shm:FABRIC"
  uint32_t dest_id = 0;     ///< FI_RIO_DESTID: 0: the one that the card has, or gives
  uint32_t queue_pair = 0;  ///< FI_RIO_QUEUE_PAIR
  /// FI_RIO_RMA_BORDER: bytes of the largest read or write of peers' memory by the card's DMA queue
  uint64_t rma_border = kRmaBorderOfPath;
  uint64_t border = 0;  ///< FI_RIO_BORDER: bytes; 0: as the machine's profile says
  barrier::Way barriers = barrier::Way::kAny;  ///< FI_RIO_BARRIERS
};

/// Reads the text of a setting. @param name in lower case, without FI_RIO_. @return empty: not set.
using ReadText = std::string (*)(const char* name);

/// Read the settings. @return 0, -EINVAL: a value makes no sense; logged.
[[nodiscard]] int read_settings(ReadText read_text, Settings* out);

/// Name of a card's fabric: all cards in a machine's slots share one fabric, and so do all cards of
/// rio-cardsim.
[[nodiscard]] std::string fabric_of(const std::string& card);

}  // namespace rio::job
