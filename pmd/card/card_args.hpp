/// @file
/// Device arguments of a card: those of its name (fpga/name), and those below, of the rings and
/// time-outs that a DPDK device sets up. A test checks guide and pmdinfo string against both.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fpga/name/parse.hpp"
#include "pmd/bus/emu/emu_config.hpp"
#include "pmd/dev/queue_pair.hpp"

namespace rio::pmd {

/// The arguments of a card; a value that is not given is the default.
struct CardArgs {
  /// vdev only. Two queue pairs: eight sources and mailboxes, one for each dedicated queue.
  EmuConfig emu{.model = {.queue_pairs = 2}};
  std::string wire = "loop";         ///< of the emulated card, by name::wire_of()
  uint32_t base_dest_id = 0;         ///< of queue pair 0
  std::vector<std::string> given{};  ///< the keys that the text has, those of its owner, too
  QueuePairConfig queues{};          ///< only sizes of rings that have a key, and push, are used
  CardConfig card{};                 ///< time-outs and retries; dest_ids come from elsewhere
};

/// The key of a ring's size.
struct RingKey {
  const char* key;
  uint32_t QueuePairConfig::*log2;
};
inline constexpr RingKey kRingKeys[] = {{"tx_ring", &QueuePairConfig::tx_log2},
                                        {"rx_ring", &QueuePairConfig::shared_log2},
                                        {"dedicated_ring", &QueuePairConfig::dedicated_log2},
                                        {"doorbell_ring", &QueuePairConfig::doorbell_log2},
                                        {"dma_ring", &QueuePairConfig::dma_log2},
                                        {"event_ring", &QueuePairConfig::event_log2}};

/// Keys that a device takes itself, besides those of its card.
using OwnKeys = std::vector<name::OwnKey>;

/// Split the arguments of a device by rte_kvargs. @param text null: none. @param pieces gets each
/// "key=value", or "key". @return -EINVAL: there are too many, or no memory; logged.
[[nodiscard]] int split_devargs(const std::string& device_name, const char* text,
                                std::vector<std::string>* pieces);

/// Parse "key=value,key=value". Control path.
/// @param place of a virtual device, or of a PCI device. @param args holds the defaults and gets
/// the result, on success only. @param own keys of the device: their functions are called.
/// @return -EINVAL: unknown key, key given twice, value missing, malformed or out of range; the
/// log names key, value and what is allowed.
[[nodiscard]] int parse_devargs(const std::string& device_name, const char* text, name::Place place,
                                CardArgs* args, const OwnKeys& own = {});

/// The keys of rings and time-outs. @param args where their values go.
[[nodiscard]] OwnKeys card_keys(CardArgs* args);

}  // namespace rio::pmd
