#include "pmd/dev/doorbell_queue.hpp"

#include <cerrno>

namespace rio::pmd {

int DoorbellQueue::create(Bus& bus, const Caps& caps, const RingConfig& config,
                          SharedPtr<DoorbellQueue>* out) {
  auto queue = make_shared_object<DoorbellQueue>(bus);
  if (queue == nullptr) {
    return -ENOMEM;
  }
  if (const int error = queue->start(bus, caps, config, {0, sizeof(regs::DoorbellCpl)});
      error != 0) {
    return error;
  }
  *out = std::move(queue);
  return 0;
}

uint16_t DoorbellQueue::burst(DoorbellEvent* out, uint16_t n) {
  return fetch<regs::DoorbellCpl>(out, n, [](const regs::DoorbellCpl& cpl, uint32_t status) {
    const auto info = static_cast<uint16_t>(regs::doorbell_cpl::Status::info.get(status));
    return DoorbellEvent{cpl.source, cpl.dest_id, cpl.time, info};
  });
}

}  // namespace rio::pmd
