/// @file
/// Memory of a device that may vanish: an access then raises SIGBUS, which ends the program unless
/// it has asked to go on.
#pragma once

#include <cstddef>

namespace rio::base {

/// A range of a device's memory that reads all ones once an access to it has raised SIGBUS, if
/// catch_bus_errors() was called. Control path, any thread.
class BusErrorRange {
 public:
  BusErrorRange() = default;
  /// @param va, len_bytes whole pages, mapped while the object lives. The first 64 ranges of a
  /// process count, others are left out.
  BusErrorRange(void* va, size_t len_bytes);
  ~BusErrorRange();
  BusErrorRange(BusErrorRange&& other) noexcept;
  BusErrorRange& operator=(BusErrorRange&& other) noexcept;

 private:
  int slot_ = -1;  // -1: none
};

/// Handle SIGBUS from now on, in the whole process: an access to a BusErrorRange goes on, with the
/// range all ones; any other SIGBUS goes to the handler that was there before, or ends the process
/// as if there were none. A handler that the program installs later replaces this one. Any thread;
/// again: nothing. @return 0, or -errno of sigaction().
[[nodiscard]] int catch_bus_errors();

}  // namespace rio::base
