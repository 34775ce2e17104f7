/// @file
/// The provider, as libfabric sees it, and its parameters.
#pragma once

#include <rdma/providers/fi_prov.h>

#include <cstdint>

#include "lib/job/settings.hpp"

namespace rio::ofi {

inline constexpr uint32_t kProviderVersion = FI_VERSION(0, 1);

// Constants that libfabric 1 has, and that libfabric 2 deprecates or no longer has; both accept
// their values.
inline constexpr int kMrBasic = 1 << 0;                    ///< FI_MR_BASIC
inline constexpr int kMrScalable = 1 << 1;                 ///< FI_MR_SCALABLE
inline constexpr uint32_t kProtocolOfProvider = 1u << 31;  ///< FI_PROV_SPECIFIC

/// The provider of this library, without its two calls, which the library's entry adds.
[[nodiscard]] fi_provider& provider();

/// Settings of users by FI_RIO_*; `fi_info -g` documents them. Read when information is asked for.
using Params = job::Settings;
using job::fabric_of;

/// Register the parameters with libfabric, once.
void define_params();
/// Read the parameters. @return 0, -EINVAL: a value makes no sense; logged.
[[nodiscard]] int read_params(Params* out);

}  // namespace rio::ofi
