/// @file
/// Finds all devices of a fabric, gives each endpoint a destID, and sets all routes. Start here.
///
/// Breadth first, ports in order, so the same fabric gives the same result. Each device is locked
/// for this host while that goes on; a device that is locked and bears a tag of this run was found
/// before, and closes a loop. RIO Part 3 §2.3, §3.5; docs/fabric.md
#pragma once

#include <functional>
#include <set>

#include "lib/enumerate/fabric_map.hpp"
#include "lib/enumerate/host_lock.hpp"
#include "lib/enumerate/inquiry.hpp"
#include "lib/enumerate/router.hpp"

namespace rio::enumerate {

/// One run. One thread.
class Enumerator {
 public:
  /// @param access outlives the object.
  Enumerator(MaintAccess& access, const EnumerateOptions& options);

  /// @param out what was found, with what is wrong with it. Set always; complete if 0.
  /// @return 0; -EBUSY (the card itself is locked by another host, who is in the last problem);
  /// -ETIME (limit reached; locks were released); another -errno: the card itself failed.
  [[nodiscard]] int run(FabricMap* out);

 private:
  [[nodiscard]] int lock_own_card();
  /// Call `step` with each switch, or with each endpoint, also those that it finds. A device that
  /// fails is noted as lost.
  [[nodiscard]] int each(bool switches, const std::function<int(size_t node)>& step);
  [[nodiscard]] int explore_switch(size_t node);
  [[nodiscard]] int visit(const Place& parent);
  [[nodiscard]] int introduce(const Address& at, const Place& parent, PortView* view);
  [[nodiscard]] int admit(const Address& at, uint32_t identity, const Place& parent, Node* node,
                          std::string* why);
  [[nodiscard]] int mark(const Address& at, uint32_t offset, uint32_t value, uint32_t mask,
                         const char* what, std::string* why);
  [[nodiscard]] int find_seen(const Address& at, const Place& parent, size_t* known);
  [[nodiscard]] int close_loop(const Address& at, const Place& parent, size_t known,
                               PortView* view);
  [[nodiscard]] bool is_taken(uint32_t dest_id) const;
  [[nodiscard]] int give_dest_id(const Address& at, Node* node, std::string* why);
  [[nodiscard]] int reserve_dest_id_of(const Address& at);
  [[nodiscard]] int give_way();
  [[nodiscard]] int set_routes(size_t node);
  [[nodiscard]] int verify(size_t endpoint);
  [[nodiscard]] int tidy_up();
  [[nodiscard]] int release_half_way();
  /// Note that another host holds a device. @return what is wrong with it.
  std::string is_locked(const std::string& where, uint32_t holder);
  void stays_locked(const std::string& where);

  EnumerateOptions options_;
  PatientAccess access_;
  FabricMap map_;
  HostLock lock_;
  Router router_;
  Place half_way_;                 // what is behind it is locked, and not among the nodes yet
  std::set<uint32_t> reserved_;    // destIDs of others: hosts, and devices that they hold
  uint32_t last_id_ = UINT32_MAX;  // given last; UINT32_MAX: none yet
  uint32_t id_limit_;              // IDs are below it
};

}  // namespace rio::enumerate
