/// @file
/// The functions of dmadev.
#pragma once

#include <rte_dmadev_pmd.h>

#include "pmd/dma/device.hpp"

namespace rio::pmd {

/// The table; constant.
extern const rte_dma_dev_ops kDmaOps;

/// The hot ones.
void set_hot_functions(DmaDevice& device, rte_dma_fp_object* functions);

}  // namespace rio::pmd
