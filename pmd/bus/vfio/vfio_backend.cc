#include <linux/vfio.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>

#include "base/log.hpp"
#include "base/mapping.hpp"
#include "base/wake_fd.hpp"
#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/vfio/backend.hpp"
#include "pmd/bus/vfio/card_watch.hpp"
#include "pmd/bus/vfio/remedy.hpp"
#include "pmd/bus/vfio/vfio_device.hpp"

namespace rio::pmd::vfio {
namespace {

constexpr uint32_t kVectorsMax = 256;

/// A card through VFIO. The card may be given up by another thread at any time: the mutex keeps
/// calls into the kernel on one side of that.
class VfioBackend final : public Backend {
 public:
  VfioBackend(const PciPaths& paths, Kernel& kernel, const PciCard& card, const name::Pci& options)
      : Backend(paths, kernel, card), options_(options) {}
  ~VfioBackend() override {
    watch_.stop();
    bar_ = {};  // before its device is closed
  }

  [[nodiscard]] int open();

  int map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) override;
  int unmap(void* va, size_t len_bytes, const std::vector<IovaRun>& runs) override;
  bool hugepages_only() const override { return false; }
  int irq_fd(uint32_t vector) override;
  int reset() override;
  int start_dma() override;
  int stop_dma() override;

 private:
  [[nodiscard]] int open_device();
  [[nodiscard]] int map_bar();
  [[nodiscard]] int prepare_config();
  [[nodiscard]] ConfigFile config() { return {kernel_, device_.fd.get(), config_at_}; }
  [[nodiscard]] int enable_vectors();
  [[nodiscard]] int watch();
  void give_up(const char* why);
  [[nodiscard]] bool given_up() const { return device_.fd.get() < 0; }

  const name::Pci options_;
  std::mutex mutex_;
  VfioDevice device_;
  uint32_t device_flags_ = 0;
  uint64_t config_at_ = 0;  // in the device's file
  std::vector<KernelFd> vectors_;
  CardWatch watch_;
};

}  // namespace

int find_region(Kernel& kernel, int device, uint32_t index, vfio_region_info* out) {
  auto region = sized<vfio_region_info>();
  region.index = index;
  const int rc = kernel.ioctl(device, VFIO_DEVICE_GET_REGION_INFO, &region);
  if (rc < 0) {
    return rc;
  }
  *out = region;
  return 0;
}

int set_irqs(Kernel& kernel, int device, uint32_t index, const std::vector<KernelFd>& fds) {
  const size_t len_bytes = sizeof(vfio_irq_set) + fds.size() * sizeof(int32_t);
  std::vector<uint32_t> words(len_bytes / sizeof(uint32_t));
  auto* set = reinterpret_cast<vfio_irq_set*>(words.data());
  set->argsz = static_cast<uint32_t>(len_bytes);
  set->flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
  set->index = index;
  set->start = 0;
  set->count = static_cast<uint32_t>(fds.size());
  for (size_t i = 0; i < fds.size(); ++i) {
    const int32_t fd = fds[i].get();
    std::memcpy(set->data + i * sizeof(fd), &fd, sizeof(fd));
  }
  return kernel.ioctl(device, VFIO_DEVICE_SET_IRQS, static_cast<void*>(set));
}

uint32_t count_irqs(Kernel& kernel, int device, uint32_t index) {
  auto info = sized<vfio_irq_info>();
  info.index = index;
  const int rc = kernel.ioctl(device, VFIO_DEVICE_GET_IRQ_INFO, static_cast<void*>(&info));
  return rc < 0 || (info.flags & VFIO_IRQ_INFO_EVENTFD) == 0 ? 0 : info.count;
}

int Backend::failed(int rc, const std::string& what, const std::string& remedy) const {
  return log_failed(card_, rc, what, remedy);
}

int Backend::set_command(ConfigFile config, bool master) const {
  const int rc = set_bus_master(config, master);
  return rc != 0 ? failed(rc, "cannot write its command register",
                          hugepages_only() ? "run with sudo" : rescan_command(card_.address))
                 : 0;
}

int Backend::silence(ConfigFile config) const {
  const int rc = end_bus_mastering(config);
  return rc != 0 ? failed(rc, "cannot end its accesses to memory", "reset it by its slot") : 0;
}

int VfioBackend::open() {
  using Step = int (VfioBackend::*)();
  for (const Step step : {&VfioBackend::open_device, &VfioBackend::map_bar,
                          &VfioBackend::prepare_config, &VfioBackend::watch}) {
    if (const int rc = (this->*step)(); rc != 0) {
      return rc;
    }
  }
  return 0;
}

int VfioBackend::open_device() {
  const bool iommufd = options_.iommufd || has_only_iommufd(paths_, card_);
  if (const int rc = iommufd ? open_with_iommufd(paths_, kernel_, card_, &device_)
                             : open_in_group(paths_, kernel_, card_, &device_);
      rc != 0) {
    return rc;
  }
  auto info = sized<vfio_device_info>();
  const int rc = kernel_.ioctl(device_.fd.get(), VFIO_DEVICE_GET_INFO, static_cast<void*>(&info));
  device_flags_ = info.flags;
  return rc < 0 ? failed(rc, "VFIO_DEVICE_GET_INFO") : 0;
}

int VfioBackend::map_bar() {
  vfio_region_info region{};
  const std::string name = "BAR" + std::to_string(card_.bar);
  const auto index = VFIO_PCI_BAR0_REGION_INDEX + static_cast<uint32_t>(card_.bar);
  if (const int rc = find_region(kernel_, device_.fd.get(), index, &region); rc != 0) {
    return failed(rc, name);
  }
  const bool can_be_mapped = (region.flags & VFIO_REGION_INFO_FLAG_MMAP) != 0;
  if (region.size < regs::kPageBytes || !can_be_mapped) {
    return refuse_bar(card_, region.size, can_be_mapped);
  }
  const int rc =
      bar_.map(kernel_, region.size, PROT_READ | PROT_WRITE, device_.fd.get(), region.offset);
  return rc != 0 ? failed(rc, "cannot map " + name) : 0;
}

int VfioBackend::prepare_config() {
  vfio_region_info region{};
  const int rc = find_region(kernel_, device_.fd.get(), VFIO_PCI_CONFIG_REGION_INDEX, &region);
  config_at_ = region.offset;
  return rc != 0 ? failed(rc, "configuration space") : set_command(config(), false);
}

int VfioBackend::watch() {
  return options_.release ? watch_.start(kernel_, device_.fd.get(), card_.address,
                                         [this](const char* why) { give_up(why); })
                          : 0;
}

/// Let the kernel have the card, while other threads use it.
void VfioBackend::give_up(const char* why) {
  const std::lock_guard lock(mutex_);
  // The kernel waits for mappings of the BAR, too.
  if (const int rc = base::put_ones_over(bar_.va(), bar_.len_bytes()); rc != 0) {
    (void)failed(rc, std::string(why) + "; cannot give it up", "close it");
    return;
  }
  device_.fd = {};  // the kernel ends its bus mastering, before it unmaps any memory
  device_.group = nullptr;
  base::log_warning("%s: %s: given up, it reads all ones from now on; close it, and open it again",
                    address(), why);
  for (const KernelFd& vector : vectors_) {
    base::wake(vector.get());
  }
}

int VfioBackend::map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) {
  const std::lock_guard lock(mutex_);
  uint64_t iova = 0;
  const int rc = given_up()
                     ? failed(-ENODEV, "cannot map memory", "it was given up")
                     : device_.space->map(address(), va, len_bytes, options_.iova_is_va, &iova);
  if (rc == 0) {
    *runs = {{va, iova, len_bytes}};
  }
  return rc;
}

int VfioBackend::unmap(void* va, size_t len_bytes, const std::vector<IovaRun>& runs) {
  return device_.space->unmap(address(), va, len_bytes, runs[0].iova);
}

int VfioBackend::enable_vectors() {
  const uint32_t count =
      std::min(count_irqs(kernel_, device_.fd.get(), VFIO_PCI_MSIX_IRQ_INDEX), kVectorsMax);
  if (count == 0) {
    return -ENOTSUP;
  }
  std::vector<KernelFd> fds;
  for (uint32_t i = 0; i < count; ++i) {
    const int fd = kernel_.eventfd();
    if (fd < 0) {
      return failed(fd, "eventfd for vector " + std::to_string(i),
                    fd == -EMFILE ? "raise ulimit -n" : "");
    }
    fds.emplace_back(kernel_, fd);
  }
  // All at once: a kernel with VFIO_IRQ_INFO_NORESIZE accepts no more later.
  if (const int rc = set_irqs(kernel_, device_.fd.get(), VFIO_PCI_MSIX_IRQ_INDEX, fds); rc < 0) {
    return failed(rc, "cannot enable " + std::to_string(count) + " MSI-X vectors",
                  "poll, or see dmesg");
  }
  vectors_ = std::move(fds);
  return 0;
}

int VfioBackend::irq_fd(uint32_t vector) {
  const std::lock_guard lock(mutex_);
  if (vectors_.empty()) {
    if (const int rc = enable_vectors(); rc != 0) {
      return rc;
    }
  }
  if (vector >= vectors_.size()) {
    base::log_error("%s: no interrupt vector %u: the card has %zu", address(), vector,
                    vectors_.size());
    return -EINVAL;
  }
  return vectors_[vector].get();
}

int VfioBackend::reset() {
  const std::lock_guard lock(mutex_);
  if ((device_flags_ & VFIO_DEVICE_FLAGS_RESET) == 0) {
    if (const int rc = hot_reset(kernel_, card_, device_); rc != 0) {
      return rc;
    }
  } else if (const int rc = kernel_.ioctl(device_.fd.get(), VFIO_DEVICE_RESET, 0ul); rc < 0) {
    return failed(rc, "reset");
  }
  return set_command(config(), false);  // a reset may clear the register
}

int VfioBackend::start_dma() {
  const std::lock_guard lock(mutex_);
  return given_up() ? failed(-ENODEV, "cannot let it access memory", "it was given up")
                    : set_command(config(), true);
}

int VfioBackend::stop_dma() {
  const std::lock_guard lock(mutex_);
  return given_up() ? 0 : silence(config());  // the kernel has ended them
}

int open_vfio_backend(const PciPaths& paths, Kernel& kernel, const PciCard& card,
                      std::unique_ptr<Backend>* out, const name::Pci& options) {
  auto backend = std::make_unique<VfioBackend>(paths, kernel, card, options);
  if (const int rc = backend->open(); rc != 0) {
    return rc;
  }
  *out = std::move(backend);
  return 0;
}

}  // namespace rio::pmd::vfio
