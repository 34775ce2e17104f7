// The hot functions of riopmd.h: the driver's own, on the same structs (layout.cc).
#include "pmd/api/handle.hpp"

namespace {

// The caller's structs have the driver's layout; both are looked at through one of the types only,
// on either side of a call that is not inlined.
template <class To, class From>
[[nodiscard]] To* as(From* from) {
  return reinterpret_cast<To*>(from);
}

using namespace rio::pmd;  // NOLINT: this file is nothing but a mirror of that namespace

}  // namespace

extern "C" {

uint16_t rio_tx_burst(rio_card* card, const rio_tx_message* messages, uint16_t n) {
  return card->tx == nullptr ? 0 : card->tx->burst(as<const TxMessage>(messages), n);
}

uint16_t rio_tx_burst_gather(rio_card* card, const rio_tx_gather* messages, uint16_t n) {
  return card->tx == nullptr ? 0 : card->tx->burst_gather(as<const TxGather>(messages), n);
}

uint16_t rio_tx_reap(rio_card* card, rio_tx_done* out, uint16_t n) {
  return card->tx == nullptr ? 0 : card->tx->reap(as<TxDone>(out), n);
}

uint16_t rio_rx_post(rio_card* card, const rio_rx_buffer* buffers, uint16_t n) {
  return card->shared == nullptr ? 0 : card->shared->post(as<const RxBuffer>(buffers), n);
}

uint16_t rio_rx_burst(rio_card* card, rio_rx_message* out, uint16_t n) {
  return card->shared == nullptr ? 0 : card->shared->burst(as<RxMessage>(out), n);
}

uint16_t rio_dedicated_post(rio_card* card, uint32_t i, const rio_dedicated_entry* entries,
                            uint16_t n) {
  if (i >= card->dedicated.size() || card->dedicated[i] == nullptr) [[unlikely]] {
    return 0;
  }
  return card->dedicated[i]->post(as<const DedicatedEntry>(entries), n);
}

uint16_t rio_dedicated_reap(rio_card* card, uint32_t i, rio_entry_done* out, uint16_t n) {
  if (i >= card->dedicated.size() || card->dedicated[i] == nullptr) [[unlikely]] {
    return 0;
  }
  return card->dedicated[i]->reap(as<EntryDone>(out), n);
}

uint16_t rio_doorbell_burst(rio_card* card, rio_doorbell* out, uint16_t n) {
  return card->doorbells == nullptr ? 0 : card->doorbells->burst(as<DoorbellEvent>(out), n);
}

uint16_t rio_dma_post(rio_card* card, const rio_dma_request* requests, uint16_t n) {
  return card->dma == nullptr ? 0 : card->dma->post(as<const DmaRequest>(requests), n);
}

uint16_t rio_dma_reap(rio_card* card, rio_entry_done* out, uint16_t n) {
  return card->dma == nullptr ? 0 : card->dma->reap(as<EntryDone>(out), n);
}

uint16_t rio_barrier_post(rio_card* card, const rio_barrier_request* requests, uint16_t n) {
  return card->barriers == nullptr ? 0
                                   : card->barriers->post(as<const BarrierRequest>(requests), n);
}

uint16_t rio_barrier_go(rio_card* card, uint32_t slot, uint32_t epoch) {
  return card->barriers != nullptr && card->barriers->go(slot, epoch) ? 1 : 0;
}

uint16_t rio_barrier_reap(rio_card* card, rio_barrier_done* out, uint16_t n) {
  return card->barriers == nullptr ? 0 : card->barriers->reap(as<BarrierDone>(out), n);
}

uint16_t rio_event_burst(rio_card* card, rio_event* out, uint16_t n) {
  return card->events == nullptr ? 0 : card->events->burst(as<CardEvent>(out), n);
}

}  // extern "C"
