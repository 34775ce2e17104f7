/// @file
/// Maintenance accesses, as an enumeration needs them. A card makes them (card_access.hpp); tests
/// give devices that lie.
#pragma once

#include <cstdint>

namespace rio::enumerate {

/// The device that an access is for: the `hops`-th switch on the way to a destID, or the endpoint.
struct Address {
  uint32_t dest_id = 0;
  uint32_t hops = 0;         ///< 0 to 255
  bool is_own_card = false;  ///< the card that makes the accesses; dest_id and hops say nothing
};
inline constexpr Address kOwnCard{0, 0, true};

/// One thread. Each function returns in bounded time: 0, -ETIMEDOUT (no answer; a write may have
/// been carried out all the same), or another -errno (refused; the card or its link is gone).
/// `offset` is a multiple of 4 below 2^24; outputs are set on success only.
class MaintAccess {
 public:
  virtual ~MaintAccess() = default;
  [[nodiscard]] virtual int read(const Address& at, uint32_t offset, uint32_t* value) = 0;
  [[nodiscard]] virtual int write(const Address& at, uint32_t offset, uint32_t value) = 0;
};

}  // namespace rio::enumerate
