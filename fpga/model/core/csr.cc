#include "fpga/model/core/csr.hpp"

#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::model {
namespace {

constexpr uint32_t kBaseDeviceId = 0x60;
constexpr uint32_t kHostLock = 0x68;
constexpr uint32_t kLpSerial = 0x100;
constexpr uint32_t kPortStatus = kLpSerial + 0x58;
constexpr uint32_t kErrorManagement = 0x300;

constexpr uint32_t kUnlocked = 0xFFFF;

}  // namespace

// Offsets as in the specification: RIO Part 1 §5, Part 6 §6, Part 8 §2. It counts bits from the
// most significant one; values here are 32-bit words.
Csr::Csr()
    : words_{
          {0x00, {regs::kPciDevice << 16 | regs::kPciVendor, 0}},  // device identity
          {0x04, {1, 0}},                                          // device information
          {0x08, {regs::kPciDevice << 16 | regs::kPciVendor, 0}},  // assembly identity
          {0x0C, {kLpSerial, 0}},                                  // assembly information
          // Features: processor and memory; large common transport; extended features; 50-bit and
          // 34-bit addresses.
          {0x10, {0x60000000u | 0x10 | 0x08 | 0x03, 0}},
          // Read, write, streaming write, write with response, message, doorbell, atomics,
          // port-write.
          {0x18, {0x0000FFF4u, 0}},  // source operations
          {0x1C, {0x0000FFF4u, 0}},  // destination operations
          {0x4C, {1, 7}},            // logical layer control
          {kBaseDeviceId, {0x00FFFFFFu, 0x00FFFFFFu}},
          {kHostLock, {kUnlocked, 0}},
          {0x6C, {0, ~0u}},  // component tag
          {kLpSerial, {kErrorManagement << 16 | 0x0001, 0}},
          {kLpSerial + 0x20, {0xFFFFFF00u, 0xFFFFFF00u}},  // link time-out
          {kLpSerial + 0x24, {0xFFFFFF00u, 0xFFFFFF00u}},  // response time-out
          {kLpSerial + 0x3C, {0, 0xE0000000u}},            // general control
          {kPortStatus, {1, 0}},                           // uninitialised
          {kLpSerial + 0x5C, {0x00600001u, 0x00E00000u}},  // serial, enabled both ways
          {kErrorManagement, {0x0007, 0}},
          {kErrorManagement + 0x08, {0, ~0u}},  // logical error detect
          {kErrorManagement + 0x0C, {0, ~0u}},  // logical error enable
          {kErrorManagement + 0x28, {0, ~0u}},  // port-write target
          {kErrorManagement + 0x40, {0, ~0u}},  // port error detect
          {kErrorManagement + 0x44, {0, ~0u}},  // port error rate enable
      } {}

uint32_t Csr::read(uint32_t offset) const {
  const auto it = words_.find(offset);
  return it == words_.end() ? 0 : it->second.value;
}

void Csr::write(uint32_t offset, uint32_t value) {
  const auto it = words_.find(offset);
  if (it == words_.end()) {
    return;
  }
  Word& word = it->second;
  if (offset == kHostLock) {
    // The first write locks; only a write of the same value unlocks. RIO Part 3 §3.5.2
    const uint32_t host = value & 0xFFFF;
    if (word.value == kUnlocked) {
      word.value = host;
    } else if (word.value == host) {
      word.value = kUnlocked;
    }
    return;
  }
  word.value = (word.value & ~word.writable) | (value & word.writable);
}

void Csr::set_link(bool up) {
  // Port OK, or port uninitialised. RIO Part 6 §6.6.8
  words_[kPortStatus].value = up ? 2 : 1;
}

void Csr::set_dest_id(uint32_t dest_id, uint32_t size_code) {
  // 8-bit ID in bits 8–15, 16-bit ID in bits 16–31. RIO Part 3 §3.5.1
  words_[kBaseDeviceId].value =
      size_code == 0 ? (dest_id & 0xFF) << 16 | 0xFFFF : 0x00FF0000u | (dest_id & 0xFFFF);
}

}  // namespace rio::model
