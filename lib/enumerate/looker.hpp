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

/// One run. One thread.
class Looker {
 public:
  /// @param access outlives the object. @param options if `large`, destIDs below 4096 are asked
  /// for, else those below 255; no lock is broken.
  Looker(MaintAccess& access, const EnumerateOptions& options);

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

  EnumerateOptions options_;
  uint32_t id_limit_;  // of the destIDs that are asked for
  PatientAccess access_;
  FabricMap map_;
  Router router_;
  std::vector<Ids> ways_;  // by node: destIDs whose routes lead to it
};

}  // namespace rio::enumerate
