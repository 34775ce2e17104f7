/// @file
/// The standard capability and command/status registers of the card's RapidIO side.
#pragma once

#include <cstdint>
#include <map>

namespace rio::model {

/// Offsets as in the specification. RIO Part 1 §5, Part 6 §6, Part 8 §2
struct CsrOffset {
  static constexpr uint32_t kDeviceIdentity = 0x00;
  static constexpr uint32_t kDeviceInformation = 0x04;
  static constexpr uint32_t kAssemblyIdentity = 0x08;
  static constexpr uint32_t kAssemblyInformation = 0x0C;
  static constexpr uint32_t kFeatures = 0x10;
  static constexpr uint32_t kSourceOperations = 0x18;
  static constexpr uint32_t kDestinationOperations = 0x1C;
  static constexpr uint32_t kLogicalLayerControl = 0x4C;
  static constexpr uint32_t kBaseDeviceId = 0x60;
  static constexpr uint32_t kHostLock = 0x68;
  static constexpr uint32_t kComponentTag = 0x6C;
  static constexpr uint32_t kLpSerial = 0x100;
  static constexpr uint32_t kErrorManagement = 0x300;
};

class Csr {
 public:
  Csr();
  /// @param offset multiple of 4. Unknown registers read 0. RIO Part 1 §5.1
  [[nodiscard]] uint32_t read(uint32_t offset) const;
  /// Writes to read-only bits and unknown registers have no effect.
  void write(uint32_t offset, uint32_t value);
  /// Update the bits that show the state of the link.
  void set_link(bool up);
  void set_dest_id(uint32_t dest_id, uint32_t size_code);

 private:
  struct Word {
    uint32_t value;
    uint32_t writable;
  };
  std::map<uint32_t, Word> words_;
};

}  // namespace rio::model
