// Implements rte_dma_rio.h.
#include <cerrno>
#include <mutex>

#include "pmd/dma/ops.hpp"

using rio::pmd::control_lock;
using rio::pmd::DmaDevice;
using rio::pmd::find_dma_device;

int rte_dma_rio_window_open(int16_t dev_id, const rte_dma_rio_window* window, uint32_t* index) {
  const std::lock_guard guard(control_lock());
  DmaDevice* const device = find_dma_device(dev_id);
  if (device == nullptr) {
    return -ENODEV;
  }
  return window == nullptr || index == nullptr ? -EINVAL : device->open_window(*window, index);
}

int rte_dma_rio_window_close(int16_t dev_id, uint32_t index) {
  const std::lock_guard guard(control_lock());
  DmaDevice* const device = find_dma_device(dev_id);
  return device == nullptr ? -ENODEV : device->close_window(index);
}

uint32_t rte_dma_rio_dest_id(int16_t dev_id) {
  const std::lock_guard guard(control_lock());
  DmaDevice* const device = find_dma_device(dev_id);
  return device == nullptr ? rio::pmd::Card::kNoDestId : device->dest_id();
}
