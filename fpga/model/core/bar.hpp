/// @file
/// The card's access to its BAR: reads host-written words, writes card-written ones.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rio::model {

/// A view of the registers. The creator of the card owns the memory, which processes may share.
class Bar {
 public:
  Bar(uint8_t* memory, size_t len_bytes) : memory_(memory), len_bytes_(len_bytes) {}

  [[nodiscard]] uint32_t load(uint32_t offset) const {
    // acquire: what the host wrote before the word; pairs with Mmio::write32.
    return __atomic_load_n(word(offset), __ATOMIC_ACQUIRE);
  }
  void store(uint32_t offset, uint32_t value) {
    // release: what the card did before the word; pairs with Mmio::read32.
    __atomic_store_n(reinterpret_cast<uint32_t*>(memory_ + offset), value, __ATOMIC_RELEASE);
  }
  [[nodiscard]] const uint32_t* word(uint32_t offset) const {
    return reinterpret_cast<const uint32_t*>(memory_ + offset);
  }
  [[nodiscard]] size_t len_bytes() const { return len_bytes_; }

 private:
  uint8_t* memory_;
  size_t len_bytes_;
};

}  // namespace rio::model
