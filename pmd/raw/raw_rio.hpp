/// @file
/// For C++ programs on EAL that call the driver's bursts themselves. Such a program links
/// librte_raw_rio.so like any library (then no -d is needed) and, for the functions of pmd/dev that
/// are not inline, pmd/dev's static library; the objects are the plug-in's.
#pragma once

#include <cstdint>

namespace rio::pmd {

class Card;
class QueuePair;

/// All functions: control path, any thread, safe for any argument. The objects stay the device's.

/// @return the card of a raw device, until it is reset, reconfigured or closed. Null: no such
/// device, or of another driver.
[[nodiscard]] Card* raw_card(uint16_t dev_id);

/// @return a queue pair that this process has set up, until the device is stopped. Null: not set
/// up, not started, or no such device. Its queues belong to one thread each.
[[nodiscard]] QueuePair* raw_queue_pair(uint16_t dev_id, uint32_t qp);

/// Keep a device from being unplugged, by whatever process asks (-EBUSY, and the log says so), as
/// long as the objects above are used. Counted. Let go before rte_eal_cleanup(). @return 0,
/// -ENODEV.
[[nodiscard]] int raw_hold(uint16_t dev_id);
void raw_let_go(uint16_t dev_id);

/// Switch the seeded fault injector of an emulated card. Messages in flight are kept.
/// @param rate 0 (off, which every card is) to 1, chance of a fault for each chance that it has.
/// @return -ENODEV, -ENOTSUP (a real card, or another process's), -EINVAL (rate).
[[nodiscard]] int raw_set_faults(uint16_t dev_id, uint64_t seed, double rate);

}  // namespace rio::pmd
