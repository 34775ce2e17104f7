/// @file
/// The devices, links and problems that an enumeration found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rio::enumerate {

inline constexpr size_t kNoNode = SIZE_MAX;
inline constexpr uint32_t kNoDestId = UINT32_MAX;
/// destID that exploring uses, and no device gets: it fits into every route table.
inline constexpr uint32_t kProbeId = 0xFF;
inline constexpr uint32_t kSmallIds = 0xFF;  ///< destIDs of 8 bits that devices get are below it
/// Value of the host lock while no host holds it.
inline constexpr uint32_t kUnlocked = 0xFFFF;

/// A port of a switch, or the link of an endpoint.
struct Place {
  size_t node = kNoNode;
  uint32_t port = 0;
};

/// The view behind a port of a switch.
struct PortView {
  enum State : uint8_t {
    kDown,     ///< the switch says that its link is down
    kUp,       ///< the way to the host: by it the switch was entered
    kNode,     ///< a device that was found through it
    kLoop,     ///< a device that was found through another port before
    kSkipped,  ///< something is there that was left alone; see Problem
    kUnknown,  ///< not looked at
  };
  State state = kUnknown;
  size_t node = kNoNode;   ///< kUp, kNode, kLoop
  uint32_t peer_port = 0;  ///< port there, if it is a switch
  std::string why;         ///< kSkipped
  bool operator==(const PortView& other) const = default;
};

struct Node {
  bool is_switch = false;
  uint32_t identity = 0;  ///< device << 16 | vendor
  uint32_t tag = 0;
  uint32_t dest_id = kNoDestId;    ///< endpoints
  size_t parent = kNoNode;         ///< the device through which it was found
  uint32_t parent_port = 0;        ///< port there
  uint32_t hops = 0;               ///< switches before it
  uint32_t entry_port = 0;         ///< switches: port towards the host
  uint32_t table_entries = 0;      ///< switches: destIDs that fit into the route table
  uint32_t lp_serial = 0;          ///< offset of the block, 0: none
  uint32_t error_management = 0;   ///< offset of the block, 0: none
  std::vector<PortView> ports;     ///< switches
  std::vector<uint32_t> routes;    ///< switches that were only looked at: port by destID
  uint32_t locked_by = kUnlocked;  ///< host that held the lock when it was read
  bool operator==(const Node& other) const = default;
};

/// Something that is not as it should be.
struct Problem {
  std::string kind;   ///< "locked", "silent", "lying", "changed", "lost", "limit", "ids", "unlock"
  std::string where;  ///< "switch 2 port 3"
  std::string what;
  std::string remedy;
  bool operator==(const Problem& other) const = default;
};

/// nodes[0] is the card itself; the others stand in the order in which they were found.
struct FabricMap {
  std::vector<Node> nodes;
  std::vector<Problem> problems;
  bool operator==(const FabricMap& other) const = default;

  [[nodiscard]] size_t switches() const;
  /// Without the card itself.
  [[nodiscard]] size_t endpoints() const;
  /// "this card", "switch 3", "destID 7".
  [[nodiscard]] std::string name(size_t node) const;
  /// "switch 3 port 5".
  [[nodiscard]] std::string place(const Place& at) const;
};

}  // namespace rio::enumerate
