/// @file
/// CARs and CSRs of a switch, including its route table. RIO Part 3 §3, Part 6 §6, Part 8 §2
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "fpga/wire/switched/topology.hpp"

namespace rio::wire::switched {

/// Offsets of registers, as in the specification. Bit 0 there is the most significant.
struct SwitchOffset {
  static constexpr uint32_t kDeviceIdentity = 0x00;
  static constexpr uint32_t kDeviceInformation = 0x04;
  static constexpr uint32_t kAssemblyIdentity = 0x08;
  static constexpr uint32_t kAssemblyInformation = 0x0C;
  static constexpr uint32_t kFeatures = 0x10;
  static constexpr uint32_t kPortInformation = 0x14;
  static constexpr uint32_t kSourceOperations = 0x18;
  static constexpr uint32_t kTableLimit = 0x34;
  static constexpr uint32_t kHostLock = 0x68;
  static constexpr uint32_t kComponentTag = 0x6C;
  static constexpr uint32_t kRouteDestId = 0x70;
  static constexpr uint32_t kRoutePort = 0x74;
  static constexpr uint32_t kDefaultPort = 0x78;
  static constexpr uint32_t kLpSerial = 0x100;
  static constexpr uint32_t kPortStatus = 0x58;  ///< in LP-Serial; 0x20 for each port
  static constexpr uint32_t kErrorManagement = 0x3000;
  static constexpr uint32_t kPortWriteTarget = 0x28;  ///< in error management
  static constexpr uint32_t kPortErrorDetect = 0x40;  ///< in error management; 0x40 for each port
};

/// The registers of a switch. Not thread-safe.
class SwitchRegisters {
 public:
  /// The route table's word for a destID without a route.
  static constexpr uint32_t kNoRoute = 0xFF;

  explicit SwitchRegisters(const DeviceSpec& spec);

  /// Read a register. @param in_port port that the request came in by. Unknown registers read 0.
  /// RIO Part 1 §5.1
  [[nodiscard]] uint32_t read(uint32_t offset, uint32_t in_port) const;
  /// Write a register. Read-only bits and unknown registers ignore it.
  void write(uint32_t offset, uint32_t value);
  /// The port by which frames for a destID leave. @return not a port of the switch: no route.
  [[nodiscard]] uint32_t route(uint32_t dest_id) const;

  /// Note that a port's link came up or went down.
  void set_port(uint32_t port, bool up);
  /// The payload of a port-write: the switch's report on a port. The port then shows a pending
  /// port-write until a host clears that. RIO Part 8 §2.4
  [[nodiscard]] std::array<uint32_t, 4> port_write(uint32_t port) {
    ports_[port].port_write_pending = true;
    return {tag_, ports_[port].errors, port, 0};
  }
  /// The destID that port-writes go to.
  [[nodiscard]] uint32_t port_write_target() const { return port_write_target_ >> 16; }

 private:
  [[nodiscard]] uint32_t read_port(uint32_t offset) const;

  struct SwitchPort {
    bool up = false;
    bool port_write_pending = false;
    uint32_t errors = 0;
  };
  std::vector<SwitchPort> ports_;
  std::vector<uint8_t> table_;
  uint32_t locked_by_;
  uint32_t tag_;
  uint32_t selected_ = 0;  // destID whose route is read and written
  uint8_t default_port_ = kNoRoute;
  uint32_t port_write_target_ = 0;
  uint32_t general_control_ = 0;
};

}  // namespace rio::wire::switched
