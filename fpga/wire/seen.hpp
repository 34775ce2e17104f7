/// @file
/// A fence for both sides of a flag, paid by the side that seldom needs it.
#pragma once

#include <string>

#include "base/trouble.hpp"

namespace rio::wire {

/// Called once by each process whose stores others may want to see. @return the failure that keeps
/// make_stores_seen() from being fast; why_slow() explains it.
base::Trouble let_others_see_us();

/// Explain that failure for a log line.
[[nodiscard]] std::string why_slow(const base::Trouble& trouble);

/// When it returns, the other processes have seen our stores, and we see those that they had made.
/// Slow: some microseconds.
void make_stores_seen();

}  // namespace rio::wire
