/// @file
/// The description of a card of rio-cardsim: "plain:bar=FILE,ram=FILE,qps=2".
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "fpga/model/config.hpp"
#include "fpga/name/card_name.hpp"

namespace rio::cardsim {

/// The way to the card's host: a QEMU guest through ivshmem-plain or ivshmem-doorbell, or a program
/// on this machine.
using Way = std::variant<name::Plain, name::Doorbell, name::Listen>;

/// The way to the host of a virtual function of a card, whose way is `physical`: sockets and files
/// with ".vf0" behind their names, the next function in the guest.
[[nodiscard]] Way way_of_vf(const Way& physical, uint32_t vf);

struct CardSpec {
  Way way{};
  std::string name{};  ///< for messages and the report; never empty
  std::string at{};    ///< endpoint of the fabric; empty: there is no fabric
  model::Config model{};
};

/// Name of a kind: "plain", "doorbell" or "listen".
[[nodiscard]] const char* kind_name(const Way& way);

/// Parse a description. Any thread. @return 0, or -EINVAL: unknown kind or key, one given twice or
/// missing, or a value out of range; stderr names it and the allowed values.
[[nodiscard]] int parse_card_spec(std::string_view text, CardSpec* out);

}  // namespace rio::cardsim
