#include "pmd/dev/queue_irq.hpp"

#include <unistd.h>

#include <cerrno>

#include "base/log.hpp"
#include "base/no_cancel.hpp"

namespace rio::pmd {

int QueueIrq::prepare(Bus& bus, const Caps& caps, uint32_t qp, uint32_t rings,
                      QueuePairConfig* config) {
  *this = {};
  if (rings == 0) {
    return 0;
  }
  const char* const card = bus.name().c_str();
  Emulation& emulation = bus.emulation();
  if (rings >> regs::kRingsPerQp != 0) {
    base::log_error("%s: interrupts for rings 0x%x; there are %u rings", card, rings,
                    regs::kRingsPerQp);
    return -EINVAL;
  }
  if (emulation.step_hook(qp).fn != nullptr && !emulation.wakes()) {
    base::log_error(
        "%s: interrupts asked for, but this card works only while it is polled; open it with "
        "stepping=thread",
        card);
    return -ENOTSUP;
  }
  if (caps.vectors == 0) {
    base::log_error("%s: interrupts asked for, but the card has none; poll it", card);
    return -ENOTSUP;
  }
  const uint32_t vector = qp % caps.vectors;
  const int fd = bus.irq_fd(vector);
  if (fd == -ENOTSUP) {
    base::log_error("%s: no interrupts on this bus; bind the card to vfio-pci, or poll it", card);
  }
  if (fd < 0) {
    return fd;  // the bus has logged the cause
  }
  emulation_ = &emulation;
  fd_ = fd;
  rings_ = rings;
  for (uint32_t ring = 0; ring < regs::kRingsPerQp; ++ring) {
    if ((rings >> ring & 1u) != 0) {
      config->irq_vectors[ring] = static_cast<int>(vector);
    }
  }
  return 0;
}

int QueueIrq::arm(QueuePair& pair, const std::string& name, uint32_t rings) const {
  const uint32_t others = rings & ~(rings_ & pair.rings());
  if (others != 0) {
    base::log_error("%s: rings 0x%x are not open, or have no interrupts (those that have: 0x%x)",
                    name.c_str(), others, rings_);
    return -EINVAL;
  }
  pair.arm(rings);
  if (emulation_ != nullptr) {
    emulation_->before_sleep();
  }
  return 0;
}

int QueueIrq::ack() const {
  uint64_t raised = 0;
  if (fd_ < 0) {
    return fd_;
  }
  const base::NoCancel no_cancel;
  return read(fd_, &raised, sizeof(raised)) < 0 && errno != EAGAIN ? -errno : 0;
}

}  // namespace rio::pmd
