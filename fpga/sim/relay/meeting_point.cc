#include "fpga/sim/relay/meeting_point.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "fpga/sim/unix_socket.hpp"

namespace rio::sim::relay {
namespace {

/// The folder that fabrics of processes are in, too; they leave alone what begins with a dot.
[[nodiscard]] std::string folder() {
  const char* const base = std::getenv("RIO_RUNTIME_DIR");
  return std::string(base == nullptr || *base == '\0' ? "/dev/shm" : base) + "/riopmd-" +
         std::to_string(geteuid());
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
  if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
    return fail(error, -EPERM,
                folder() +
                    " is not a folder of this user alone; remove it, or set RIO_RUNTIME_DIR to a "
                    "folder of yours");
  }
  return 0;
}

}  // namespace

int listen_as(const std::string& name, Fd* out, std::string* error) {
  if (mkdir(folder().c_str(), 0700) != 0 && errno != EEXIST) {
    return fail(error, -errno,
                folder() + " cannot be made; set RIO_RUNTIME_DIR to a folder of yours");
  }
  if (const int rc = check_folder(error); rc != 0) {
    return rc;
  }
  const int rc = sim::listen_at(path_of(name), SOCK_SEQPACKET, out);
  if (rc == -EADDRINUSE) {
    return fail(error, rc, "a relay '" + name + "' runs already; take another name, or end it");
  }
  return rc == 0 ? 0 : fail(error, rc, path_of(name));
}

void stop_listening(const std::string& name) {
  unlink(path_of(name).c_str());
  rmdir(folder().c_str());
}

int connect_to_relay(const std::string& name, Fd* out, std::string* error) {
  int rc = connect_to(path_of(name), SOCK_SEQPACKET, out);
  if (rc == -ENOENT || rc == -ECONNREFUSED) {
    return fail(error, -ENOENT, "no relay '" + name + "'; start it: rio-relay " + name);
  }
  rc = rc == 0 ? check_folder(error) : fail(error, rc, path_of(name));
  return rc;
}

}  // namespace rio::sim::relay
