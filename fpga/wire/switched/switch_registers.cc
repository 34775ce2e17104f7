#include "fpga/wire/switched/switch_registers.hpp"

#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::wire::switched {
namespace {

using Off = SwitchOffset;

constexpr uint32_t kIdentity = 0x5253u << 16 | regs::kPciVendor;
constexpr uint32_t kPortStride = 0x20;
constexpr uint32_t kErrorStride = 0x40;
constexpr uint32_t kFirstStatus = Off::kLpSerial + Off::kPortStatus;
constexpr uint32_t kFirstError = Off::kErrorManagement + Off::kPortErrorDetect;
constexpr uint32_t kGeneralControl = Off::kLpSerial + 0x3C;
constexpr uint32_t kTarget = Off::kErrorManagement + Off::kPortWriteTarget;

// Switch, standard route table, extended features.
constexpr uint32_t kFeatureBits = 0x10000000u | 0x100u | 0x8u;
constexpr uint32_t kLargeTransport = 0x10;
constexpr uint32_t kMaySendPortWrites = 0x4;
constexpr uint32_t kNoRecoveryBlock =
    0x0003;  // LP-Serial, endpoint-free device, without error recovery by software
constexpr uint32_t kErrorBlock = 0x0007;

constexpr uint32_t kPortUninitialised = 0x1;
constexpr uint32_t kPortOk = 0x2;
constexpr uint32_t kPortWritePending = 0x10;
constexpr uint32_t kEnabledBothWays = 0x00600001u;
constexpr uint32_t kLinkTimeout = 0x1;

/// The index of the block that has a register. @param first its block 0. @return before that: more
/// than any switch has.
[[nodiscard]] constexpr size_t block_of(uint32_t offset, uint32_t first, uint32_t stride) {
  return offset < first ? SIZE_MAX : (offset - first) / stride;
}

}  // namespace

SwitchRegisters::SwitchRegisters(const DeviceSpec& spec)
    : ports_(spec.ports),
      table_(spec.route_entries, uint8_t{kNoRoute}),
      locked_by_(spec.locked_by),
      tag_(spec.tag) {
  for (const auto& [dest_id, port] : spec.routes) {
    table_[dest_id] = static_cast<uint8_t>(port);
  }
}

uint32_t SwitchRegisters::read(uint32_t offset, uint32_t in_port) const {
  switch (offset) {
    case Off::kDeviceIdentity:
    case Off::kAssemblyIdentity:
      return kIdentity;
    case Off::kDeviceInformation:
      return 1;
    case Off::kAssemblyInformation:
      return Off::kLpSerial;
    case Off::kFeatures:
      return kFeatureBits | (table_.size() > 256 ? kLargeTransport : 0);
    case Off::kPortInformation:
      return static_cast<uint32_t>(ports_.size()) << 8 | in_port;
    case Off::kSourceOperations:
      return kMaySendPortWrites;
    case Off::kTableLimit:
      return static_cast<uint32_t>(table_.size()) - 1;
    case Off::kHostLock:
      return locked_by_;
    case Off::kComponentTag:
      return tag_;
    case Off::kRouteDestId:
      return selected_;
    case Off::kRoutePort:
      return selected_ < table_.size() ? table_[selected_] : uint32_t{kNoRoute};
    case Off::kDefaultPort:
      return default_port_;
    case Off::kLpSerial:
      return Off::kErrorManagement << 16 | kNoRecoveryBlock;
    case kGeneralControl:
      return general_control_;
    case Off::kErrorManagement:
      return kErrorBlock;
    case kTarget:
      return port_write_target_;
    default:
      return read_port(offset);
  }
}

uint32_t SwitchRegisters::read_port(uint32_t offset) const {
  if (const size_t index = block_of(offset, kFirstError, kErrorStride); index < ports_.size()) {
    return offset % kErrorStride == 0 ? ports_[index].errors : 0;
  }
  const size_t index = block_of(offset, kFirstStatus, kPortStride);
  const uint32_t within = (offset - kFirstStatus) % kPortStride;
  if (index >= ports_.size() || (within != 0 && within != 4)) {
    return 0;
  }
  const SwitchPort& port = ports_[index];
  return within == 4 ? kEnabledBothWays
                     : (port.up ? kPortOk : kPortUninitialised) |
                           (port.port_write_pending ? kPortWritePending : 0);
}

void SwitchRegisters::write(uint32_t offset, uint32_t value) {
  const auto port = static_cast<uint8_t>(value);
  switch (offset) {
    case Off::kHostLock:
      // The first write locks; only a second write of the same value unlocks. RIO Part 3 §3.5.2
      if (locked_by_ == kUnlocked) {
        locked_by_ = value & kUnlocked;
      } else if (locked_by_ == (value & kUnlocked)) {
        locked_by_ = kUnlocked;
      }
      return;
    case Off::kComponentTag:
      tag_ = value;
      return;
    case Off::kRouteDestId:
      selected_ = value & 0xFFFF;
      return;
    case Off::kRoutePort:
      if (selected_ < table_.size()) {
        table_[selected_] = port;
      }
      return;
    case Off::kDefaultPort:
      default_port_ = port;
      return;
    case kGeneralControl:
      general_control_ = value & 0xE0000000u;
      return;
    case kTarget:
      port_write_target_ = value;
      return;
    default:
      break;
  }
  const size_t error = block_of(offset, kFirstError, kErrorStride);
  const size_t status = block_of(offset, kFirstStatus, kPortStride);
  if (error < ports_.size() && offset % kErrorStride == 0) {
    ports_[error].errors = value;
  } else if (status < ports_.size() && (offset - kFirstStatus) % kPortStride == 0 &&
             (value & kPortWritePending) != 0) {
    ports_[status].port_write_pending = false;
  }
}

uint32_t SwitchRegisters::route(uint32_t dest_id) const {
  return dest_id < table_.size() ? table_[dest_id] : default_port_;
}

void SwitchRegisters::set_port(uint32_t port, bool up) {
  if (ports_[port].up && !up) {
    ports_[port].errors |= kLinkTimeout;
  }
  ports_[port].up = up;
}

}  // namespace rio::wire::switched
