#include "pmd/net/rx_irq.hpp"

#include <sys/eventfd.h>

#include <cerrno>

#include "base/log.hpp"

namespace rio::pmd {
namespace {

/// EAL's handle for one descriptor. @return null: no memory.
rte_intr_handle* make_handle(int fd) {
  rte_intr_handle* const made = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
  if (made == nullptr || rte_intr_type_set(made, RTE_INTR_HANDLE_VDEV) != 0 ||
      rte_intr_vec_list_alloc(made, nullptr, 1) != 0 ||
      rte_intr_vec_list_index_set(made, 0, RTE_INTR_VEC_RXTX_OFFSET) != 0 ||
      rte_intr_efds_index_set(made, 0, fd) != 0 || rte_intr_nb_efd_set(made, 1) != 0 ||
      rte_intr_efd_counter_size_set(made, sizeof(eventfd_t)) != 0) {
    rte_intr_instance_free(made);
    return nullptr;
  }
  return made;
}

}  // namespace

int RxIrq::prepare(Bus& bus, const Caps& caps, uint32_t qp, rte_eth_dev& dev,
                   QueuePairConfig* config) {
  const bool wanted = dev.data->dev_conf.intr_conf.rxq != 0;
  if (wanted && dev.data->nb_rx_queues != 1) {
    base::log_error(
        "%s: no receive interrupts for %u queues, which share one ring of the card: configure one "
        "receive queue, or poll",
        dev.data->name, dev.data->nb_rx_queues);
    return -ENOTSUP;
  }
  const int rc = irq_.prepare(bus, caps, qp, wanted ? ring_bit(regs::Ring::kShared) : 0, config);
  if (rc == 0 && wanted && handle_ == nullptr) {
    handle_ = make_handle(irq_.fd());  // the bus keeps this descriptor as long as it lives
    if (handle_ == nullptr) {
      base::log_error("%s: no memory for its interrupt: give EAL more", dev.data->name);
      return -ENOMEM;
    }
  }
  dev.intr_handle = handle_;
  return rc;
}

void RxIrq::wake() const {
  if (is_on()) {
    (void)eventfd_write(irq_.fd(), 1);  // fails only if it is readable for long
  }
}

}  // namespace rio::pmd
