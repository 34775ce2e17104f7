/// @file
/// Names of the card's codes, for messages and tables. Any thread; the strings are constants.
#pragma once

#include <cstdint>

#include "pmd/dev/types.hpp"

namespace rio::pmd {

/// "ok", "retry expired" …; "unknown status" for a code that the contract does not have.
[[nodiscard]] const char* name(Status status);
/// "stopped", "running" …
[[nodiscard]] const char* name(regs::RingState state);
/// The name of what Ring::state() says. @return "unreadable" for an -errno.
[[nodiscard]] const char* state_name(int state);
/// "none", "config" …
[[nodiscard]] const char* name(regs::RingError error);
/// "none", "length" …
[[nodiscard]] const char* name(Reject reject);
/// "port-write", "link" …
[[nodiscard]] const char* name(regs::EventType type);
/// "tx", "shared", … "dedicated7". @param ring 0 to regs::kRingsPerQp - 1.
[[nodiscard]] const char* ring_name(uint32_t ring);
/// The remedy for a ring error, for messages.
[[nodiscard]] const char* remedy(regs::RingError error);

}  // namespace rio::pmd
