/// @file
/// What a card of rio-cardsim is: "plain:bar=FILE,ram=FILE,qps=2".
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "fpga/model/config.hpp"
#include "fpga/name/card_name.hpp"

namespace rio::cardsim {

/// How a card is reached: by a QEMU guest through ivshmem-plain or ivshmem-doorbell, or by a
/// program of this machine.
using Way = std::variant<name::Plain, name::Doorbell, name::Listen>;

struct CardSpec {
  Way way{};
  std::string name{};  ///< for messages and the report; never empty
  std::string at{};    ///< endpoint of the fabric; empty: there is no fabric
  model::Config model{};
};

/// "plain", "doorbell" or "listen".
[[nodiscard]] const char* kind_name(const Way& way);

/// Any thread. @return 0, or -EINVAL: unknown kind or key, one given twice or missing, a value out
/// of range; stderr names it and what is allowed.
[[nodiscard]] int parse_card_spec(std::string_view text, CardSpec* out);

}  // namespace rio::cardsim
