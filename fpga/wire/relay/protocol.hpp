/// @file
/// What a process and the host say to each other beside the data: the control channel of [S2], a
/// UNIX socket of packets. A process joins with its half of the shared memory and an eventfd, and
/// is answered with the host's. Either side ends by closing.
#pragma once

#include <cstdint>

namespace rio::wire::relay {

inline constexpr uint32_t kMagic = 0x594C4552u;  // "RELY"
inline constexpr uint16_t kVersion = 1;
/// A board in turn.
inline constexpr uint32_t kAnyBoard = ~0u;
inline constexpr uint32_t kBoardsMax = 64;
inline constexpr uint32_t kIdsMax = 31;  ///< queue pairs of a card
inline constexpr uint32_t kLastId = 0xFFFFFFFE;

enum class Say : uint16_t {
  // A process.
  kJoin = 1,  ///< board, first_id (0: any), ids; with half and bell
  kWant,      ///< who has destID first_id?
  // The host.
  kWelcome,  ///< process, board, first_id, ids; with half and bell
  kRefused,  ///< error, text; and nothing else
  kCame,     ///< process has destIDs first_id and so on
  kNobody,   ///< no process has destID first_id
  kGone,     ///< process has gone, and all that it has sent was passed on
  kCut,      ///< text: which rule was broken; and nothing else
};

struct Control {
  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  Say say = Say::kJoin;
  uint32_t process = 0;
  uint32_t board = 0;
  uint32_t first_id = 0;
  uint32_t ids = 0;
  int32_t error = 0;  ///< -errno
  char text[100] = {};
};
static_assert(sizeof(Control) == 128);

}  // namespace rio::wire::relay
