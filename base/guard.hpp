/// @file
/// Where the exceptions of a library end: the entry points that a C program calls.
#pragma once

#include <cxxabi.h>

#include <cerrno>

#include "base/no_cancel.hpp"

namespace rio::base {

/// The log text and the result of a C entry point that stops an exception. Texts are static.
struct Boundary {
  const char* out_of_memory;  ///< log line, with the remedy; the call returns -ENOMEM
  const char* unexpected;     ///< log line for any other exception
  int unexpected_rc = -EIO;   ///< what the call then returns
};

/// Log the exception that is being handled. Call it in a catch block only.
/// @return -ENOMEM for std::bad_alloc, else Boundary::unexpected_rc.
[[nodiscard]] int end_exception(const Boundary& boundary) noexcept;

/// Run the body of an entry point: no exception leaves it, and its thread is not cancelled in it.
/// Any thread.
template <class Function>
[[nodiscard]] int guard(const Boundary& boundary, Function&& function) noexcept {
  const NoCancel no_cancel;
  try {
    return function();
  } catch (...) {
    return end_exception(boundary);
  }
}

/// Run the body of an entry point in which a thread may be cancelled: no exception leaves it except
/// the one by which glibc unwinds the cancelled thread. Any thread.
template <class Function>
[[nodiscard]] int guard_cancellable(const Boundary& boundary, Function&& function) {
  try {
    return function();
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {
    return end_exception(boundary);
  }
}

}  // namespace rio::base
