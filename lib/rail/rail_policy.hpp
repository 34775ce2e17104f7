/// @file
/// The policies by which messages and stripes are divided over rails, and their names.
///
/// Thread rule: pure functions on their arguments; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rio::rail {

/// The first three are those of [S3].
enum class RailPolicy : uint8_t {
  kStatic,          ///< a peer keeps its rail; peers are spread over the rails
  kUnidirectional,  ///< some rails only send, the others only receive
  kDynamic,         ///< a rail that is free, else the busy ones in turn; long transfers in equal
                    ///< stripes
  kWeighted,        ///< the rail that is expected to finish first; stripes for a rail that drains
};

/// Read "static", "unidirectional", "dynamic" or "weighted".
/// @param out set only on success. @param error one line with the remedy; set only on failure.
/// @return 0, -EINVAL.
[[nodiscard]] int parse_rail_policy(std::string_view text, RailPolicy* out, std::string* error);

/// The text that parse_rail_policy() reads. It lives as long as the program.
[[nodiscard]] std::string_view to_string(RailPolicy policy);

}  // namespace rio::rail
