/// @file
/// Definition of rio_card of the C API. Internal to pmd/api and its tests.
#pragma once

#include <array>
#include <cerrno>
#include <memory>

#include "base/guard.hpp"
#include "pmd/api/riopmd.h"
#include "pmd/api/riopmd.hpp"

/// The queues by pointer, so that a burst is a load, a test and a jump; null: not open.
struct rio_card {
  rio::pmd::TxQueue* tx = nullptr;
  rio::pmd::SharedRxQueue* shared = nullptr;
  rio::pmd::DoorbellQueue* doorbells = nullptr;
  rio::pmd::DmaQueue* dma = nullptr;
  rio::pmd::MaintQueue* maint = nullptr;
  rio::pmd::EventQueue* events = nullptr;
  rio::pmd::BarrierQueue* barriers = nullptr;
  std::array<rio::pmd::DedicatedRxQueue*, rio::regs::kDedicatedQueues> dedicated{};
  std::unique_ptr<rio::Endpoint> endpoint;
};

namespace rio::pmd::api {

/// A handle for an open Endpoint.
[[nodiscard]] std::unique_ptr<rio_card> wrap(std::unique_ptr<Endpoint> endpoint);

/// Run a function at the library's boundary: no exception crosses it (out of memory becomes
/// -ENOMEM), and no thread is cancelled in it.
template <class Function>
[[nodiscard]] int guarded(Function&& function) noexcept {
  static constexpr base::Boundary kDriver = {
      "out of memory; free some, or take fewer and smaller rings and buffers",
      "unexpected exception in the driver; please report it"};
  return base::guard(kDriver, function);
}

/// Call `function` with the queue of an open ring. @return what it says, or -ENOENT.
template <class Function>
[[nodiscard]] int with_queue(rio_card& card, uint32_t ring, Function&& function) {
  const auto call = [&](auto* queue) { return queue != nullptr ? function(*queue) : -ENOENT; };
  switch (ring) {
    case RIO_RING_TX:
      return call(card.tx);
    case RIO_RING_SHARED:
      return call(card.shared);
    case RIO_RING_DOORBELL:
      return call(card.doorbells);
    case RIO_RING_DMA:
      return call(card.dma);
    case RIO_RING_MAINT:
      return call(card.maint);
    case RIO_RING_EVENT:
      return call(card.events);
    case RIO_RING_BARRIER:
      return call(card.barriers);
    default:
      return ring >= RIO_RING_DEDICATED0 && ring < regs::kRingsPerQp
                 ? call(card.dedicated[ring - RIO_RING_DEDICATED0])
                 : -ENOENT;
  }
}

}  // namespace rio::pmd::api
