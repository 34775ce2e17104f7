/// @file
/// Seeded randomness: the same seed gives the same faults on every machine.
#pragma once

#include "base/random.hpp"

namespace rio::model {

using Rng = base::Random;

}  // namespace rio::model
