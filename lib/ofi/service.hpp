/// @file
/// Services: numbers by which programs of one user on one machine find endpoints of a fabric.
///
/// A service is a file in the user's folder (base/own_folder.hpp), locked by the process that
/// serves it; it holds the endpoint's Name. The lock ends with its owner, however that ends, and no
/// child inherits it, so there are neither stale services nor doubtful ones.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "lib/ofi/name.hpp"

namespace rio::ofi {

/// That an endpoint serves a number: until the destructor. Any thread.
class Service {
 public:
  /// @param fabric mark of it. @param number 1 to 65535. @param name of the endpoint.
  /// @param is_needed else that another endpoint serves it is a warning, and 0 with nothing in
  /// `out`.
  /// @return 0; -EADDRINUSE: another endpoint of this user serves it; why the file cannot be made.
  /// Logged.
  [[nodiscard]] static int claim(uint16_t fabric, uint16_t number, const Name& name, bool is_needed,
                                 std::unique_ptr<Service>* out);
  /// Serve a number that no other endpoint has, of 49152 to 65535.
  /// @param number the one that was found. @return 0; -EADDRINUSE: all are taken; why the file
  /// cannot be made. Logged.
  [[nodiscard]] static int claim_any(uint16_t fabric, const Name& name, uint16_t* number,
                                     std::unique_ptr<Service>* out);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

 private:
  Service(std::string path, int fd);
  [[nodiscard]] static int try_claim(const std::string& path, const std::string& folder,
                                     const Name& name, std::unique_ptr<Service>* out);

  std::string path_;
  int fd_;
  pid_t owner_;  // a child that was forked leaves its parent's services alone
};

/// The endpoint that serves a number on this machine. Any thread.
/// @return 0; -ECONNREFUSED: none does; -EIO: there is a file, and it cannot be read.
[[nodiscard]] int find_service(uint16_t fabric, uint16_t number, Name* out);

}  // namespace rio::ofi
