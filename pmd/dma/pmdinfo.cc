// The text that dpdk-pmdinfo.py reads from the plug-in. One line of JSON after "PMD_INFO_STRING= ".

namespace rio::pmd {
namespace {

[[gnu::used, gnu::retain]] constexpr char kVdevInfo[] =
    "PMD_INFO_STRING= {\"name\" : \"dma_rio\", \"params\" : \""
    "card=<name> qp=<number>, or arguments of raw_rio for an emulated card of its own"
    "\", \"pci_ids\" : []}";

}  // namespace
}  // namespace rio::pmd
