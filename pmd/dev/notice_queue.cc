#include "pmd/dev/notice_queue.hpp"

#include <cstddef>
#include <cstring>

namespace rio::pmd {

int DoorbellQueue::create(Bus& bus, const Caps& caps, const RingConfig& config,
                          SharedPtr<DoorbellQueue>* out) {
  return make_queue(bus, out, [&](DoorbellQueue& queue) {
    return queue.start(bus, caps, config, {0, sizeof(regs::DoorbellCpl)});
  });
}

int EventQueue::create(Bus& bus, const Caps& caps, const RingConfig& config,
                       SharedPtr<EventQueue>* out) {
  return make_queue(bus, out, [&](EventQueue& queue) {
    return queue.start(bus, caps, config, {0, sizeof(regs::EventCpl)});
  });
}

uint16_t DoorbellQueue::burst(DoorbellEvent* out, uint16_t n) {
  return fetch<regs::DoorbellCpl>(out, n, [](const regs::DoorbellCpl& cpl) {
    static_assert(sizeof(DoorbellEvent) == sizeof cpl && offsetof(DoorbellEvent, dest_id) == 4 &&
                  offsetof(DoorbellEvent, time_ticks) == 8 && offsetof(DoorbellEvent, info) == 12 &&
                  regs::doorbell_cpl::Status::info.mask() == 0xFFFF);
    DoorbellEvent event;
    std::memcpy(static_cast<void*>(&event), &cpl, sizeof event);  // the phase lands in the padding
    return event;
  });
}

uint16_t EventQueue::burst(CardEvent* out, uint16_t n) {
  return fetch<regs::EventCpl>(out, n, [](const regs::EventCpl& cpl) {
    const auto type = cpl.type > 0xFFu ? regs::EventType{} : regs::EventType(cpl.type);
    return CardEvent{type, cpl.source, cpl.info, {cpl.data0, cpl.data1, cpl.data2, cpl.data3}};
  });
}

}  // namespace rio::pmd
