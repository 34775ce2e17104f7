/// @file
/// Interface of an object that waits for a request on the endpoint's context for memory.
#pragma once

#include "lib/tag/request.hpp"

namespace rio::ofi {

/// The `user` of such a request. Under a Guard.
class Party {
 public:
  /// Called when the request is done; it may be reused.
  virtual void done(tag::Request& request) = 0;

 protected:
  ~Party() = default;
};

}  // namespace rio::ofi
