/// @file
/// Device arguments of a card. The table in card_args.cc is the only place where they are written
/// down; a test checks guide and pmdinfo string against it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pmd/bus/emu/emu_bus.hpp"

namespace rio::pmd {

/// What the arguments say; where they say nothing, the default.
struct CardArgs {
  /// vdev only. Two queue pairs: eight sources and mailboxes, one for each dedicated queue.
  EmuConfig emu{.queue_pairs = 2};
  std::string wire = "loop";   ///< of the emulated card, as it was given
  uint32_t base_dest_id = 0;   ///< of queue pair 0
  bool dest_id_given = false;  ///< by an argument; else it is a wish where cards of others are
  uint32_t tx_log2 = 9;        ///< ring sizes, log2 of entries
  uint32_t shared_log2 = 9;
  uint32_t dedicated_log2 = 9;
  uint32_t doorbell_log2 = 8;
  uint32_t dma_log2 = 7;
  uint32_t event_log2 = 6;
  uint32_t response_timeout_us = 100'000;
  uint32_t receive_timeout_us = 200'000;  ///< at most twice response_timeout_us
  uint32_t retry_limit = 0;
  uint32_t retry_delay_us = 1;
};

/// Parse "key=value,key=value". Control path.
/// @param emulated whether the keys of an emulated card are allowed. @param args holds the
/// defaults and gets the result, on success only. @param taken keys that the device has taken out
/// of the text, "card, qp": they are not allowed again, and named where a key is unknown.
/// @return -EINVAL: unknown key, key given twice, value missing, malformed or out of range; the
/// log names key, value and what is allowed.
[[nodiscard]] int parse_devargs(const std::string& device_name, const char* text, bool emulated,
                                CardArgs* args, const std::string& taken = "");

/// A decimal number, or a hexadecimal one after 0x. @return false: none, or not from `first` to
/// `last`; *out is then anything.
[[nodiscard]] bool read_number(std::string_view text, uint64_t first, uint64_t last, uint64_t* out);

/// Take the first "key=value" out of such a list. @return whether there is one.
[[nodiscard]] bool take_arg(std::string* text, const std::string& key, std::string* value);

/// All keys, with blanks between them.
[[nodiscard]] std::string devargs_keys();

}  // namespace rio::pmd
