#include "pmd/raw/ops.hpp"
#include "pmd/raw/raw_rio.hpp"

namespace rio::pmd {

Card* raw_card(uint16_t dev_id) {
  return with_device<Card*>(dev_id, nullptr, [](RawDevice& device) { return device.card(); });
}

QueuePair* raw_queue_pair(uint16_t dev_id, uint32_t qp) {
  return with_device<QueuePair*>(dev_id, nullptr,
                                 [qp](RawDevice& device) { return device.queue_pair(qp); });
}

int raw_hold(uint16_t dev_id) {
  return with_device(dev_id, -ENODEV, [](RawDevice& device) {
    ++device.holders;
    return 0;
  });
}

void raw_let_go(uint16_t dev_id) {
  (void)with_device(dev_id, 0, [](RawDevice& device) {
    device.holders -= device.holders > 0 ? 1 : 0;
    return 0;
  });
}

int raw_set_faults(uint16_t dev_id, uint64_t seed, double rate) {
  return with_device(dev_id, -ENODEV,
                     [=](RawDevice& device) { return device.eal_card().set_faults(seed, rate); });
}

}  // namespace rio::pmd
