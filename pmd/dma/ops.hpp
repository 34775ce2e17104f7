/// @file
/// The driver's functions for dmadev.
#pragma once

#include <rte_dmadev_pmd.h>

#include "pmd/dma/device.hpp"

namespace rio::pmd {

/// Table of control functions; constant.
extern const rte_dma_dev_ops kDmaOps;

/// Sets the hot functions.
void set_hot_functions(DmaDevice& device, rte_dma_fp_object* functions);

}  // namespace rio::pmd
