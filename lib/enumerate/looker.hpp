/// @file
/// Shows a fabric by the routes that it has, and changes nothing of it.
///
/// A port of a switch can be looked behind only where some destID's route leads through it. Route
/// tables are read by a register that says which entry is meant; that register is all that is
/// written, so a host that enumerates at the same time is disturbed.
#pragma once

#include "lib/enumerate/fabric_map.hpp"
#include "lib/enumerate/router.hpp"

namespace rio::enumerate {

struct LookOptions {
  uint32_t host_id = 0;
  uint32_t ids = 255;     ///< destIDs below this are asked for
  uint32_t nodes = 4096;  ///< devices to show at most
  Limits limits;
};

/// One run. One thread.
class Looker {
 public:
  /// @param access outlives the object.
  Looker(MaintAccess& access, const LookOptions& options);

  /// @param out what was seen. Set always; complete if 0.
  /// @return 0; -ETIME (limit reached); another -errno: the card itself failed.
  [[nodiscard]] int run(FabricMap* out);

 private:
  using Ids = std::vector<uint32_t>;

  [[nodiscard]] int look();
  [[nodiscard]] int read_switch(size_t node);
  [[nodiscard]] int read_table(const Address& at, size_t node);
  [[nodiscard]] int look_behind(size_t parent, uint32_t port, Ids ids);
  [[nodiscard]] int ask(const Address& at, Node* node, std::string* why);
  [[nodiscard]] size_t find(const Node& node) const;

  LookOptions options_;
  PatientAccess access_;
  FabricMap map_;
  Router router_;
  std::vector<Ids> ways_;  // by node: destIDs whose routes lead to it
};

}  // namespace rio::enumerate
