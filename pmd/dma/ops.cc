// dmadev's functions, and those of rte_dma_rio.h.

#include <cerrno>
#include <mutex>

#include "base/log.hpp"
#include "pmd/dma/device.hpp"

namespace rio::pmd {
namespace {

[[nodiscard]] DmaDevice* device_of(const rte_dma_dev* dev) {
  return static_cast<DmaDevice*>(dev->fp_obj->dev_private);
}
[[nodiscard]] DmaDevice* device_of(int16_t dev_id) {
  return find_dma_device(dev_id);
}

/// Runs `work(DmaDevice&)` under the control lock. @param which device: dmadev's object, or its
/// number. @return what it returned, or -ENODEV.
template <class Which, class Work>
int with_device(Which which, Work&& work) {
  const std::lock_guard guard(control_lock());
  DmaDevice* const device = device_of(which);
  return device == nullptr ? -ENODEV : work(*device);
}

int info_get(const rte_dma_dev* dev, rte_dma_info* info, uint32_t) {
  return with_device(dev, [&](DmaDevice& device) {
    info->dev_capa = RTE_DMA_CAPA_MEM_TO_DEV | RTE_DMA_CAPA_DEV_TO_MEM |
                     RTE_DMA_CAPA_HANDLES_ERRORS | RTE_DMA_CAPA_OPS_COPY |
                     RTE_DMA_CAPA_OPS_COPY_SG |
                     (device.hears_itself() ? RTE_DMA_CAPA_MEM_TO_MEM : 0);
    info->max_vchans = DmaDevice::kChannelsMax;
    info->max_desc = DmaDevice::kSlotsMax;
    info->min_desc = 1;
    info->max_sges = kDmaSegmentsMax;
    info->numa_node = static_cast<int16_t>(device.numa_node());
    return 0;
  });
}

int configure(rte_dma_dev* dev, const rte_dma_conf* conf, uint32_t) {
  return with_device(dev, [&](DmaDevice& device) { return device.configure(conf->nb_vchans); });
}

int start(rte_dma_dev* dev) {
  return with_device(dev, [](DmaDevice& device) { return device.start(); });
}

int stop(rte_dma_dev* dev) {
  return with_device(dev, [](DmaDevice& device) {
    device.stop();
    return 0;
  });
}

int close(rte_dma_dev* dev) {
  const std::lock_guard guard(control_lock());
  delete device_of(dev);
  dev->fp_obj->dev_private = nullptr;
  return 0;
}

int vchan_setup(rte_dma_dev* dev, uint16_t vchan, const rte_dma_vchan_conf* conf, uint32_t) {
  return with_device(dev, [&](DmaDevice& device) { return device.setup(vchan, *conf); });
}

/// Runs `work(DmaChannel&)` for a channel, or for all.
template <class Work>
int with_channels(const rte_dma_dev* dev, uint16_t vchan, Work&& work) {
  return with_device(dev, [&](DmaDevice& device) {
    for (uint16_t i = 0; i < device.channels(); ++i) {
      if ((vchan == i || vchan == RTE_DMA_ALL_VCHAN) && device.has_channel(i)) {
        work(device.channel(i));
      }
    }
    return 0;
  });
}

int stats_get(const rte_dma_dev* dev, uint16_t vchan, rte_dma_stats* stats, uint32_t) {
  *stats = {};
  return with_channels(dev, vchan, [stats](const DmaChannel& channel) {
    const rte_dma_stats one = channel.stats();
    stats->submitted += one.submitted;
    stats->completed += one.completed;
    stats->errors += one.errors;
  });
}

int stats_reset(rte_dma_dev* dev, uint16_t vchan) {
  return with_channels(dev, vchan, [](DmaChannel& channel) { channel.reset_stats(); });
}

/// May run beside bursts; dmadev makes the caller keep to one thread.
int vchan_status(const rte_dma_dev* dev, uint16_t vchan, enum rte_dma_vchan_status* status) {
  DmaDevice* const device = device_of(dev);
  if (device == nullptr || !device->has_channel(vchan)) {
    return -EINVAL;
  }
  const InTurn inside(device->turn());
  if (!inside) {
    *status = RTE_DMA_VCHAN_ACTIVE;
    return 0;
  }
  DmaChannel& channel = device->channel(vchan);
  device->work(channel);
  *status = device->lost()   ? RTE_DMA_VCHAN_HALTED_ERROR
            : channel.idle() ? RTE_DMA_VCHAN_IDLE
                             : RTE_DMA_VCHAN_ACTIVE;
  return 0;
}

int dump(const rte_dma_dev* dev, FILE* file) {
  return with_device(dev, [&](DmaDevice& device) {
    device.dump(file);
    return 0;
  });
}

// Hot functions; dmadev has checked channel and pointers. During a reset of the card they do not
// get the turn: the device then looks full, and nothing ends.

/// Accepts an operation by `copies(DmaChannel&)`.
template <class Copies>
int accept(void* self, uint16_t vchan, uint64_t flags, Copies&& copies) {
  DmaDevice& device = *static_cast<DmaDevice*>(self);
  const InTurn inside(device.turn());
  if (!inside) {
    return -ENOSPC;
  }
  DmaChannel& channel = device.channel(vchan);
  const int rc = copies(channel);
  if (rc >= 0 && (flags & RTE_DMA_OP_FLAG_SUBMIT) != 0) {
    device.post(channel);
  }
  return rc;
}

int copy(void* self, uint16_t vchan, rte_iova_t from, rte_iova_t to, uint32_t length_bytes,
         uint64_t flags) {
  return accept(self, vchan, flags,
                [&](DmaChannel& channel) { return channel.copy(from, to, length_bytes, flags); });
}

int copy_sg(void* self, uint16_t vchan, const rte_dma_sge* from, const rte_dma_sge* to,
            uint16_t from_count, uint16_t to_count, uint64_t flags) {
  return accept(self, vchan, flags, [&](DmaChannel& channel) {
    return channel.copy_list(from, to, from_count, to_count, flags);
  });
}

int submit(void* self, uint16_t vchan) {
  DmaDevice& device = *static_cast<DmaDevice*>(self);
  DmaChannel& channel = device.channel(vchan);
  const InTurn inside(device.turn());
  if (!inside) {
    channel.put_off_submit();  // delayed until a poll for completions
    return 0;
  }
  channel.submit();
  device.post(channel);
  return 0;
}

/// Reports what `take(DmaChannel&)` takes.
template <class Take>
uint16_t report(void* self, uint16_t vchan, uint16_t* last, Take&& take) {
  DmaDevice& device = *static_cast<DmaDevice*>(self);
  DmaChannel& channel = device.channel(vchan);
  const InTurn inside(device.turn());
  if (!inside) {
    *last = channel.last_told();
    return 0;
  }
  device.work(channel);
  return take(channel);
}

uint16_t completed(void* self, uint16_t vchan, const uint16_t n, uint16_t* last, bool* failed) {
  return report(self, vchan, last,
                [=](DmaChannel& channel) { return channel.take_good(n, last, failed); });
}

uint16_t completed_status(void* self, uint16_t vchan, const uint16_t n, uint16_t* last,
                          rte_dma_status_code* status) {
  return report(self, vchan, last,
                [=](DmaChannel& channel) { return channel.take_all(n, last, status); });
}

uint16_t burst_capacity(const void* self, uint16_t vchan) {
  auto* const device = const_cast<DmaDevice*>(static_cast<const DmaDevice*>(self));
  return device->turn().is_free() ? device->channel(vchan).room() : 0;
}

}  // namespace

constinit const rte_dma_dev_ops kDmaOps = {
    .dev_info_get = info_get,
    .dev_configure = configure,
    .dev_start = start,
    .dev_stop = stop,
    .dev_close = close,
    .vchan_setup = vchan_setup,
    .stats_get = stats_get,
    .stats_reset = stats_reset,
    .vchan_status = vchan_status,
    .dev_dump = dump,
};

DmaDevice* find_dma_device(int16_t dev_id) {
  if (!rte_dma_is_valid(dev_id)) {
    return nullptr;
  }
  const rte_dma_fp_object& functions = rte_dma_fp_objs[dev_id];
  return functions.copy == copy ? static_cast<DmaDevice*>(functions.dev_private) : nullptr;
}

void set_hot_functions(DmaDevice& device, rte_dma_fp_object* functions) {
  functions->dev_private = &device;
  functions->copy = copy;
  functions->copy_sg = copy_sg;
  functions->submit = submit;
  functions->completed = completed;
  functions->completed_status = completed_status;
  functions->burst_capacity = burst_capacity;
}

}  // namespace rio::pmd

using rio::pmd::with_device;

int rte_dma_rio_window_open(int16_t dev_id, const rte_dma_rio_window* window, uint32_t* index) {
  return with_device(dev_id, [&](rio::pmd::DmaDevice& device) {
    return window == nullptr || index == nullptr ? -EINVAL : device.open_window(*window, index);
  });
}

int rte_dma_rio_window_close(int16_t dev_id, uint32_t index) {
  return with_device(dev_id,
                     [&](rio::pmd::DmaDevice& device) { return device.close_window(index); });
}

uint32_t rte_dma_rio_dest_id(int16_t dev_id) {
  const std::lock_guard guard(rio::pmd::control_lock());
  rio::pmd::DmaDevice* const device = rio::pmd::find_dma_device(dev_id);
  return device == nullptr ? rio::pmd::Card::kNoDestId : device->dest_id();
}
