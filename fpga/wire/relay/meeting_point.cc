#include "fpga/wire/relay/meeting_point.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/own_folder.hpp"
#include "base/trouble.hpp"
#include "base/unix_socket.hpp"

namespace rio::wire::relay {
namespace {

/// The folder that also holds fabrics of processes; these ignore names that begin with a dot.
[[nodiscard]] std::string folder() {
  return base::runtime_base() + "/" + base::user_folder_name();
}
[[nodiscard]] std::string path_of(const std::string& name) {
  return folder() + "/.relay-" + name;
}

[[nodiscard]] int fail(std::string* error, int rc, const std::string& text) {
  *error = text + ": " + std::strerror(-rc);
  return rc;
}

[[nodiscard]] int check_folder(std::string* error) {
  struct stat info {};
  if (lstat(folder().c_str(), &info) != 0) {
    return fail(error, -errno, folder());
  }
  return base::check_own_folder(info, folder(), error);
}

}  // namespace

namespace {

/// Tries once to listen. @return as listen_as(); -ENOENT also if another program has removed the
/// folder meanwhile.
[[nodiscard]] int try_listen(const std::string& name, base::Fd* out, std::string* error) {
  if (mkdir(folder().c_str(), 0700) != 0 && errno != EEXIST) {
    return fail(error, -errno,
                folder() + " cannot be made; set RIO_RUNTIME_DIR to a folder of your own");
  }
  if (const int rc = check_folder(error); rc != 0) {
    return rc;
  }
  const int rc = base::listen_at(path_of(name), SOCK_SEQPACKET, out);
  if (rc == -EADDRINUSE) {
    return fail(error, rc, "a relay '" + name + "' runs already; take another name, or end it");
  }
  if (rc != 0) {
    *error = path_of(name) + ": " + std::strerror(-rc) + base::remedy_of(rc);
  }
  return rc;
}

}  // namespace

int listen_as(const std::string& name, base::Fd* out, std::string* error) {
  constexpr int kTries = 1000;
  int rc = -ENOENT;
  for (int tries = 0; rc == -ENOENT && tries < kTries; ++tries) {
    rc = try_listen(name, out, error);
  }
  return rc;
}

void stop_listening(const std::string& name) {
  unlink(path_of(name).c_str());
  rmdir(folder().c_str());
}

int connect_to_relay(const std::string& name, base::Fd* out, std::string* error) {
  const int rc = base::connect_to(path_of(name), SOCK_SEQPACKET, out);
  if (rc == -ENOENT || rc == -ECONNREFUSED) {
    return fail(error, -ENOENT, "no relay '" + name + "'; start it: rio-relay " + name);
  }
  if (const int wrong = check_folder(error); wrong != 0 || rc == 0) {
    return wrong;
  }
  *error = path_of(name) + ": " + std::strerror(-rc) + base::remedy_of(rc);
  return rc;
}

}  // namespace rio::wire::relay
