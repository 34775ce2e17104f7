#include <cerrno>

#include "pmd/raw/device.hpp"
#include "pmd/raw/raw_rio.hpp"

namespace rio::pmd {

Card* raw_card(uint16_t dev_id) {
  const std::lock_guard guard(control_lock());
  RawDevice* const device = find_device(dev_id);
  return device != nullptr ? device->card() : nullptr;
}

QueuePair* raw_queue_pair(uint16_t dev_id, uint32_t qp) {
  const std::lock_guard guard(control_lock());
  RawDevice* const device = find_device(dev_id);
  return device != nullptr ? device->queue_pair(qp) : nullptr;
}

int raw_hold(uint16_t dev_id) {
  const std::lock_guard guard(control_lock());
  RawDevice* const device = find_device(dev_id);
  if (device == nullptr) {
    return -ENODEV;
  }
  ++device->holders;
  return 0;
}

void raw_let_go(uint16_t dev_id) {
  const std::lock_guard guard(control_lock());
  RawDevice* const device = find_device(dev_id);
  if (device != nullptr && device->holders > 0) {
    --device->holders;
  }
}

int raw_set_faults(uint16_t dev_id, uint64_t seed, double rate) {
  const std::lock_guard guard(control_lock());
  RawDevice* const device = find_device(dev_id);
  return device != nullptr ? device->eal_card().set_faults(seed, rate) : -ENODEV;
}

}  // namespace rio::pmd
