/// @file
/// The description of a card of rio-cardsim: "plain:bar=FILE,ram=FILE,qps=2".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fpga/model/config.hpp"

namespace rio::cardsim {

/// The way to the card's host.
enum class Kind : uint8_t {
  kPlain,     ///< by a QEMU guest through ivshmem-plain
  kDoorbell,  ///< by a QEMU guest through ivshmem-doorbell, with interrupts
  kListen,    ///< by a program of this machine
};

struct CardSpec {
  Kind kind = Kind::kPlain;
  std::string name;      ///< for messages and the report; never empty
  std::string bar;       ///< plain: file that becomes the BAR
  std::string ram;       ///< plain, doorbell: the guest's RAM
  std::string monitor;   ///< plain, doorbell: QEMU's monitor; empty: the guest has no IOMMU
  std::string socket;    ///< doorbell, listen
  uint32_t vectors = 2;  ///< doorbell: 1 to 64, as QEMU was told
  uint16_t bdf = 0x20;   ///< plain, doorbell: the card's address in the guest, bus << 8 | devfn
  std::string at;        ///< endpoint of the fabric; empty: there is no fabric
  model::Config model;
};

/// Name of a kind: "plain", "doorbell" or "listen".
[[nodiscard]] const char* kind_name(Kind kind);

/// Parse a description. Any thread. @return 0, or -EINVAL: unknown kind or key, one given twice or
/// missing, or a value out of range; stderr names it and the allowed values.
[[nodiscard]] int parse_card_spec(std::string_view text, CardSpec* out);

/// Help text for parse_card_spec(): a line for each key.
[[nodiscard]] std::string card_spec_help();

}  // namespace rio::cardsim
