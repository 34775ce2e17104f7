#include "pmd/dev/event_queue.hpp"

#include <cerrno>

namespace rio::pmd {

int EventQueue::create(Bus& bus, const Caps& caps, const RingConfig& config,
                       SharedPtr<EventQueue>* out) {
  auto queue = make_shared_object<EventQueue>(bus);
  if (queue == nullptr) {
    return -ENOMEM;
  }
  if (const int error = queue->start(bus, caps, config, {0, sizeof(regs::EventCpl)}); error != 0) {
    return error;
  }
  *out = std::move(queue);
  return 0;
}

uint16_t EventQueue::burst(CardEvent* out, uint16_t n) {
  return fetch<regs::EventCpl>(out, n, [](const regs::EventCpl& cpl, uint32_t /*status*/) {
    const auto type = cpl.type > 0xFFu ? regs::EventType{} : regs::EventType(cpl.type);
    return CardEvent{type, cpl.source, cpl.info, {cpl.data0, cpl.data1, cpl.data2, cpl.data3}};
  });
}

}  // namespace rio::pmd
