#include "lib/barrier/group_message.hpp"

#include <cstring>

namespace rio::barrier {
namespace {

constexpr int32_t kErrnoMax = 4095;

/// Whether the fields of the second part are in their ranges.
bool is_second_part_valid(const GroupMessage& message) {
  constexpr uint32_t kWays =
      GroupMessage::kCardBit | GroupMessage::kSoftwareBit | GroupMessage::kMemoryBit;
  switch (message.what) {
    case What::kJoin:
      return message.ticket != 0 && message.ranks != 0 && (message.ways & ~kWays) == 0;
    case What::kPropose:
      return message.ticket != 0 && message.serial != 0 &&
             (message.id <= kGroupMax || message.id == kMemoryId || message.id == kNoId);
    case What::kLoaded:
    case What::kDenied:
      return message.serial != 0;
    case What::kFailed:
      return message.error < 0 && message.error >= -kErrnoMax;
    default:
      return false;
  }
}

}  // namespace

bool read(std::span<const uint8_t> bytes, GroupMessage* out) {
  GroupMessage message;
  if (bytes.size() != GroupMessage::kShortBytes && bytes.size() != sizeof(message)) {
    return false;
  }
  std::memcpy(&message, bytes.data(), bytes.size());
  const bool is_valid = message.is_short() ? message.serial != 0 && message.round < kRoundsMax
                                           : is_second_part_valid(message);
  if (message.version != GroupMessage::kVersion || bytes.size() != message.size_bytes() ||
      !is_valid) {
    return false;
  }
  *out = message;
  return true;
}

}  // namespace rio::barrier
