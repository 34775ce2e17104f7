#include "pmd/dev/notice_queue.hpp"

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
  return fetch<regs::DoorbellCpl>(out, n, [](const regs::DoorbellCpl& cpl, uint32_t status) {
    const auto info = static_cast<uint16_t>(regs::doorbell_cpl::Status::info.get(status));
    return DoorbellEvent{cpl.source, cpl.dest_id, cpl.time, info};
  });
}

uint16_t EventQueue::burst(CardEvent* out, uint16_t n) {
  return fetch<regs::EventCpl>(out, n, [](const regs::EventCpl& cpl, uint32_t /*status*/) {
    const auto type = cpl.type > 0xFFu ? regs::EventType{} : regs::EventType(cpl.type);
    return CardEvent{type, cpl.source, cpl.info, {cpl.data0, cpl.data1, cpl.data2, cpl.data3}};
  });
}

}  // namespace rio::pmd
