// The text that dpdk-pmdinfo.py reads from the plug-in. One line of JSON after "PMD_INFO_STRING= ".

#include <rte_common.h>

#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::pmd {
namespace {

// The numbers of the string below.
static_assert(regs::kPciVendor == 4334 && regs::kPciDevice == 29200);
static_assert(regs::kPciIvshmemVendor == 6900 && regs::kPciIvshmemDevice == 4368);

[[gnu::used, gnu::retain]] constexpr char kVdevInfo[] =
    "PMD_INFO_STRING= {\"name\" : \"raw_rio\", \"params\" : \""
    "wire=<emu:loop|emu:name|emu:fabric|shm:name|udp:name|relay:name> qps=<1-31> id=<destID> "
    "stepping=<inline|thread> exact=<0|1> quirks=<0|1> faults=<seed:rate> pcie=<seed> "
    "topology=<file> at=<endpoint> pull=<0|1> members=<file> bind=<address> port=<number> "
    "patience=<s> loss=<seed:rate> board=<number> "
    "tx_ring=<entries> rx_ring=<entries> dedicated_ring=<entries> "
    "doorbell_ring=<entries> dma_ring=<entries> event_ring=<entries> response_timeout_us=<us> "
    "receive_timeout_us=<us> retry_limit=<n> retry_delay_us=<us>"
    "\", \"pci_ids\" : []}";

[[gnu::used, gnu::retain]] constexpr char kPciInfo[] =
    "PMD_INFO_STRING= {\"name\" : \"raw_rio_pci\", \"params\" : \""
    "id=<destID> tx_ring=<entries> rx_ring=<entries> dedicated_ring=<entries> "
    "doorbell_ring=<entries> dma_ring=<entries> event_ring=<entries> response_timeout_us=<us> "
    "receive_timeout_us=<us> retry_limit=<n> retry_delay_us=<us>"
    "\", \"kmod\" : \"* vfio-pci | uio_pci_generic\", "
    "\"pci_ids\" : [[4334, 29200, 65535, 65535], [6900, 4368, 65535, 65535]]}";

}  // namespace
}  // namespace rio::pmd
