/// @file
/// On which wire an emulated card is, by its name and arguments.
#pragma once

#include <string>
#include <string_view>

namespace rio::testpmd {

/// @param device what EAL calls it: "raw_rio0", "0000:03:00.0". @param args after its name.
/// @return value of "wire=", "loop" without one; "" for what is no emulated card.
[[nodiscard]] std::string wire_name(std::string_view device, std::string_view args);

}  // namespace rio::testpmd
