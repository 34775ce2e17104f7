/// @file
/// Maintenance accesses by a card.
#pragma once

#include <memory>

#include "lib/enumerate/maint_access.hpp"
#include "pmd/api/riopmd.hpp"

namespace rio::enumerate {

/// Requests through the maintenance queue of a card, which it owns. Functions return as
/// MaintAccess. One thread.
class CardAccess final : public MaintAccess {
 public:
  /// The configuration to open the card with. @param timeout_ms of one access, 1 to 10000.
  [[nodiscard]] static EndpointConfig config(uint32_t host_id, bool large, uint32_t timeout_ms);

  /// @param endpoint opened with config(). @param timeout_ms as config()'s.
  CardAccess(std::unique_ptr<Endpoint> endpoint, uint32_t timeout_ms);

  int read(const Address& at, uint32_t offset, uint32_t* value) override;
  int write(const Address& at, uint32_t offset, uint32_t value) override;

  [[nodiscard]] Endpoint& endpoint() { return *endpoint_; }

 private:
  std::unique_ptr<Endpoint> endpoint_;
  uint32_t wait_ms_;  // for the card itself, which waits for the device
};

}  // namespace rio::enumerate
