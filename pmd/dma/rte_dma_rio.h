/**
 * @file
 * RapidIO cards as DPDK DMA devices: what dmadev has no words for. C and C++.
 *
 * Memory to memory goes through the card and back, where the card hears what it sends to its own
 * destID. Memory to device is an NWRITE, NWRITE_R or SWRITE to a node, device to memory an NREAD
 * from one; addresses of the device are RapidIO addresses, with the key of the node's inbound
 * window, if it has one, in the top 16 bits (rte_dma_rio_window_open() of the other side).
 */
#ifndef RTE_DMA_RIO_H
#define RTE_DMA_RIO_H

#include <rte_dmadev.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How a channel writes to a node. */
enum rte_dma_rio_write {
  RTE_DMA_RIO_NWRITE_R, /**< done when the node says that it is written; the default */
  RTE_DMA_RIO_NWRITE,   /**< done when sent; what goes wrong at the node is not told */
  RTE_DMA_RIO_SWRITE,   /**< as NWRITE; addresses and lengths are multiples of 8 */
};

/** Marks rte_dma_port_param::reserved[0], upper half. */
#define RTE_DMA_RIO_PORT_MARK 0x52494f01u

/**
 * Name a node as the port of a channel: dst_port of RTE_DMA_DIR_MEM_TO_DEV, src_port of
 * RTE_DMA_DIR_DEV_TO_MEM. Programs that do not know this header set pcie.vfid to a destID of up to
 * 16 bits, and get NWRITE_R.
 * @param dest_id of the node. @param write of writes; reads ignore it. @param priority 0 to 2.
 */
static inline void rte_dma_rio_port(struct rte_dma_port_param* port, uint32_t dest_id,
                                    enum rte_dma_rio_write write, uint8_t priority) {
  port->port_type = RTE_DMA_PORT_PCIE; /* dmadev has no other */
  port->reserved[0] = (uint64_t)RTE_DMA_RIO_PORT_MARK << 32 | dest_id;
  port->reserved[1] = (uint64_t)priority << 8 | (uint64_t)write;
}

/** Accesses of nodes to a window; bits. */
#define RTE_DMA_RIO_READ 1u   /**< NREAD */
#define RTE_DMA_RIO_WRITE 2u  /**< NWRITE, NWRITE_R, SWRITE */
#define RTE_DMA_RIO_ATOMIC 4u /**< atomic operations */

/** Memory of this process that nodes may reach. */
struct rte_dma_rio_window {
  uint64_t rio_addr;    /**< RapidIO address of the first byte; below 2^48 with a key */
  uint64_t iova;        /**< of the first byte; memory that the card reaches */
  uint64_t len;         /**< in bytes, at least 1 */
  uint32_t source;      /**< destID of who may use it, under source_mask */
  uint32_t source_mask; /**< bits of source that count; 0: all sources */
  uint16_t key;         /**< top 16 bits of addresses; 0: none */
  uint8_t rights;       /**< RTE_DMA_RIO_READ and the others, at least one */
  uint8_t reserved[5];  /**< 0 */
};

/**
 * Open a window of a device that is started. It is closed when the device stops. A reset of the
 * card closes it, too, and opens it again under the same index; nodes are refused meanwhile.
 * Control path.
 * @param index of the window, for rte_dma_rio_window_close().
 * @return 0, -EINVAL (no rights, a range that wraps, not aligned), -ENODEV (no device of this
 * driver, or not started), -ENOSPC (all are open), -ETIMEDOUT.
 */
int rte_dma_rio_window_open(int16_t dev_id, const struct rte_dma_rio_window* window,
                            uint32_t* index);
/**
 * Close it. Then the memory is the caller's.
 * @return 0, -ENOENT (not open), -ENODEV, -ETIMEDOUT (the memory must stay as it is).
 */
int rte_dma_rio_window_close(int16_t dev_id, uint32_t index);
/** @return destID of the device, 0xFFFFFFFF where there is none. Control path. */
uint32_t rte_dma_rio_dest_id(int16_t dev_id);

#ifdef __cplusplus
}
#endif

#endif /* RTE_DMA_RIO_H */
