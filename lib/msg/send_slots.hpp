/// @file
/// The messages of large data in a rail's transmit ring.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "lib/msg/bounce.hpp"
#include "lib/msg/transfer.hpp"
#include "pmd/api/riopmd.hpp"

namespace rio::msg {

/// Each message that is posted has a slot, with a bounce buffer in case the card cannot read the
/// data where they are. One per rail; used only on the port's thread.
class SendSlots {
 public:
  static constexpr uint32_t kCount = 256;  ///< most messages posted for all transfers

  /// A message that is posted.
  struct Out {
    SendTransfer* transfer;  ///< null: the slot is free
    uint32_t number;         ///< number of the message in its cut
  };

  /// Allocate the bounce buffers. @return 0, -ENOMEM.
  [[nodiscard]] int create(Endpoint& endpoint) {
    rules_ = endpoint.align_rules();
    const pmd::Caps& caps = endpoint.caps();
    flags_ = caps.order_depth >= caps.letters ? 0 : pmd::TxFlags::kOrder;
    return bounce_.create(endpoint, kCount);
  }
  [[nodiscard]] const pmd::mem::AlignRules& rules() const { return rules_; }
  /// Descriptor flags of the messages.
  [[nodiscard]] uint8_t flags() const { return flags_; }

  /// Take a slot. Only if one is free: the caller bounds how many it uses.
  [[nodiscard]] uint32_t get() { return bounce_.get(); }
  /// Return a slot that was not used.
  void put(uint32_t slot) { bounce_.put(slot); }
  void use(uint32_t slot, const Out& out) { out_[slot] = out; }
  /// The message of a slot is completed. @return the message; without a transfer if the slot was
  /// free.
  [[nodiscard]] Out end(uint32_t slot) {
    const Out out = std::exchange(out_[slot], {});
    if (out.transfer != nullptr) {
      bounce_.put(slot);
    }
    return out;
  }
  [[nodiscard]] uint8_t* va(uint32_t slot) const { return bounce_.va(slot); }
  [[nodiscard]] uint64_t iova(uint32_t slot) const { return bounce_.iova(slot); }

 private:
  pmd::mem::AlignRules rules_;
  uint8_t flags_ = 0;
  Bounce bounce_;
  std::array<Out, kCount> out_{};
};

}  // namespace rio::msg
