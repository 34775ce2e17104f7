/// @file
/// Messages that an endpoint sends to itself. No card takes part: it need not be able to hear
/// itself.
#pragma once

#include "lib/tag/unexpected.hpp"

namespace rio::tag {

/// One thread.
class SelfMessages {
 public:
  /// All outlive the object. @param eager_bytes longer messages are not copied: they wait where
  /// they are.
  SelfMessages(Peers& peers, Matcher& matcher, Completions& completions, UnexpectedStore& store,
               uint64_t eager_bytes)
      : peers_(peers),
        matcher_(matcher),
        completions_(completions),
        store_(store),
        eager_bytes_(eager_bytes) {}

  /// @return as TaggedContext::send().
  [[nodiscard]] int send(SendRequest& request);
  /// Copy a message, which a receive has matched, to its buffer.
  void take(Unexpected& message, const RecvRequest& request);

 private:
  [[nodiscard]] int keep(SendRequest& request);

  Peers& peers_;
  Matcher& matcher_;
  Completions& completions_;
  UnexpectedStore& store_;
  uint64_t eager_bytes_;
};

}  // namespace rio::tag
