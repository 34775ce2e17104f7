/// @file
/// Who waits for a request of the endpoint's context for memory.
#pragma once

#include "lib/tag/request.hpp"

namespace rio::ofi {

/// `user` of each such request. Under a Guard.
class Party {
 public:
  /// The request is done, and may be used again.
  virtual void done(tag::Request& request) = 0;

 protected:
  ~Party() = default;
};

}  // namespace rio::ofi
