/// @file
/// fi_getinfo(): the provider's abilities, and whether they match the user's hints.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>

#include "lib/msg/header.hpp"
#include "lib/ofi/provider.hpp"
#include "lib/tag/wire.hpp"

namespace rio::ofi {

inline constexpr uint64_t kBothCaps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
inline constexpr uint64_t kTxCaps = kBothCaps | FI_SEND | FI_READ | FI_WRITE | FI_FENCE;
inline constexpr uint64_t kRxCaps = kBothCaps | FI_RECV | FI_DIRECTED_RECV | FI_SOURCE |
                                    FI_REMOTE_READ | FI_REMOTE_WRITE | FI_RMA_EVENT | FI_MULTI_RECV;
/// The bits that name a direction.
inline constexpr uint64_t kMessageWays = FI_SEND | FI_RECV;
inline constexpr uint64_t kRemoteWays = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
inline constexpr uint64_t kAllWays = kMessageWays | kRemoteWays;
inline constexpr uint64_t kCaps = kTxCaps | kRxCaps | FI_LOCAL_COMM | FI_REMOTE_COMM;
inline constexpr uint64_t kTxFlags = FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE |
                                     FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE |
                                     FI_MATCH_COMPLETE;
inline constexpr uint64_t kRxFlags = FI_COMPLETION | FI_MULTI_RECV;
inline constexpr uint64_t kOrder = FI_ORDER_SAS;

/// The longest message that is always copied at once: the one that fits in one message of the card.
inline constexpr size_t kInjectBytes = msg::kPartBytesMax - 2 * tag::kBitsBytes;
inline constexpr size_t kIovMax = 4;
/// Number of outstanding operations that an endpoint claims to have room for; only memory limits
/// it.
inline constexpr size_t kContextSize = 1024;
/// fi_getinfo(). @return 0; -FI_ENODATA: not what is asked for; -FI_ENOMEM, -FI_EINVAL.
int get_info(uint32_t version, const char* node, const char* service, uint64_t flags,
             const fi_info* hints, fi_info** out);

}  // namespace rio::ofi
