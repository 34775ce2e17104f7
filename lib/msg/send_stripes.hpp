/// @file
/// The sender's stripes: parts of large transfers that a receiver has granted to several rails. See
/// docs/decisions/0045-rail-states-and-policies.md, "Stripes".
#pragma once

#include <cstdint>

#include "base/slab.hpp"
#include "lib/msg/control.hpp"
#include "lib/msg/link.hpp"
#include "lib/msg/transfer.hpp"

namespace rio::msg {

/// Part of a port's sender; used only on the port's thread. A stripe is a SendTransfer of its own.
class SendStripes {
 public:
  /// The stripe that STRIPE grants, which may be new. Only while its transfer waits for a grant.
  /// @param body foreign. @param len_bytes of its cut. @param out null: the stripe is over.
  /// @return 0; -EPROTO if an honest receiver cannot have sent it; -ENOMEM.
  [[nodiscard]] int granted(SendTransfer& whole, const StripeBody& body, uint64_t len_bytes,
                            SendTransfer** out);
  /// A stripe is over, and in no list: free it. @return its whole transfer.
  SendTransfer& end(SendTransfer& stripe, bool is_good);
  /// Free what a transfer needed for its stripes; none is left.
  void free(SendTransfer& whole);

 private:
  [[nodiscard]] int begin(SendTransfer& whole, const StripeBody& body, uint64_t len_bytes,
                          SendTransfer** out);

  base::Slab<SendTransfer> stripes_;
  base::Slab<Stripes<SendTransfer>> divided_;
};

}  // namespace rio::msg
