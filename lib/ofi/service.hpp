/// @file
/// Services: numbers by which programs of one user on one machine find endpoints of a fabric.
///
/// A service is a file in the user's folder (base/own_folder.hpp) that holds the endpoint's Name,
/// locked by the process that serves it. The lock ends with its owner, whatever ends that, and no
/// child inherits it, so a stale service is never taken for a live one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "base/fd.hpp"
#include "lib/ofi/name.hpp"

namespace rio::ofi {

/// An endpoint's claim to a service, until the destructor. Any thread.
class Service {
 public:
  /// @param fabric mark of its name. @param number 1 to 65535. @param name of the endpoint. @param
  /// is_needed false: if another endpoint serves it, warn and return 0 with `out` empty. @return 0;
  /// -EADDRINUSE: another endpoint of this user serves it; -errno of making the file. Logged.
  [[nodiscard]] static int claim(uint16_t fabric, uint16_t number, const Name& name, bool is_needed,
                                 std::unique_ptr<Service>* out);
  /// Serve a number from 49152 to 65535 that no other endpoint serves. @param number set to it.
  /// @return 0; -EADDRINUSE: all are taken; -errno of making the file. Logged.
  [[nodiscard]] static int claim_any(uint16_t fabric, const Name& name, uint16_t* number,
                                     std::unique_ptr<Service>* out);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

 private:
  Service(std::string path, base::Fd fd);
  [[nodiscard]] static int try_claim(const std::string& path, const std::string& folder,
                                     const Name& name, std::unique_ptr<Service>* out);

  std::string path_;
  base::Fd fd_;
  pid_t owner_;  // a forked child leaves its parent's services alone
};

/// Find the endpoint that serves a number on this machine. Any thread.
/// @return 0; -ECONNREFUSED: none does; -EIO: the file exists but cannot be read.
[[nodiscard]] int find_service(uint16_t fabric, uint16_t number, Name* out);

}  // namespace rio::ofi
