#include "fpga/wire/relay/protocol.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "base/own_folder.hpp"
#include "base/trouble.hpp"
#include "base/unix_socket.hpp"

namespace rio::wire::relay {
namespace {

constexpr int kBacklog = 4096;

/// The folder that also holds fabrics of processes; these ignore names that begin with a dot.
[[nodiscard]] std::string folder() {
  return base::runtime_base() + "/" + base::user_folder_name();
}
[[nodiscard]] std::string path_of(const std::string& name) {
  return folder() + "/.relay-" + name;
}

}  // namespace

int listen_as(const std::string& name, base::Fd* out, std::string* error) {
  constexpr int kTries = 1000;  // another program may remove the folder meanwhile
  int rc = -ENOENT;
  for (int tries = 0; rc == -ENOENT && tries < kTries; ++tries) {
    std::string made;
    if (rc = base::make_user_folder(&made, error); rc != 0) {
      continue;
    }
    rc = base::listen_at(path_of(name), SOCK_SEQPACKET, out, kBacklog);
    if (rc == -EADDRINUSE) {
      return base::fail(error, rc,
                        "a relay '" + name + "' runs already; take another name, or end it");
    }
    if (rc != 0) {
      *error = base::why({path_of(name).c_str(), rc});
    }
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
    return base::fail(error, -ENOENT, "no relay '" + name + "'; start it: rio-relay " + name);
  }
  std::string folder_path;
  if (const int wrong = base::make_user_folder(&folder_path, error); wrong != 0 || rc == 0) {
    return wrong;
  }
  *error = base::why({path_of(name).c_str(), rc});
  return rc;
}

}  // namespace rio::wire::relay
