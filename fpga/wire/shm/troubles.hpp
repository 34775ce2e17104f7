/// @file
/// Failures of a member's own process, reported to the user and to senders.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "base/trouble.hpp"

namespace rio::wire::shm {

/// Collects these failures. Any thread.
class Troubles {
 public:
  /// Report a text to the user, once. @return whether it is new.
  bool tell(const std::string& text);
  /// Report a failed call that kept partners from being connected. A shortage is reported once,
  /// whichever call found it. @return whether it is new.
  bool note(const base::Trouble& trouble);
  /// Member::next_trouble().
  [[nodiscard]] bool next(std::string* text);

  /// Note that `count` destIDs from `id` on cannot be reached. @param rc -errno; 0: this process is
  /// no longer the cause.
  void set_unreachable(uint32_t id, uint32_t count, int rc);
  /// Member::why_unreachable().
  [[nodiscard]] int why_unreachable(uint32_t id);

 private:
  std::mutex mutex_;
  std::set<std::string> told_;
  std::set<int> told_shortages_;
  std::deque<std::string> to_tell_;
  std::map<uint32_t, int> unreachable_;  // by destID: -errno
};

}  // namespace rio::wire::shm
