/// @file
/// The socket, in the user's folder, by which processes find a relay.
#pragma once

#include <string>

#include "base/fd.hpp"

namespace rio::wire::relay {

// Functions return 0 or -errno; `error` gives the cause and the remedy. Any thread.

/// Listen for processes, as the relay `name`. @return -EADDRINUSE: one of this name exists; -EPERM:
/// the folder is open to others.
[[nodiscard]] int listen_as(const std::string& name, base::Fd* out, std::string* error);
/// Free the name, and remove the folder if it is empty.
void stop_listening(const std::string& name);
/// Connect to a relay. @return -ENOENT: there is none.
[[nodiscard]] int connect_to_relay(const std::string& name, base::Fd* out, std::string* error);

}  // namespace rio::wire::relay
