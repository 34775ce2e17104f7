/// @file
/// A fence for both sides of a flag, paid by the side that seldom needs it.
#pragma once

namespace rio::sim::shm {

/// To be called once by each process that others may want to see the stores of.
void let_others_see_us();

/// When it returns, the other processes have seen our stores, and we see those that they had made.
/// Slow: some microseconds.
void make_stores_seen();

}  // namespace rio::sim::shm
