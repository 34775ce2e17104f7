/// @file
/// The messages between a process and the host beside the data: the control channel of [S2], a UNIX
/// socket of packets. A process joins with its half of the shared memory and an eventfd, and gets
/// the host's. Either side ends the connection by closing it.
#pragma once

#include <cstdint>
#include <string>

#include "base/fd.hpp"

namespace rio::wire::relay {

inline constexpr uint32_t kMagic = 0x594C4552u;  // "RELY"
inline constexpr uint16_t kVersion = 1;
/// Any board: they take turns.
inline constexpr uint32_t kAnyBoard = ~0u;
inline constexpr uint32_t kBoardsMax = 64;
inline constexpr uint32_t kIdsMax = 31;  ///< most queue pairs of a card
inline constexpr uint32_t kLastId = 0xFFFFFFFE;

enum class Say : uint16_t {
  // Sent by a process.
  kJoin = 1,  ///< board, first_id (0: any), ids; with half and bell
  kWant,      ///< asks which process has destID first_id
  // Sent by the host.
  kWelcome,    ///< process, board, first_id, ids; with half and bell
  kRefused,    ///< error, text; nothing else follows
  kCame,       ///< process has the destIDs from first_id on
  kNoProcess,  ///< no process has destID first_id
  kGone,       ///< process has gone, and everything that it sent was forwarded
  kCut,        ///< text: the rule that was broken; nothing else follows
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

// The socket, in the user's folder, by which processes find a relay. Functions return 0 or -errno;
// `error` gives the cause and the remedy. Any thread.

/// Listen for processes, as the relay `name`. @return -EADDRINUSE: one of this name exists; -EPERM:
/// the folder is open to others.
[[nodiscard]] int listen_as(const std::string& name, base::Fd* out, std::string* error);
/// Free the name, and remove the folder if it is empty.
void stop_listening(const std::string& name);
/// Connect to a relay. @return -ENOENT: there is none.
[[nodiscard]] int connect_to_relay(const std::string& name, base::Fd* out, std::string* error);

}  // namespace rio::wire::relay
