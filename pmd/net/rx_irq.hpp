/// @file
/// The receive interrupt of a port: a thread sleeps in rte_epoll_wait() until a message comes.
#pragma once

#include <ethdev_driver.h>

#include <string>

#include "pmd/dev/queue_irq.hpp"

namespace rio::pmd {

/// The interrupt of the card's ring, and EAL's handle for it, with one vector for the port's only
/// receive queue: queues beside it have no ring of the card. Control path, except for arm() and
/// wake().
class RxIrq {
 public:
  RxIrq() = default;
  ~RxIrq() { rte_intr_instance_free(handle_); }
  RxIrq(const RxIrq&) = delete;
  RxIrq& operator=(const RxIrq&) = delete;

  /// Call before the queue pair is opened: each time, since a reset forgets interrupts. @param dev
  /// its configuration says whether there are any; gets the handle. @param config gets the vector.
  /// @return 0; -ENOTSUP: several receive queues, -ENOMEM, and as QueueIrq::prepare(); logged.
  [[nodiscard]] int prepare(Bus& bus, const Caps& caps, uint32_t qp, rte_eth_dev& dev,
                            QueuePairConfig* config);
  /// Whether the port was configured with interrupts.
  [[nodiscard]] bool is_on() const { return irq_.fd() >= 0; }
  /// Ask for an interrupt with the next message, or now if there is one. Needs is_on(). For one
  /// thread at a time. @return as QueueIrq::arm().
  [[nodiscard]] int arm(QueuePair& pair, const std::string& name) const {
    return irq_.arm(pair, name, ring_bit(regs::Ring::kShared));
  }
  /// Wake the sleeping thread. Does nothing without interrupts. Any thread.
  void wake() const;

 private:
  QueueIrq irq_;
  rte_intr_handle* handle_ = nullptr;
};

}  // namespace rio::pmd
