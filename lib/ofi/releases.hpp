/// @file
/// Constants that libfabric 1 has, and that libfabric 2 deprecates or no longer has; both accept
/// their values.
#pragma once

#include <cstdint>

namespace rio::ofi {

inline constexpr int kMrBasic = 1 << 0;                    ///< FI_MR_BASIC
inline constexpr int kMrScalable = 1 << 1;                 ///< FI_MR_SCALABLE
inline constexpr uint32_t kProtocolOfProvider = 1u << 31;  ///< FI_PROV_SPECIFIC

}  // namespace rio::ofi
