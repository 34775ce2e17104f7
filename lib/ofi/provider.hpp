/// @file
/// The provider as libfabric knows it, and its parameters.
#pragma once

#include <rdma/providers/fi_prov.h>

#include <cstdint>
#include <string>

namespace rio::ofi {

/// The one of this library.
[[nodiscard]] fi_provider& provider();

/// Bytes up to which the card's DMA queue reads and writes the memory of peers, unless a setting
/// says more. Measured: docs/decisions/0024-memory-of-peers-by-the-card.md.
inline constexpr uint64_t kRmaBorder = 256 << 10;

/// Settings of users by FI_RIO_*; `fi_info -g` documents them. Read when information is asked for.
struct Params {
  std::string card;  ///< FI_RIO_CARD: as rio::Endpoint::open() takes it; by default "shm:FABRIC"
  uint32_t dest_id = 0;              ///< FI_RIO_DESTID: 0: the one that the card has, or gives
  uint32_t queue_pair = 0;           ///< FI_RIO_QUEUE_PAIR
  uint64_t rma_border = kRmaBorder;  ///< FI_RIO_RMA_BORDER: bytes
  uint64_t border = 0;               ///< FI_RIO_BORDER: bytes; 0: as the machine's profile says
};

/// Say once what there is.
void define_params();
/// @return 0, -EINVAL: a value makes no sense; logged.
[[nodiscard]] int read_params(Params* out);

/// Name of the fabric that a card is on: all cards in a machine's slots share one fabric, and so do
/// all cards of rio-cardsim.
[[nodiscard]] std::string fabric_of(const std::string& card);

}  // namespace rio::ofi
