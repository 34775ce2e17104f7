#include "pmd/raw/device.hpp"

#include <rte_rawdev.h>
#include <rte_rawdev_pmd.h>
#include <unistd.h>

#include <cerrno>

#include "base/log.hpp"
#include "pmd/raw/ops.hpp"

namespace rio::pmd {

int register_device(rte_device* parent, const char* driver_name, int numa_node,
                    std::unique_ptr<RawDevice> device) {
  // No private memory from rawdev: it would be freed by rte_free, and the object is C++.
  rte_rawdev* const raw = rte_rawdev_pmd_allocate(device->name().c_str(), 0, numa_node);
  if (raw == nullptr) {
    base::log_error("%s: no room for a raw device of this name (at most %d devices)",
                    device->name().c_str(), RTE_RAWDEV_MAX_DEVS);
    return -ENOMEM;
  }
  raw->device = parent;
  raw->driver_name = driver_name;
  raw->dev_ops = &kRawOps;
  raw->dev_private = device.release();
  return 0;
}

int unregister_device(const char* name) {
  const std::lock_guard guard(control_lock());
  rte_rawdev* const raw = name != nullptr ? rte_rawdev_pmd_get_named_dev(name) : nullptr;
  if (raw == nullptr) {
    return -ENODEV;
  }
  if (const RawDevice* const device = find_device(raw->dev_id);
      device != nullptr && device->holders > 0) {
    base::log_error("%s: cannot be unplugged: the program (process %d) uses it; end it first", name,
                    static_cast<int>(getpid()));
    return -EBUSY;
  }
  if (raw->started != 0) {
    rte_rawdev_stop(raw->dev_id);
  }
  return rte_rawdev_pmd_release(raw);
}

RawDevice* find_device(uint16_t dev_id) {
  if (dev_id >= RTE_RAWDEV_MAX_DEVS) {
    return nullptr;
  }
  const rte_rawdev& raw = rte_rawdevs[dev_id];
  const bool ours = raw.attached == RTE_RAWDEV_ATTACHED && raw.dev_ops == &kRawOps;
  return ours ? device_of(&raw) : nullptr;
}

std::vector<uint16_t> device_ids() {
  std::vector<uint16_t> ids;
  for (uint16_t id = 0; id < RTE_RAWDEV_MAX_DEVS; ++id) {
    if (find_device(id) != nullptr) {
      ids.push_back(id);
    }
  }
  return ids;
}

}  // namespace rio::pmd
