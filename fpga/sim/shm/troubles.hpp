/// @file
/// What a member's process could not do, for those who have to know.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "base/trouble.hpp"

namespace rio::sim::shm {

/// Any thread.
class Troubles {
 public:
  /// For the user, once. @return whether it is new.
  bool tell(const std::string& text);
  /// A call that kept partners from being connected. A shortage is told once, whichever call has
  /// met it. @return whether there is something new to tell.
  bool note(const base::Trouble& trouble);
  /// As Member::next_trouble().
  [[nodiscard]] bool next(std::string* text);

  /// `count` destIDs from `id` on cannot be reached. @param rc -errno; 0: this process is not in
  /// the way any more.
  void set_unreachable(uint32_t id, uint32_t count, int rc);
  /// As Member::why_unreachable().
  [[nodiscard]] int why_unreachable(uint32_t id);

 private:
  std::mutex mutex_;
  std::set<std::string> told_;
  std::set<int> told_shortages_;
  std::deque<std::string> to_tell_;
  std::map<uint32_t, int> unreachable_;  // by destID: -errno
};

}  // namespace rio::sim::shm
