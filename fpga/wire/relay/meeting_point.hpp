/// @file
/// Where the processes of a relay find it: a socket in the folder of their user.
#pragma once

#include <string>

#include "base/fd.hpp"

namespace rio::wire::relay {

// Functions return 0 or -errno; `error` says what is wrong and what to do. Any thread.

/// Listen for processes, as the relay `name`. @return -EADDRINUSE: there is one of this name;
/// -EPERM: the folder is open to others.
[[nodiscard]] int listen_as(const std::string& name, base::Fd* out, std::string* error);
/// The name is free again, and the folder goes if nothing else is in it.
void stop_listening(const std::string& name);
/// Connect to a relay. @return -ENOENT: there is none.
[[nodiscard]] int connect_to_relay(const std::string& name, base::Fd* out, std::string* error);

}  // namespace rio::wire::relay
