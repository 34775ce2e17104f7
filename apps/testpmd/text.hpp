/// @file
/// Texts for people, by the formats of printf. Any thread.
#pragma once

#include "apps/common/columns.hpp"
#include "base/formatted.hpp"

namespace rio::testpmd {

using apps::counted;
using base::fail;
using base::formatted;

}  // namespace rio::testpmd
