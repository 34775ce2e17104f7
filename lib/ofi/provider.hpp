/// @file
/// The provider, as libfabric sees it, and its parameters.
#pragma once

#include <rdma/providers/fi_prov.h>

#include <cstdint>
#include <string>

#include "lib/barrier/group.hpp"

namespace rio::ofi {

inline constexpr uint32_t kProviderVersion = FI_VERSION(0, 1);

// Constants that libfabric 1 has, and that libfabric 2 deprecates or no longer has; both accept
// their values.
inline constexpr int kMrBasic = 1 << 0;                    ///< FI_MR_BASIC
inline constexpr int kMrScalable = 1 << 1;                 ///< FI_MR_SCALABLE
inline constexpr uint32_t kProtocolOfProvider = 1u << 31;  ///< FI_PROV_SPECIFIC

/// The provider of this library, without its two calls, which the library's entry adds.
[[nodiscard]] fi_provider& provider();

/// Largest read or write of peers' memory that goes by the card's DMA queue, in bytes, unless set
/// otherwise. Measured: docs/decisions/0024-memory-of-peers-by-the-card.md.
inline constexpr uint64_t kRmaBorder = 256 << 10;

/// Settings of users by FI_RIO_*; `fi_info -g` documents them. Read when information is asked for.
struct Params {
  std::string card;  ///< FI_RIO_CARD: as rio::Endpoint::open() takes it; by default "shm:FABRIC"
  uint32_t dest_id = 0;              ///< FI_RIO_DESTID: 0: the one that the card has, or gives
  uint32_t queue_pair = 0;           ///< FI_RIO_QUEUE_PAIR
  uint64_t rma_border = kRmaBorder;  ///< FI_RIO_RMA_BORDER: bytes
  uint64_t border = 0;               ///< FI_RIO_BORDER: bytes; 0: as the machine's profile says
  barrier::Way barriers = barrier::Way::kAny;  ///< FI_RIO_BARRIERS
};

/// Register the parameters with libfabric, once.
void define_params();
/// Read the parameters. @return 0, -EINVAL: a value makes no sense; logged.
[[nodiscard]] int read_params(Params* out);

/// Name of a card's fabric: all cards in a machine's slots share one fabric, and so do all cards of
/// rio-cardsim.
[[nodiscard]] std::string fabric_of(const std::string& card);

}  // namespace rio::ofi
