/// @file
/// A member's reports to its user, and the failures of its own process.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "base/trouble.hpp"
#include "fpga/wire/member_thread.hpp"

namespace rio::wire {

/// Collects reports for the user, and the failures that keep destIDs from being reached. Any
/// thread.
class Troubles {
 public:
  /// @param thread poked for each new report, so that next() is called soon; outlives the object.
  explicit Troubles(MemberThread* thread) : thread_(thread) {}

  /// Report a text to the user, once a subject; an empty one is no report. Strangers may cause it:
  /// the thousandth subject is the last. @param subject empty: the text.
  void tell(const std::string& text, const std::string& subject = {});
  /// Report a failed call that kept partners from being connected. A shortage is reported once,
  /// whichever call found it.
  void note(const base::Trouble& trouble);
  /// Member::next_trouble().
  [[nodiscard]] bool next(std::string* text);

  /// Note that `count` destIDs from `id` on cannot be reached. @param rc -errno; 0: this process is
  /// no longer the cause.
  void set_unreachable(uint32_t id, uint32_t count, int rc);
  /// Member::why_unreachable().
  [[nodiscard]] int why_unreachable(uint32_t id);

 private:
  MemberThread* const thread_;
  std::mutex mutex_;
  std::set<std::string> told_;
  std::deque<std::string> to_tell_;
  std::map<uint32_t, int> unreachable_;  // by destID: -errno
};

}  // namespace rio::wire
