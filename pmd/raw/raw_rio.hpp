/// @file
/// For C++ programs on EAL that call the driver's bursts themselves. Such a program links
/// librte_raw_rio.so like any library (then no -d is needed) and, for the functions of pmd/dev that
/// are not inline, pmd/dev's static library; the objects are the plug-in's.
#pragma once

#include <cstdint>

namespace rio::pmd {

class Card;
class QueuePair;

/// All functions: control path, any thread, any argument. The objects belong to the device.

/// The card of a raw device, valid until the device is reset, reconfigured or closed. @return null:
/// no such device, or another driver's.
[[nodiscard]] Card* raw_card(uint16_t dev_id);

/// A queue pair that this process has set up, valid until the device is stopped. Each of its queues
/// belongs to one thread. @return null: not set up, not started, or no such device.
[[nodiscard]] QueuePair* raw_queue_pair(uint16_t dev_id, uint32_t qp);

/// Keep a device from being unplugged, by any process, while the objects above are used: unplugging
/// fails with -EBUSY and a log line. Calls are counted. Let go before rte_eal_cleanup(). @return 0,
/// -ENODEV.
[[nodiscard]] int raw_hold(uint16_t dev_id);
void raw_let_go(uint16_t dev_id);

/// Set the seeded fault injector of an emulated card. Messages in flight are kept. @param rate 0
/// (off, the default) to 1: probability of a fault at each point where one can occur. @return 0,
/// -ENODEV, -ENOTSUP (a real card, or another process's), -EINVAL (rate).
[[nodiscard]] int raw_set_faults(uint16_t dev_id, uint64_t seed, double rate);

}  // namespace rio::pmd
