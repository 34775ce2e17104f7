#include "pmd/bus/eal/eal_pci_bus.hpp"

#include <bus_pci_driver.h>
#include <linux/vfio.h>
#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_interrupts.h>
#include <rte_memory.h>
#include <rte_vfio.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>

#include "base/log.hpp"
#include "base/mapping.hpp"
#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/vfio/bus_master.hpp"
#include "pmd/bus/vfio/huge_files.hpp"

namespace rio::pmd {
namespace {

/// The runs of memory that EAL knows. @return -ENOENT: EAL does not know it.
int eal_runs(void* va, size_t len_bytes, std::vector<IovaRun>* out) {
  std::vector<IovaRun> runs;
  auto* at = static_cast<uint8_t*>(va);
  auto* const end = at + len_bytes;
  while (at < end) {
    const rte_memseg* const segment = rte_mem_virt2memseg(at, nullptr);
    if (segment == nullptr || segment->iova == RTE_BAD_IOVA) {
      return -ENOENT;
    }
    auto* const first = static_cast<uint8_t*>(segment->addr);
    const auto skip = static_cast<size_t>(at - first);
    const size_t len = std::min(segment->len - skip, static_cast<size_t>(end - at));
    append_run({at, segment->iova + skip, len}, &runs);
    at += len;
  }
  *out = std::move(runs);
  return 0;
}

/// By EAL, which knows the file of a device's configuration space.
class EalConfig final : public vfio::ConfigSpace {
 public:
  explicit EalConfig(const rte_pci_device& device) : device_(device) {}
  int read16(uint32_t offset_bytes, uint16_t* out) override {
    return result(rte_pci_read_config(&device_, out, sizeof(*out), offset_bytes));
  }
  int write16(uint32_t offset_bytes, uint16_t value) override {
    return result(rte_pci_write_config(&device_, &value, sizeof(value), offset_bytes));
  }
  void nap() override { rte_delay_us_sleep(1000); }

 private:
  static int result(int n) { return n == sizeof(uint16_t) ? 0 : -EIO; }
  const rte_pci_device& device_;
};

/// Number of MSI-X vectors of a card. @param fd of VFIO's device.
uint32_t msix_vectors(int fd) {
  vfio_irq_info info{};
  info.argsz = sizeof(info);
  info.index = VFIO_PCI_MSIX_IRQ_INDEX;
  return ioctl(fd, VFIO_DEVICE_GET_IRQ_INFO, &info) == 0 ? info.count : 0;
}

/// Called by EAL's interrupt thread. @param bar of the device.
void on_device_event(const char* name, rte_dev_event_type event, void* bar) {
  const auto* const memory = static_cast<const rte_mem_resource*>(bar);
  if (event == RTE_DEV_EVENT_REMOVE && base::put_ones_over(memory->addr, memory->len) == 0) {
    base::log_warning(
        "%s: the kernel asks for it back (unbind or hot-unplug): it reads all ones "
        "from now on; close or remove the device",
        name);
  }
}

}  // namespace

EalPciBus::EalPciBus(rte_pci_device* device, unsigned bar_index, std::string tag)
    : device_(device), bar_index_(bar_index), name_(device->name), zones_(std::move(tag)) {
  if (rte_dev_event_callback_register(device->name, on_device_event,
                                      &device->mem_resource[bar_index]) != 0) {
    base::log_warning("%s: out of memory: a request of the kernel for it goes unnoticed",
                      device->name);
  }
}

int EalPciBus::create(rte_pci_device* device, unsigned bar_index, std::string tag,
                      std::unique_ptr<EalPciBus>* out) {
  if (bar_index >= PCI_MAX_RESOURCE) {
    return -EINVAL;
  }
  const rte_mem_resource& bar = device->mem_resource[bar_index];
  if (bar.addr == nullptr) {
    base::log_error(
        "%s: BAR%u is not mapped: bind the card to vfio-pci (dpdk-devbind.py -b vfio-pci %s)",
        device->name, bar_index, device->name);
    return -ENODEV;
  }
  if (bar.len < 2 * regs::kQpStrideBytes) {
    base::log_error("%s: BAR%u has %llu bytes; a card with one queue pair has %u", device->name,
                    bar_index, static_cast<unsigned long long>(bar.len), 2 * regs::kQpStrideBytes);
    return -EINVAL;
  }
  out->reset(new EalPciBus(device, bar_index, std::move(tag)));
  return 0;
}

EalPciBus::~EalPciBus() {
  // Fails only if it is not registered.
  (void)rte_dev_event_callback_unregister(device_->name, on_device_event,
                                          &device_->mem_resource[bar_index_]);
  for (const auto& [va, entry] : mapped_) {
    if (entry.second) {
      rte_dev_dma_unmap(&device_->device, va, reinterpret_cast<uint64_t>(va), entry.first);
    }
  }
  if (irqs_enabled_) {
    rte_intr_disable(device_->intr_handle);
    rte_intr_efd_disable(device_->intr_handle);
  }
}

Mmio EalPciBus::bar() {
  const rte_mem_resource& bar = device_->mem_resource[bar_index_];
  return {bar.addr, bar.len};
}

int EalPciBus::dma_map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) {
  if (va == nullptr || len_bytes == 0) {
    return -EINVAL;
  }
  if (mapped_.contains(va)) {
    return -EEXIST;
  }
  if (eal_runs(va, len_bytes, runs) == 0) {
    mapped_[va] = {len_bytes, false};
    return 0;
  }
  if (device_->kdrv != RTE_PCI_KDRV_VFIO || rte_eal_iova_mode() != RTE_IOVA_VA) {
    base::log_error(
        "%s: cannot reach %p: only VFIO with --iova-mode=va maps memory that is not EAL's",
        name_.c_str(), va);
    return -ENOTSUP;
  }
  const auto iova = reinterpret_cast<uint64_t>(va);
  if (rte_dev_dma_map(&device_->device, va, iova, len_bytes) != 0) {
    const int error = rte_errno;
    base::log_error("%s: VFIO cannot map %p, %zu bytes: %s (raise ulimit -l?)", name_.c_str(), va,
                    len_bytes, rte_strerror(error));
    return -error;
  }
  mapped_[va] = {len_bytes, true};
  *runs = {{va, iova, len_bytes}};
  return 0;
}

int EalPciBus::dma_unmap(void* va, size_t len_bytes) {
  const auto it = mapped_.find(va);
  if (it == mapped_.end() || it->second.first != len_bytes) {
    return -ENOENT;
  }
  const bool by_vfio = it->second.second;
  mapped_.erase(it);
  if (by_vfio &&
      rte_dev_dma_unmap(&device_->device, va, reinterpret_cast<uint64_t>(va), len_bytes) != 0) {
    return -rte_errno;
  }
  return 0;
}

bool EalPciBus::reaches_all_memory() const {
  return device_->kdrv != RTE_PCI_KDRV_VFIO || rte_vfio_noiommu_is_enabled() == 1;
}

/// EAL's own files of hugepages outlive its process, too; the next EAL removes them when it starts.
int EalPciBus::start_dma() {
  if (device_->kdrv != RTE_PCI_KDRV_VFIO) {
    vfio::HugeFiles(vfio::real_kernel(), {}, name_).remove_leftovers();
  }
  EalConfig config(*device_);
  const int rc = vfio::set_bus_master(config, true);
  if (rc != 0) {
    base::log_error("%s: cannot write its command register: reset it by its slot", name_.c_str());
  }
  return rc;
}

int EalPciBus::stop_dma() {
  EalConfig config(*device_);
  const int rc = vfio::end_bus_mastering(config);
  if (rc != 0) {
    base::log_warning("%s: cannot end its accesses to memory (%d): reset it by its slot",
                      name_.c_str(), rc);
  }
  return rc;
}

int EalPciBus::enable_irqs() {
  if (irqs_enabled_) {
    return 0;
  }
  rte_intr_handle* const handle = device_->intr_handle;
  // Other drivers have no descriptor for a vector: UIO's is not that of an MSI-X vector.
  if (handle == nullptr || rte_intr_type_get(handle) != RTE_INTR_HANDLE_VFIO_MSIX) {
    return -ENOTSUP;
  }
  // EAL requests as many as it is told, and all fail if the card has fewer.
  const uint32_t vectors = msix_vectors(rte_intr_dev_fd_get(handle));
  if (vectors == 0) {
    return -ENOTSUP;
  }
  const uint32_t queues = std::min<uint32_t>(vectors, RTE_MAX_RXTX_INTR_VEC_ID) - 1;
  if (queues > 0 && rte_intr_efd_enable(handle, queues) != 0) {
    base::log_error("%s: no eventfds for %u interrupt vectors: raise ulimit -n", name_.c_str(),
                    queues);
    return -EMFILE;
  }
  if (const int rc = rte_intr_enable(handle); rc != 0) {
    base::log_error("%s: cannot enable %u interrupt vectors (%d): poll, or see dmesg",
                    name_.c_str(), vectors, rc);
    rte_intr_efd_disable(handle);
    return -EIO;
  }
  irqs_enabled_ = true;
  return 0;
}

int EalPciBus::irq_fd(uint32_t vector) {
  if (const int rc = enable_irqs(); rc != 0) {
    return rc;
  }
  if (vector < RTE_INTR_VEC_RXTX_OFFSET) {
    return rte_intr_fd_get(device_->intr_handle);
  }
  const auto index = static_cast<int>(vector) - RTE_INTR_VEC_RXTX_OFFSET;
  if (index >= rte_intr_nb_efd_get(device_->intr_handle)) {
    return -ENOTSUP;
  }
  return rte_intr_efds_index_get(device_->intr_handle, index);
}

int EalPciBus::numa_node() const {
  return device_->device.numa_node;
}

}  // namespace rio::pmd
