#include "tests/bench/dma_device.hpp"

#include "pmd/dma/rte_dma_rio.h"
#include "tests/bench/eal.hpp"

namespace rio::bench {
namespace {
constexpr uint16_t kSlots = 64;
}

int16_t start_dma(const char* name, rte_dma_direction direction, uint32_t dest_id) {
  const int id = rte_dma_get_dev_id_by_name(name);
  expect(id >= 0, "no DMA device: is librte_dma_rio.so loaded?");
  const auto device = static_cast<int16_t>(id);
  rte_dma_conf conf{};
  conf.nb_vchans = 1;
  expect(rte_dma_configure(device, &conf) == 0, "configuring a DMA device");
  rte_dma_vchan_conf channel{};
  channel.direction = direction;
  channel.nb_desc = kSlots;
  rte_dma_rio_port(direction == RTE_DMA_DIR_DEV_TO_MEM ? &channel.src_port : &channel.dst_port,
                   dest_id, RTE_DMA_RIO_NWRITE_R, 1);
  expect(rte_dma_vchan_setup(device, 0, &channel) == 0, "setting up a channel");
  expect(rte_dma_start(device) == 0, "starting a DMA device");
  return device;
}

}  // namespace rio::bench
